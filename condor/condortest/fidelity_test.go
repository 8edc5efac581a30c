package condortest

import (
	"context"
	"crypto/x509"
	"encoding/binary"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"podstarter/condor/startd"
	"podstarter/internal/cedar"
	"podstarter/testdata/streams"
)

// own are the attributes that each peer has for itself: they are not compared.
var own = []string{"ClaimId", "PublicClaimId", "StartdIpAddr", "MyAddress", "ShadowIpAddr", "TransferSocket", "TransferKey"}

// TestFidelity plays the starter's side of every recording to the doubles, byte for byte as
// it was sent: they take every message, and answer what was answered. Compared are all
// calls and their answers, transfers, updates, keep-alives, orders and reconnects; that is, all but
//   - the attributes in own, and the keys of sessions;
//   - numbers of the disk below the submit directory (stat, statfs) and the order of its entries;
//   - certificates of a delegated proxy, of which there must be as many;
//   - the order of attributes, where an ad is otherwise the same;
//   - handshakes, which are of cedar, and commands of tools (condor_tail, condor_ssh_to_job).
func TestFidelity(t *testing.T) {
	for _, c := range streams.Cases(t, recordings(t)) {
		name := c[0] + "/" + c[1]
		t.Run(name, func(t *testing.T) {
			p := newPlayer(t, name)
			p.updates()
			p.calls()
			seen := map[int]int{}
			for _, r := range streams.Of(t, recordings(t), c[0], c[1]) {
				p.connection(r)
				seen[r.Command()]++
			}
			if seen[streams.Calls] != 1 || seen[streams.Updates] != 1 || seen[cedar.FileTransUpload] != 1 {
				t.Errorf("of the recording were played: %v", seen)
			}
			t.Logf("%d messages sent, %d compared, %d of them not byte for byte", p.sent, p.compared, p.loose)
		})
	}
}

// player is the starter of a recording.
type player struct {
	*testing.T
	name                  string
	shadow                *Shadow
	startd                *Startd
	activation            *Activation
	inherited             *startd.Inheritance
	orders                chan *cedar.Stream // at which the starter gets orders
	sent, compared, loose int
}

func newPlayer(t *testing.T, name string) *player {
	t.Helper()
	p := &player{T: t, name: name, orders: make(chan *cedar.Stream)}
	p.shadow = NewShadow(t, ShadowOptions{Recording: name, Files: map[string]string{
		"data": "on the submit side\n", "proxy": strings.Repeat("x", 2725), // which were not all sent
	}})
	p.startd = NewStartd(t, StartdOptions{Recording: name})
	p.activation = p.startd.Activate(t, p.shadow)
	var err error
	p.inherited, err = startd.Inherit(p.activation.Env(t))
	must(t, err)
	t.Cleanup(func() {
		p.inherited.Syscall.Close()
		p.inherited.Update.Close()
	})
	p.listen()
	return p
}

// exchange sends what was sent, and compares what comes with what came.
func (p *player) exchange(st *cedar.Stream, messages []spoken, change func([]byte) []byte) {
	p.Helper()
	var about []byte
	for _, m := range messages {
		if m.in {
			p.compare(about, p.message(st, about), m)
			continue
		}
		about = m.data
		if change != nil {
			m.data = change(m.data)
		}
		p.send(st, m.data)
	}
}

func (p *player) send(st *cedar.Stream, data []byte) {
	p.Helper()
	p.sent++
	st.PutBytes(data)
	must(p, st.EndMessage())
	must(p, st.Flush())
}

func (p *player) message(st *cedar.Stream, about []byte) []byte {
	p.Helper()
	b := make([]byte, 1<<20)
	n, err := st.ReadMessage(b)
	if err != nil {
		p.Fatalf("no answer to %s: %v", streams.Text(about), err)
	}
	return b[:n]
}

