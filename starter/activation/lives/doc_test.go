// Package lives_test runs whole lives of a job: activation.Run with doubles of its peers
// (condor/condortest), and the real wrapper beside it (localexec), as an ordinary user.
//
// A [life] says what the job is, what its peers do and when which orders come, and what
// is to come of it. The job and the test meet by words in a FIFO ([world.hears]), the
// peers and the test by what the peers hear; nothing sleeps. After each life the same is
// checked by rules: one last word to the shadow and one to the startd, and nothing left of
// sandbox, processes, goroutines and descriptors.
package lives_test
