package conformance

import (
	"strings"

	"podstarter/integration/harness"
)

// show lists the named files and all below them: kind, mode, size of files, name.
// Each name is printed on one line, whatever it contains. Directories have no size
// here, since that is the file system's choice.
const show = `show() { find "$@" \( -type d -printf '%y %m - %p\n' \) -o -printf '%y %m %s %p\n' | LC_ALL=C sort; }
`

// text is a file whose content is its name.
func text(names ...string) []harness.File {
	var all []harness.File
	for _, name := range names {
		all = append(all, harness.File{Name: name, Content: []byte(name + "\n")})
	}
	return all
}

// taking is a job that looks at its input.
func taking(name, shows, script, submit string, files ...harness.File) Case {
	return Case{Name: name, Shows: shows, Files: append(files, Script("job", show+script)),
		Submit: "executable = job\noutput = out\ntransfer_output_files = \"\"\n" + submit}
}

// arranged is a case in which a script prepares the submit directory before the job
// may begin.
func arranged(script string, c Case) Case {
	c.Submit += "\nhold = True"
	c.Steps = append([]Step{Shell(script), Tool("condor_release")}, c.Steps...)
	return c
}

// inputCases are about files that go in.
var inputCases = []Case{
	arranged("mkdir empty",
		taking("input-forms", "directories with and without trailing slash: nested, below others, empty",
			"show a b c d e f g h empty", "transfer_input_files = a, top/b, top/c/, d/e/, empty/, top/h/",
			text("a/1", "a/deep/2", "top/b/3", "top/c/4", "top/c/f/5", "d/e/g/6", "top/h/keep")...)),
	arranged("mkdir -p none/at/all",
		taking("input-empty-directories", "empty directories, by name and within others", "show none at all", "transfer_input_files = none, none/")).onRequest(),
	taking("input-relative", "preserve_relative_paths with every form: file, directory, contents, ./, an absolute path",
		"show a b c top whole", "preserve_relative_paths = True\ntransfer_input_files = a/b/f, a/d, a/e/, ./c/g, top, $(DIRECTORY)/w/whole",
		text("a/b/f", "a/d/1", "a/d/sub/2", "a/e/3", "c/g", "top", "w/whole")...),
	taking("input-overlapping", "a file twice, a directory and what is in it, files of one name from two directories",
		"show one dir same leaf; cat same leaf", "transfer_input_files = one, ./one, dir, dir/leaf, dir/sub, x/same, y/same, dir/",
		text("one", "dir/leaf", "dir/sub/1", "x/same", "y/same")...).onRequest(),
	taking("input-links", "symbolic links: to a file, to a directory with a slash, absolute; in a directory to a file, to nothing, to itself",
		"show f abs in here; cat f abs in/near", "transfer_input_files = f, abs, here/, in",
		append(text("there/leaf", "real"),
			harness.File{Name: "f", Symlink: "real"}, harness.File{Name: "abs", Symlink: "/etc/issue"}, harness.File{Name: "here", Symlink: "there"},
			harness.File{Name: "in/near", Symlink: "../real"}, harness.File{Name: "in/nothing", Symlink: "nowhere"}, harness.File{Name: "in/self", Symlink: "self"})...),
	taking("input-names", "names in a directory: newline, quotes, backslash, leading dash, blanks, no UTF-8, 255 bytes",
		`cd odd; for f in * .[a-z]*; do printf %s "$f" | od -An -tx1 | tail -n 1; cat "./$f"; done`, "transfer_input_files = odd",
		text("odd/new\nline", `odd/"double" 'single'`, `odd/back\slash`, "odd/-rf", "odd/ blank ", "odd/\xff\xfe", "odd/"+strings.Repeat("l", 255), "odd/.hidden", "odd/a,b;c=d", "odd/%41%2f", "odd/$(x)")...),
	taking("input-deep", "a tree of a hundred levels", "find d -type f -printf '%d %s\\n'; cat "+deep("d")+"/leaf", "transfer_input_files = d",
		harness.File{Name: deep("d") + "/leaf", Content: []byte("leaf\n")}).onRequest(),
	arranged("mkdir many; cd many; for d in 1 2 3 4; do mkdir $d; for i in $(seq 500); do echo $i >$d/$i; done; done",
		taking("input-many", "two thousand files in directories", "find many -type f | wc -l; cat many/*/* | cksum", "transfer_input_files = many")).onRequest(),
	arranged("chmod 4755 f1; chmod 2711 f2; chmod 0400 f3; chmod 0466 f4; chmod 0700 d1; chmod 1777 d2; chmod 2750 d3; touch -d '2001-02-03' f1 d1/f d1; truncate -s 3M hole; ln f1 hard",
		taking("input-modes", "modes of files and directories, old times, holes, hard links",
			"show f1 f2 f3 f4 hard d1 d2 d3 hole; cksum hole; echo old:; find f1 d1 -mtime +1; echo more >>hard; cat f1; umask",
			"transfer_input_files = f1, f2, f3, f4, hard, d1, d2, d3, hole", text("f1", "f2", "f3", "f4", "d1/f", "d2/f", "d3/f")...)),
	// A shadow of 23.9 reads pipes, and hangs.
	arranged("mkfifo pipe in/pipe; ln -s in/pipe to-pipe",
		taking("input-special", "pipes among the input, by name, by a link, within a directory", "show in; ls pipe to-pipe 2>/dev/null", "transfer_input_files = in, pipe, to-pipe", text("in/f")...)).only("*+25.14").onRequest(),
	taking("input-is-executable", "the executable among the input, and a file of its name in a directory",
		"show job sub", "transfer_input_files = job, sub", text("sub/job")...).onRequest(),
	// Without ./ the shadow of 25.14 takes the file for the executable that it is to
	// send, and puts it at the top (file_transfer.cpp:computeFileList, rd_path).
	{Name: "executable-from-input", Shows: "an executable that comes with the input, in a directory",
		Files:  []harness.File{Script("tools/run", `echo "${0##*/}"; [ "$PWD" = "$_CONDOR_SCRATCH_DIR" ] && echo at the top; stat -c %a tools/run`)},
		Submit: "executable = ./tools/run\ntransfer_executable = false\ntransfer_input_files = tools\noutput = out"},
	{Name: "executable-remapped", OnRequest: true, Shows: "a remap of input that has the executable's name", Stuck: true,
		Files:  append(text("in"), Script("job", show+"show job other in")),
		Submit: "executable = job\noutput = out\ntransfer_input_files = in\ntransfer_output_files = \"\"\n+TransferInputRemaps = \"job=other;in=new/in\""},
	taking("input-dots", "names with . and .. and several slashes", "show a b c d e", "transfer_input_files = sub/../a, .//b, sub/./c, sub/deep/../d, ./e/.",
		text("a", "b", "sub/c", "sub/deep/keep", "sub/d", "e/leaf")...).onRequest(),
	{Name: "executable-mode", OnRequest: true, Shows: "an executable with an odd name that only its owner may read",
		Files:  []harness.File{{Name: "-x=1;y", Mode: 0o600, Content: []byte("#!/bin/sh\nstat -c '%a %n' ./-*; echo \"${0##*/}\"\n")}},
		Submit: "executable = ./-x=1;y\noutput = out"},
	{Name: "executable-relative", OnRequest: true, Shows: "preserve_relative_paths does not count for the executable",
		Files:  []harness.File{Script("deep/er/run", `find . -name run; find . -name in -type f`), {Name: "deep/in"}},
		Submit: "executable = deep/er/run\npreserve_relative_paths = True\ntransfer_input_files = deep/in\noutput = out"},
	{Name: "stdin-below", OnRequest: true, Shows: "standard input from a directory, with blanks in its name, which is among the input too",
		Files:  append(text("in dir/std in"), Script("job", show+"cat; show 'std in' 'in dir' 2>/dev/null")),
		Submit: "executable = job\ninput = in dir/std in\ntransfer_input_files = in dir/std in\noutput = out"},
	{Name: "stdin-is-input", OnRequest: true, Shows: "standard input that the job writes to",
		Files:  append(text("in"), Script("job", "cat; echo more >>in")),
		Submit: "executable = job\ninput = in\noutput = out"},
	limited("input-limit-met", "exactly max_transfer_input_mb of input", 0).onRequest(),
	{Name: "if-needed", OnRequest: true, Shows: "should_transfer_files = IF_NEEDED, without a common file system",
		Files:  append(text("in"), Script("job", "cat in; echo new >new")),
		Submit: "executable = job\nshould_transfer_files = IF_NEEDED\ntransfer_input_files = in\noutput = out"},
	{Name: "if-needed-not", OnRequest: true, Shows: "should_transfer_files = IF_NEEDED, with a common file system",
		Submit: strings.Replace(withoutTransfer, "= NO", "= IF_NEEDED", 1) + `arguments = "-c '[ ! -e in ] && exit 10'"
transfer_input_files = in
`, Files: text("in")},
	{Name: "encrypted-directories", Shows: "patterns of encryption and names in directories",
		Files:  append(text("in/a", "in/b", "top.x"), Script("job", "cat in/a in/b top.x; mkdir o; echo 1 >o/1; echo 2 >top.y")),
		Submit: "executable = job\ntransfer_input_files = in, top.x\nencrypt_input_files = in/*, *.x\ndont_encrypt_input_files = a\ntransfer_output_files = o, top.y\nencrypt_output_files = *.y, o/*\ndont_encrypt_output_files = o\noutput = out"},
	{Name: "input-remapped-away", Shows: "input under other names: into a new directory, one after the other, with blanks, of a directory",
		Files: append(text("a", "b", "c d", "dir/leaf", "e"), Script("job", show+"show a b c* dir e new other x elsewhere 2>/dev/null")),
		Submit: "executable = job\noutput = out\ntransfer_output_files = \"\"\ntransfer_input_files = a, b, c d, dir, e\n" +
			`+TransferInputRemaps = "a=new/deep/a; b=x; x=y; c d = other name ; dir=elsewhere; e=e\\=f"`},
}

// deep is a path of a hundred levels.
func deep(top string) string { return top + strings.Repeat("/d", 99) }

// limited is a job whose input and output, without the executable, have the size of
// its limits plus so many bytes.
func limited(name, shows string, more int) Case {
	const mb = 1 << 20
	return Case{Name: name, Shows: shows,
		Files: []harness.File{{Name: "dir/half", Content: make([]byte, mb/2)}, {Name: "rest", Content: make([]byte, mb/2+more)}},
		Submit: "executable = /bin/sh\ntransfer_executable = False\narguments = \"-c 'cat rest | wc -c'\"\ntransfer_input_files = rest, dir/\n" +
			"max_transfer_input_mb = 1\noutput = out\ntransfer_output_files = \"\""}
}
