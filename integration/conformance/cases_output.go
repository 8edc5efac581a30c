package conformance

import (
	"podstarter/integration/harness"
)

// making is a job whose script makes output.
func making(name, shows, script, submit string, files ...harness.File) Case {
	return Case{Name: name, Shows: shows, Files: append(files, Script("job", script)), Submit: "executable = job\noutput = out\n" + submit}
}

// smallTree makes a small tree in the sandbox.
const smallTree = `mkdir -p a/deep b/empty c/d/e empty void; echo 1 >a/1; echo 2 >a/deep/2; echo 3 >b/3; echo 4 >c/4; echo 5 >c/d/e/5; echo 6 >top
`

// hostname is a file that every machine has, with contents that differ between
// two machines.
const hostname = "/proc/sys/kernel/random/boot_id"

// outputCases are about files that come out.
var outputCases = []Case{
	making("output-forms", "directories with and without trailing slash: nested, below others, empty", smallTree,
		"transfer_output_files = a, b/, c/d, c/d/e/, empty, void/, top"),
	making("output-relative", "preserve_relative_paths with every form: file, directory, contents, ./, empty", smallTree,
		"preserve_relative_paths = True\ntransfer_output_files = a/1, a/deep, b/, c/d/e/5, ./c/4, empty, void/, top"),
	making("output-dot", "the sandbox as a whole, contents of it, and names that begin with it", "rm job; "+smallTree+"rm -rf tmp var",
		"transfer_output_files = ./top, ././a, ./b/").onRequest(),
	making("output-overlapping", "a file twice, a directory and what is in it, files of one name from two directories",
		"mkdir -p dir/sub x y; echo 1 >one; echo 2 >dir/leaf; echo 3 >dir/sub/s; echo x >x/same; echo y >y/same; echo d >dir/one",
		"transfer_output_files = one, ./one, dir, dir/leaf, dir/sub, x/same, y/same, dir/").onRequest(),
	making("output-no-blanks", "a list with blanks, tabs and empty entries", "echo 1 >one; echo 2 >'two words'; echo 3 >three",
		"transfer_output_files = one ,, two words,\t three ,").onRequest(),
	making("output-unset-directories", "without a list: no directory, whatever is in it, nor links to them", smallTree+"ln -s a to-a; ln -s a/1 to-file; ln top hard", "").onRequest(),
	making("output-links", "links in a directory: to a file, to nothing, in circles; a link with a slash; a link to a link",
		"mkdir -p d real; echo 1 >real/1; ln -s ../real/1 d/good; ln -s nowhere d/broken; ln -s round d/round; ln -s real there; ln -s d/good twice",
		"transfer_output_files = d, there/, twice"),
	making("output-links-outside", "links in a directory that lead to files of the machine", "mkdir d; ln -s "+hostname+" d/out; ln -s ../../../../../../../.."+hostname+" d/up; echo 1 >d/in",
		"transfer_output_files = d"),
	// A stock starter of 23.9 reads pipes, and hangs.
	making("output-special", "pipes and sockets among the output: without a list, and in a directory", specials+"echo 1 >f", "").only("25.14+*").onRequest(),
	making("output-special-named", "pipes and sockets by name, by a link and in a directory", "mkdir d; cd d; "+specials+"cd ..; "+specials+"ln -s pipe link; echo 1 >d/f",
		"transfer_output_files = d, pipe, socket, link").only("25.14+*"),
	making("output-names", "names without a list: quotes, backslash, leading dash, blanks, commas, no UTF-8, 255 bytes",
		oddFiles(`'"double"' "it's" 'back\slash' -rf ' blank ' "$(printf '\377\376')" a,b 'c=d;e' .hidden '%41' "$(printf %0255d 0)"`), ""),
	making("output-names-directory", "the same in a named directory, and a newline",
		"mkdir d; cd d; "+oddFiles("'new\nline' "+`'"double"' "it's" 'back\slash' -rf ' blank ' "$(printf '\377\376')" a,b 'c=d;e' .hidden '%41' "$(printf %0255d 0)"`),
		"transfer_output_files = d"),
	making("output-dots", "names with . and .. and several slashes", "mkdir -p d/deep; for f in 1 d/2 d/3 d/deep/4; do echo $f >$f; done",
		"transfer_output_files = d/../1, .//d//2, d/./3, d/deep/.").onRequest(),
	making("output-machine", "a file of the machine, by its absolute path", "echo 1 >f", "transfer_output_files = f, "+hostname).onRequest(),
	making("output-deep", "a tree of a hundred levels", "mkdir -p "+deep("d")+"; echo leaf >"+deep("d")+"/leaf", "transfer_output_files = d").onRequest(),
	making("output-many", "two thousand files in directories", "mkdir many; cd many; for d in 1 2 3 4; do mkdir $d; for i in $(seq 500); do echo $i >$d/$i; done; done", "transfer_output_files = many").onRequest(),
	arrived(making("output-modes", "modes of files and directories, set-user-ID and sticky bits, old times, holes, hard links",
		"for m in 4755 2711 1666 400 466 777 0200; do echo $m >f$m; done; for m in 700 1777 2755 755 555; do mkdir d$m; echo $m >d$m/f; done\n"+
			"truncate -s 3M hole; : >nothing; echo linked >l1; ln l1 l2; touch -d '2001-02-03' f400 d700/f d700; for m in 4755 2711 1666 400 466 777; do chmod $m f$m; done; for m in 700 1777 2755 755 555; do chmod $m d$m; done",
		"transfer_output_files = f4755, f2711, f1666, f400, f466, f777, d700, d1777, d2755, d755, hole, nothing, l1, l2"),
		"find . -mtime +1 | sort; echo more >>l1; cat l2; chmod u+rwx d* f*; rm l1 l2"),
	making("changes", "what counts as changed without a list: larger, smaller, rewritten at once with the same size, touched, read, left alone",
		"cat same read >/dev/null; echo more >>larger; : >smaller; echo ANEW >anew; touch touched; rm gone; mkdir d; mv moved d; rm -r dir",
		"transfer_input_files = larger, smaller, anew, touched, same, read, gone, moved, dir", append(text("larger", "smaller", "touched", "same", "read", "gone", "moved", "dir/leaf"),
			harness.File{Name: "anew", Content: []byte("anew\n")})...),
	making("changes-hidden", "what hides a change: a time that is set back, a file of the same size and time in its place, another mode, another name",
		"touch -r back keep; echo BACK >back; touch -r keep back; rm keep; cp -p replaced r; echo REPLACED >r; touch -r replaced r; mv r replaced; chmod 600 mode; ln linked another",
		"transfer_input_files = back, replaced, mode, linked", text("back", "replaced", "mode", "linked")...),
	making("output-is-input", "named outputs: unchanged input, the changed executable, standard output",
		"echo '# more' >>job; echo hello", "transfer_input_files = in, dir\ntransfer_output_files = in, job, dir, _condor_stdout", text("in", "dir/leaf")...).onRequest(),
	making("executable-changed", "an executable that changes itself, without a list", "echo '# more' >>job; cp job copy", "").onRequest(),
	failing(making("output-remaps", "several remaps: chained, with blanks, with escapes, into new directories, of a file in a directory",
		"mkdir d; echo 1 >one; echo 2 >'in two'; echo 3 >'t;h=r'; echo 4 >four; echo 5 >d/five; echo 6 >six; echo 7 >seven",
		`transfer_output_remaps = " one = uno ; uno=eins; in two = zwei und; t\;h\=r=drei\=3; four=new/deep/vier; d/five=fuenf; six=$(DIRECTORY)/abs/sechs; none=x;; seven=dir/"`+
			"\ntransfer_output_files = one, in two, t;h=r, four, d/five, six, seven", text("abs/keep", "dir/keep")...)),
	making("output-remapped-directories", "remaps of directories: to another name, into a new directory, to an absolute path, of one within",
		"mkdir -p a/sub b c/in e; echo 1 >a/1; echo 2 >a/sub/2; echo 3 >b/3; echo 4 >c/4; echo 5 >c/in/5; echo 6 >e/6",
		"transfer_output_remaps = \"a=eins; b=new/deep/zwei; c/in=drei; e=$(DIRECTORY)/vier\"\ntransfer_output_files = a, b, c, e", text("vier/keep")...),
	making("output-remapped-unset", "remaps without a list, also of unchanged files", "echo 1 >new; echo 2 >other; mkdir d; echo 3 >d/leaf",
		"transfer_input_files = same\ntransfer_output_remaps = \"new=neu; same=gleich; d/leaf=blatt; job=programm\"", text("same")...).onRequest(),
	making("output-remapped-relative", "remaps and preserve_relative_paths", "mkdir -p d/e f; echo 1 >d/e/1; echo 2 >d/2; echo 3 >f/3",
		"preserve_relative_paths = True\ntransfer_output_files = d/e/1, d/2, f\ntransfer_output_remaps = \"d/e/1=eins; d/2=new/zwei; f=effe\"").onRequest(),
	making("output-remapped-together", "two files that are remapped to one name", "echo 1 >one; echo 2 >two",
		"transfer_output_files = two, one\ntransfer_output_remaps = \"one=same; two=same\"").onRequest(),
	{Name: "output-several", OnRequest: true, Shows: "three jobs of a cluster, each with remaps of its own", Count: 3,
		Files:  []harness.File{Script("job", "echo hello; echo result >result; mkdir d; echo leaf >d/leaf")},
		Submit: "executable = job\noutput = out.$(Process)\ntransfer_output_files = result, d\ntransfer_output_remaps = \"result=result.$(Process); d=d.$(Process)\""},
	making("output-null", "output that is remapped to /dev/null", "echo 1 >one; head -c 100000 /dev/zero >two; echo 3 >three",
		"transfer_output_files = one, two, three\ntransfer_output_remaps = \"two=/dev/null; one=/dev/null\"").onRequest(),
	making("stdout-replaced", "standard output and error that are remapped, named among the output, and in new directories",
		"echo said; echo wrote >&2; echo 1 >f", "output = logs/out.txt\nerror = logs/deep/err.txt\ntransfer_output_files = f\ntransfer_output_remaps = \"f=logs/f\"", text("logs/deep/keep")...).onRequest(),
	making("stdout-as-file", "standard output with the name of a file that the job makes and names as output", "echo said; echo written >result",
		"output = result\ntransfer_output_files = result").onRequest(),
	making("stderr-null", "standard error and output: one to /dev/null, one by a name with blanks", "echo said; echo lost >&2", "output = the out put\nerror = /dev/null\ntransfer_output_files = \"\"").onRequest(),
	making("stdio-swallowed", "a job that removes its standard output, and one that replaces it with a directory", "echo hello; echo err >&2; rm _condor_stdout; mkdir _condor_stdout", "error = err").onRequest(),
	making("output-limit-met", "exactly max_transfer_output_mb of output", "mkdir dir; head -c 524288 /dev/zero >dir/half; head -c 524288 /dev/zero >rest",
		"output = /dev/null\nmax_transfer_output_mb = 1\ntransfer_output_files = rest, dir/").onRequest(),
	making("output-exclusions", "names that are never sent back: unnamed, in a directory, by name", "echo 1 >.update.ad; mkdir d; for f in .job.ad .machine.ad .docker_sock .update.ad.tmp .chirp.config .starter.log f; do echo $f >d/$f; done; ls -A d | wc -l",
		"transfer_output_files = d, .job.ad, .machine.ad").onRequest(),
	making("failure-files", "a job that fails, and its failure files", "mkdir d; echo 1 >good; echo 2 >bad; echo 3 >d/why; echo hello; exit 3",
		"when_to_transfer_output = ON_SUCCESS\ntransfer_output_files = good\n+FailureFiles = \"bad, d\"\ntransfer_output_remaps = \"bad=schlecht\""),
	making("failure-files-unneeded", "a job that succeeds, and its failure files", "echo 1 >good; echo 2 >bad; echo hello",
		"when_to_transfer_output = ON_SUCCESS\nsuccess_exit_code = 0\ntransfer_output_files = good\n+FailureFiles = \"bad, d\"").onRequest(),
	making("on-success-code", "output on success, of a job whose success is an exit code other than 0", "echo 1 >new; exit 3", "when_to_transfer_output = ON_SUCCESS\nsuccess_exit_code = 3").onRequest(),
	making("on-success-signal", "output on success, of a job killed by a signal", "echo 1 >new; kill -SEGV $$", "when_to_transfer_output = ON_SUCCESS").onRequest(),
	twice(steered("evicted-files", "a job that is evicted with files, directories and changed input, without a list, and continues with them",
		again+"mkdir -p d/sub; echo 1 >d/sub/1; echo 2 >new; echo changed >in\n"+traps("TERM")+ready+untilCaught,
		onEvict+"transfer_input_files = in, same, indir", Ready(), Tool("condor_vacate_job"), Executes(2))).with(text("in", "same", "indir/leaf")...),
	twice(steered("evicted-list", "a job that is evicted with a list of output, which is remapped, and continues with it",
		again+"mkdir -p d/sub; echo 1 >d/sub/1; echo 2 >new; echo 3 >unlisted\n"+traps("TERM")+ready+untilCaught,
		onEvict+"transfer_output_files = d, new\ntransfer_output_remaps = \"new=neu\"", Ready(), Tool("condor_vacate_job"), Executes(2))),
	twice(steered("checkpoint-directories", "a checkpoint of files and directories, and the sandbox that it makes",
		again+"if [ -e state ]; then "+ready+rest+"fi\nmkdir -p c/d; echo 1 >c/d/1; echo 2 >state; echo 3 >not; exit 85\n",
		"checkpoint_exit_code = 85\ntransfer_checkpoint_files = state, c\ntransfer_output_files = new", Ready(), Tool("condor_vacate_job", "-fast", "<job>"), Executes(2))),
	{Name: "spool-directories", Shows: "a spooled sandbox with directories, remaps, and what the job changed",
		Files:   append(text("in", "tree/deep/leaf", "tree/1", "same"), Script("job", show+"show in tree same; echo new >new; echo changed >in; mkdir -p d/e; echo 1 >d/e/f; echo err >&2")),
		Options: []string{"-spool"}, Spooled: true, Fleeting: fetched,
		Submit: stays + "executable = job\ntransfer_input_files = in, tree, same\noutput = out\nerror = err\ntransfer_output_files = in, d, new\ntransfer_output_remaps = \"new=remapped; d=verzeichnis\"",
		Steps:  fetch},
	{Name: "spool-changed", OnRequest: true, Shows: "a spooled sandbox without a list of output",
		Files:   append(text("in", "same"), Script("job", "echo new >new; echo changed >in; echo hello")),
		Options: []string{"-spool"}, Spooled: true, Fleeting: fetched,
		Submit: stays + "executable = job\ntransfer_input_files = in, same\noutput = out",
		Steps:  fetch},
	{Name: "spool-names", Shows: "a spooled sandbox without a list of output, and names that no list can contain",
		Files:   []harness.File{Script("job", "echo 1 >a,b; echo 2 >' blank '; echo 3 >plain")},
		Options: []string{"-spool"}, Spooled: true, Fleeting: fetched, Submit: stays + "executable = job\noutput = out",
		Steps: fetch},
	twice(Case{Name: "spool-again", Shows: "a spooled job that goes back to the queue with its files and continues with them",
		Files:   append(text("in", "same"), Script("job", again+"mkdir d; echo 1 >d/1; echo 2 >mine; echo changed >in\n")),
		Options: []string{"-spool"}, Spooled: true, Fleeting: fetched, Submit: stays + "executable = job\ntransfer_input_files = in, same\noutput = out\non_exit_remove = NumJobStarts > 1",
		Steps: fetch}),
}

