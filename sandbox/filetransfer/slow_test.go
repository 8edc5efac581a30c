package filetransfer

import (
	"net"
	"testing"

	"podstarter/internal/cedar"
)

// TestGrantOnSlowNetwork: the other side is told that this one may be slow.
func TestGrantOnSlowNetwork(t *testing.T) {
	for name, tt := range map[string]struct {
		slow    cedar.Multiplier
		asked   int64
		timeout int64 // that the peer is told first; 0: none
	}{
		"a usual network":   {0, 300, 0},
		"an impatient peer": {0, 20, 300},
		"a slow network":    {2, 300, 600},
		"a patient peer":    {2, 600, 0},
	} {
		t.Run(name, func(t *testing.T) {
			mine, theirs := net.Pipe()
			defer mine.Close()
			defer theirs.Close()
			x := &session{s: cedar.NewStream(mine)}
			x.s.SetMultiplier(tt.slow)
			granted := make(chan error, 1)
			go func() { granted <- x.grant(false) }()
			peer := cedar.NewStream(theirs)
			peer.PutInt(tt.asked)
			if err := peer.EndMessage(); err != nil {
				t.Fatal(err)
			}
			told := int64(0)
			for {
				ad, err := peer.GetAd()
				if err != nil {
					t.Fatal(err)
				}
				if err := peer.EndOfMessage(); err != nil {
					t.Fatal(err)
				}
				if ad.IntOr("Result", -1) != goAheadWait {
					break
				}
				told = ad.IntOr("Timeout", -1)
			}
			if err := <-granted; err != nil {
				t.Fatal(err)
			}
			if told != tt.timeout {
				t.Errorf("the peer is told %d s, want %d", told, tt.timeout)
			}
		})
	}
}
