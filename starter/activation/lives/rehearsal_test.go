package lives_test

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"podstarter/condor/condortest"
	"podstarter/payload"
)

// TestRehearsal are jobs whose standard files may fail to open. The shadow hears that a job
// begins only if they do not.
func TestRehearsal(t *testing.T) {
	old := func(w *world) { w.must(os.WriteFile(filepath.Join(w.dir, "site", "out"), []byte("old\n"), 0o600)) }
	var reader int // of the FIFO
	run(t, []life{
		{
			name: "no output", job: noTransfer + "Out = \"no/such/out\"",
			want: want{last: "error 7/2", says: "Failed to open '@/site/no/such/out' as standard output: No such file or directory (errno 2)", check: (*world).neverBegan},
		},
		{
			name: "no error output", job: noTransfer + "Err = \"/no/such/err\"",
			want: want{last: "error 7/2", says: "Failed to open '/no/such/err' as standard error: No such file or directory (errno 2)", check: (*world).neverBegan},
		},
		{
			name: "no input", job: noTransfer + "In = \"words\"",
			want: want{last: "error 8/2", says: "Failed to open '@/site/words' as standard input: No such file or directory (errno 2)", check: (*world).neverBegan},
		},
		{
			name: "input that nobody brings", job: "In = \"words\"\nTransferIn = false", script: "cat",
			want: want{last: "error 8/2", says: "as standard input: No such file or directory (errno 2)", check: (*world).neverBegan},
		},
		{
			name: "a directory of the input in place of the output", job: "Out = \"words\"\nTransferInput = \"words\"", without: []string{"StreamOut"}, script: "exit 0",
			files: map[string]string{"words/": ""},
			want:  want{last: "error 7/21", says: "as standard output: Is a directory (errno 21)", check: (*world).neverBegan},
		},
		{
			name: "output is appended to what is there", job: noTransfer + "Arguments = \"-c 'echo new'\"\nEraseOutputAndErrorOnRestart = false",
			plan: old,
			want: want{last: "job_exit 0 100", check: func(w *world) { w.sameFile("site/out", "old\nnew\n") }},
		},
		{
			name: "output replaces what is there", job: noTransfer + "Arguments = \"-c 'echo new'\"",
			plan: old,
			want: want{last: "job_exit 0 100", check: func(w *world) { w.sameFile("site/out", "new\n") }},
		},
		{
			name: "output to a FIFO", job: noTransfer + "Out = \"fifo\"\nArguments = \"-c 'echo through a pipe'\"",
			plan: func(w *world) {
				path := filepath.Join(w.dir, "site", "fifo")
				w.must(unix.Mkfifo(path, 0o600))
				var err error
				reader, err = unix.Open(path, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
				w.must(err)
				w.Cleanup(func() { unix.Close(reader) })
			},
			want: want{last: "job_exit 0 100", check: func(w *world) {
				text := make([]byte, 100)
				n, err := unix.Read(reader, text)
				w.must(err)
				w.same("through a pipe\n", string(text[:n]))
			}},
		},
	})
}

// atRehearsal has something happen when the rehearsal of a job begins.
func atRehearsal(name string, do func(*world)) life {
	return life{
		name: name, job: noTransfer + "Arguments = \"-c 'exit 0'\"",
		backend: func(w *world, b payload.Backend) payload.Backend {
			return &double{Backend: b, rehearsal: func() { do(w) }}
		},
	}
}

// TestOrdersAtRehearsal: no order waits for a rehearsal, and no job begins after one.
func TestOrdersAtRehearsal(t *testing.T) {
	var lives []life
	for _, o := range orders {
		if o.pod {
			continue // nobody listens yet
		}
		l := atRehearsal(o.name, func(w *world) {
			o.give(w)
			if !w.log.wait(" all jobs", patience) {
				w.Error("the order is not heard")
			}
		})
		if o.dies {
			l.machine = func(so *condortest.StartdOptions) { so.Mortal = true }
		}
		l.want = want{last: "error" + o.code, deaf: o.dies, check: (*world).neverBegan}
		if o.silent {
			l.want.last = ""
		}
		lives = append(lives, l)
	}
	run(t, lives)
}

// TestLostAtRehearsal: a job whose wrapper dies at the rehearsal has not begun.
func TestLostAtRehearsal(t *testing.T) {
	l := atRehearsal("the wrapper is killed", (*world).killWrapper)
	l.want = want{last: "error 1021/0", says: "failed to start the job in its container", check: (*world).neverBegan}
	run(t, []life{l})
}