// compare holds an answer against the recorded one.
func (p *player) compare(about, got []byte, want spoken) {
	p.Helper()
	p.compared++
	if streams.Same(got, want.data) {
		return
	}
	p.loose++
	number := int64(0)
	if len(about) >= 8 {
		number = int64(binary.BigEndian.Uint64(about))
	}
	switch {
	case number == 288: // get_sec_session_info: the parts of two sessions
		var sessions []string
		for _, data := range [][]byte{got, want.data} {
			st := read(p, spoken{sealed: true, data: data})
			n, err := st.GetInt()
			must(p, err)
			shown := fmt.Sprint(n)
			for range 6 {
				text, err := st.GetString()
				must(p, err)
				shown += fmt.Sprintf(" %s %d", regexp.MustCompile(`<.*>#\d+#\d+|[0-9a-f]{48,}`).ReplaceAllString(text, "ID"), strings.Count(text, "#"))
			}
			sessions = append(sessions, shown)
		}
		if sessions[0] != sessions[1] {
			p.Errorf("the sessions are\n%s, not\n%s", sessions[0], sessions[1])
		}
	case number == 24 || number == 108 || number == 109: // fstat, stat and statfs
		if got, want := numbers(got), numbers(want.data); got != want || got < 7 {
			p.Errorf("answer to %s: %d numbers, not %d", streams.Text(about), got, want)
		}
	case number == 296 && len(got) == len(want.data): // getdir
	default:
		gotAd, prefix := p.ad(spoken{sealed: want.sealed, data: got})
		wantAd, wantPrefix := p.ad(want)
		if gotAd == nil || wantAd == nil || prefix != wantPrefix {
			p.Errorf("answer to %s:\n got %s\nwant %s", streams.Text(about), streams.Text(got), streams.Text(want.data))
			return
		}
		if diff := cmp.Diff(wantAd, gotAd); diff != "" {
			p.Errorf("answer to %s (-want +got):\n%s", streams.Text(about), diff)
		}
	}
}

func numbers(answer []byte) int {
	return len(strings.Fields(strings.TrimRight(string(answer[8:]), "\x00")))
}

// ad takes a message for an ad, or for a number and an ad.
func (p *player) ad(m spoken) (Ad, int64) {
	for _, numbered := range []bool{false, true} {
		st := read(p, m)
		prefix := int64(-1)
		var err error
		if numbered {
			prefix, err = st.GetInt()
		}
		ad, err2 := st.GetAd()
		if err == nil && err2 == nil && ad.Len() > 0 {
			all := adOf(ad)
			for _, name := range own {
				if _, found := all[name]; found {
					all[name] = "of its own"
				}
			}
			for name, text := range all {
				all[name] = regexp.MustCompile(`<127\.0\.0\.1:\d+>`).ReplaceAllString(text, "<127.0.0.1:PORT>")
			}
			return all, prefix
		}
	}
	return nil, 0
}

// updates plays the update socket.
func (p *player) updates() {
	var in, out []spoken
	for _, m := range recorded(p, p.name, streams.Updates) {
		if m.in {
			in = append(in, m)
			continue
		}
		out = append(out, m)
	}
	for i, m := range in {
		p.compare([]byte("nothing"), p.message(p.inherited.Update, nil), m)
		if i == 0 {
			p.rest(m)
		}
	}
	var want []Heard
	for _, m := range out {
		p.send(p.inherited.Update, m.data)
		st := read(p, m)
		kind, err := st.GetInt()
		must(p, err)
		ad, err := st.GetAd()
		must(p, err)
		want = append(want, Heard{Call: map[int64]string{0: Update, 1: Final}[kind], Ad: adOf(ad)})
	}
	p.startd.WaitN(p, func(Heard) bool { return true }, len(want))
	if diff := cmp.Diff(want, p.startd.Heard()); diff != "" {
		p.Errorf("updates (-want +got):\n%s", diff)
	}
}

// rest makes sure that the overlay is compared too: it is behind the slot's ad.
func (p *player) rest(m spoken) {
	st := read(p, m)
	_, err := st.GetAd()
	must(p, err)
	overlay, err := st.GetAd()
	must(p, errors.Join(err, st.EndOfMessage()))
	if overlay.Len() != 0 {
		p.Errorf("the recording has an overlay, which is not compared: %v", overlay)
	}
}

// calls plays the connection to the shadow, with the input where it was.
func (p *player) calls() {
	messages := recorded(p, p.name, streams.Calls)
	for i, m := range messages {
		if n := binary.BigEndian.Uint64(m.data); !m.in && (n == 305 || int64(n) == -78) {
			p.exchange(p.inherited.Syscall, messages[:i], nil)
			p.transfer(recorded(p, p.name, cedar.FileTransUpload), cedar.FileTransUpload)
			p.exchange(p.inherited.Syscall, messages[i:], nil)
			return
		}
	}
	p.Error("the recording has no job that starts")
}

// transfer plays a transfer, with the key of this shadow.
func (p *player) transfer(messages []spoken, command int) {
	session, err := p.shadow.TransferSession()
	must(p, err)
	st := p.command(p.shadow.Address(), command, session)
	first := true
	var certificates []byte
	kept := messages[:0:0]
	for _, m := range messages {
		if m.in && len(m.data) > 10 && string(m.data[8:10]) == "0\x82" { // a chain of certificates
			certificates = m.data
			p.exchange(st, kept, func(data []byte) []byte { return p.keyed(data, &first) })
			got := p.message(st, nil)
			if got, want := chain(p, got), chain(p, certificates); got != want {
				p.Errorf("there are %d certificates, not %d", got, want)
			}
			kept = nil
			continue
		}
		kept = append(kept, m)
	}
	p.exchange(st, kept, func(data []byte) []byte { return p.keyed(data, &first) })
}

