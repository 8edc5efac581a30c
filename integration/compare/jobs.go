package compare

import "podstarter/integration/harness"

// Job is one of the jobs that both starters run.
type Job struct {
	Name     string
	Shows    string // what the job is there for, for the page
	Commands string
	Files    []harness.File
	Remove   bool     // condor_rm once it runs
	Vacate   bool     // condor_vacate_job once it runs; it runs to its end afterwards
	Facts    bool     // its output is what the probe saw, which is compared as well
	Fleeting []string // attributes and events that come or not by the clock, under the stock starter too
}

// Jobs are run under both starters. They are such as the stock starter can run
// too: without an image. The executable is the probe, unless the job names one
// of its own.
var Jobs = []Job{
	{Name: "plain", Shows: "standard output, exit code 0",
		Commands: "arguments = out=hello\noutput = out"},
	{Name: "arguments", Shows: "arguments and environment with quotes and odd characters",
		Commands: `arguments = "facts -- one 'two words' 'it''s' ""quoted"" $(dollar) back\slash"
environment = "PLAIN=1 SPACES='a b  c' QUOTE='it''s' DOUBLE=""x"" EMPTY= SEMI=a;b"
output = out`, Facts: true},
	{Name: "input", Shows: "standard input, input files and directories",
		Files: []harness.File{
			{Name: "stdin", Content: []byte("a line for standard input\n")},
			{Name: "plain.txt", Content: []byte("a file\n")},
			{Name: "tree/deep/leaf", Content: []byte("a leaf\n")},
			{Name: "script", Mode: 0o755, Content: []byte("#!/bin/sh\n")},
		},
		Commands: "arguments = facts\ninput = stdin\ntransfer_input_files = plain.txt, tree, script\noutput = out", Facts: true},
	{Name: "output", Shows: "new files, a directory, a remapped file back",
		Commands: "arguments = file=new:n file=dir/sub/leaf:l file=mapped:m\ntransfer_output_files = new, dir, mapped\ntransfer_output_remaps = \"mapped=elsewhere\"\noutput = out\nerror = err"},
	{Name: "changed", Shows: "without a list of outputs: new and changed files come back",
		Files:    []harness.File{{Name: "same", Content: []byte("same\n")}, {Name: "other", Content: []byte("before\n")}},
		Commands: "arguments = file=other:after file=new:n\ntransfer_input_files = same, other\noutput = out"},
	{Name: "streams", Shows: "standard output and error in one file, exit code 7",
		Commands: "arguments = out=to-output err=to-error exit=7\noutput = both\nerror = both"},
	{Name: "signal", Shows: "death by signal 9",
		Commands: "arguments = signal=9\noutput = out"},
	{Name: "lost-output", Shows: "an output file that the job did not write",
		Commands: "arguments = out=hello\ntransfer_output_files = never-written\noutput = out",
		// The shadow writes them if it hears that the transfer is over before it hears of the failure.
		Fleeting: []string{"transferoutfinished", "transferoutputstats", "040 Finished transferring output files"}},
	{Name: "vacated", Shows: "a vacated job that answers the soft kill, output on eviction, and a second run",
		Commands: "arguments = resume=caught:0 trap=caught:3 file=first:1 ready forever\nwhen_to_transfer_output = ON_EXIT_OR_EVICT\noutput = out", Vacate: true},
	{Name: "removed", Shows: "condor_rm while the job runs",
		Commands: "arguments = ready forever\noutput = out", Remove: true},
}

// Submission is the job for one side.
func (j Job) Submission(side harness.Side, probe harness.File) harness.Submission {
	return harness.Submission{
		Name: "compare-" + j.Name,
		Side: side,
		Commands: "executable = " + harness.ProbeName + "\nshould_transfer_files = YES\n" +
			"request_cpus = 1\nrequest_memory = 64\nrequest_disk = 16M\n" + j.Commands,
		Files: append([]harness.File{probe}, j.Files...),
	}
}
