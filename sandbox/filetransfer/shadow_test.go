package filetransfer

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"maps"
	"net"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"podstarter/classads"
	"podstarter/condor/condortest"
	condorjob "podstarter/condor/job"
	"podstarter/internal/cedar"
	"podstarter/sandbox"
)

const testVersion = "$CondorVersion: 25.14.1 2026-08-01 BuildID: 0 $"

// fakeShadow has a double of a shadow play its role of a transfer, with faults on request.
// It is a server, as a real shadow is, and speaks on an encrypted session.
type fakeShadow struct {
	t       testing.TB
	double  *condortest.Shadow
	client  *cedar.Client
	addr    string
	session *cedar.Session
	plain   bool // without encryption: not what shadows do, but it must work

	// What it sends.
	items []sent

	// What it received.
	mu       sync.Mutex
	final    int64
	info     *classads.Ad
	got      []received
	seen     int          // of what the double has heard
	ackIn    *classads.Ad // the starter's acknowledgement
	key      string
	answered *classads.Ad // answer of the starter to an item of command 999
	asked    int64        // the starter's alive interval

	// How it behaves.
	alive     int64               // its alive interval, 300 if 0
	waits     int                 // how many times it says "still waiting" first
	once      bool                // it grants a go-ahead for one item only
	refuse    *classads.Ad        // go-ahead that says no
	limit     int64               // MaxTransferBytes, if not 0
	sign      *classads.Ad        // answer to a request for signatures
	ack       *classads.Ad        // its acknowledgement; success if nil
	mangle    func(*cedar.Stream) // called instead of sending the acknowledgement
	cut       func(item int) bool // closes the connection before an item
	badKey    bool
	discard   bool          // does not keep what it receives
	linger    time.Duration // keeps the connection open after all is said
	beforeAck func()
	done      chan error // how the role ended
}

type sent struct {
	command int64
	name    string
	mode    int64
	data    string
	url     string
	ad      *classads.Ad
	raw     func(*cedar.Stream) error // instead of the body
}

func (it sent) item() condortest.Item {
	return condortest.Item{Command: it.command, Name: it.name, Mode: it.mode, Data: it.data, URL: it.url, Ad: it.ad, Send: it.raw}
}

type received struct {
	Command int64
	Name    string
	Mode    int64
	Data    string
	Ad      string
}

func newShadow(t testing.TB) *fakeShadow {
	session, err := cedar.MintSession("submit-side@matchsession", cedar.Write, cedar.Read, cedar.Daemon)
	if err != nil {
		t.Fatal(err)
	}
	sessions := cedar.NewSessions()
	if err := sessions.Add(session); err != nil {
		t.Fatal(err)
	}
	f := &fakeShadow{t: t, double: condortest.NewShadow(t, condortest.ShadowOptions{}), session: session, done: make(chan error, 8)}
	server := &cedar.Server{Sessions: sessions, Version: testVersion, HandlerTimeout: time.Minute, PayloadTimeout: time.Minute}
	serve := func(_ context.Context, c *cedar.Call) error {
		err := f.play(c.Stream, c.Command)
		if !f.discard {
			f.done <- err
		}
		return err
	}
	server.Handle(cedar.FileTransUpload, cedar.Write, serve)
	server.Handle(cedar.FileTransDownload, cedar.Write, serve)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan struct{})
	go func() { defer close(served); _ = server.Serve(ctx, l) }()
	t.Cleanup(func() { cancel(); <-served })
	f.addr = "<" + l.Addr().String() + ">"
	f.client = &cedar.Client{Version: testVersion, Name: "STARTER", Timeout: time.Minute}
	return f
}

// dial is what the starter hands to a Transfer.
func (f *fakeShadow) dial(ctx context.Context, command int) (*cedar.Stream, error) {
	if !f.plain {
		return f.client.Command(ctx, f.addr, command, f.session)
	}
	here, there := net.Pipe()
	go func() {
		s := cedar.NewStream(there)
		defer s.Close()
		f.done <- f.play(s, command)
	}()
	return cedar.NewStream(here), nil
}

var errCut = errors.New("cut on request")

func end(s *cedar.Stream, err error) error {
	if err != nil {
		return err
	}
	return s.EndOfMessage()
}

// play has the double play the shadow's role, as the fields want it.
func (f *fakeShadow) play(s *cedar.Stream, command int) error {
	f.double.Replan()
	f.double.Forget()
	f.plan(command)
	f.seen = 0
	err := f.double.Transfer(s, command)
	f.listen()
	if err == nil && f.linger > 0 {
		time.Sleep(f.linger)
	}
	return err
}

