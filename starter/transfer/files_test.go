package transfer_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"podstarter/classads"
	"podstarter/condor/condortest"
	"podstarter/condor/config"
	"podstarter/condor/job"
	"podstarter/condor/shadow"
	"podstarter/internal/cedar"
	"podstarter/sandbox"
	"podstarter/sandbox/confine"
	"podstarter/sandbox/filetransfer"
	"podstarter/sandbox/jobfiles"
	"podstarter/starter/hostprog"
	"podstarter/starter/hostprog/hostprogtest"
	"podstarter/starter/settings"
	"podstarter/starter/submitside"
	"podstarter/starter/transfer"
)

var quiet = slog.New(slog.DiscardHandler)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func parsed(t *testing.T, text string) *classads.Ad {
	t.Helper()
	ad, err := classads.ParseOld(text)
	must(t, err)
	return ad
}

// submit is the submit side of one job: where its files go, and what else it hears.
type submit struct {
	*condortest.Shadow
	t         *testing.T
	lease     time.Duration
	noSession error

	over   []string // ends of transfers that the shadow has to note
	told   []*classads.Ad
	notes  []string // in the job's event log
	broken bool
	breaks int // times that the connection was broken on purpose
}

func (s *submit) Broken() bool         { return s.broken }
func (s *submit) Disconnect(error)     { s.breaks++ }
func (s *submit) Lease() time.Duration { return s.lease }

func (s *submit) Use(to submitside.Transfer, client *cedar.Client) error {
	session, err := s.TransferSession()
	must(s.t, err)
	to.SetPeer(func(ctx context.Context, command int) (*cedar.Stream, error) {
		return client.Command(ctx, s.Address(), command, session)
	}, s.Key())
	return s.noSession
}

// setup is what a test changes of a job whose files are transferred.
type setup struct {
	job     string            // attributes
	machine string            // of the slot
	knobs   map[string]string // of the pod
	items   []condortest.Item // in the place of the job's input
	files   map[string]string // on the submit side
	tokens  string
	box     *sandbox.Sandbox
	host    *hostprog.Host
	backend string
}

// open gets ready to transfer files of a job.
func open(t *testing.T, o setup) (*transfer.Files, *submit, transfer.Options) {
	t.Helper()
	sh := condortest.NewShadow(t, condortest.ShadowOptions{
		Job: `Out = "/dev/null"` + "\n" + `Err = "/dev/null"` + "\n" + o.job, Files: o.files, Without: []string{"TransferCheckpoint"}, Transfer: condortest.TransferOptions{Items: o.items},
	})
	sh.Connect(t)
	s := &submit{Shadow: sh, t: t, lease: time.Hour}
	knobs := map[string]string{"LOCK": t.TempDir()}
	maps.Copy(knobs, o.knobs)
	set, err := settings.Read(config.FromMap(knobs))
	must(t, err)
	if set.Backend = settings.BackendLocal; o.backend != "" {
		set.Backend = o.backend
	}
	set.PrivateDir = t.TempDir()
	box := o.box
	if box == nil {
		box = hostprogtest.Sandbox(t, os.Getuid())
	}
	host := o.host
	if host == nil {
		host = hostprog.New(hostprog.Options{SeparateUsers: true})
	}
	options := transfer.Options{
		Job: sh.Job(), Machine: parsed(t, o.machine), Info: job.Info{Cluster: 7, FileTransfer: true}, Sandbox: box,
		Programs: hostprog.Job{Host: host, Sandbox: box, Name: t.Name(), Environ: []string{"PATH=/usr/bin:/bin"}, Log: quiet},
		Settings: set, Tokens: o.tokens, Shadow: s, Side: s, Client: &cedar.Client{},
		Over: func(attribute string) { s.over = append(s.over, attribute) },
		Tell: func(_ context.Context, ad *classads.Ad) { s.told = append(s.told, ad) },
		Note: func(_ context.Context, line string) { s.notes = append(s.notes, line) },
		Log:  quiet,
	}
	f, err := transfer.Open(options)
	must(t, err)
	return f, s, options
}

