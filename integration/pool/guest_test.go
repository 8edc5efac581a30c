package main

import (
	"archive/tar"
	"bytes"
	"io"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"podstarter/integration/pool/internal/statedir"
)

func TestGuestProgram(t *testing.T) {
	root, hosts := t.TempDir(), filepath.Join(t.TempDir(), "x.test")
	module := t.TempDir()
	dir := statedir.Dir{Module: module, Root: filepath.Join(module, "state")}
	both := filepath.Join(module, "both.test")
	for _, path := range []string{filepath.Join(root, "bin/sh"), hosts, both} {
		if err := statedir.WriteFile(path, nil, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, tc := range []struct{ name, program, want string }{
		{"looked up in the guest", "uname", "uname"},
		{"relative", "./x.test", "./x.test"},
		{"the guest's own", "/bin/sh", "/bin/sh"},
		{"the host's", hosts, "/host" + hosts},
		{"shared", both, both},
		{"nowhere", "/no/such/program", "/no/such/program"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := guestProgram(dir, root, tc.program); got != tc.want {
				t.Errorf("guestProgram(%q) = %q, want %q", tc.program, got, tc.want)
			}
		})
	}
}

func TestGuestPath(t *testing.T) {
	dir := statedir.Dir{Module: "/src/pod", Root: "/var/state"}
	for path, want := range map[string]string{
		"/src/pod": "/src/pod", "/src/pod/integration": "/src/pod/integration", "/src/podstarter": "/host/src/podstarter",
		"/var/state/home": "/var/state/home", "/": "/host",
	} {
		if got := guestPath(dir, path); got != want {
			t.Errorf("guestPath(%q) = %q, want %q", path, got, want)
		}
	}
}

func TestGuestEnv(t *testing.T) {
	host := []string{"PATH=/p", "SECRET=1", "HOME=/h", "PODSTARTER_STATE=/s", "PODSTARTER_PROGRAMS=/x", "GOFLAGS=-v", "TMPDIR=/t", "LC_ALL=C"}
	want := []string{
		"USER=root", "LOGNAME=root", "SHELL=/bin/sh", "PODSTARTER_PROGRAMS=/host/s/bin", "PATH=/p", "HOME=/h", "PODSTARTER_STATE=/s", "GOFLAGS=-v", "LC_ALL=C",
	}
	if diff := cmp.Diff(want, guestEnv(statedir.Dir{Root: "/s"}, host)); diff != "" {
		t.Errorf("the environment (-want +got):\n%s", diff)
	}
}

func TestUnpackLogs(t *testing.T) {
	pack := func(headers ...tar.Header) *bytes.Reader {
		var text bytes.Buffer
		w := tar.NewWriter(&text)
		for _, h := range headers {
			if h.Typeflag == tar.TypeReg {
				h.Size = int64(len(h.Name))
			}
			h.Mode = 0o644
			if err := w.WriteHeader(&h); err != nil {
				t.Fatal(err)
			}
			if h.Typeflag == tar.TypeReg {
				if _, err := w.Write([]byte(h.Name)); err != nil {
					t.Fatal(err)
				}
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		return bytes.NewReader(text.Bytes())
	}
	target := filepath.Join(t.TempDir(), "logs")
	good := pack(
		tar.Header{Name: "./", Typeflag: tar.TypeDir}, tar.Header{Name: "./up.log", Typeflag: tar.TypeReg},
		tar.Header{Name: "./pods/x/0.log", Typeflag: tar.TypeReg}, tar.Header{Name: "./link", Typeflag: tar.TypeSymlink, Linkname: "/"},
	)
	if err := unpackLogs(good, target); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"up.log", "pods/x/0.log"} {
		if text, err := os.ReadFile(filepath.Join(target, name)); err != nil || string(text) != "./"+name {
			t.Errorf("%s: %q, %v", name, text, err)
		}
	}
	if _, err := os.Lstat(filepath.Join(target, "link")); err == nil {
		t.Error("a link came along")
	}
	for _, name := range []string{"../out.log", "/out.log", "a/../../out.log"} {
		if err := unpackLogs(pack(tar.Header{Name: name, Typeflag: tar.TypeReg}), target); err == nil {
			t.Errorf("%s is unpacked", name)
		}
	}
	if _, err := os.Lstat(filepath.Join(target, "..", "out.log")); err == nil {
		t.Error("a file came out of the directory")
	}
	if err := unpackLogs(strings.NewReader("no tar file at all"), target); err == nil {
		t.Error("half a stream is no error")
	}
}

func TestOnlyFrom(t *testing.T) {
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	only := onlyFrom{listener, netip.MustParseAddr("127.0.0.2")}
	accepted := make(chan string, 2)
	go func() {
		for {
			conn, err := only.Accept()
			if err != nil {
				return
			}
			accepted <- conn.RemoteAddr().(*net.TCPAddr).IP.String()
			conn.Close()
		}
	}()
	// One after the other: the second is accepted only after the first was looked at.
	for _, from := range []string{"127.0.0.3", "127.0.0.2"} {
		dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
		conn, err := dialer.DialContext(t.Context(), "tcp4", listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		if n, err := conn.Read(make([]byte, 1)); n != 0 || err == nil {
			t.Errorf("%s: %d bytes, %v; want the end", from, n, err)
		}
		conn.Close()
	}
	if got := <-accepted; got != "127.0.0.2" || len(accepted) != 0 {
		t.Errorf("%s was accepted, and %d more", got, len(accepted))
	}
}

func TestLastWords(t *testing.T) {
	log := filepath.Join(t.TempDir(), "log")
	if err := os.WriteFile(log, []byte("1\n2\n3\n4\n5\n6\n7\n8\n9\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if got, want := lastWords(log), "2\n3\n4\n5\n6\n7\n8\n9"; got != want {
		t.Errorf("lastWords = %q, want %q", got, want)
	}
}

// A disk is kept if all of it was written, or a guest uses it; a note holds once.
func TestJudgeDisk(t *testing.T) {
	for _, tc := range []struct {
		name             string
		note, disk, runs bool
		keeps            bool
	}{
		{"first boot", false, false, false, false},
		{"killed later", true, true, false, true},
		{"killed in the middle of up", false, true, false, false},
		{"up of a guest that runs", true, true, true, true},
		{"up failed, and the guest runs", false, true, true, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			dir := statedir.Dir{Root: t.TempDir()}
			g := guestSide{pool: &pool{dir: dir, progress: newProgress(io.Discard)}, number: 1}
			for path, there := range map[string]bool{g.diskNote(): tc.note, g.disk(): tc.disk} {
				if there {
					if err := statedir.WriteFile(path, nil, 0o644); err != nil {
						t.Fatal(err)
					}
				}
			}
			if err := g.judgeDisk(tc.runs); err != nil {
				t.Fatal(err)
			}
			if _, err := os.Stat(g.disk()); (err == nil) != tc.keeps {
				t.Errorf("the disk: %v", err)
			}
			if _, err := os.Stat(g.diskNote()); err == nil {
				t.Error("the note outlives the boot")
			}
		})
	}
}
