package harness

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseRequests(t *testing.T) {
	text := `{"time":"2026-11-21T10:11:01+00:00","method":"GET","line":"GET http://behind.invalid/a?x=1 HTTP/1.1","host":"behind.invalid","uri":"/a","query":"x=1","port":"28001","status":200,"sent":6,"authorization":"","agent":"curl/7.88.1","range":""}
{"method":"PUT","uri":"/put/b","status":201}
{"method":"GET","uri":"/a/half`
	got, err := parseRequests(text, "/a")
	if err != nil {
		t.Fatal(err)
	}
	want := []WebRequest{{Method: "GET", Line: "GET http://behind.invalid/a?x=1 HTTP/1.1", Host: "behind.invalid", Path: "/a", Query: "x=1", Port: "28001", Status: 200, Sent: 6, Agent: "curl/7.88.1"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if _, err := parseRequests("{\n", ""); err == nil {
		t.Error("want an error for a line that is not JSON")
	}
}