// TestLife of a job's files: input comes in, a checkpoint and the output go out. Each
// end is one that the shadow has to note, and output counts once it has arrived.
func TestLife(t *testing.T) {
	f, s, o := open(t, setup{
		job: `TransferInput = "in.txt"` + "\n" + `TransferOutput = "out.txt"` + "\n" + `TransferExecutable = false` +
			"\n" + `TransferCheckpoint = "ckpt"` + "\nShouldTransferFiles = \"YES\"",
		files: map[string]string{"in.txt": "some input"}, knobs: map[string]string{"FILE_TRANSFER_STATS_LOG": filepath.Join(t.TempDir(), "history")},
	})
	if f.Sent() != 0 || f.Received() != 0 || f.Spooled() != nil {
		t.Errorf("before: %d, %d, %v", f.Sent(), f.Received(), f.Spooled())
	}
	must(t, f.Fetch(t.Context()))
	if text, err := o.Sandbox.ReadFile("in.txt", 100); string(text) != "some input" || err != nil {
		t.Errorf("the input is %q, %v", text, err)
	}
	if f.Received() < int64(len("some input")) {
		t.Errorf("%d bytes have come", f.Received())
	}
	must(t, o.Sandbox.WriteFile("ckpt", []byte("half"), 0o644))
	must(t, o.Sandbox.WriteFile("out.txt", []byte("the result"), 0o644))
	must(t, f.Send(t.Context(), filetransfer.Upload{Kind: jobfiles.Checkpoint, Number: 0}))
	if f.Sent() == 0 || f.Spooled() != nil {
		t.Errorf("after a checkpoint: %d bytes, spooled %v", f.Sent(), f.Spooled())
	}
	// It is not sent again by the same word of the shadow's that it was.
	kind, wanted := f.Output(jobfiles.Ending{Ready: true, Started: true})
	if kind != jobfiles.Output || !wanted {
		t.Fatalf("after its exit: %v, %v", kind, wanted)
	}
	must(t, f.Send(t.Context(), filetransfer.Upload{Kind: kind}))
	if got := s.Outputs()["out.txt"]; got != "the result" {
		t.Errorf("the output is %q", got)
	}
	if f.Spooled() == nil || f.Sent() != int64(len("the result")) {
		t.Errorf("after the output: %d bytes, spooled %v", f.Sent(), f.Spooled())
	}
	if _, wanted := f.Output(jobfiles.Ending{Ready: true, Started: true}); wanted {
		t.Error("output that has arrived is sent again")
	}
	if diff := cmp.Diff([]string{submitside.TransferringInput, submitside.TransferringOutput, submitside.TransferringOutput}, s.over); diff != "" {
		t.Errorf("ends that the shadow has to note (-want +got):\n%s", diff)
	}
	if len(s.told) != 0 {
		t.Errorf("no plugin ran, and the shadow is told %v", s.told)
	}
}

