// Package condortest has a double of each peer of a starter, for tests: [Shadow], the
// submit side of one job, and [Startd], which hands a starter its sockets and gives it
// orders.
//
// By default they say what real daemons said to a starter, which is recorded in
// testdata/streams: the ads of the job and of the slot, the input files, and the
// answers to all calls. TestFidelity holds them against those recordings. A test
// changes what it needs changed in [ShadowOptions] and [StartdOptions].
//
// They write down whatever they hear ([Recorder]). A test waits for what it
// expects with [Recorder.Wait]; nothing here sleeps. For any call, or the n-th of its
// kind, they can be told to refuse, to stall, to hang up, to lie, or to run a
// function of the test first: see [Plan.On].
//
// A test of a whole life reads
//
//	shadow := condortest.NewShadow(t, condortest.ShadowOptions{Job: `Cmd = "/bin/true"` + "\n" + `TransferExecutable = false`})
//	startd := condortest.NewStartd(t, condortest.StartdOptions{})
//	activation := startd.Activate(t, shadow)
//	shadow.On("begin_execution", 1, condortest.Do(func(condortest.Heard) { activation.Vacate(t, condortest.Deactivated) }))
//	go starter(activation.Env(t)) // reads it with startd.Inherit
//	exit := shadow.Wait(t, condortest.Call("job_exit"))
//	// exit.Ints are the wait status and the reason
//
// All sockets are on the loopback address. The descriptors in [Activation.Env] belong to
// whoever reads them, which may happen once.
package condortest