// oddFiles makes a file of each name in the list, which is written for a shell.
func oddFiles(list string) string {
	return "i=0; for f in " + list + "; do i=$((i+1)); echo $i >\"./$f\"; done"
}

// specials makes a pipe and a socket.
const specials = "mkfifo pipe; perl -MSocket -e 'socket(S, AF_UNIX, SOCK_STREAM, 0); bind(S, sockaddr_un(\"socket\")) or die'; "

var fetched = byChance("the schedd writes it when it has heard of the end of the fetch; the tool does not wait for that", "stageoutfinish")

// stays keeps a spooled job in the queue until somebody removes it. By default the schedd
// does when it next looks after a fetch (submit_utils.cpp:SetLeaveInQueue), which may be
// before the tool that removes it, or after.
const stays = "leave_in_queue = JobStatus == 4\n"

// fetch are the steps of a spooled job at its end.
var fetch = []Step{Until("JobStatus == 4"), Tool("condor_transfer_data"), Tool("condor_rm")}

// again makes a second run print what it finds, and ends the job.
const again = show + `starts=$(sed -n 's/^NumJobStarts = //p' "$_CONDOR_JOB_AD")
if [ "${starts:-0}" -gt 0 ]; then
	show $(ls | grep -v -e '^_condor' -e '^job' -e '^tmp$' -e '^var$') | grep -v -e caught; echo done >new; mkdir -p d; exit 0
fi
`

// with adds files to a case.
func (c Case) with(files ...harness.File) Case {
	c.Files = append(c.Files, files...)
	return c
}

// arrived lets a script look at what came back after the job has ended.
func arrived(c Case, script string) Case {
	c.Steps = append(c.Steps, Ends(), Shell(script))
	return c
}