// TestLeftOut: what was found and cannot be sent is noted in the job's event log, and
// the output counts. What the job named itself fails, and nothing is noted.
func TestLeftOut(t *testing.T) {
	for name, tt := range map[string]struct {
		output string
		notes  []string
		fails  bool
	}{
		"below":           {"d", []string{"Left out of the job's output, because it cannot be sent: d/link (leads out of the job's sandbox)."}, false},
		"named":           {"d/link", nil, true},
		"below and named": {"d, d/link", nil, true},
		"nothing":         {"d/file", nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			f, s, o := open(t, setup{job: `TransferOutput = "` + tt.output + `"`, backend: settings.BackendPod})
			must(t, o.Sandbox.Mkdir("d", 0o755))
			must(t, o.Sandbox.WriteFile("d/file", []byte("fine"), 0o644))
			must(t, os.Symlink("/etc/passwd", o.Sandbox.Scratch()+"/d/link"))
			err := f.Send(t.Context(), filetransfer.Upload{Kind: jobfiles.Output})
			if (err != nil) != tt.fails {
				t.Error(err)
			}
			if diff := cmp.Diff(tt.notes, s.notes); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestChoice: which output goes is decided by when the job wants it, and by its end.
func TestChoice(t *testing.T) {
	for name, tt := range map[string]struct {
		job    string
		ending jobfiles.Ending
		kind   jobfiles.Kind
		wanted bool
	}{
		"exit":            {"", jobfiles.Ending{Ready: true, Started: true}, jobfiles.Output, true},
		"evicted":         {"", jobfiles.Ending{Ready: true, Started: true, Evicted: true}, 0, false},
		"evicted, wanted": {`WhenToTransferOutput = "ON_EXIT_OR_EVICT"`, jobfiles.Ending{Ready: true, Started: true, Evicted: true}, jobfiles.Eviction, true},
		"killed":          {`WhenToTransferOutput = "ON_EXIT_OR_EVICT"`, jobfiles.Ending{Ready: true, Started: true, Evicted: true, Fast: true}, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			f, _, _ := open(t, setup{job: tt.job})
			if kind, wanted := f.Output(tt.ending); kind != tt.kind || wanted != tt.wanted {
				t.Errorf("%v, %v, want %v, %v", kind, wanted, tt.kind, tt.wanted)
			}
		})
	}
}

// TestNoTransfer: a job without file transfer has nothing to send.
func TestNoTransfer(t *testing.T) {
	f, err := transfer.Open(transfer.Options{})
	must(t, err)
	if _, wanted := f.Output(jobfiles.Ending{Ready: true, Started: true}); wanted || f.Sent() != 0 || f.Received() != 0 || f.Spooled() != nil {
		t.Error("there is something")
	}
}

// TestCannotOpen: a job that says nonsense of its output, and a shadow without a session.
func TestCannotOpen(t *testing.T) {
	_, s, o := open(t, setup{})
	o.Job.SetString("WhenToTransferOutput", "SOMETIMES")
	if _, err := transfer.Open(o); err == nil {
		t.Error("output is sent SOMETIMES")
	}
	o.Job.SetString("WhenToTransferOutput", "ON_EXIT")
	s.noSession = errors.New("no session")
	if _, err := transfer.Open(o); !errors.Is(err, s.noSession) {
		t.Errorf("got %v", err)
	}
}

// TestFailures: input that does not come is an error, and output that did not arrive
// may be sent again.
func TestFailures(t *testing.T) {
	f, s, o := open(t, setup{job: `TransferOutput = "out.txt"`})
	s.On(condortest.Input, 1, condortest.Refuse(1))
	var failed *filetransfer.Error
	if err := f.Fetch(t.Context()); !errors.As(err, &failed) {
		t.Errorf("input that is refused: %v", err)
	}
	must(t, f.Fetch(t.Context()))
	must(t, o.Sandbox.WriteFile("out.txt", []byte("the result"), 0o644))
	s.On(condortest.OutputItem, 1, condortest.HangUpAfter(1))
	if err := f.Send(t.Context(), filetransfer.Upload{Kind: jobfiles.Output}); !errors.As(err, &failed) || !failed.TryAgain {
		t.Errorf("output that breaks: %v", err)
	}
	if kind, wanted := f.Output(jobfiles.Ending{Ready: true, Started: true}); !wanted || kind != jobfiles.Output || f.Sent() != 0 || f.Spooled() != nil {
		t.Errorf("output that has not arrived: %v, %v, %d bytes, %v", kind, wanted, f.Sent(), f.Spooled())
	}
	must(t, f.Send(t.Context(), filetransfer.Upload{Kind: jobfiles.Output}))
	// Nobody there: the shadow has no half whose end it could note.
	before := len(s.over)
	other := &submit{Shadow: s.Shadow, t: t}
	o.Side = nowhere{other}
	g, err := transfer.Open(o)
	must(t, err)
	if err := g.Fetch(t.Context()); err == nil || len(s.over) != before {
		t.Errorf("%v, noted: %q", err, s.over[before:])
	}
	if err := g.Send(t.Context(), filetransfer.Upload{Kind: jobfiles.Output}); err == nil || len(s.over) != before {
		t.Errorf("%v, noted: %q", err, s.over[before:])
	}
}

// nowhere is a submit side that cannot be reached.
type nowhere struct{ *submit }

func (nowhere) Use(to submitside.Transfer, _ *cedar.Client) error {
	to.SetPeer(func(context.Context, int) (*cedar.Stream, error) { return nil, errors.New("nobody there") }, "key")
	return nil
}

// TestAgain: a transfer of output that breaks is tried again where that can help, and
// given up after as many times as under stock.
func TestAgain(t *testing.T) {
	reset := &filetransfer.Error{Code: 13, TryAgain: true, Text: "reset", Err: context.DeadlineExceeded}
	gone := &filetransfer.Error{Code: 13, TryAgain: true, Text: "gone", Err: io.EOF}
	const forced = 4
	for name, tt := range map[string]struct {
		lease  time.Duration
		broken bool
		err    error
		pauses int // tries at once
		lost   int // tries that wait for the shadow
	}{
		"no more use":                   {time.Hour, false, &filetransfer.Error{Code: 13, Subcode: 2, Text: "no such file"}, 0, 0},
		"no lease":                      {0, false, reset, 0, 0},
		"breaks, nobody knows":          {time.Hour, false, reset, 0, forced},
		"breaks, the shadow knows":      {time.Hour, false, gone, 1, forced},
		"breaks, the shadow is away":    {time.Hour, true, gone, 0, forced},
		"not of the transfer of output": {time.Hour, false, errors.New("something else"), 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			f, s, _ := open(t, setup{})
			s.lease, s.broken = tt.lease, tt.broken
			synctest.Test(t, func(t *testing.T) {
				for range tt.pauses {
					began := time.Now()
					if err := f.Again(t.Context(), tt.err); err != nil || time.Since(began) != transfer.ReapTime {
						t.Fatalf("at once: %v after %s", err, time.Since(began))
					}
				}
				for n := range tt.lost {
					if err := f.Again(t.Context(), tt.err); !errors.Is(err, shadow.ErrLost) || s.breaks != n+1 {
						t.Fatalf("try %d: %v, %d breaks", n, err, s.breaks)
					}
				}
				if err := f.Again(t.Context(), tt.err); !errors.Is(err, tt.err) || errors.Is(err, shadow.ErrLost) || s.breaks != tt.lost {
					t.Errorf("in the end: %v, %d breaks", err, s.breaks)
				}
			})
		})
	}
}

// TestAgainEnds: a demand ends the pause before another try.
func TestAgainEnds(t *testing.T) {
	f, _, _ := open(t, setup{})
	why := errors.New("ended by order")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(why)
	if err := f.Again(ctx, &filetransfer.Error{TryAgain: true, Err: io.EOF}); !errors.Is(err, why) {
		t.Errorf("%v", err)
	}
}

// TestVerifyCheckpoint: what came as a checkpoint must be what was saved.
func TestVerifyCheckpoint(t *testing.T) {
	f, _, _ := open(t, setup{})
	if err := f.VerifyCheckpoint(t.Context()); err != nil {
		t.Errorf("without one: %v", err)
	}
}

// sitePlugin are the knobs of a site with a plugin for URLs that begin with x: or
// file:, which runs this script.
func sitePlugin(t *testing.T, text string) map[string]string {
	t.Helper()
	return map[string]string{"FILETRANSFER_PLUGINS": hostprogtest.Script(t, `if [ "$1" = -classad ]; then
	echo 'MultipleFileSupport = true'; echo 'PluginType = "FileTransfer"'; echo 'SupportedMethods = "x,file"'; exit; fi
`+text)}
}

// TestURL: what a plugin brings is input, and what it says goes to the shadow.
func TestURL(t *testing.T) {
	knobs := sitePlugin(t, `echo "$_CONDOR_CREDS $_CONDOR_JOB_AD $_CONDOR_MACHINE_AD" >said
echo '[ TransferSuccess = true; TransferUrl = "x://host/file"; TransferTotalBytes = 4 ]' >"$4"
echo text >file`)
	f, s, o := open(t, setup{knobs: knobs, tokens: "/tokens", items: []condortest.Item{{Command: condortest.ItemURL, Name: "file", URL: "x://host/file"}}})
	must(t, f.Fetch(t.Context()))
	box := o.Sandbox.Scratch()
	if said, err := o.Sandbox.ReadFile("said", 1000); string(said) != "/tokens "+box+"/.job.ad "+box+"/.machine.ad\n" {
		t.Errorf("the plugin is told %q, %v", said, err)
	}
	if len(s.told) != 1 || !s.told[0].Has("InputPluginResultList") {
		t.Fatalf("the shadow is told %v", s.told)
	}
	list, err := s.told[0].GetList("InputPluginResultList")
	if err != nil || len(list) != 2 { // of the plugin, and of the URL
		t.Errorf("%v, %v", list, err)
	}
}

// TestReportThatIsNoLine: what a line cannot have, the shadow is not told, which would end for good.
func TestReportThatIsNoLine(t *testing.T) {
	knobs := sitePlugin(t, `cat >"$4" <<'END'
[ TransferSuccess = true; TransferUrl = "x://host/file"; TransferError = "C:\\" ]
END
echo text >file`)
	f, s, _ := open(t, setup{knobs: knobs, items: []condortest.Item{{Command: condortest.ItemURL, Name: "file", URL: "x://host/file"}}})
	must(t, f.Fetch(t.Context()))
	if len(s.told) != 1 {
		t.Fatalf("the shadow is told %v", s.told)
	}
	if _, err := classads.ParseOld(s.told[0].FormatOld()); err != nil {
		t.Errorf("the shadow cannot read %s: %v", s.told[0].FormatOld(), err)
	}
	if list, err := s.told[0].GetList("InputPluginResultList"); err != nil || len(list) != 1 { // of the URL
		t.Errorf("%v, %v", list, err)
	}
}

// TestURLFails: what is wrong with a URL is said to the user.
func TestURLFails(t *testing.T) {
	good := `echo '[ TransferSuccess = true ]' >"$4"`
	for name, tt := range map[string]struct {
		url, text string
		knobs     map[string]string
		host      *hostprog.Host
		want      string
	}{
		"no such plugin":   {url: "y://host/file", text: good, want: "plugin for type y not found!"},
		"switched off":     {url: "x://host/file", text: good, knobs: map[string]string{"ENABLE_URL_TRANSFERS": "false"}, want: "URL transfers are disabled by configuration"},
		"the plugin fails": {url: "x://host/file", text: `echo '[ TransferSuccess = false; TransferError = "it is not there"; TransferUrl = "x://host/file" ]' >"$4"; exit 1`, want: "it is not there"},
		"not confined": {url: "x://host/file?key", text: good, host: hostprog.New(hostprog.Options{KernelConfines: func() error { return confine.ErrUnsupported }}),
			want: "No URLs are transferred here: the pilot is not root"},
	} {
		t.Run(name, func(t *testing.T) {
			knobs := sitePlugin(t, tt.text)
			maps.Copy(knobs, tt.knobs)
			f, s, _ := open(t, setup{knobs: knobs, host: tt.host, items: []condortest.Item{{Command: condortest.ItemURL, Name: "file", URL: tt.url}}})
			err := f.Fetch(t.Context())
			if err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "key") {
				t.Errorf("%v, want %q", err, tt.want)
			}
			if name == "the plugin fails" && len(s.told) != 1 {
				t.Errorf("the shadow is told %v", s.told)
			}
		})
	}
}

