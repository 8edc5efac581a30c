// Command upstream runs HTCondor's own tests (src/condor_tests in its source) twice: with the stock starter, and with ours in
// its place and the local backend. It notes in record.json how each case ended under both; differences.go says why they differ;
// TestPage writes docs/developer/upstream-tests.md from both.
//
//	make build
//	go -C integration run ./upstream -source DIR                     # all chosen tests, under both starters; about two hours
//	go -C integration run ./upstream -source DIR -test 'cif|xfer'    # some of them
//	go -C integration test -count=1 ./upstream -run TestPage -update
//
// HTCondor's source is not part of this repository: DIR is a directory that has src/condor_tests and src/condor_scripts of the
// release of upstreamroot. It needs root, for the namespaces in which each test runs; what it runs has no network.
package main
