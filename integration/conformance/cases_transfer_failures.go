package conformance

import (
	"podstarter/integration/harness"
	"slices"
)

// failing is a job whose transfer fails.
func failing(c Case) Case {
	c.Submit += shortLease
	if len(c.Steps) > 0 {
		c.Steps = append(c.Steps, Ends())
	}
	return c
}

// spoiled is a job whose output cannot be transferred, except its standard
// output, which shows what still arrives.
func spoiled(name, shows, script, submit string, files ...harness.File) Case {
	return failing(making(name, shows, "echo hello; echo 1 >good\n"+script, submit, files...))
}

// failuresCases are about files that cannot be transferred: the hold, its codes
// and its words.
var failuresCases = []Case{
	failing(taking("input-link-to-directory", "a symbolic link to a directory as input", "show dir", "transfer_input_files = to-dir",
		append(text("dir/leaf"), harness.File{Name: "to-dir", Symlink: "dir"})...)),
	failing(taking("input-link-below", "a directory with a link to a directory as input", "show dir", "transfer_input_files = dir",
		append(text("dir/a", "other/leaf"), harness.File{Name: "dir/to-dir", Symlink: "../other"})...)).onRequest(),
	failing(arranged("chmod 0 dir", taking("input-directory-unreadable", "a directory that its owner may not read as input", "show dir", "transfer_input_files = dir", text("dir/leaf")...))).then("chmod 700 dir").onRequest(),
	failing(arranged("chmod 0 dir/leaf", taking("input-leaf-unreadable", "a file that its owner may not read, in a directory", "show dir", "transfer_input_files = dir, fine", text("dir/leaf", "dir/other", "fine")...))).then("chmod 600 dir/leaf"),
	failing(arranged("chmod 555 dir", taking("input-directory-locked", "a directory that may not be written as input", "show dir", "transfer_input_files = dir", text("dir/leaf")...))).then("chmod 700 dir").onRequest(),
	failing(taking("input-over-directory", "a file and a directory of one name as input", "show same", "transfer_input_files = x/same, y/same", text("x/same/leaf", "y/same")...)),
	failing(taking("input-under-file", "a directory where a file is already", "show same", "transfer_input_files = y/same, x/same", text("x/same/leaf", "y/same")...)).onRequest(),
	failing(taking("input-remap-circle", "remaps of input that lead in circles", "show a", "transfer_input_files = a\n+TransferInputRemaps = \"a=b;b=a\"", text("a")...)),
	failing(taking("input-remap-out", "an input that is remapped out of the sandbox", "show a", "transfer_input_files = a\n+TransferInputRemaps = \"a=../a\"", text("a")...)),
	failing(limited("input-limit-passed", "max_transfer_input_mb and one byte of input", 1)),
	twice(Case{Name: "input-breaks", Shows: "the connection breaks during the transfer of input, after one file",
		Files:  append(text("one"), Script("job", "cat one"), harness.File{Name: "large", Sparse: 600 << 20}),
		Submit: "executable = job\ntransfer_input_files = one, large\nrequest_disk = 1G\noutput = out\ntransfer_output_files = \"\"",
		Steps:  []Step{Event(harness.EventFileTransfer, 1), transferBreaks(), comes(), Ends()},
		Fleeting: slices.Concat(byChance("the next time less of the input may arrive before the connection breaks",
			"bytesrecvd", "0* Bytes Received By Job", "005   Partitionable Resources*", "transferinput*", "diskusage*"),
			byChance("under stock the shadow may die, and the startd's record is of the run after that",
				"cumulativeslottime", "initialwaitduration", "jobcurrentreconnectattempt", "joblaststartdate",
				"lastpublicclaimid", "lastremotehost", "lastremotewallclocktime", "lastshadowexception", "lastvacatetime",
				"numinputtransferstarts", "transferinstarted", "transferoutputstats"))}),
	brokenOff(twice(Case{Name: "output-breaks", Shows: "the connection breaks during the transfer of output",
		Files:  []harness.File{Script("job", "starts=$(sed -n 's/^NumJobStarts = //p' \"$_CONDOR_JOB_AD\")\necho small | tee small >large; [ \"${starts:-0}\" -gt 0 ] || truncate -s 1G large")},
		Submit: "executable = job\noutput = out\nrequest_disk = 1G\ntransfer_output_files = small, large\ntransfer_output_remaps = \"large=/dev/null\"" + shortLease,
		Steps:  []Step{Event(harness.EventFileTransfer, 3), transferBreaks(), whenever(Ends())}})).onRequest(),
	brokenOff(outgoing("output-breaks-late", "the connection breaks when all of the output has been sent and nothing is written yet", "", transferBreaks(), comesOut(), whenever(Ends()))).onRequest(),
	failing(Case{Name: "execute-disk-full", Shows: "a full disk at the execution point when the input arrives", Alone: true,
		Files:  []harness.File{{Name: "large", Content: make([]byte, 5<<20)}},
		Submit: "hold = True\nrequest_disk = 1K\ntransfer_input_files = large\narguments = out=hello\noutput = out",
		Steps:  []Step{onSmallDisk(smallDisk(4<<20), Event(harness.EventHeld, 1))}}),
	failing(Case{Name: "submit-disk-full", Shows: "a full disk at the access point when the output arrives",
		Files:  []harness.File{Script("job", "head -c 5M /dev/zero >large; echo hello"), {Name: "small/file"}},
		Submit: "executable = job\nhold = True\noutput = out\ntransfer_output_files = large\ntransfer_output_remaps = \"large=small/large\"",
		Steps:  []Step{onSmallDirectory(smallDisk(4<<20), "small", Event(harness.EventHeld, 1))}}),
	failing(Case{Name: "execute-quota", Shows: "a quota at the execution point when the input arrives", Alone: true,
		Files:  []harness.File{{Name: "large", Content: make([]byte, 5<<20)}},
		Submit: "hold = True\nrequest_disk = 1K\ntransfer_input_files = large\narguments = out=hello\noutput = out",
		Steps:  []Step{onSmallDisk(quotaDisk(4<<20), Event(harness.EventHeld, 1))}}).onRequest(),
	failing(Case{Name: "submit-quota", Shows: "a quota at the access point when the output arrives",
		Files:  []harness.File{Script("job", "head -c 5M /dev/zero >large; echo hello"), {Name: "small/file"}},
		Submit: "executable = job\nhold = True\noutput = out\ntransfer_output_files = large\ntransfer_output_remaps = \"large=small/large\"",
		Steps:  []Step{onSmallDirectory(quotaDisk(4<<20), "small", Event(harness.EventHeld, 1))}}).onRequest(),

	spoiled("output-unreadable", "an output file of mode 000, and others", "echo 2 >shut; chmod 0 shut", "transfer_output_files = shut, good"),
	spoiled("output-unreadable-unset", "the same without a list", "echo 2 >shut; chmod 0 shut", "").onRequest(),
	spoiled("output-unreadable-below", "the same in a directory", "mkdir d; echo 2 >d/shut; echo 3 >d/fine; chmod 0 d/shut", "transfer_output_files = d, good"),
	spoiled("output-directory-unreadable", "an output directory of mode 000", "mkdir d; echo 2 >d/f; chmod 0 d", "transfer_output_files = d, good"),
	spoiled("output-wildcard", "a pattern as output", "echo 2 >a.txt; echo 3 >b.txt", "transfer_output_files = *.txt, good").onRequest(),
	spoiled("output-missing-several", "three output files that do not exist, two that do", "echo 2 >other", "transfer_output_files = none, good, d/none, other, nothing/"),
	spoiled("output-missing-whole", "an output file outside of the sandbox that does not exist", "", "transfer_output_files = /no/such/file, good"),
	spoiled("output-above", "output files above the sandbox that do not exist", "", "transfer_output_files = ../none, good").onRequest(),
	spoiled("output-file-slash", "a file with a trailing slash as output", "echo 2 >f", "transfer_output_files = f/, good").onRequest(),
	spoiled("output-link-to-directory", "a link to a directory as output", "mkdir d; echo 2 >d/f; ln -s d to-d", "transfer_output_files = to-d, good"),
	spoiled("output-link-below", "a directory with a link to a directory as output", "mkdir d e; echo 2 >d/f; echo 3 >e/g; ln -s ../e d/to-e", "transfer_output_files = d, good").onRequest(),
	spoiled("output-link-dangling", "a link to nothing as output", "ln -s nothing link", "transfer_output_files = link, good").onRequest(),
	spoiled("output-device", "a device as output", "", "transfer_output_files = /dev/zero, good"),
	spoiled("output-too-large-below", "more output than max_transfer_output_mb, in a directory, and what comes after it", "mkdir d; head -c 700000 /dev/zero >d/1; head -c 700000 /dev/zero >d/2",
		"transfer_output_files = d, good\nmax_transfer_output_mb = 1"),
	spoiled("output-limit-passed", "max_transfer_output_mb and one byte of output", "head -c 1048577 /dev/zero >large", "output = /dev/null\ntransfer_output_files = large\nmax_transfer_output_mb = 1").onRequest(),
	spoiled("output-nowhere", "an output that is remapped into a missing directory of the submit side", "", "transfer_output_files = good\ntransfer_output_remaps = \"good=/no/such/directory/good\""),
	spoiled("output-over-directory", "an output where the submit side has a directory", "", "transfer_output_files = good", text("good/leaf")...).onRequest(),
	spoiled("stdout-over-directory", "standard output where the submit side has a directory", "", "output = there\ntransfer_output_files = good", text("there/leaf")...).onRequest(),
	spoiled("failure-files-missing", "a job that fails, without its failure files", "exit 3", "transfer_output_files = good\nwhen_to_transfer_output = ON_SUCCESS\n+FailureFiles = \"none, good\""),
	failing(Case{Name: "checkpoint-missing", Shows: "a checkpoint of a missing file",
		Files:  []harness.File{Script("job", "echo hello; exit 85")},
		Submit: "executable = job\noutput = out\ncheckpoint_exit_code = 85\ntransfer_checkpoint_files = none", Stuck: true}),
	failing(arranged("chmod 555 .", making("output-directory-locked", "an initial directory of the submit side that cannot be written", "echo 1 >new", "transfer_output_files = new\noutput = /dev/null"))).then("chmod 755 ."),
}

// comesOut lets the output of [outgoing] through, in however many transfers, and
// makes it a file for later ones.
func comesOut() Step {
	return Quietly(Shell("exec 3<../pipe.<cluster>; rm ../pipe.<cluster>; cat <&3"))
}

// whenever is a step whose time is not compared.
func whenever(s Step) Step {
	s.waits = false
	return s
}

// then adds something to be done at the end.
func (c Case) then(script string) Case {
	c.Steps = append(c.Steps, Shell(script))
	return c
}

// brokenOff is a case whose output breaks off.
func brokenOff(c Case) Case {
	c.Fleeting = slices.Concat(c.Fleeting, byChance("how much output arrives before the connection breaks, and whether the shadow notes its end",
		"bytessent", "transferoutputstats", "transferoutfinished", "004   *Bytes Sent By Job", "005   *Bytes Sent By Job"))
	return c
}