// TestPluginsOfJobs: whether a job may bring plugins is the site's decision, about slot
// and job.
func TestPluginsOfJobs(t *testing.T) {
	const allowed, refused, ignored = "", "user-supplied plugin plugin not allowed", "plugin for type own not found!"
	for knob, want := range map[string]string{
		"": allowed, "0": allowed, "false": allowed, "-1": allowed, "True": refused, "2": ignored, "3": refused,
		"TARGET.Bad": refused, "MY.Level": ignored, "TARGET.Missing": allowed, "1 +": allowed,
	} {
		t.Run(knob, func(t *testing.T) {
			f, _, o := open(t, setup{
				job:     `TransferPlugins = "own=plugin"` + "\nBad = true",
				machine: "Level = 2", knobs: map[string]string{"STARTER_DISABLE_USER_SUPPLIED_TRANSFER_PLUGINS": knob},
				items: []condortest.Item{{Command: condortest.ItemURL, Name: "file", URL: "own://host/file"}},
			})
			must(t, o.Sandbox.WriteFile("plugin", []byte("#!/bin/sh\n"+`echo '[ TransferSuccess = true ]' >"$4"; echo x >file`+"\n"), 0o755))
			err := f.Fetch(t.Context())
			switch {
			case want == allowed && err != nil:
				t.Error(err)
			case want != allowed && (err == nil || !strings.Contains(err.Error(), want)):
				t.Errorf("%v, want %q", err, want)
			}
		})
	}
}
