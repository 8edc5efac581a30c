package conformance

import (
	"strings"

	"golang.org/x/sys/unix"

	"podstarter/integration/harness"
)

// chirpTool is the submit side's condor_chirp, with all that it needs to run in
// any image. The script ./chirp runs it.
const chirpTool = "/usr/libexec/condor/condor_chirp, /lib64/ld-linux-x86-64.so.2, " +
	"/usr/lib/x86_64-linux-gnu/libstdc++.so.6, /usr/lib/x86_64-linux-gnu/libgcc_s.so.1, /usr/lib/x86_64-linux-gnu/libc.so.6, /usr/lib/x86_64-linux-gnu/libm.so.6"

// chirpJob is a job whose script calls condor_chirp, with each call's output and
// exit code in "out".
func chirpJob(script string, files ...harness.File) (submit string, all []harness.File) {
	const tool = "chirp() { echo \"$ chirp $*\"; ./ld-linux-x86-64.so.2 --library-path \"$PWD\" ./condor_chirp \"$@\" 2>&1; echo \"exit code $?\"; }\n"
	all = append(files, Script("script", tool+script), harness.File{Name: "chirp", Mode: 0o644})
	return "executable = script\ntransfer_input_files = " + chirpTool + "\nwhen_to_transfer_output = ON_EXIT\ntransfer_output_files = \"\"\noutput = out\nerror = err\n", all
}

func chirpCase(name, shows, more, script string, files ...harness.File) Case {
	submit, all := chirpJob(script, files...)
	return Case{Name: name, Shows: shows, Submit: submit + more, Files: all}
}

// rawCase sends hand-written requests to the proxy.
func rawCase(name, shows, more string, requests ...string) Case {
	return Case{Name: name, Shows: shows,
		Submit: "arguments = chirp=requests\ntransfer_input_files = requests\noutput = out\nerror = err\n" + more,
		Files: []harness.File{
			{Name: "requests", Content: []byte("cookie $cookie\n" + strings.Join(requests, "\n") + "\n")},
			{Name: "data", Content: []byte("0123456789abcdefghijklmnopqrstuvwxyz\n")},
			{Name: "empty"},
		}}
}

const wantIO = "+WantIOProxy = true\n"

