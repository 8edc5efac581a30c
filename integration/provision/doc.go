// Package provision runs the provisioner of deploy/provisioner in the pool's cluster, where a Job controller and a scheduler make pods of what
// it asks for, and follows what comes of it. Its tests submit jobs to a pool without pilots for them. Its pool:
//
//	integration/.state/bin/pool up --controllers --slots 1 --gpus 1
//	go -C integration test -tags pool -count=1 -v ./provision
//
// The command in demo shows the same.
package provision
