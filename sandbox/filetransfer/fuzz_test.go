package filetransfer

import (
	"bytes"
	"context"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"podstarter/classads"
	"podstarter/internal/cedar"
	"podstarter/sandbox"
	"podstarter/sandbox/sandboxtest"
)

// deadConn is a peer that has sent everything, and accepts anything.
type deadConn struct{ *bytes.Reader }

func (deadConn) Write(p []byte) (int, error)      { return len(p), nil }
func (deadConn) Close() error                     { return nil }
func (deadConn) LocalAddr() net.Addr              { return &net.TCPAddr{} }
func (deadConn) RemoteAddr() net.Addr             { return &net.TCPAddr{} }
func (deadConn) SetDeadline(time.Time) error      { return nil }
func (deadConn) SetReadDeadline(time.Time) error  { return nil }
func (deadConn) SetWriteDeadline(time.Time) error { return nil }

// recordConn keeps what is written to it.
type recordConn struct {
	deadConn
	out bytes.Buffer
}

func (c *recordConn) Write(p []byte) (int, error) { return c.out.Write(p) }

// conversation is what a shadow sends for a list of items, in plaintext.
func conversation(t testing.TB, items []sent) []byte {
	c := &recordConn{deadConn: deadConn{bytes.NewReader(nil)}}
	s := cedar.NewStream(c)
	s.PutInt(0)
	s.PutAd(classads.NewAd())
	must(t, s.EndMessage())
	for i, it := range items {
		s.PutInt(it.command)
		must(t, s.EndMessage())
		s.PutString(it.name)
		must(t, s.EndMessage())
		if i == 0 {
			s.PutInt(300)
			must(t, s.EndMessage())
			s.PutAd(ad(t, "[Result=2]"))
			must(t, s.EndMessage())
		}
		must(t, it.item().Put(s))
	}
	s.PutInt(0)
	must(t, s.EndMessage())
	s.PutAd(ad(t, "[Result=0]"))
	must(t, s.EndMessage())
	return c.out.Bytes()
}

// FuzzDownload feeds whatever a shadow might send to the receiver: it must
// neither panic nor hang, and touch nothing outside of the sandbox.
func FuzzDownload(f *testing.F) {
	for _, items := range [][]sent{
		nil,
		{{command: 1, name: "a", mode: 0o644, data: "hello"}},
		{{command: 6, name: "d", mode: 0o755}, {command: 1, name: "d/e", mode: 1 << 24}, {command: 5, name: "u", url: "http://x/y"}},
		{{command: 1, name: "../x", data: big1(5000)}, {command: 999, ad: ad(f, "[SubCommand=8]")}},
		{{command: 999, ad: ad(f, `[SubCommand=9; SignList={"s3://a","s3://b"}]`)}, {command: 3, name: "b/c", mode: 0, data: "x"}},
		{{command: 2, name: "./s", mode: 0o600, data: "s"}, {command: 6, name: "s", mode: 0}, {command: 1, name: "s/run.sh", data: ""}},
		{{command: 17, name: "new/dir/x", mode: 0o4777, data: big1(300)}, {command: 6, name: "new/dir/x/y", mode: 0o40755}},
		{{command: 1, name: historicExec, mode: 0o644, data: "#!"}, {command: 1, name: "in", mode: 0o644, data: "remapped"}, {command: -1, name: "a\\..\\b"}},
		{{command: 999, ad: ad(f, `[SubCommand=7; Filename="../x"; Result=0]`)}, {command: 999, ad: ad(f, `[SubCommand=8; Tag="t"; ReuseList={[FileName="a"; Size=-1]}]`)}},
	} {
		f.Add(conversation(f, items))
	}
	execute := sandboxtest.ExecuteDir(f)
	must(f, os.WriteFile(filepath.Join(execute, "witness"), []byte("w"), 0o600))
	f.Fuzz(func(t *testing.T, said []byte) {
		s, err := sandbox.Create(context.Background(), sandbox.Options{Execute: execute, PID: os.Getpid(), Nested: true, Condor: sandbox.Self(), Payload: sandbox.Self()})
		must(t, err)
		job := classads.NewAd()
		job.SetString("Cmd", "run.sh")
		job.SetString("TransferInputRemaps", "in=d/out;loop=loop;s=../up")
		tr := New(Config{Sandbox: s, Job: job, Dial: func(context.Context, int) (*cedar.Stream, error) {
			return cedar.NewStream(deadConn{bytes.NewReader(said)}), nil
		}})
		result, err := tr.Download(context.Background())
		if result == nil {
			t.Fatal("no result")
		}
		if err == nil && result.Bytes > int64(len(said)) {
			t.Errorf("%d bytes received of %d sent", result.Bytes, len(said))
		}
		must(t, s.Remove(context.Background()))
		if names, err := os.ReadDir(execute); err != nil || len(names) != 1 {
			t.Errorf("outside of the sandbox: %v, %v", names, err)
		}
	})
}
