package filetransfer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"podstarter/classads"
	condorjob "podstarter/condor/job"
	"podstarter/internal/cedar"
	"podstarter/sandbox"
)

const testVersion = "$CondorVersion: 25.14.1 2026-08-01 BuildID: 0 $"

// fakeShadow plays the shadow's role of a transfer, with faults on request. It
// is a server, as a real shadow is, and speaks on an encrypted session.
type fakeShadow struct {
	t       testing.TB
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
	f := &fakeShadow{t: t, session: session, done: make(chan error, 8)}
	server := &cedar.Server{Sessions: sessions, Version: testVersion, HandlerTimeout: time.Minute, PayloadTimeout: time.Minute}
	serve := func(role func(*cedar.Stream) error) cedar.Handler {
		return func(_ context.Context, c *cedar.Call) error {
			err := f.play(c.Stream, role)
			if !f.discard {
				f.done <- err
			}
			return err
		}
	}
	server.Handle(cedar.FileTransUpload, cedar.Write, serve(f.sendRole))
	server.Handle(cedar.FileTransDownload, cedar.Write, serve(f.receiveRole))
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
	role := f.sendRole
	if command == cedar.FileTransDownload {
		role = f.receiveRole
	}
	go func() {
		s := cedar.NewStream(there)
		defer s.Close()
		f.done <- f.play(s, role)
	}()
	return cedar.NewStream(here), nil
}

func (f *fakeShadow) play(s *cedar.Stream, role func(*cedar.Stream) error) error {
	key, err := s.GetString()
	if err == nil {
		err = s.EndOfMessage()
	}
	if err != nil {
		return err
	}
	f.mu.Lock()
	f.key = key
	f.mu.Unlock()
	s.SetCoalesce(!f.discard)
	if f.badKey {
		s.PutInt(0)
		_ = s.EndMessage()
		return s.Flush()
	}
	if err := role(s); err != nil {
		return err
	}
	if err := s.Flush(); err != nil {
		return err
	}
	if f.linger > 0 {
		time.Sleep(f.linger)
	}
	return nil
}

var errCut = errors.New("cut on request")

func end(s *cedar.Stream, err error) error {
	if err != nil {
		return err
	}
	return s.EndOfMessage()
}

func getInt(s *cedar.Stream) (int64, error) {
	v, err := s.GetInt()
	return v, end(s, err)
}

func getAd(s *cedar.Stream) (*classads.Ad, error) {
	ad, err := s.GetAd()
	return ad, end(s, err)
}

// grant and ask are the shadow's halves of the handshake.
func (f *fakeShadow) grant(s *cedar.Stream, receiving bool) error {
	v, err := getInt(s)
	if err != nil {
		return err
	}
	f.mu.Lock()
	f.asked = v
	f.mu.Unlock()
	ad := classads.NewAd()
	for range f.waits {
		ad.SetInt("Result", 0)
		s.PutAd(ad)
		if err := s.EndMessage(); err != nil {
			return err
		}
		if err := s.Flush(); err != nil {
			return err
		}
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
	if f.refuse != nil {
		ad = f.refuse
	}
	s.PutAd(ad)
	return s.EndMessage()
}

func (f *fakeShadow) ask(s *cedar.Stream) error {
	alive := f.alive
	if alive == 0 {
		alive = 300
	}
	s.PutInt(alive)
	if err := s.EndMessage(); err != nil {
		return err
	}
	for {
		ad, err := getAd(s)
		if err != nil {
			return err
		}
		switch r := ad.IntOr("Result", -9); {
		case r == 2:
			return nil
		case r != 0:
			return fmt.Errorf("starter says no: %s", ad.FormatNew())
		case alive < 300 && ad.IntOr("Timeout", 0) != 300:
			return fmt.Errorf("no timeout in %s", ad.FormatNew())
		}
	}
}

// sendRole is FILETRANS_UPLOAD.
func (f *fakeShadow) sendRole(s *cedar.Stream) error {
	info := classads.NewAd()
	info.SetInt("SandboxSize", 1)
	s.PutInt(0)
	s.PutAd(info)
	if err := s.EndMessage(); err != nil {
		return err
	}
	for i, it := range f.items {
		if f.cut != nil && f.cut(i) {
			_ = s.Flush()
			return errCut
		}
		s.PutInt(it.command)
		if err := s.EndMessage(); err != nil {
			return err
		}
		s.PutString(it.name)
		if err := s.EndMessage(); err != nil {
			return err
		}
		if i == 0 || f.once {
			if err := f.ask(s); err != nil {
				return err
			}
			if i == 0 {
				if err := f.grant(s, false); err != nil {
					return err
				}
			}
			if f.refuse != nil {
				return s.Flush()
			}
		}
		if err := f.sendItem(s, it); err != nil {
			return err
		}
	}
	s.PutInt(0)
	if err := s.EndMessage(); err != nil {
		return err
	}
	if err := f.putAck(s); err != nil {
		return err
	}
	return f.getAck(s)
}

func (f *fakeShadow) sendItem(s *cedar.Stream, it sent) error {
	switch {
	case it.raw != nil:
		return it.raw(s)
	case it.command == 5:
		s.PutString(it.url)
		return s.EndMessage()
	case it.command == 6:
		s.PutInt(it.mode)
		return s.EndMessage()
	case it.command == 999:
		s.PutAd(it.ad)
		if err := s.EndMessage(); err != nil {
			return err
		}
		if sub := it.ad.IntOr("SubCommand", 0); sub != 8 && sub != 9 {
			return nil
		}
		answer, err := getAd(s)
		f.mu.Lock()
		f.answered = answer
		f.mu.Unlock()
		return err
	}
	s.PutInt(it.mode)
	if err := s.EndMessage(); err != nil {
		return err
	}
	if err := s.PutFile(strings.NewReader(it.data), int64(len(it.data))); err != nil {
		return err
	}
	return s.EndMessage()
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
