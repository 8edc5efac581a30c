package condortest

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"podstarter/classads"
	"podstarter/condor/shadow"
	"podstarter/internal/cedar"
)

// ShadowOptions are what a test wants of its shadow. The zero value is the shadow of the
// recording "25.14/plain".
type ShadowOptions struct {
	// Recording is what it goes by: a version and a case of testdata/streams.
	Recording string
	// Job are attributes in the old syntax, one on each line, that replace those of the
	// recorded job; Without are those that it does not have.
	Job     string
	Without []string
	// Files are contents of files in the submit directory, besides the input of the
	// recording. What begins with #! is executable, and a name that ends in / is a directory.
	Files map[string]string
	// Tokens are the credentials of getcreds by service; nil: the shadow has none to give.
	Tokens map[string]string
	// Kerberos is the credential that it gives; nil: it has none.
	Kerberos []byte
	// Transfer is about transfers of files.
	Transfer TransferOptions
	// Broker is the one behind which it is; nil: it takes connections.
	Broker *Broker
}

// Shadow is a shadow. It serves calls on the connection that a starter inherits, and
// commands on a port of its own: transfers in both directions, and the Kerberos
// credential.
type Shadow struct {
	Recorder
	Plan

	options ShadowOptions
	version string // $CondorVersion$ of the recording
	dir     string // the submit directory
	iwd     string // its name in the job's ad
	address string
	told    string // the address that it tells
	server  *cedar.Server
	home    context.Context // ends with the test
	served  sync.WaitGroup

	mu       sync.Mutex
	job      *classads.Ad
	claim    cedar.ClaimID
	session  *cedar.Session // of the claim, towards the starter
	transfer cedar.ClaimID  // session that the starter uses for transfers
	key      string         // of transfers
	keys     int
	starter  string     // the starter's address, as it told it
	calls    []net.Conn // on which calls came, the last one is in use
	failed   bool       // the last transfer of input failed
	asked    bool       // and a diagnostic was asked for
	open     map[int64]*os.File
	sent     []Transfer
}

// NewShadow starts a shadow, which ends with the test.
func NewShadow(t testing.TB, o ShadowOptions) *Shadow {
	t.Helper()
	if o.Recording == "" {
		o.Recording = usual
	}
	s := &Shadow{options: o, dir: t.TempDir(), job: recordedJob(t, o.Recording), open: map[int64]*os.File{}}
	s.iwd = s.job.StringOr("Iwd", "")
	s.version = s.job.StringOr("ShadowVersion", "")
	recordedFiles(t, o.Recording, s.dir)
	for name, contents := range o.Files {
		must(t, writeFile(filepath.Join(s.dir, name), name, contents))
	}
	changes, err := classads.ParseOld(o.Job)
	must(t, err)
	s.job.Update(changes)
	for _, name := range o.Without {
		s.job.Delete(name)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	s.address = "<" + l.Addr().String() + "?alias=localhost&noUDP>"
	s.told = s.address
	if o.Broker != nil {
		s.told = o.Broker.Register(s.address)
	}
	s.server = &cedar.Server{Sessions: cedar.NewSessions(), Version: s.version, HandlerTimeout: patience, PayloadTimeout: patience}
	s.server.Handle(cedar.FileTransUpload, cedar.Write, s.serveInput)
	s.server.Handle(cedar.FileTransDownload, cedar.Write, s.serveOutput)
	s.server.Handle(cedar.CreddGetCred, cedar.Write, s.serveKerberos)
	s.newKey()

	over := make(chan struct{})
	s.over = over
	ctx, cancel := context.WithCancel(context.Background())
	s.home = ctx
	s.served.Go(func() {
		if err := s.server.Serve(ctx, l); err != nil {
			t.Errorf("the shadow's port: %v", err)
		}
	})
	t.Cleanup(func() {
		close(over)
		cancel()
		s.Disconnect()
		s.served.Wait()
		for _, f := range s.open {
			f.Close()
		}
	})
	return s
}

// writeFile writes a file of the submit directory.
func writeFile(path, name, contents string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil { //nolint:forbidigo // a directory of the test
		return err
	}
	if strings.HasSuffix(name, "/") {
		return os.MkdirAll(path, 0o755) //nolint:forbidigo // as above
	}
	mode := os.FileMode(0o644)
	if strings.HasPrefix(contents, "#!") {
		mode = 0o755
	}
	return os.WriteFile(path, []byte(contents), mode)
}

// Dir is the submit directory, in which streamed files and those of remote I/O are. To
// starter and job it has the name that the job's ad has as Iwd.
func (s *Shadow) Dir() string { return s.dir }

// Address is where it takes commands, in angle brackets.
func (s *Shadow) Address() string { return s.address }

// Key is what transfers have to begin with.
func (s *Shadow) Key() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.key
}

// newKey makes another key for transfers.
func (s *Shadow) newKey() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.keys++
	if s.key = s.options.Transfer.Key; s.key != "" {
		return s.key
	}
	s.key = fmt.Sprintf("%d#%s", s.keys, random(12))
	return s.key
}

