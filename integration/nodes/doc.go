// Package nodes tests what happens to jobs when a node of the cluster is drained, shut down, dies, is cut off, or has a wrong clock. It
// needs a pool of two nodes with eight slots each and stock execution points, and runs on the host, which outlives them all:
//
//	integration/.state/bin/pool up --guests 2 --stock --slots 8 --partitionable=false
//	go -C integration test -tags pool -count=1 -v ./nodes
//
// `make nodes` does both. The same happens to as many jobs of ours and of the stock starter at the same time.
package nodes
