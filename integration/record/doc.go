// Command record records what startd, shadow and tools really send to a starter,
// in the pool that runs: testdata/streams/VERSION/CASE holds the streams of one
// starter, a file for each connection and a line for each packet. Unit tests play
// them to the product's code that reads them.
//
//	integration/.state/bin/pool up --slots 1 --condor 23.9
//	go -C integration run ./record [-only plain,held]
//
// The streams are encrypted from the first byte that the starter sends, with keys
// that only its process has, so that no proxy between the daemons could read
// them. A hook in the product would be one more way to read secrets. So
// record builds a starter of its own: `go build -overlay` renames, in a copy of
// one file of cedar, the functions that each packet and each key pass, and
// tap.go.txt stands in their place. The product's source knows nothing of it.
//
// Keys, nonces, cookies and the names of sessions are overwritten by zeros of the
// same length before anything is written to testdata.
package main