// plan tells the double how to behave.
func (f *fakeShadow) plan(command int) {
	o := condortest.TransferOptions{Items: []condortest.Item{}, Key: "1#secret", Alive: f.alive, Discard: f.discard}
	for _, it := range f.items {
		o.Items = append(o.Items, it.item())
	}
	f.double.SetTransfer(o)
	begin, item, ack := condortest.Input, condortest.InputItem, condortest.InputAck
	next := 0
	cut := condortest.HangUpIf(func() bool {
		next++
		return f.cut != nil && f.cut(next-1)
	})
	if command == cedar.FileTransDownload {
		begin, item, ack = condortest.Output, condortest.OutputItem, condortest.OutputAck
		f.double.On(condortest.OutputInfo, 1, cut) // what comes before the first item
		f.double.On(item, 0, condortest.Answer(f.sign))
	}
	f.double.On(item, 0, cut)
	if f.badKey {
		f.double.On(begin, 1, condortest.Refuse(syscall.EACCES))
	}
	said := 0
	f.double.On(condortest.GoAhead, 0, condortest.AnswerBy(func(condortest.Heard) *classads.Ad {
		said++
		return f.goAhead(said, command == cedar.FileTransDownload)
	}))
	f.double.On(ack, 1, condortest.Do(func(condortest.Heard) {
		f.listen() // before the starter knows that it is over, and the test looks
		if f.beforeAck != nil {
			f.beforeAck()
		}
	}))
	switch {
	case f.mangle != nil:
		f.double.On(ack, 1, condortest.Instead(f.mangle))
	case f.ack != nil:
		f.double.On(ack, 1, condortest.Answer(f.ack))
	}
}

// listen takes over what the double has heard since the last time.
func (f *fakeShadow) listen() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, h := range f.double.Heard()[f.seen:] {
		f.hear(h)
		f.seen++
	}
}

// goAhead is the n-th go-ahead that the shadow gives.
func (f *fakeShadow) goAhead(n int, receiving bool) *classads.Ad {
	ad := classads.NewAd()
	switch {
	case n%(f.waits+1) != 0:
		ad.SetInt("Result", 0)
		return ad
	case f.refuse != nil:
		return f.refuse
	}
	ad.SetInt("Result", 2)
	if f.once {
		ad.SetInt("Result", 1)
	}
	if receiving {
		ad.SetInt("MaxTransferBytes", -1)
		if f.limit != 0 {
			ad.SetInt("MaxTransferBytes", f.limit)
		}
	}
	return ad
}

// hear takes over what the double has heard.
func (f *fakeShadow) hear(h condortest.Heard) {
	switch h.Call {
	case condortest.Input, condortest.Output:
		f.key = h.Texts[0]
	case condortest.OutputInfo:
		f.final, f.info = h.Ints[0], adOf(f.t, h.Ad)
	case condortest.GoAhead:
		f.asked = h.Ints[0]
	case condortest.InputAck, condortest.OutputAck:
		f.ackIn = adOf(f.t, h.Ad)
	case condortest.InputAnswer:
		f.answered = adOf(f.t, h.Ad)
	case condortest.OutputItem:
		r := received{Command: h.Ints[0], Name: h.Texts[0], Data: h.Body}
		if len(h.Ints) > 1 {
			r.Mode = h.Ints[1]
		}
		if h.Ad != nil {
			r.Ad = adOf(f.t, h.Ad).FormatOld()
		}
		f.got = append(f.got, r)
	}
}

// adOf makes an ad again of what was heard.
func adOf(t testing.TB, heard condortest.Ad) *classads.Ad {
	ad := classads.NewAd()
	for _, name := range slices.Sorted(maps.Keys(heard)) {
		e, err := classads.ParseOldExpr(heard[name])
		if err != nil {
			t.Errorf("attribute %s: %v", name, err)
			continue
		}
		ad.Insert(name, e)
	}
	return ad
}

// mustPlay checks that the shadow's side went well to its end.
func (f *fakeShadow) mustPlay() {
	f.t.Helper()
	select {
	case err := <-f.done:
		if err != nil {
			f.t.Errorf("shadow's side: %v", err)
		}
	case <-time.After(30 * time.Second):
		f.t.Fatal("shadow's side does not end")
	}
}

// transfer makes a Transfer for a job given in the old syntax.
func (f *fakeShadow) transfer(s *sandbox.Sandbox, job string) *Transfer {
	f.t.Helper()
	ad, err := classads.ParseOld(job)
	if err != nil {
		f.t.Fatal(err)
	}
	condorjob.Localize(ad, condorjob.Info{FileTransfer: true, Cmd: ad.StringOr("Cmd", ""), Iwd: ad.StringOr("Iwd", "")}, s.Scratch())
	return New(Config{
		Sandbox: s, Job: ad, Dial: f.dial, Key: "1#secret",
		InputTimeout: time.Minute, OutputTimeout: time.Minute,
		Log: slog.New(slog.NewTextHandler(testWriter{f.t}, &slog.HandlerOptions{Level: slog.LevelDebug})),
	})
}

// testWriter puts log lines into the test's output.
type testWriter struct{ t testing.TB }

func (w testWriter) Write(p []byte) (int, error) {
	if _, ok := w.t.(*testing.B); !ok {
		w.t.Logf("%s", strings.TrimSuffix(string(p), "\n"))
	}
	return len(p), nil
}

var _ io.Writer = testWriter{}
