package startd

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"podstarter/internal/cedar"
)

// served is a startd's command server until the test ends.
type served struct {
	claim, address string
	client         *cedar.Client
}

// serve starts one of this version, with the commands that handle adds. In the end it checks that
// those who asked have closed their connections.
func serve(t *testing.T, version string, handle func(s *cedar.Server, claim string)) served {
	t.Helper()
	before := sockets(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	claim := "<127.0.0.1:9618>#1#2#" + policy + parentKey
	theirs, err := cedar.ImportSession(claim, "submit-side@matchsession", cedar.Daemon)
	if err != nil {
		t.Fatal(err)
	}
	sessions := cedar.NewSessions()
	if err := sessions.Add(theirs); err != nil {
		t.Fatal(err)
	}
	server := &cedar.Server{Sessions: sessions, Version: version, Log: quiet}
	handle(server, claim)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(ctx, l) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("Serve: %v", err)
		}
		// A goroutine of the server closes each of its ends when it sees that the other is closed; nobody can wait for that.
		n := sockets(t)
		for until := time.Now().Add(10 * time.Second); n > before && time.Now().Before(until); n = sockets(t) {
			time.Sleep(time.Millisecond)
		}
		if n > before {
			t.Errorf("%d connections are left open", n-before)
		}
	})
	return served{claim, "<" + l.Addr().String() + ">", &cedar.Client{Version: version, Name: "STARTER"}}
}

// sockets counts the sockets of this process.
func sockets(t *testing.T) (n int) {
	t.Helper()
	links, err := filepath.Glob("/proc/self/fd/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, link := range links {
		if of, err := os.Readlink(link); err == nil && strings.HasPrefix(of, "socket:") {
			n++
		}
	}
	return n
}
