// Package endpoint is where this process is told what to do: its command port, its
// signals, and the process that watches over it. It turns what it hears into orders, or
// hands it to whom it concerns.
package endpoint
