package conformance

import "podstarter/integration/harness"

// basicCases follow jobs without special requests from submission to end.
var basicCases = []Case{
	{Name: "plain", Shows: "standard output, exit code 0",
		Submit: "arguments = out=hello\noutput = out"},
	{Name: "arguments", Shows: "arguments and environment with quotes and odd characters",
		Submit: `arguments = "facts -- one 'two words' 'it''s' ""quoted"" $(dollar) back\slash"
environment = "PLAIN=1 SPACES='a b  c' QUOTE='it''s' DOUBLE=""x"" EMPTY= SEMI=a;b"
output = out`, Facts: true},
	{Name: "input", Shows: "standard input, input files and directories",
		Files: []harness.File{
			{Name: "stdin", Content: []byte("a line for standard input\n")},
			{Name: "plain.txt", Content: []byte("a file\n")},
			{Name: "tree/deep/leaf", Content: []byte("a leaf\n")},
			{Name: "script", Mode: 0o755, Content: []byte("#!/bin/sh\n")},
		},
		Submit: "arguments = facts\ninput = stdin\ntransfer_input_files = plain.txt, tree, script\noutput = out", Facts: true},
	{Name: "output", Shows: "new files, a directory, a remapped file back",
		Submit: "arguments = file=new:n file=dir/sub/leaf:l file=mapped:m\ntransfer_output_files = new, dir, mapped\ntransfer_output_remaps = \"mapped=elsewhere\"\noutput = out\nerror = err"},
	{Name: "changed", Shows: "without a list of outputs: new and changed files come back",
		Files:  []harness.File{{Name: "same", Content: []byte("same\n")}, {Name: "other", Content: []byte("before\n")}},
		Submit: "arguments = file=other:after file=new:n\ntransfer_input_files = same, other\noutput = out"},
	{Name: "streams", Shows: "standard output and error in one file, exit code 7",
		Submit: "arguments = out=to-output err=to-error exit=7\noutput = both\nerror = both"},
	{Name: "signal", Shows: "death by signal 9",
		Submit: "arguments = signal=9\noutput = out"},
	{Name: "lost-output", Shows: "an output file that the job did not write",
		Submit: "arguments = out=hello\ntransfer_output_files = never-written\noutput = out" + shortLease},
	{Name: "vacated", Shows: "a vacated job that answers the soft kill, output on eviction, and a second run",
		Submit: "arguments = resume=caught:0 trap=caught:3 file=first:1 ready forever\nwhen_to_transfer_output = ON_EXIT_OR_EVICT\noutput = out", Steps: []Step{Ready(), Tool("condor_vacate_job"), Executes(2)}},
	{Name: "removed", Shows: "condor_rm while the job runs",
		Submit: "arguments = ready forever\noutput = out", Steps: []Step{Ready(), Tool("condor_rm")}},
}
