package owner

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"podstarter/classads"
	"podstarter/internal/cedar"
	"podstarter/internal/cedar/cedartest"
	"podstarter/testdata/streams"
)

const recordings = "../../testdata/streams"

// Commands of tools (cedar defines them for its servers).
const (
	createSession = 1501
	startSSHD     = 1502
	peek          = 1503
)

// TestReplaySession reads how the schedd asked for sessions for the job's
// owner, with the claim in the shadow's ad.
func TestReplaySession(t *testing.T) {
	calls := streams.Find(t, recordings, "25.14", "visited", streams.Calls, 1)[0]
	s, err := cedar.Adopt(streams.Say(t, calls.Sealed()))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := s.GetInt(); err != nil {
		t.Fatal(err)
	}
	job, err := s.GetAd()
	if err != nil {
		t.Fatal(err)
	}
	if got := Identity(job); got != "alice@pool.invalid" {
		t.Errorf("the job's owner is %q", got)
	}
	claim := job.StringOr("ClaimId", "")
	for _, r := range streams.Find(t, recordings, "25.14", "visited", createSession, 3) {
		sealed := r.Sealed()
		for i := range sealed {
			sealed[i].In = true
		}
		said, err := cedar.Adopt(streams.Say(t, sealed))
		if err != nil {
			t.Fatal(err)
		}
		request, err := ReadSessionRequest(said)
		if err != nil {
			t.Fatal(err)
		}
		if request.Info != `[Encryption="YES";Integrity="YES";]` || !request.Proves(claim) || request.Proves(claim+"0") {
			t.Errorf("%v proves %v", request, request.Proves(claim))
		}
		answer, err := said.GetAd()
		if err != nil {
			t.Fatal(err)
		}
		said.Close()
		session, err := cedar.ImportSession(answer.StringOr("ClaimId", ""), Identity(job), cedar.Daemon)
		if err != nil {
			t.Fatal(err)
		}
		// A session of another starter would have another number.
		again := cedartest.Adopted(t, streams.Play(t, r))
		if _, err := ReadSessionRequest(again); err != nil {
			t.Fatal(err)
		}
		if err := AnswerSession(again, session, answer.StringOr("CondorVersion", ""), "25.14.1", answer.StringOr("StarterIpAddr", "")); err != nil {
			t.Error(err)
		}
	}
}

// TestReplayPeek answers condor_tail as the recorded starter did.
func TestReplayPeek(t *testing.T) {
	contents := map[string]string{"_condor_stdout": "first line\n", "data": "some data\n"}
	job, err := classads.ParseOld("Out = \"_condor_stdout\"\nErr = \"_condor_stderr\"\nTransferOutput = \"data\"\n")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, r := range streams.Find(t, recordings, "25.14", "visited", peek, 2) {
		s := cedartest.Adopted(t, streams.Play(t, r))
		p, err := ReadPeek(s)
		if err != nil {
			t.Fatal(err)
		}
		files, err := p.Files(job)
		if err != nil {
			t.Fatal(err)
		}
		var sizes []int64
		for _, f := range files {
			sizes = append(sizes, int64(len(contents[f.Name])))
		}
		got = append(got, fmt.Sprintf("out=%v err=%v max=%d %v", p.Stdout, p.Stderr, p.Max, files))
		if err := Answer(s, p.Apportion(files, sizes), func(name string) (io.ReadSeekCloser, int64, error) {
			return file{bytes.NewReader([]byte(contents[name]))}, sizes[0], nil
		}); err != nil {
			t.Error(err)
		}
	}
	want := []string{"out=true err=false max=1024 [{_condor_stdout 0 -1}]", "out=false err=false max=1024 [{data 2 -1}]"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestReplayLogin reads what condor_ssh_to_job asks for.
func TestReplayLogin(t *testing.T) {
	r := streams.Find(t, recordings, "25.14", "visited", startSSHD, 1)[0]
	s, err := cedar.Adopt(streams.Say(t, r.Sealed()))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	login, err := ReadLogin(s)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(Login{Shells: []string{"/bin/bash"}, Slot: "slot1@glidein@127-0-0-1.pool.invalid"}, login); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	answer := streams.Messages(r.Sealed(), false)[0]
	for _, attribute := range []string{"Result = true", `RemoteUser = "alice"`, "SSHPublicServerKey = ", "SSHPrivateClientKey = "} {
		if !strings.Contains(string(answer), attribute) {
			t.Errorf("the answer has no %s: %s", attribute, streams.Text(answer))
		}
	}
}
