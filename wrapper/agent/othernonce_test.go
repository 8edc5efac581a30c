package agent_test

import (
	"context"
	"testing"
	"time"

	"podstarter/internal/filewatch"
	"podstarter/payload"
	"podstarter/wrapper/agent/agenttest"
)

// TestOtherNonce: a starter that waits for the next wrapper asks this one once, since this
// one does not call it again. They kept each other busy until the container was made anew.
func TestOtherNonce(t *testing.T) {
	w := agenttest.StartWrapper(t, nil)
	if err := w.Dial(t).Close(); err != nil {
		t.Fatal(err)
	}
	announced, err := filewatch.New()
	if err != nil {
		t.Fatal(err)
	}
	defer announced.Close()
	if err := announced.Add(w.Dir, filewatch.Touched); err != nil {
		t.Fatal(err)
	}
	events := announced.Events()
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	gaveUp := make(chan error, 1)
	go func() {
		_, err := payload.Dial(ctx, payload.Options{Dir: w.Dir, Nonce: "another"})
		gaveUp <- err
	}()
	for n := 0; ; {
		select {
		case <-events:
			// Once it may call a starter that came while the connection above was ending.
			if n++; n > 1 {
				t.Fatal("the wrapper calls a starter that does not want it")
			}
		case err := <-gaveUp:
			if err == nil {
				t.Fatal("connected to a wrapper with another nonce")
			}
			return
		}
	}
}
