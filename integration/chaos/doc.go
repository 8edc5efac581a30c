// Package chaos holds the test in which starters, wrappers and payloads of a pod
// with several payload containers are killed at random while hundreds of short
// jobs pass through, and the checker that reads from the logs whether any job
// was lost, ran twice at once, met another, or came out wrong.
//
// [Check] is a pure function over [Evidence], so that it can be shown to find
// what it is there to find; the evidence is gathered by the test, which needs the
// build tag pool and a pool with a partitionable slot:
//
//	integration/.state/bin/pool up --slots 3 --partitionable
//	go -C integration test -tags pool -count=1 -v ./chaos [-seed N] [-jobs N]
//
// In a pool with pullers (--pullers 2) their pods' processes are killed, too, and some jobs
// have images that are not on the node. With spares (--spares 4) the checker also looks at
// containers that are made before a job wants them.
package chaos