// random are random bytes in hexadecimal digits.
func random(n int) string {
	b := make([]byte, n)
	_, _ = rand.Read(b)
	return hex.EncodeToString(b)
}

// Job is the job's ad as get_job_info answers it.
func (s *Shadow) Job() *classads.Ad {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.job.Clone()
}

// SetJob changes attributes of the job's ad, given in the old syntax.
func (s *Shadow) SetJob(text string) {
	changes := mustParse(text)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.job.Update(changes)
}

// activate takes a claim and asks for the claim to be activated, with a connection that is
// then handed down to the starter, and begins to serve calls on it.
func (s *Shadow) activate(ctx context.Context, startd, claimID string) error {
	if err := s.take(startd, claimID); err != nil {
		return err
	}
	w := &wire{}
	client := &cedar.Client{Version: s.version, Own: s.address, Name: "SHADOW", Timeout: patience, Dialer: w.dial}
	st, err := client.Command(ctx, startd, activateClaim, s.session)
	if err != nil {
		return err
	}
	st.PutSecret(claimID)
	st.PutInt(0) // which kind of starter
	st.PutAd(s.Job())
	if err := st.EndMessage(); err != nil {
		return err
	}
	result, err := st.GetInt()
	if err := errors.Join(err, st.EndOfMessage()); err != nil {
		return fmt.Errorf("activate the claim: %w", err)
	}
	if result != 1 {
		return fmt.Errorf("activate the claim: the startd answers %d", result)
	}
	s.serveCalls(st, w)
	return nil
}

// activateClaim is ACTIVATE_CLAIM.
const activateClaim = 444

// take makes a claim the shadow's, and puts into the job's ad what is the shadow's own.
func (s *Shadow) take(startd, claimID string) error {
	claim, err := cedar.ParseClaimID(claimID)
	if err != nil {
		return err
	}
	session, err := cedar.ImportSession(claimID, "execute-side@matchsession", cedar.Daemon)
	if err != nil {
		return err
	}
	transfer := cedar.ClaimID{SessionID: "filetrans." + claim.Public, Info: claim.Info, Key: random(32)}
	back, err := cedar.ImportSessionParts(transfer.SessionID, transfer.Info, transfer.Key, "execute-side@matchsession", cedar.Write, cedar.Read, cedar.Daemon)
	if err != nil {
		return err
	}
	s.server.Sessions.Replace(back)
	s.server.Sessions.Replace(session)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.claim, s.session, s.transfer = claim, session, transfer
	for name, value := range map[string]string{
		"ClaimId": claimID, "PublicClaimId": claim.Public + "#...", "StartdIpAddr": startd,
		"MyAddress": s.told, "ShadowIpAddr": s.told, "TransferSocket": s.told, "TransferKey": s.key,
	} {
		if s.job.Has(name) {
			s.job.SetString(name, value)
		}
	}
	return nil
}

// Connect gives the starter's end of the connection on which calls are made, for tests
// without a startd; condor/shadow.New takes it.
func (s *Shadow) Connect(t testing.TB) *cedar.Stream {
	t.Helper()
	d := NewStartd(t, StartdOptions{Recording: s.options.Recording})
	st, err := d.admit(t.Context(), s)
	must(t, err)
	t.Cleanup(func() { st.Close() })
	return st
}

// Disconnect ends the connection on which calls come, as a shadow that dies, or a network.
func (s *Shadow) Disconnect() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.calls {
		c.Close()
	}
}

// WaitClosed waits until all connections on which calls came have ended: a call that wants
// no answer may be heard long after the starter has made it.
func (s *Shadow) WaitClosed(t testing.TB) {
	t.Helper()
	s.mu.Lock()
	n := len(s.calls)
	s.mu.Unlock()
	s.WaitN(t, Call(Closed), max(n, 1))
}

// Starter is the starter's address, as it told the shadow.
func (s *Shadow) Starter() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.starter
}

// SetStarter tells the shadow where the starter is, which starters do themselves by
// register_starter_info.
func (s *Shadow) SetStarter(address string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.starter = address
}

// Claim is the session of the claim, by which the submit side is known to the starter.
func (s *Shadow) Claim() *cedar.Session {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.session
}

// TransferSession is what the starter makes transfers with, for tests without calls.
func (s *Shadow) TransferSession() (*cedar.Session, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return cedar.ImportSessionParts(s.transfer.SessionID, s.transfer.Info, s.transfer.Key, shadow.SubmitSide, cedar.Write)
}

// wire is the shadow's end of a connection, which can be cut within an answer.
type wire struct {
	net.Conn
	mu   sync.Mutex
	left int // bytes that are let through; 0: all of them
}

func (w *wire) dial(ctx context.Context, network, address string) (net.Conn, error) {
	var err error
	w.Conn, err = (&net.Dialer{}).DialContext(ctx, network, address)
	return w, err
}

func (w *wire) cutAfter(n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.left = n
}

func (w *wire) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.left == 0 {
		return w.Conn.Write(b)
	}
	n, err := w.Conn.Write(b[:min(len(b), w.left)])
	if w.left -= n; err == nil && w.left == 0 {
		w.Conn.Close()
		err = errHungUp
	}
	return n, err
}
