package submitside_test

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"podstarter/classads"
	"podstarter/condor/condortest"
	"podstarter/condor/job"
	"podstarter/condor/shadow"
	"podstarter/internal/cedar"
	"podstarter/sandbox/filetransfer"
	"podstarter/starter/orders"
	"podstarter/starter/submitside"
)

// running is a job that runs, with its shadow and a port for shadows that come back.
type running struct {
	*submitside.Side
	shadow *condortest.Shadow
	client *shadow.Client
	orders *orders.Orders
	kept   chan struct{} // closed when Keep has returned
	end    func()        // of Keep
}

func run(t *testing.T, lease time.Duration) *running {
	t.Helper()
	r := &running{shadow: condortest.NewShadow(t, condortest.ShadowOptions{}), orders: orders.New(quiet), kept: make(chan struct{})}
	r.client = shadow.New(r.shadow.Connect(t), quiet)
	t.Cleanup(func() { r.client.Close() })
	r.Side = submitside.New(r.client, r.orders, submitside.Security{Authentication: "SEC_DEFAULT_AUTHENTICATION"}, quiet)
	ad, err := r.client.GetJobInfo(t.Context())
	must(t, err)
	starter := classads.NewAd()
	starter.SetString("StarterIpAddr", "<127.0.0.1:7>")
	r.Know(ad, job.Info{Lease: lease}, starter)

	server := &cedar.Server{Sessions: cedar.NewSessions(), Log: quiet}
	claim, err := cedar.ImportSession(ad.StringOr("ClaimId", ""), shadow.SubmitSide, cedar.Daemon)
	must(t, err)
	must(t, server.Sessions.Add(claim))
	server.Handle(cedar.CACmd, cedar.Write, r.Reconnect)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	r.shadow.SetStarter("<" + l.Addr().String() + ">")
	serving, stop := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- server.Serve(serving, l) }()
	keeping, end := context.WithCancel(context.Background())
	r.end = end
	go func() {
		defer close(r.kept)
		r.Keep(keeping)
	}()
	t.Cleanup(func() {
		end()
		<-r.kept
		stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	return r
}

// moving notes where files go.
type moving struct {
	dial filetransfer.Dial
	keys []string
}

func (m *moving) SetPeer(dial filetransfer.Dial, key string) {
	m.dial, m.keys = dial, append(m.keys, key)
}

// TestComeBack: a shadow that was lost comes back. It gets its job, with what it has to
// know of the starter, and files go where it wants them now.
func TestComeBack(t *testing.T) {
	r := run(t, time.Hour)
	files, client := &moving{}, &cedar.Client{}
	if err := r.Use(files, client); err == nil || !strings.Contains(err.Error(), "gave no session") {
		t.Errorf("files are transferred without a session: %v", err)
	}
	info, err := r.client.GetSecSessionInfo(t.Context())
	must(t, err)
	must(t, r.Meet(info))
	must(t, r.Use(files, client))
	first := r.shadow.Key()

	lost := r.client.Lost()
	r.shadow.Disconnect()
	<-lost
	reply, err := r.shadow.Reconnect(t.Context())
	must(t, err)
	if reply.Text("Result") != shadow.ResultSuccess || reply.Text("StarterIpAddr") != "<127.0.0.1:7>" || reply.Text("MyCurrentTime") == "" {
		t.Errorf("the shadow is told %v", reply)
	}
	<-r.Back()
	must(t, r.Await(t.Context()))
	must(t, r.client.BeginExecution(t.Context()))
	if v := r.client.Version(); !v.AtLeast(25, 14, 1) {
		t.Errorf("the shadow is %v", v)
	}
	second := r.shadow.Key()
	if len(files.keys) != 2 || files.keys[0] != first || files.keys[1] != second || first == second {
		t.Errorf("keys of transfers: %q, want %q and %q", files.keys, first, second)
	}
	st, err := files.dial(t.Context(), cedar.FileTransUpload)
	must(t, err)
	defer st.Close()
	st.PutSecret(second)
	must(t, st.EndMessage())
	r.shadow.Wait(t, condortest.Call(condortest.Input).About(second))

	if e := r.orders.Ended(); e != nil {
		t.Errorf("the job is to end: %v", e)
	}
	// Keep goes along until the job has ended.
	r.end()
	<-r.kept
}

// TestTwiceBack: one word that a shadow is back is enough, whoever hears it. Its session
// for files is taken over.
func TestTwiceBack(t *testing.T) {
	r := run(t, time.Hour)
	for range 3 {
		lost := r.client.Lost()
		if reply, err := r.shadow.Reconnect(t.Context()); err != nil || reply.Text("Result") != shadow.ResultSuccess {
			t.Fatalf("%v, %v", reply, err)
		}
		must(t, r.client.AwaitNext(t.Context(), lost)) // the old one is there until the new one has its place
		must(t, r.client.BeginExecution(t.Context()))
	}
	<-r.Back()
	if err := r.Use(&moving{}, &cedar.Client{}); err != nil {
		t.Errorf("the session of the shadow that came back is not there: %v", err)
	}
}

// TestLeaseOver: a job without a lease ends with its shadow, and no shadow gets it back.
func TestLeaseOver(t *testing.T) {
	r := run(t, 0)
	r.shadow.Disconnect()
	<-r.orders.Hard()
	<-r.kept
	if e := r.orders.Ended(); !e.Lost || e.Urgency == orders.Soft {
		t.Errorf("%+v", e)
	}
	if reply, err := r.shadow.Reconnect(t.Context()); err != nil || reply.Text("Result") != shadow.ResultInvalidState {
		t.Errorf("%v, %v", reply, err)
	}
	if err := r.Await(t.Context()); !errors.Is(err, shadow.ErrLost) && !errors.Is(err, orders.ErrEnded) {
		t.Errorf("somebody awaits the shadow: %v", err)
	}
}

// TestMeet: a session that cannot be used is an error, and none is no error.
func TestMeet(t *testing.T) {
	r := run(t, time.Hour)
	must(t, r.Meet(shadow.SecSessionInfo{}))
	if err := r.Use(&moving{}, &cedar.Client{}); err == nil {
		t.Error("files are transferred without a session")
	}
	r.shadow.On("get_sec_session_info", 1, condortest.Say(func(s *cedar.Stream) {
		s.PutInt(1)
		for range 2 {
			s.PutString("id")
			s.PutString("no session info")
			s.PutSecret("5e")
		}
	}))
	info, err := r.client.GetSecSessionInfo(t.Context())
	must(t, err)
	if err := r.Meet(info); err == nil || !strings.Contains(err.Error(), "take over the shadow's session") {
		t.Errorf("%v", err)
	}
}
