// Command condor_pod_wrapper is the main process of a payload container: it starts the job
// when the starter asks for it, and kills it when the starter is gone. It needs nothing
// from the image it runs in. See docs/developer/protocol.md.
//
//	condor_pod_wrapper -control DIR
//	condor_pod_wrapper -hold
package main

import (
	"os"

	"podstarter/wrapper/agent"
)

func main() {
	agent.Dispatch()
	// A pod may give the binary any name.
	os.Exit(agent.Main(os.Args[1:]))
}
