// Package footprint_test measures what starters need while their jobs run: whole programs,
// built as `make build` builds them, between doubles of startd and shadow
// (condor/condortest), of the API server and of the kubelet.
//
//	go test ./starter/footprint -run '^$' -bench . -benchtime 1x
//
// prints, for each starter, its memory in KiB, how often it wakes up in 20 seconds, and its
// threads, goroutines and sockets. The tests check what does not depend on the machine.
package footprint_test
