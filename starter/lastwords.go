package main

import (
	"context"
	"fmt"

	"podstarter/condor/shadow"
)

// lastWords gives the job back to the queue when this program has failed, and
// leaves nothing of it behind, as far as that still works
// (HTCondor src/condor_starter.V6.1/starter.cpp:ExceptHandler).
func (a *activation) lastWords(ctx context.Context, trouble any) {
	for _, step := range []func(){
		func() {
			a.report(ctx, shadow.RemoteError{
				Message: fmt.Sprintf("the starter failed: %v", trouble), Code: shadow.VacateStarterError, Critical: true})
		},
		func() { a.clean(ctx) },
	} {
		func() {
			defer func() {
				if again := recover(); again != nil {
					a.log.Error("Failed again while cleaning up after an internal error", "panic", again)
				}
			}()
			step()
		}()
	}
}