var chirpCases = []Case{
	chirpCase("chirp-files", "condor_chirp moves files: fetch, put in all its ways, read, write, remove", wantIO,
		`chirp fetch data local; cat local
chirp fetch data -
echo put >mine; chirp put mine put
echo mode >mine; chirp put -mode cwa -perm 600 mine put
echo stdin | chirp put -mode cwt - fromstdin
chirp read data 10; chirp read -offset 10 data 6; chirp read -stride 2 10 data 6
echo XX >mine; chirp write -offset 3 fromstdin mine 2
echo gone >mine; chirp put mine gone; chirp remove gone; chirp remove gone`,
		harness.File{Name: "data", Content: []byte("0123456789abcdefghijklmnopqrstuvwxyz\n")}),
	chirpCase("chirp-tree", "condor_chirp: directories, links, modes and times of files", wantIO,
		`chirp getdir dir | sort; chirp getdir none
chirp stat dir/a | grep -E 'mode|nlink|size|mtime|exit'
chirp link dir/a dir/hard; chirp link -s a dir/soft; chirp lstat dir/soft | grep -E 'size|exit'
chirp chmod dir/b 640; chirp truncate dir/b 3; chirp utime dir/b 1000000000 1000000000; chirp stat dir/b | grep -E 'mode|size|mtime|exit'
chirp access dir/a rw; chirp access dir/a x; chirp access none f
chirp rmdir tree; chirp rmdir -r tree; chirp stat tree
chirp statfs . | grep -c f_; chirp chown dir/a 0 0; chirp nonsense | grep -v Usage`,
		harness.File{Name: "dir/a", Content: []byte("a\n")}, harness.File{Name: "dir/b", Content: []byte("longer\n")}, harness.File{Name: "tree/leaf/x"}),
	chirpCase("chirp-attributes", "condor_chirp: attributes of the job", wantIO,
		`chirp set_job_attr MyNumber '1 + 1'; chirp set_job_attr MyText '"a b"'; chirp get_job_attr MyNumber; chirp get_job_attr MyText
chirp get_job_attr NoSuchAttribute; chirp get_job_attr JobUniverse
chirp set_job_attr Owner '"root"'; chirp set_job_attr 'Bad Name' 1; chirp set_job_attr Broken '('
chirp get_job_attr Owner`),
	chirpCase("chirp-delayed", "attributes that are sent with the next update, in a job that does not ask for chirp", "",
		`chirp set_job_attr_delayed ChirpOne 1; chirp set_job_attr_delayed chirpText '"a b"'; chirp set_job_attr_delayed ChirpOne '1 + 2'
chirp set_job_attr_delayed Other 1; chirp set_job_attr_delayed ChirpBroken '('
chirp get_job_attr_delayed ChirpOne; chirp get_job_attr_delayed chirptext; chirp get_job_attr_delayed NoSuchAttribute; chirp get_job_attr_delayed JobUniverse
chirp get_job_attr JobUniverse; chirp set_job_attr ChirpNow 1; chirp ulog no; chirp fetch script none`),
	chirpCase("chirp-updates", "updates without files", "+WantRemoteUpdates = true\n+WantDelayedUpdates = false\n",
		`chirp set_job_attr MyNumber 1; chirp get_job_attr MyNumber; chirp ulog 'a line of the job'; chirp fetch script none`),
	chirpCase("chirp-ulog", "the job's own lines in its event log, including long ones", wantIO,
		`chirp ulog 'hello from the job'; chirp ulog "$(printf '%0200d' 7)"; chirp ulog 'quotes " and \ backslash'; chirp ulog ''`),
	chirpCase("chirp-refused", "a job that turns chirp off", "+WantDelayedUpdates = false\n",
		`chirp get_job_attr Owner | sed 's|/[^ ]*/dir_[0-9]*/|dir_N/|'; echo "config: $_CONDOR_CHIRP_CONFIG"`),
	chirpCase("chirp-last", "the last requests arrive: a file and an attribute just before the end", wantIO,
		`echo last >mine; chirp put mine put; chirp set_job_attr_delayed ChirpLast '"last"' ; chirp set_job_attr MyLast 1`),
	chirpCase("chirp-crowd", "many clients at once", wantIO,
		`for i in 1 2 3 4 5 6 7 8 9 10 11 12; do (echo $i >mine$i; chirp put mine$i put$i >said$i) & done; wait; cat said10`),
	rawCase("chirp-numbers", "requests one by one, with their results", wantIO,
		"version", "lookup data", "open data r 0", "fstat $fd", "read $fd 5", "read $fd 5", "lseek $fd -3 2", "read $fd 100", "pread $fd 4 10", "sread $fd 6 0 2 10",
		"fsync $fd", "fchmod $fd 420", "close $fd", "close $fd", "read $fd 5",
		"open new wcx 384", "write $fd 5|hello", "pwrite $fd 2 1|EY", "swrite $fd 2 3 1 1|xy", "ftruncate $fd 5", "lseek $fd 0 1", "lseek $fd 0 7", "close $fd", "open new wcx 384", "getfile new",
		"putfile put 420 6|whole\\n", "getfile put", "mkdir made 448", "mkdir made 448", "rename put made/put", "rmdir made", "getdir made", "getlongdir made", "stat made/put", "lstat made/none", "statfs made",
		"symlink put made/link", "readlink made/link 10", "readlink made/put 10", "link made/put made/hard", "access made/put 4", "access made/put 1", "chmod made/put 256", "truncate made/put 2",
		"utime made/put 1000000000 1000000000", "chown made/put 0 0", "lchown made/put 0 0", "unlink made/put", "unlink made/put", "rmall made", "whoami 100", "whoareyou host 100", "whoami 3",
		"get_job_attr MyNone", "set_job_attr MyRaw 1", "get_job_attr MyRaw", "ulog one\\ line", "set_job_attr_delayed ChirpRaw 2", "set_job_attr_delayed Raw 2"),
	rawCase("chirp-odd", "requests that make no sense", wantIO,
		"nonsense", "stat", "stat none more words", "lseek 99 0 0", "read 99 5", "write 99 5|hello", "open none r 0", "open data wcx 0", "getfile none", "getdir data", "mkdir / 448", "rmdir /", "open / w 0",
		"read x y", "version and more", "getfile empty", "rename none other", "readlink data -1", "set_job_attr A", "truncate data x"),
	{Name: "chirp-environment", Shows: "how a job finds the proxy", Submit: "executable = script\noutput = out\n" + wantIO,
		Files: []harness.File{Script("script", `echo "$_CONDOR_CHIRP_CONFIG" | sed 's|.*/dir_[0-9]*/|dir_N/|'
stat -c '%a %F' "$_CONDOR_CHIRP_CONFIG"
sed -E 's/ [0-9]+ [a-z]{31}$/ PORT COOKIE/' "$_CONDOR_CHIRP_CONFIG"
echo "$_CHIRP_DELAYED_UPDATE_PREFIX"`)}},

	{Name: "stream-output", Shows: "streamed output and error, to files with a directory in their names",
		Submit: "executable = script\nstream_output = true\nstream_error = true\noutput = sub/out\nerror = err\ntransfer_output_files = \"\"\n",
		Files: []harness.File{{Name: "sub/out", Content: []byte("what was there before, and is longer\n")}, Script("script",
			"echo to output; echo to error >&2; i=0; while [ $i -lt 300 ]; do echo line $i of a longer output; i=$((i+1)); done; readlink /proc/self/fd/1 | cut -d: -f1; exit 3\n")}},
	{Name: "stream-input", Shows: "streamed input, and output that comes back as usual",
		Submit: "arguments = copy\nstream_input = true\ninput = in\noutput = out\n",
		Files:  []harness.File{{Name: "in", Content: []byte(strings.Repeat("a line of input\n", 500))}}},
	{Name: "stream-early", Shows: "streamed output is there while the job runs, and stays when it is removed",
		Submit: "arguments = out=early ready forever\nstream_output = true\noutput = out\n",
		Steps:  []Step{Ready(), Shell("until grep -q early out; do sleep 0.2; done; cat out"), Tool("condor_rm")}},
	{Name: "stream-again", Shows: "streamed output of a second run replaces that of the first",
		Submit: "arguments = \"resume=mark:0 file=mark:second 'out=first, and longer' ready forever\"\nstream_output = true\noutput = out\nwhen_to_transfer_output = ON_EXIT_OR_EVICT\ntransfer_output_files = mark\n",
		Steps:  []Step{Ready(), Tool("condor_vacate_job"), Executes(2)}},
	{Name: "stream-append", Shows: "streamed output is appended, if the job asks for that",
		Submit: "executable = script\nstream_output = true\noutput = out\n+EraseOutputAndErrorOnRestart = false\n",
		Files:  []harness.File{{Name: "out", Content: []byte("before\n")}, Script("script", "echo after\n")}},
	{Name: "stream-nowhere", Shows: "output that cannot be streamed: the job is held",
		Submit: "arguments = out=hello\nstream_output = true\noutput = there/is/none\n"},
	{Name: "stream-reconnect", Shows: "the connection to the shadow breaks between two lines that are streamed",
		Submit:   strings.Replace(strings.Replace(sharing, "exit 7", "echo after; exit 7", 1), "f=/tmp", "echo before; f=/tmp", 1) + "stream_output = true\noutput = out\n",
		Fleeting: cutFleeting,
		Steps: []Step{
			Runs(lasting), told(), cutOff(), Event(harness.EventReconnected, 1),
			KillPayload(lasting, unix.SIGTERM), Ends(),
		}},
	{Name: "stream-daemon", Shows: "a process that stays behind with the streams open",
		Submit:   "arguments = out=before detach=1 exit=4\nstream_output = true\nstream_error = true\noutput = out\nerror = err\n",
		Fleeting: uncounted},
}

// chirpSetup is empty: the cases use HTCondor's defaults.
var chirpSetup = Setup{}
