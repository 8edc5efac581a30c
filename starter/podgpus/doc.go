// Package podgpus finds out which payload container has which graphics processors, tells
// the startd of them, and says in which container a job may run.
//
// A device plugin gives devices to payload containers, and the pilot container has none. So
// the program that HTCondor looks for GPUs with runs inside the payload containers, before
// the first job and in their default image:
//
//	Find     at -classad, which a startd calls as root before it asks for its resources
//	   |     gpus.json in the state directory, for starters
//	   |     podstarter.gpus in HTCondor's LOCK directory, for the startd
//	Print    at -gpus, which the startd calls as the user condor
//	Holders  in which containers the job of a slot may run
//
// Devices stay with their container as long as the pod lives, so they are found once for a pod.
package podgpus
