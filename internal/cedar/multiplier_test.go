package cedar

import (
	"testing"
	"time"
)

func TestMultiplier(t *testing.T) {
	for _, tt := range []struct {
		m       Multiplier
		d, want time.Duration
	}{
		{0, time.Second, time.Second}, {1, time.Second, time.Second}, {-3, time.Second, time.Second},
		{4, time.Second, 4 * time.Second}, {4, 0, 0}, {4, -time.Second, -time.Second},
		{1 << 62, time.Second, longestTimeout}, {2, longestTimeout, longestTimeout},
	} {
		if got := tt.m.Of(tt.d); got != tt.want {
			t.Errorf("%d of %s: %s, want %s", tt.m, tt.d, got, tt.want)
		}
	}
}

// TestSlowNetwork: on both ends of a connection the time limits are longer.
func TestSlowNetwork(t *testing.T) {
	w := newWorld(t, true) // whose shared port is told of a limit, too
	w.server.Slow = 3
	c := w.client()
	c.Timeout, c.Network.Slow = 0, 5
	s, err := c.Command(t.Context(), w.addr, testKeep, w.reader)
	must(t, err)
	defer s.Close()
	if got, want := s.deadline.get(), 5*defaultTimeout; got != want {
		t.Errorf("the client waits for %s, want %s", got, want)
	}
	s.PutString("x") // proves that this side has the key
	must(t, s.EndMessage())
	kept := <-w.kept
	defer kept.Close()
	if got, want := kept.deadline.get(), 3*handlerTimeout; got != want {
		t.Errorf("the server waits for %s, want %s", got, want)
	}
	kept.SetTimeout(time.Minute)
	if got := kept.deadline.get(); got != 3*time.Minute {
		t.Errorf("the server waits for %s, want 3m", got)
	}
}
