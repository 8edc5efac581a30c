package visitors_test

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"os"
	"testing"

	"podstarter/classads"
	"podstarter/condor/config"
	"podstarter/internal/cedar"
	"podstarter/sandbox"
	"podstarter/sshtojob"
	"podstarter/starter/visitors"
)

func TestMain(m *testing.M) {
	sshtojob.Dispatch() // ssh servers are processes of this program
	os.Exit(m.Run())
}

const (
	version  = "$CondorVersion: 25.14.1 2026-10-16 test $"
	secret   = "<127.0.0.1:9618>#1#2#secret"
	toolInfo = `[Encryption="YES";Integrity="YES";]`
	alice    = "alice@submit.example.org"
	whoAmI   = 77777 // a command that everybody with cedar.Read may give
)

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

// served is a desk that is served, and the submit side's session with it.
type served struct {
	*visitors.Desk
	address   string
	claim     *cedar.Session
	sessions  *cedar.Sessions
	suspended bool
}

// serve serves a desk on a pod with these knobs.
func serve(t *testing.T, knobs map[string]string) *served {
	t.Helper()
	d := &served{sessions: cedar.NewSessions()}
	var err error
	d.claim, err = cedar.MintSession("submit-side@matchsession", cedar.Daemon)
	must(t, err)
	must(t, d.sessions.Add(d.claim))
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	address, err := cedar.ParseSinful("<" + l.Addr().String() + ">")
	must(t, err)
	d.address = address.String()
	log := slog.New(slog.DiscardHandler)
	d.Desk = visitors.New(visitors.Options{
		Sessions: d.sessions, Config: config.FromMap(knobs), KeygenArg: knobs["SSH_TO_JOB_SSH_KEYGEN_ARGS"], Address: address,
		Suspended: func() bool { return d.suspended }, Log: log,
	})
	server := &cedar.Server{Sessions: d.sessions, Version: version, Log: log}
	d.Serve(server)
	server.Handle(whoAmI, cedar.Read, answerWho)
	server.Handle(cedar.StarterVacateJob, cedar.Daemon, answerWho)
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(ctx, l) }()
	t.Cleanup(func() {
		d.EndVisits()
		stop()
		if err := <-ended; err != nil {
			t.Errorf("serve: %v", err)
		}
	})
	return d
}

// answerWho answers with the peer's name.
func answerWho(_ context.Context, c *cedar.Call) error {
	_, err := c.Stream.GetAd()
	if err := errors.Join(err, c.Stream.EndOfMessage()); err != nil {
		return err
	}
	ad := classads.NewAd()
	ad.SetString("Peer", c.User)
	c.Stream.PutAd(ad)
	return c.Stream.EndMessage()
}

// begin gives a command with an ad, and takes the ad that answers it.
func (d *served) begin(t *testing.T, session *cedar.Session, number int, ad *classads.Ad) (*cedar.Stream, *classads.Ad, error) {
	t.Helper()
	client := cedar.Client{Version: version}
	s, err := client.Command(t.Context(), d.address, number, session)
	if err != nil {
		return nil, nil, err
	}
	t.Cleanup(func() { s.Close() })
	s.PutAd(ad)
	if err := s.EndMessage(); err != nil {
		return nil, nil, err
	}
	answer, err := s.GetAd()
	return s, answer, errors.Join(err, s.EndOfMessage())
}

// ask is begin where nothing follows the answer.
func (d *served) ask(t *testing.T, session *cedar.Session, number int, ad *classads.Ad) (*classads.Ad, error) {
	t.Helper()
	s, answer, err := d.begin(t, session, number, ad)
	if s != nil {
		s.Close()
	}
	return answer, err
}

// tool is the session of the owner's tool, as a schedd gets it.
func (d *served) tool(t *testing.T) *cedar.Session {
	t.Helper()
	answer, err := d.ask(t, d.claim, cedar.CreateJobOwnerSecSession, sessionRequest(secret, toolInfo))
	must(t, err)
	session, err := cedar.ImportSession(answer.StringOr("ClaimId", ""), "execute-side@matchsession")
	must(t, err)
	return session
}

func sessionRequest(claim, info string) *classads.Ad {
	ad := classads.NewAd()
	ad.SetString("ClaimId", claim)
	ad.SetString("SessionInfo", info)
	return ad
}

func jobOf(user, claim string) *classads.Ad {
	ad := classads.NewAd()
	if user != "" {
		ad.SetString("User", user)
	}
	if claim != "" {
		ad.SetString("ClaimId", claim)
	}
	return ad
}

// newSandbox is a sandbox of the test's own user.
func newSandbox(t *testing.T) *sandbox.Sandbox {
	t.Helper()
	box, err := sandbox.Create(t.Context(), sandbox.Options{Execute: t.TempDir(), PID: os.Getpid(), Payload: sandbox.Self(), Condor: sandbox.Self()})
	must(t, err)
	return box
}
