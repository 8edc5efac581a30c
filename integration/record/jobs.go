package main

import (
	"context"
	"errors"

	"golang.org/x/sys/unix"

	"podstarter/integration/harness"
)

// recorded is a job whose starter is recorded, with what is done to it.
type recorded struct {
	name, submit string
	files        []harness.File
	steer        func(context.Context, *harness.Pool, harness.Job) error
}

// ofImage makes a job that runs the program of the image "probe", so that no program
// of megabytes is transferred.
const ofImage = "universe = docker\ndocker_image = $PROBE\nexecutable = /probe\ntransfer_executable = false\n"

// requests are what a job says to its chirp proxy.
const requests = `cookie $cookie
get_job_attr JobUniverse
get_job_attr NoSuchAttribute
set_job_attr MyNumber 41 + 1
set_job_attr_delayed ChirpLast 7
ulog a\ word
lookup data
getfile data
getfile none
putfile sent 420 5|hello
open data r 0
fstat $fd
read $fd 5
lseek $fd 2 0
pread $fd 3 1
sread $fd 4 0 2 4
close $fd
stat none
statfs .
mkdir made 448
rename sent made/sent
symlink sent made/link
readlink made/link 10
getdir made
access made/sent 4
access none 0
rmdir made
rmall made
unlink none
whoami 20
whoareyou host 20
`

const script = `#!/bin/sh
cat in given/nested
echo new >new; : >empty; mkdir made; echo deep >made/deep
echo to standard error >&2
`

const waiting = `#!/bin/sh
echo first line
echo some data >data
until [ -e go ]; do sleep 0.1; done
echo last line
`

var jobs = []recorded{
	{name: "plain", submit: "executable = job.sh\ntransfer_input_files = in, given\ntransfer_output_files = new, empty, made\n" +
		"transfer_output_remaps = \"new=renamed\"\noutput = out\nerror = err\nenvironment = \"SAYS='a b'\"\narguments = \"one 'two words'\"",
		files: []harness.File{{Name: "job.sh", Mode: 0o755, Content: []byte(script)}, {Name: "in", Content: []byte("an input\n")},
			{Name: "given/nested", Content: []byte("a nested one\n")}}},
	{name: "chirp", submit: ofImage + "arguments = copy chirp=requests exit=3\ntransfer_input_files = requests\n+WantIOProxy = true\n" +
		"stream_input = true\nstream_output = true\ninput = data\noutput = out",
		files: []harness.File{{Name: "requests", Content: []byte(requests)}, {Name: "data", Content: []byte("on the submit side\n")}}},
	{name: "vacated", submit: ofImage + "arguments = resume=kept:0 trap=kept:3 ready forever\nwhen_to_transfer_output = ON_EXIT_OR_EVICT\noutput = out",
		steer: tool("condor_vacate_job")},
	{name: "held", submit: ofImage + "arguments = ready forever\noutput = out",
		steer: tool("condor_hold", "-reason", "to be recorded", "-subcode", "5")},
	{name: "removed", submit: ofImage + "arguments = ready forever\noutput = out", steer: tool("condor_rm")},
	{name: "suspended", submit: ofImage + "arguments = trap=kept:3 ready forever\noutput = out", steer: then(
		tool("condor_suspend"), event(harness.EventSuspended), tool("condor_continue"), event(harness.EventUnsuspended), end)},
	// It is removed: a shadow whose connection broke accepts no files any more
	// (condor_shadow.V6.1/remoteresource.cpp:disconnectClaimSock forgets their key).
	{name: "reconnected", submit: ofImage + "arguments = ready forever\noutput = out",
		steer: then(cutOff, event(harness.EventReconnected), tool("condor_rm"))},
	{name: "checkpointed", submit: ofImage + "arguments = resume=kept:0 file=kept:state exit=85\ncheckpoint_exit_code = 85\n" +
		"transfer_checkpoint_files = kept\noutput = out"},
	{name: "visited", submit: "executable = job.sh\ntransfer_output_files = data\noutput = out\nerror = err",
		files: []harness.File{{Name: "job.sh", Mode: 0o755, Content: []byte(waiting)}},
		steer: then(tool("condor_tail"), visit("condor_tail -no-stdout $0 data"), visit("condor_ssh_to_job -auto-retry $0 touch go"))},
	{name: "no-output", submit: ofImage + "arguments = out=hello\ntransfer_output_files = never\noutput = out"},
	{name: "no-input", submit: ofImage + "arguments = out=hello\n+TransferInput = \"never\"\noutput = out"},
	{name: "refused-output", submit: ofImage + "arguments = file=new:1\ntransfer_output_files = new\ntransfer_output_remaps = \"new=/never/there\"\noutput = out"},
	{name: "no-program", submit: ofImage + "executable = /never\noutput = out"},
	{name: "proxy", submit: ofImage + "arguments = out=hello\nx509userproxy = proxy\noutput = out", files: []harness.File{harness.Proxy("proxy")}},
}

type steer = func(context.Context, *harness.Pool, harness.Job) error

func tool(argv ...string) steer {
	return func(ctx context.Context, _ *harness.Pool, job harness.Job) error { return job.Tool(ctx, argv...) }
}

func event(number int) steer {
	return func(ctx context.Context, _ *harness.Pool, job harness.Job) error {
		_, err := job.WaitEvent(ctx, number, 1)
		return err
	}
}

func then(steps ...steer) steer {
	return func(ctx context.Context, pool *harness.Pool, job harness.Job) error {
		for _, step := range steps {
			if err := step(ctx, pool, job); err != nil {
				return err
			}
		}
		return nil
	}
}

// visit runs a command on the submit side, with the job's number for $0.
func visit(command string) steer {
	return func(ctx context.Context, pool *harness.Pool, job harness.Job) error {
		_, err := pool.AP(ctx, "sh", "-c", command, job.ID())
		return err
	}
}

// end ends a job that waits for SIGTERM.
func end(ctx context.Context, pool *harness.Pool, _ harness.Job) error {
	some, err := harness.WaitSome(ctx, 1, pool.Ready(harness.Ours))
	if err != nil {
		return err
	}
	return harness.Kill(some[0], unix.SIGTERM)
}

// cutOff breaks the connection between the shadow and the starter.
func cutOff(_ context.Context, pool *harness.Pool, job harness.Job) error {
	shadow, err := job.Shadow()
	if err != nil {
		return err
	}
	port, err := pool.Port(harness.Ours)
	if err != nil {
		return err
	}
	n, err := harness.BreakOff(shadow, port)
	if err == nil && n == 0 {
		err = errors.New("the shadow has no connection to the starter")
	}
	return err
}
