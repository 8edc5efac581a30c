// Command record writes down what startd, shadow and tools really say to a
// starter, in the pool that runs: testdata/streams/VERSION/CASE holds the streams
// of one starter, a line for each packet, and tests of cedar and condor replay
// them.
//
//	integration/.state/bin/pool up --stock --slots 4 --condor 23.9
//	go run ./integration/record
//
// The streams are encrypted from the first byte that the starter sends, with keys
// that only its process has, so that no proxy between the daemons could read
// them. A hook in the product would be one more way to read what is secret. So
// record builds a starter of its own: `go build -overlay` renames, in a copy of
// one file of cedar, the two functions that each packet passes, and tap.go.txt
// stands in their place. The product's source knows nothing of it.
//
// Keys, cookies and the numbers of claims are overwritten by zeros of the same
// length before anything is written to testdata.
package main
