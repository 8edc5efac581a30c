// Package daemonfaults holds the tests in which parts of a pool fail under jobs: a shadow, the schedd, the
// network between the submit side and an execution point, a startd, a starter that hangs or is killed in
// each of its phases, the whole pilot. If the stock starter can be tested in the same way, both execution
// points meet the same fault and the test compares what becomes of their jobs.
//
// In no case may the end of a job be lost without a word, a job run twice at
// once, or a process or sandbox be left behind. The tests need the build tag pool
// and a pool with both execution points:
//
//	integration/.state/bin/pool up --stock --slots 4 --partitionable=false
//	go -C integration test -tags pool -count=1 -v ./daemonfaults
//
// integration/run-tests has those in which a startd or a whole pilot is killed, or a
// starter hangs, in turn only: they take half a minute and more each, in which
// HTCondor waits.
package daemonfaults
