// Package provisionfaults tests the provisioner as the process that it is, with what it works with: a real API server, its etcd,
// a controller manager and a scheduler, KWOK in place of kubelets, a collector and two schedds of HTCondor, and another pool
// whose schedd flocks to it. All of these fail here in turn, and the provisioner is killed.
//
// It starts all of it itself, in a directory of its own, beside whatever pool runs on the machine:
//
//	go -C integration test -tags pool -count=1 -v ./provisionfaults
//
// The flags -kills and -pods make two tests larger, and -docs writes what the second measured into its page.
package provisionfaults
