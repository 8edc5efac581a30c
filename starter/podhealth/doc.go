// Package podhealth keeps what the starters of one pod know about whether it
// can run jobs, and lets slots stop taking jobs while it cannot.
//
// Starters come and go with their jobs, so what they learn is kept in files:
//
//	Observer  one activation of one slot notes what it learned
//	   |
//	  Pod     health.json in the state directory, for starters, as root
//	   |      podstarter.status in HTCondor's LOCK directory, for the pool
//	   |
//	Monitor   prints what is published for the ads of the slots (STARTD_CRON)
//	Keep      checks a sick pod again and again until it is mended
//
// Nothing is shared in memory: two processes, or two goroutines, meet only in
// the lock of the state directory.
package podhealth
