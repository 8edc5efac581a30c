package startd

import (
	"errors"
	"fmt"
	"io"
	"net"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"podstarter/condor/version"
	"podstarter/internal/cedar"
	"podstarter/internal/cedar/cedartest"
	"podstarter/testdata/streams"
)

const recordings = "../../testdata/streams"

// TestReplayUpdates reads what each recorded startd wrote before it spawned the
// starter, and sends each update again, byte for byte.
func TestReplayUpdates(t *testing.T) {
	for _, c := range streams.Cases(t, recordings) {
		t.Run(c[0]+"/"+c[1], func(t *testing.T) {
			recording := streams.Find(t, recordings, c[0], c[1], streams.Updates, 1)[0]
			u := NewUpdateSocket(cedartest.Adopted(t, streams.Play(t, recording)), quiet)
			defer u.Close()
			m, err := u.ReadMachine(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			secrets := map[string]int{}
			if m.Secrets != nil {
				claim, err := cedar.ParseClaimID(m.Secrets.StringOr("ClaimId", ""))
				if err != nil || claim.Startd() == "" {
					t.Errorf("the claim's id: %v", err)
				}
				for name := range m.Secrets.All() {
					secrets[name]++
				}
			}
			got := map[string]any{
				"Name": m.Ad.StringOr("Name", ""), "SlotID": m.Ad.IntOr("SlotID", 0), "Cpus": m.Ad.IntOr("Cpus", 0), "State": m.Ad.StringOr("State", ""),
				"version": version.Of(m.Ad.StringOr("CondorVersion", "")).String(), "overlay": m.Overlay != nil, "secrets": secrets,
				"policy": m.Ad.Has("START"), "own": m.Ad.BoolOr("PodStarterHealthy", false),
			}
			want := map[string]any{
				"Name": "slot1@glidein@127-0-0-1.pool.invalid", "SlotID": int64(1), "Cpus": int64(1), "State": "Claimed",
				"version": "25.14.1", "overlay": false, "secrets": map[string]int{"ClaimId": 1},
				"policy": true, "own": true,
			}
			if c[0] == "23.9" {
				want["version"], want["secrets"] = "23.9.6", map[string]int{}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			var sent []streams.Packet
			for _, p := range recording.Packets {
				if !p.In {
					p.In = true
					sent = append(sent, p)
				}
			}
			again := cedartest.Adopted(t, streams.Say(t, sent))
			final := false
			for !final {
				command, err := again.GetInt()
				if errors.Is(err, io.EOF) {
					break
				}
				ad, err2 := again.GetAd()
				if err := errors.Join(err, err2, again.EndOfMessage()); err != nil {
					t.Fatal(err)
				}
				send := u.Update
				if final = command == commandFinalUpdate; final {
					send = u.FinalUpdate
				}
				if _, err := cedar.ParseSinful(ad.StringOr("StarterIpAddr", "")); err != nil {
					t.Errorf("the starter's address: %v", err)
				}
				if err := send(t.Context(), ad); err != nil {
					t.Fatal(err)
				}
			}
			if !final {
				t.Error("the recording has no final update")
			}
		})
	}
}

// TestReplayOrders reads the orders that startds sent.
func TestReplayOrders(t *testing.T) {
	for name, tt := range map[string]struct {
		version, job string
		command      int
		want         []string
	}{
		"hold":     {"25.14", "held", 1500, []string{`vacate "Claim deactivated" 1009 0 soft=true true`}},
		"vacate":   {"25.14", "vacated", 1500, []string{`vacate "Claim deactivated" 1009 0 soft=true true`}},
		"remove":   {"25.14", "reconnected", 1500, []string{`vacate "Claim deactivated" 1009 0 soft=true true`}},
		"suspend":  {"25.14", "suspended", cedar.DCRaiseSignal, []string{"signal 100", "signal 101", "signal 101"}},
		"no order": {"23.9", "held", 1500, nil}, // that startd sends SIGTERM
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, r := range streams.Find(t, recordings, tt.version, tt.job, tt.command, len(tt.want)) {
				// Play checks that a vacate is answered as in the recording.
				s := cedartest.Adopted(t, streams.Play(t, r))
				if tt.command == cedar.DCRaiseSignal {
					n, err := ReadSignal(s)
					if err != nil {
						t.Fatal(err)
					}
					got = append(got, fmt.Sprintf("signal %d", n))
					continue
				}
				v, err := ReadVacate(s)
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, fmt.Sprintf("vacate %q %d %d soft=%v %v", v.Reason, v.Code, v.Subcode, v.Soft, v.ShouldVacate()))
				s.PutInt(1)
				if err := s.EndMessage(); err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestReplayAlive reads the keep-alives that a startd of 23.9 got; its timer starts
// with the first one.
func TestReplayAlive(t *testing.T) {
	r := streams.Find(t, recordings, "23.9", "plain", cedar.DCChildAlive, 1)[0]
	sealed := r.Sealed()
	for i := range sealed {
		sealed[i].In = true
	}
	s := cedartest.Adopted(t, streams.Say(t, sealed))
	pid, err := s.GetInt()
	hang, err2 := s.GetInt()
	waited, err3 := s.GetDouble()
	if err := errors.Join(err, err2, err3, s.EndOfMessage()); err != nil {
		t.Fatal(err)
	}
	const usual, fuzz = 3600, 72
	if pid <= 1 || hang < usual-fuzz || hang > usual+fuzz || waited != 0 {
		t.Errorf("process %d, %d seconds, %v", pid, hang, waited)
	}
}

// TestReplayInherit takes over what startds have handed down, with sockets in place
// of the descriptors.
func TestReplayInherit(t *testing.T) {
	for _, c := range streams.Cases(t, recordings) {
		t.Run(c[0]+"/"+c[1], func(t *testing.T) {
			update, _ := pair(t)
			syscall, _ := pair(t)
			endpoint, err := net.ListenUnix("unix", &net.UnixAddr{Name: "@" + t.Name(), Net: "unix"})
			if err != nil {
				t.Fatal(err)
			}
			fds := []int{hand(t, update.(*net.TCPConn)), hand(t, syscall.(*net.TCPConn)), hand(t, endpoint)}
			text := streams.Variable(t, recordings, c[0], c[1], "CONDOR_INHERIT")
			n := 0
			text = regexp.MustCompile(`(?: 1 |_[0-9]+\*)[0-9]+\*`).ReplaceAllStringFunc(text, func(found string) string {
				n++
				if begin, ok := strings.CutPrefix(found, " 1 "); ok && begin != "" {
					return fmt.Sprintf(" 1 %d*", fds[n-1])
				}
				before, _, _ := strings.Cut(found, "*")
				return fmt.Sprintf("%s*%d*", before, fds[n-1])
			})
			if n != len(fds) {
				t.Fatalf("%d descriptors were handed down: %s", n, text)
			}
			h, err := Inherit([]string{
				"CONDOR_INHERIT=" + text, "CONDOR_PARENT_ID=host:1:2",
				"CONDOR_PRIVATE_INHERIT=" + streams.Variable(t, recordings, c[0], c[1], "CONDOR_PRIVATE_INHERIT"),
			})
			if err != nil {
				t.Fatal(err)
			}
			defer h.close()
			release := map[string]string{"23.9": "23.9.6", "25.14": "25.14.1"}[c[0]]
			zeros := strings.Repeat("0", 48)
			got := map[string]any{
				"pid": h.ParentPID > 1, "parent": h.Parent.Alias(), "startd": strings.HasPrefix(h.Parent.SharedPortID(), "startd_"), "endpoint": strings.HasPrefix(h.EndpointID, "slot1_"),
				"version": version.Of(h.Version()).String(), "shadow": version.Of(h.Syscall.PeerVersion()).String(),
				"update": h.Update.Encrypted(), "syscall": h.Syscall.Encrypted(), "user": h.Syscall.User(),
				"parent session": h.ParentSession.ID, "family session": h.FamilySession.ID,
				"vacate": h.FamilySession.Levels.Has(cedar.Daemon), "commands": len(h.ParentSession.ValidCommands) > 30,
			}
			want := map[string]any{
				"pid": true, "parent": "127-0-0-1.pool.invalid", "startd": true, "endpoint": true, "version": release, "shadow": release,
				"update": false, "syscall": true, "user": "submit-side@matchsession",
				"parent session": zeros, "family session": "family:" + zeros, "vacate": true, "commands": true,
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
