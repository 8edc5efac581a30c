package main

import (
	"runtime/debug"

	"podstarter/starter/activation"
)

// startGrowth is by how many percent the heap may grow between two collections before the
// job runs and after it. All that a start needs fits below, so that it collects once, when
// the starter comes to rest.
const startGrowth = 300

// restingGrowth is by how many percent the heap may grow between two collections while a
// job runs. It is small then, and a starter makes little garbage; without it the Go runtime
// would let it grow to 4 MiB before it looks at all.
const restingGrowth = 25

// rest makes this process small while it waits for the end of its job: it gives back what
// it needed only to start, and after each update what that needed.
func rest() activation.Rest {
	before := debug.SetGCPercent(restingGrowth)
	return activation.Rest{GiveBack: debug.FreeOSMemory, End: func() { debug.SetGCPercent(before) }}
}

// stay makes a process small that lives as long as the pod.
func stay() { debug.SetGCPercent(restingGrowth) }
