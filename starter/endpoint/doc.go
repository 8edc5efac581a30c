// Package endpoint receives what others tell this process: at its command port, by
// signals, and by the end of the startd. It turns that into orders, or passes it to the
// part that it concerns.
package endpoint
