package conformance

import "podstarter/integration/harness"

// openingNoPipe are the versions without the older stock starter. That one opens a
// pipe that it is to send, and waits for ever for a writer.
var openingNoPipe = []string{"25.14+*"}

// leftoversCases are about what a job may leave in its sandbox, and limits.
var leftoversCases = []Case{
	{Name: "pipes", Shows: "named pipes: among the outputs, in a directory, and named as output",
		Files:  []harness.File{Script("job", "mkdir d; mkfifo d/pipe named unnamed; echo 1 >d/file")},
		Submit: "executable = job\ntransfer_output_files = d, named\noutput = out", Versions: openingNoPipe},
	{Name: "pipes-unnamed", Shows: "named pipes without a list of outputs",
		Files:  []harness.File{Script("job", "mkfifo pipe; echo 1 >file")},
		Submit: "executable = job\noutput = out", Versions: openingNoPipe},
	{Name: "strange-names", Shows: "names with newlines, tabs, trailing blanks and bytes that are not text, in a directory",
		Files: []harness.File{Script("job", `mkdir d; cd d; n='
'; echo 1 >"a${n}b"; echo 2 >"$(printf '\tt')"; echo 3 >' blank '; echo 4 >"$(printf '\377\376')"; echo 5 >'*'; echo 6 >"q'\"q"`)},
		Submit: "executable = job\ntransfer_output_files = d\noutput = out"},
	{Name: "closed-directory", Shows: "a directory below an output that its owner may not read",
		Files:  []harness.File{Script("job", "mkdir -p d/closed; echo 1 >d/closed/lost; echo 2 >d/open; chmod 0 d/closed")},
		Submit: "executable = job\ntransfer_output_files = d\noutput = out" + shortLease},
	{Name: "link-out", Shows: "an output that is a symbolic link to a file outside of the sandbox",
		Files:  []harness.File{Script("job", "ln -s /etc/host.conf link; echo 1 >file")},
		Submit: "executable = job\ntransfer_output_files = link, file\noutput = out" + shortLease},
	{Name: "deep-tree", Shows: "nested directories, deeper than the longest path",
		Files:  []harness.File{Script("job", `n=$(printf '%0200d' 0); mkdir top; cd top; i=0; while [ $i -lt 24 ]; do mkdir $n; cd $n || exit 1; i=$((i+1)); done; echo 1 >leaf`)},
		Submit: "executable = job\ntransfer_output_files = top\noutput = out" + shortLease,
		Steps:  []Step{Ends(), Shell("rm -r top")}}, // since its path is longer from here
	{Name: "links-in-circles", Shows: "symbolic links that lead to themselves and to nothing, in a directory",
		Files:  []harness.File{Script("job", "mkdir d; echo 1 >d/file; ln -s round d/round; ln -s nowhere d/broken; ln -s file d/good")},
		Submit: "executable = job\ntransfer_output_files = d\noutput = out"},
	{Name: "input-mode-changed", Shows: "inputs that get another mode, another name and another time",
		Files: []harness.File{{Name: "mode", Content: []byte("m\n")}, {Name: "name", Content: []byte("n\n")}, {Name: "time", Content: []byte("t\n")},
			Script("job", "chmod 755 mode; ln name second; touch -d '1 hour ago' time")},
		Submit: "executable = job\ntransfer_input_files = mode, name, time\noutput = out"},
	{Name: "holes", Shows: "a file of holes that is larger than max_transfer_output_mb",
		Files:  []harness.File{Script("job", "truncate -s 1T large; echo 1 >small")},
		Submit: "executable = job\ntransfer_output_files = large, small\nmax_transfer_output_mb = 1\noutput = out" + shortLease, Fleeting: byChance("the sandbox may have been measured before the job ended, or not", "diskusage*")},
	{Name: "no-output-allowed", Shows: "max_transfer_output_mb = 0",
		Submit: "arguments = out=hello file=new:1\nmax_transfer_output_mb = 0\noutput = out" + shortLease},
	{Name: "output-as-large", Shows: "as much output as max_transfer_output_mb, an expression, allows",
		Files:  []harness.File{Script("job", "head -c 1048576 /dev/zero >large")},
		Submit: "executable = job\ntransfer_output_files = large\n+MaxTransferOutputMB = RequestCpus\n"},
	{Name: "submit-side-full", Shows: "an output that is remapped to a device of the submit side, which its owner may not open there",
		Files:  []harness.File{Script("job", "head -c 3000000 /dev/zero >large; echo 1 >small")},
		Submit: "executable = job\ntransfer_output_files = large, small\ntransfer_output_remaps = \"large=/dev/full\"\noutput = out" + shortLease},
	{Name: "encryption-lists", Shows: "lists of files to encrypt, and not to encrypt, in and out",
		Files: []harness.File{{Name: "in.secret", Content: []byte("s\n")}, {Name: "in.open", Content: []byte("o\n")}, {Name: "in.plain", Content: []byte("p\n")},
			Script("job", "cat in.*; echo 1 >a.secret; echo 2 >b.open; echo 3 >c.plain")},
		Submit: "executable = job\ntransfer_input_files = in.secret, in.open, in.plain\ntransfer_output_files = a.secret, b.open, c.plain\noutput = out\n" +
			"encrypt_input_files = *.secret\ndont_encrypt_input_files = in.open, in.secret\nencrypt_output_files = a.*\ndont_encrypt_output_files = *.open"},
}
