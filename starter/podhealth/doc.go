// Package podhealth is what the starters of one pod know of its ability to run
// jobs, and how slots stop taking jobs while it has none.
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
// Nothing is shared in memory: two processes, or two goroutines, meet in the
// lock of the state directory alone.
package podhealth
