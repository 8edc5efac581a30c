package main

// Mistakes in what the sandbox sends, takes and counts.
var transferMutants = []mutant{
	{
		Name:  "half of a file stays when the disk is full",
		File:  "sandbox/filetransfer/receive.go",
		Old:   "\t\t\t_ = d.Sandbox.Root().Remove(target)\n",
		New:   "",
		Tests: transferTests("TestDownloadToFullDisk"),
	},
	{
		Name:  "a sender in the queue is not given the time that it asks for",
		File:  "sandbox/filetransfer/goahead.go",
		Old:   "\t\t\t\tx.s.SetTimeout(v + aliveSlop)\n",
		New:   "\t\t\t\t_ = v\n",
		Tests: transferTests("TestDownloadWaitsForTheNextWord"),
	},
	{
		Name:  "a shadow that fetches URLs has to answer at once",
		File:  "sandbox/filetransfer/upload.go",
		Old:   "\t\tu.s.SetTimeout(mostAlive)\n",
		New:   "",
		Tests: transferTests("TestUploadWaitsForAnAnswerThatTakesTime"),
	},
	{
		Name:  "the time for the container image is in milliseconds",
		File:  "sandbox/filetransfer/stats.go",
		Old:   `int64(s.container/time.Second)`,
		New:   `int64(s.container/time.Millisecond)`,
		Tests: transferTests("TestFetch"),
	},
	{
		Name:  "the limit of output is one of each file",
		File:  "sandbox/filetransfer/send.go",
		Old:   `n = min(n, max(u.limit-u.stats.bytes, 0))`,
		New:   `n = min(n, max(u.limit, 0))`,
		Tests: transferTests("TestUploadLimit"),
	},
	{
		Name:  "a file keeps the end of a longer one that was there",
		File:  "sandbox/beneath/file.go",
		Old:   `unix.O_WRONLY | unix.O_CREAT | unix.O_TRUNC | unix.O_NONBLOCK`,
		New:   `unix.O_WRONLY | unix.O_CREAT | unix.O_NONBLOCK`,
		Tests: transferTests("TestDownloadReplacesWhatIsInTheWay"),
	},
	{
		Name:  "condor_rm -transfer sends the output to the spool",
		File:  "sandbox/jobfiles/kind.go",
		Old:   `if e.Evicted && !e.FinalOnRm && job.BoolOr(`,
		New:   `if e.Evicted && job.BoolOr(`,
		Tests: jobFileTests("TestChoose"),
	},
	{
		Name:  "the job's X.509 proxy comes back as output",
		File:  "sandbox/jobfiles/selection.go",
		Old:   `s.skip = append(s.skip, BaseName(j.Proxy))`,
		New:   `s.skip = append(s.skip, j.Proxy)`,
		Tests: jobFileTests("TestChangedFiles"),
	},
	{
		Name:  "the last kilobyte of a sandbox does not count",
		File:  "sandbox/sandbox.go",
		Old:   `return (u.Bytes + 1023) / 1024, u.Files, err`,
		New:   `return u.Bytes / 1024, u.Files, err`,
		Tests: sandboxTests("TestUsage"),
	},
	{
		Name:  "a checkpoint's file stays open after its sum was made",
		File:  "sandbox/filetransfer/verify.go",
		Old:   "\tdefer func() { _ = f.Close() }()\n\tif st.Size > 1<<20 {",
		New:   `	if st.Size > 1<<20 {`,
		Tests: transferTests("TestVerifyCheckpoint"),
	},
	{
		Name:  "each file that was sent stays open",
		File:  "sandbox/filetransfer/send.go",
		Old:   "\t\t\tdefer func() { _ = f.Close() }()\n",
		New:   ``,
		Tests: transferTests("TestUploadList"),
	},
}
