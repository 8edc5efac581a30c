// Package agent is the wrapper: the main process of a payload container, or, started by
// localexec, a companion of the starter on a machine without Kubernetes.
//
// One goroutine, the loop, owns all state. Goroutines around it accept
// connections, read lines, look at the payload's processes, wait for a launcher to
// report and take stop signals.
//
//	                 start                  main process reaped
//	connected ─────────────────▶ running ─────────────────────▶ ended
//	 ▲  │  ▲                        │                            │ │
//	 │  │  └───── launch failed ────┤                 start      │ │
//	 │  │                           │  ◀─────────────────────────┘ │
//	 │  └────────────┐              │ end of file                  │
//	 │ accept        ▼              ▼                              │
//	idle ◀─────── sweeping ◀────────┴──────────────────────────────┘
//	    none left
//
// A sweep on request is the same sweep without the loss of the connection.
//
// The package imports the standard library, golang.org/x/sys, and the contract (payload and
// payload/procfamily) only: the wrapper must be small, start within milliseconds, and use
// nothing of the image it runs in. Therefore it never uses local time (/etc/localtime),
// users by name (/etc/passwd) or host names (/etc/resolv.conf).
package agent
