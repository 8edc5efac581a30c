// Package report tells the operator of the pod what starters do in it: lines on the standard
// output of the pilot container, which `kubectl logs` shows, and totals for metrics.
//
//	journal ──▶ Reporter ──▶ lines ──▶ FIFO ──▶ entrypoint's cat ──▶ kubectl logs
//	                 │
//	                 └─────▶ totals ──▶ podstarter.metrics in LOCK
//
// A daemon of the condor_master has no standard output, so the entrypoint of the pilot image
// puts a FIFO into the state directory and copies what comes through it. Nobody waits for
// those who read the lines: what does not fit into the FIFO is counted and lost.
package report
