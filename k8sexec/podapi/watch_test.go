package podapi

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestEvents: what a watch says, and what of it reaches a starter.
func TestEvents(t *testing.T) {
	pod := func(what, version string) string {
		return `{"type":"` + what + `","object":{"kind":"Pod","metadata":{"name":"pilot-0","resourceVersion":"` + version + `"}}}` + "\n"
	}
	const expired = `{"type":"ERROR","object":{"kind":"Status","status":"Failure","message":"too old","reason":"Expired","code":410}}` + "\n"
	tests := []struct {
		name, stream string
		want         []string
		expired      bool
	}{
		{"none", "", nil, false},
		{"changes", pod("ADDED", "1") + pod("MODIFIED", "2") + pod("DELETED", "3"), []string{"ADDED 1", "MODIFIED 2", "DELETED 3"}, false},
		{"bookmarks mean nothing", pod("BOOKMARK", "1") + pod("MODIFIED", "2"), []string{"MODIFIED 2"}, false},
		{"expired", pod("ADDED", "1") + expired + pod("ADDED", "2"), []string{"ADDED 1", "ERROR too old"}, true},
		{"cut within an event", pod("ADDED", "1") + pod("ADDED", "2")[:20], []string{"ADDED 1"}, false},
		{"no JSON", pod("ADDED", "1") + "<html>", []string{"ADDED 1", "ERROR GET /api/v1/namespaces/jobs/pods: read an event: invalid character '<' looking for beginning of value"}, false},
		{"too long", `{"type":"ADDED","object":"` + strings.Repeat("x", maxAnswer), []string{"ERROR GET /api/v1/namespaces/jobs/pods: an event has more than 8388608 bytes"}, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := serve(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, tt.stream) })
			w, err := c.Watch(t.Context(), "0")
			if err != nil {
				t.Fatal(err)
			}
			defer w.Stop()
			var got []string
			expired := false
			for e := range w.Events() {
				if e.Type == Failed {
					expired = IsExpired(e.Err)
					got = append(got, "ERROR "+e.Err.Error())
				} else {
					got = append(got, string(e.Type)+" "+e.Pod.ResourceVersion)
				}
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if expired != tt.expired {
				t.Errorf("expired: %v", expired)
			}
		})
	}
}

// TestLongWatch: a watch may say more in all than one event may.
func TestLongWatch(t *testing.T) {
	event := `{"type":"ADDED","object":{"metadata":{"labels":{"x":"` + strings.Repeat("x", maxAnswer/3) + `"}}}}` + "\n"
	c := serve(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, strings.Repeat(event, 5)) })
	w, err := c.Watch(t.Context(), "0")
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	n := 0
	for e := range w.Events() {
		if e.Type != Added {
			t.Fatal(e.Err)
		}
		n++
	}
	if n != 5 {
		t.Errorf("%d events, want 5", n)
	}
}

// FuzzEvents: whatever comes, a watch ends with what came.
func FuzzEvents(f *testing.F) {
	f.Add([]byte(`{"type":"ADDED","object":{"metadata":{"name":"a"},"spec":{"containers":[{"resources":{"limits":{"cpu":"1"}}}]}}}`))
	f.Add([]byte(`{"type":"ERROR","object":{"message":"m","code":410}}{"type":"BOOKMARK"}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		s := &stream{events: make(chan WatchEvent), stop: func() {}}
		go func() {
			defer close(s.events)
			s.read(t.Context(), bytes.NewReader(data))
		}()
		for e := range s.events {
			if (e.Pod == nil) == (e.Err == nil) || (e.Type == Failed) != (e.Err != nil) {
				t.Errorf("event %+v", e)
			}
		}
	})
}
