// Package controllers tests the pods of deploy/ that others make: a Job whose pod ends by itself, and a Deployment whose pods are
// drained and replaced under running jobs. The controller manager and the scheduler are real, and so is what an administrator does
// with kubectl. Its pool:
//
//	integration/.state/bin/pool up --controllers --slots 1
//	go -C integration test -tags pool -count=1 -v ./controllers
package controllers
