package localjob

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"podstarter/internal/cedar"
)

// TestReversedConnection: whoever connects without being asked, as anybody can, does not end the job.
func TestReversedConnection(t *testing.T) {
	w := newWorld(t, script("until [ -e go ]; do sleep 0.05; done; exit 5"), nil, nil)
	code := make(chan int, 1)
	go func() { code <- w.run(t) }()
	address := ""
	for address == "" {
		select {
		case c := <-code:
			t.Fatalf("exit code %d before the job began", c)
		case <-time.After(20 * time.Millisecond):
			_, rest, _ := strings.Cut(w.read("log"), "on host: ")
			address, _, _ = strings.Cut(rest, "\n")
		}
	}
	client := &cedar.Client{Version: "$CondorVersion: 25.14.1 2026-01-01 $", Name: "STRANGER"}
	s, err := client.Command(t.Context(), address, cedar.CCBReverseConnect, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	s.PutInt(0) // an ad without attributes
	if err := s.EndMessage(); err != nil {
		t.Fatal(err)
	}
	_ = s.Flush()
	if _, err := s.GetInt(); err == nil {
		t.Error("a stranger gets an answer")
	}
	if err := os.WriteFile(filepath.Join(w.dir, "go"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if c := <-code; c != ExitCompleted {
		t.Errorf("exit code %d, want %d", c, ExitCompleted)
	}
}
