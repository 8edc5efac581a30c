package localexec

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
)

// TestWrapperStack: a wrapper that crashes leaves its stack in the starter's log, even if
// the log level hides its other output.
func TestWrapperStack(t *testing.T) {
	var shown bytes.Buffer
	relay(slog.New(slog.NewTextHandler(&shown, &slog.HandlerOptions{Level: slog.LevelInfo})),
		strings.NewReader("condor_pod_wrapper: well\npanic: a bug\n\ngoroutine 1 [running]:\nmain.main()\n"))
	if s := shown.String(); strings.Contains(s, "well") || !strings.Contains(s, "a bug") || !strings.Contains(s, "main.main()") {
		t.Errorf("the log shows %q", s)
	}
}
