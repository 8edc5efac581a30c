package conformance

import "podstarter/integration/harness"

// wishesCases are submit commands for what only some starters do, and for a job's account.
var wishesCases = append(sinceThen([]Case{
	{Name: "manifest", Shows: "manifest_dir: lists of the files before and after the job, and its environment",
		// The environment has process numbers, so its size is no other's.
		Files: []harness.File{{Name: "data/in", Content: []byte("in\n")}, Script("job", `mv notes/environment was
ls -ld notes | cut -c1-10
grep -o "SAYS=[^ ]*" was
tr ' ' '\n' <was | sed -n 's/^\([A-Z_][A-Z_0-9]*\)=.*/\1/p'
rm was
mkdir -p made/deep && echo new >made/deep/file && ln -s /etc made/link
`)},
		Submit: "executable = job\nmanifest_dir = notes\nenvironment = \"SAYS=hello\"\ntransfer_input_files = data\noutput = out\nerror = err"},
	{Name: "manifest-outside", Shows: "a manifest_dir that leads out of the sandbox",
		Submit: "manifest_dir = ../notes\narguments = out=ran\noutput = out"},
	{Name: "tool-daemon", Shows: "a tool that the starter starts beside the job (tool_daemon_cmd)", Requirements: "TARGET.HasTDP =!= 7",
		Files:  []harness.File{Script("tool", "echo \"a tool\" >tool.out\nexec sleep 1000\n")},
		Submit: "tool_daemon_cmd = tool\ntool_daemon_output = tool.said\narguments = sleep=2s out=ran\noutput = out"},
	// It is this attribute's name that keeps condor_submit from requiring HasEncryptExecuteDirectory.
	{Name: "encrypted-sandbox", Shows: "encrypt_execute_directory, where no slot offers it", Requirements: "TARGET.EncryptExecuteDirectory =!= 7",
		Submit: "encrypt_execute_directory = True\narguments = out=ran\noutput = out"},
	{Name: "primary-group", Shows: "primary_unix_group: the group of files at the access point",
		Submit: "primary_unix_group = alice\narguments = facts\noutput = out", Facts: true},
	{Name: "primary-group-shared", Shows: "primary_unix_group without file transfer",
		Submit: withoutTransfer + "primary_unix_group = alice\narguments = \"-c 'exit 3'\""},
}), []Case{
	{Name: "run-as-owner", Shows: "run_as_owner",
		Submit: "run_as_owner = True\narguments = facts\noutput = out", Facts: true},
	{Name: "not-as-owner", Shows: "run_as_owner = False",
		Submit: "run_as_owner = False\narguments = facts\noutput = out", Facts: true},
}...)

// sinceThen limits cases to HTCondor 25.14: 23.9 knows fewer of these commands, and gives
// jobs fewer variables.
func sinceThen(cases []Case) []Case {
	for i := range cases {
		cases[i] = cases[i].only("25.14+25.14")
	}
	return cases
}
