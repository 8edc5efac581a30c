package shadow

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"podstarter/internal/cedar/cedartest"
	"podstarter/testdata/streams"
)

// TestReplayReconnect accepts the shadow that came back in the recordings, and
// makes the calls on its new connection again.
func TestReplayReconnect(t *testing.T) {
	for v, want := range map[string][]string{
		"23.9":  {"register_job_info Running", "register_job_info Running", "event_notification ActivationExecutionExit: 0", "register_job_info Exited", "job_exit 0xf 107"},
		"25.14": {"register_job_info Running", "register_job_info Running", "event_notification ActivationExecutionExit: -3", "register_job_info Exited", "job_exit 0xf 107"},
	} {
		t.Run(v, func(t *testing.T) {
			recording := streams.Find(t, recordings, v, "reconnected", 1200, 1)[0]
			packets := recording.Sealed()
			r := newRepeater(t, packets)
			s := cedartest.Adopted(t, streams.Play(t, recording))
			back, err := ReadReconnect(s)
			if err != nil {
				t.Fatal(err)
			}
			if back.TransferKey() != "1#000000000000000000000000" || back.Address != back.TransferSocket || back.Version == "" {
				t.Errorf("the shadow that came back is %v, its transfers at %q with key %q", back, back.TransferSocket, back.TransferKey())
			}
			info := r.ad()
			r.end()
			if got := info.StringOr("Result", ""); got != ResultSuccess {
				t.Fatalf("the recording has the result %q", got)
			}
			for _, added := range []string{"Result", "MyType", "TargetType"} {
				info.Delete(added)
			}
			if err := Accept(s, info); err != nil {
				t.Fatal(err)
			}
			if n := r.integer(); n != CallGetSecSessionInfo {
				t.Fatalf("the first call was %d", n)
			}
			_, _ = r.text(), r.text()
			r.end()
			c, conn := connect(t)
			conn.Close()
			soon(t, "Lost", c.Lost())
			r.c = c
			settled := ""
			if err := c.Resume(t.Context(), s, func(info SecSessionInfo) error {
				settled = info.FileTransfer.ID
				return nil
			}); err != nil {
				t.Fatal(err)
			}
			if len(settled) < 50 || settled[:10] != "filetrans." {
				t.Errorf("the session for files is %q", settled)
			}
			r.all(t.Context())
			if diff := cmp.Diff(want, r.said); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