// chain counts the certificates of a message.
func chain(t testing.TB, message []byte) int {
	t.Helper()
	all, err := x509.ParseCertificates(message[8:])
	must(t, err)
	return len(all)
}

// keyed is a message with the key of transfers, if it is the first.
func (p *player) keyed(data []byte, first *bool) []byte {
	if !*first {
		return data
	}
	*first = false
	key := append([]byte(p.shadow.Key()), 0)
	return append(binary.BigEndian.AppendUint64(nil, uint64(len(key))), key...)
}

func (p *player) command(addr string, command int, session *cedar.Session) *cedar.Stream {
	client := cedar.Client{Version: "$CondorVersion: 25.14.1 2026-10-16 PackageID: 25.14.1+dfsg-1 $"}
	st, err := client.Command(p.Context(), addr, command, session)
	must(p, err)
	p.Cleanup(func() { st.Close() })
	return st
}

// connection plays one of the connections that are made beside the two.
func (p *player) connection(r streams.Recording) {
	messages := spokenOn(r)
	switch command := r.Command(); command {
	case cedar.FileTransDownload:
		p.transfer(messages, command)
	case cedar.DCChildAlive:
		st := p.command(p.startd.Address(), command, p.inherited.ParentSession)
		p.exchange(st, messages, nil)
		in := read(p, messages[0])
		pid, err := in.GetInt()
		hang, err2 := in.GetInt()
		must(p, errors.Join(err, err2))
		if diff := cmp.Diff(Heard{Call: Alive, Ints: []int64{pid, hang}}, p.startd.Wait(p, Call(Alive))); diff != "" {
			p.Errorf("keep-alive (-want +got):\n%s", diff)
		}
	case cedar.ReactivateClaimCheck:
		claim, err := cedar.ImportSession(p.shadow.Job().StringOr("ClaimId", ""), "execute-side@matchsession", cedar.Daemon)
		must(p, err)
		p.exchange(p.command(p.startd.Address(), command, claim), messages, nil)
	case cedar.StarterVacateJob:
		p.ordered(messages, func(ctx context.Context) error { return p.activation.TryVacate(ctx, Deactivated) })
	case cedar.DCRaiseSignal:
		n, err := read(p, messages[0]).GetInt()
		must(p, err)
		p.ordered(messages, func(ctx context.Context) error { return p.activation.Signal(ctx, int(n)) })
	case cedar.CACmd:
		p.ordered(messages, func(ctx context.Context) error {
			p.shadow.SetStarter(p.activation.Address()) // the recorded starter told another one
			reply, err := p.shadow.Reconnect(ctx)
			if err == nil && reply.Text("Result") != "Success" {
				err = fmt.Errorf("the reply was %v", reply)
			}
			return err
		})
	}
}

// ordered has an order given: what comes is compared with what came, and what was answered is
// answered.
func (p *player) ordered(messages []spoken, order func(context.Context) error) {
	p.Helper()
	given := make(chan error, 1)
	go func() { given <- order(p.Context()) }()
	st := <-p.orders
	defer st.Close()
	p.exchange(st, messages, nil)
	if err := <-given; err != nil {
		p.Errorf("the order: %v", err)
	}
}

// listen serves the starter's port.
func (p *player) listen() {
	server := &cedar.Server{Sessions: cedar.NewSessions()}
	claim, err := cedar.ImportSession(p.shadow.Job().StringOr("ClaimId", ""), "submit-side@matchsession", cedar.Daemon)
	must(p, err)
	for _, s := range []*cedar.Session{p.inherited.ParentSession, p.inherited.FamilySession, claim} {
		must(p, server.Sessions.Add(s))
	}
	for _, command := range []int{cedar.StarterVacateJob, cedar.DCRaiseSignal, cedar.CACmd} {
		server.Handle(command, cedar.Daemon, func(_ context.Context, c *cedar.Call) error {
			p.orders <- c.Keep()
			return nil
		})
	}
	served := make(chan error, 1)
	ctx, cancel := context.WithCancel(context.Background())
	go func() { served <- server.Serve(ctx, p.inherited.Listener) }()
	p.Cleanup(func() {
		cancel()
		if err := <-served; err != nil {
			p.Error(err)
		}
	})
}
