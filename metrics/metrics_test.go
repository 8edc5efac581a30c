package main

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"podstarter/payload"
	"podstarter/starter/journal"
	"podstarter/starter/tally"
)

// scrape gives status and text of a scrape.
func scrape(t *testing.T, dir string) (int, string) {
	t.Helper()
	answer := httptest.NewRecorder()
	handler(collector{dir: dir}).ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	return answer.Code, answer.Body.String()
}

// samples are the lines of a text that have values other than zero.
func samples(text string) []string {
	var out []string
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); !strings.HasPrefix(line, "#") && !strings.HasSuffix(line, " 0") {
			out = append(out, line)
		}
	}
	return out
}

func TestScrape(t *testing.T) {
	var totals tally.Totals
	for _, e := range []journal.Event{
		{Kind: journal.JobBegins},
		{Kind: journal.ImageBound, How: string(payload.Kept), Seconds: 200, Fetched: 250},
		{Kind: journal.ImageBound, How: string(payload.Made), Seconds: 850, Copied: 800, CopiedBytes: 1234567},
		{Kind: journal.JobEnds, Outcome: journal.Requeued, Code: 1021, Blame: "site", Cause: "ErrImagePull", Seconds: 3, Ran: 2, CPU: 1, Calls: map[string]int64{"patch 200": 4}},
	} {
		totals.Add(e)
	}
	totals.LinesLost = 5
	dir := t.TempDir()
	s := tally.Snapshot{Totals: totals, Slots: 4, Running: 1, Rests: []time.Time{time.Now().Add(time.Hour)}, Keeper: os.Getpid(), Version: "v1", Condor: "25.14.1"}
	if err := s.Write(dir); err != nil {
		t.Fatal(err)
	}
	code, text := scrape(t, dir)
	want := []string{
		`podstarter_active_seconds_total 3`,
		`podstarter_api_requests_total{code="200",verb="patch"} 4`,
		`podstarter_binding_seconds_bucket{how="kept",le="300"} 1`,
		`podstarter_binding_seconds_bucket{how="kept",le="900"} 1`,
		`podstarter_binding_seconds_bucket{how="kept",le="+Inf"} 1`,
		`podstarter_binding_seconds_sum{how="kept"} 200`,
		`podstarter_binding_seconds_count{how="kept"} 1`,
		`podstarter_binding_seconds_bucket{how="made",le="900"} 1`,
		`podstarter_binding_seconds_bucket{how="made",le="+Inf"} 1`,
		`podstarter_binding_seconds_sum{how="made"} 850`,
		`podstarter_binding_seconds_count{how="made"} 1`,
		`podstarter_build_info{htcondor="25.14.1",version="v1"} 1`,
		`podstarter_cpu_seconds_total 1`,
		`podstarter_failures_total{blame="site",phase="binding",reason="ErrImagePull"} 1`,
		`podstarter_image_copied_bytes_total 1.234567e+06`,
		`podstarter_image_copy_seconds_bucket{le="900"} 1`,
		`podstarter_image_copy_seconds_bucket{le="+Inf"} 1`,
		`podstarter_image_copy_seconds_sum 800`,
		`podstarter_image_copy_seconds_count 1`,
		`podstarter_job_codes_total{code="1021",outcome="requeued"} 1`,
		`podstarter_jobs_begun_total 1`,
		`podstarter_jobs_ended_total{outcome="requeued"} 1`,
		`podstarter_keeper_up 1`,
		`podstarter_log_lines_lost_total 5`,
		`podstarter_puller_wait_seconds_bucket{le="300"} 1`,
		`podstarter_puller_wait_seconds_bucket{le="900"} 1`,
		`podstarter_puller_wait_seconds_bucket{le="+Inf"} 1`,
		`podstarter_puller_wait_seconds_sum 250`,
		`podstarter_puller_wait_seconds_count 1`,
		`podstarter_run_seconds_total 2`,
		`podstarter_slots{state="busy"} 1`,
		`podstarter_slots{state="idle"} 2`,
		`podstarter_slots{state="resting"} 1`,
	}
	if diff := cmp.Diff(want, samples(text)); code != http.StatusOK || diff != "" {
		t.Errorf("%d (-want +got):\n%s", code, diff)
	}
	for _, outcome := range journal.Outcomes {
		if !strings.Contains(text, `podstarter_jobs_ended_total{outcome="`+string(outcome)+`"} `) {
			t.Errorf("no series of %s: its first value would be no increase", outcome)
		}
	}
	problems, err := promlint.New(strings.NewReader(text)).Lint()
	if err != nil || len(problems) > 0 {
		t.Errorf("%v, %v", problems, err)
	}
}

// TestSickAndAlone: what changes by itself is said at the time of the scrape.
func TestSickAndAlone(t *testing.T) {
	dir := t.TempDir()
	s := tally.Snapshot{Slots: 2, Running: 1, Sick: time.Now().Add(time.Hour), Keeper: 1 << 22} // more than the kernel gives
	if err := s.Write(dir); err != nil {
		t.Fatal(err)
	}
	_, text := scrape(t, dir)
	for _, want := range []string{"podstarter_pod_sick 1\n", "podstarter_keeper_up 0\n", `podstarter_slots{state="offline"} 1` + "\n", `podstarter_slots{state="idle"} 0` + "\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
}

// TestDamage: a scrape fails if nothing is known, and labels that cannot be are left out.
func TestDamage(t *testing.T) {
	dir := t.TempDir()
	if code, _ := scrape(t, dir); code != http.StatusInternalServerError {
		t.Errorf("without a file: %d", code)
	}
	path := filepath.Join(dir, "podstarter.metrics")
	odd := `{"totals":{"codes":{"held|35|x":1,"held":1,"a\"b|\n":1,"held|35":7},"calls":{"":1}},"slots":-3,"running":5}`
	if err := os.WriteFile(path, []byte(odd), 0o600); err != nil {
		t.Fatal(err)
	}
	code, text := scrape(t, dir)
	if got := samples(text); code != http.StatusOK || strings.Count(text, "podstarter_job_codes_total{") != 1 || !strings.Contains(text, `podstarter_job_codes_total{code="35",outcome="held"} 7`) {
		t.Errorf("%d: %q", code, got)
	}
}

// TestServe: of those who connect, only a GET of the one page gets something.
func TestServe(t *testing.T) {
	dir := t.TempDir()
	if err := (tally.Snapshot{}).Write(dir); err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- serve(ctx, listener, peerOf, collector{dir: dir}, slog.New(slog.DiscardHandler)) }()
	base := "http://" + listener.Addr().String()
	for name, tt := range map[string]struct {
		method, path, header string
		want                 int
	}{
		"metrics":    {http.MethodGet, "/metrics", "", http.StatusOK},
		"a post":     {http.MethodPost, "/metrics", "", http.StatusMethodNotAllowed},
		"the root":   {http.MethodGet, "/", "", http.StatusNotFound},
		"a profile":  {http.MethodGet, "/debug/pprof/", "", http.StatusNotFound},
		"a header":   {http.MethodGet, "/metrics", strings.Repeat("x", 64<<10), http.StatusRequestHeaderFieldsTooLarge},
		"a way out":  {http.MethodGet, "/metrics/../../etc/passwd", "", http.StatusNotFound},
		"compressed": {http.MethodGet, "/metrics", "gzip", http.StatusOK},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := http.NewRequest(tt.method, base+tt.path, nil)
			if err != nil {
				t.Fatal(err)
			}
			if tt.header != "" {
				r.Header.Set("Accept-Encoding", tt.header)
			}
			answer, err := http.DefaultClient.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			defer answer.Body.Close()
			if _, err := io.Copy(io.Discard, answer.Body); answer.StatusCode != tt.want {
				t.Errorf("%d, want %d; %v", answer.StatusCode, tt.want, err)
			}
		})
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestParse(t *testing.T) {
	for name, tt := range map[string]struct {
		args []string
		want options
		bad  bool
	}{
		"all":        {[]string{"-address", ":1", "-dir", "/lock", "-state", "/private"}, options{":1", "/lock", "/private"}, false},
		"no state":   {[]string{"-address", ":1", "-dir", "/lock"}, options{":1", "/lock", ""}, false},
		"no address": {[]string{"-dir", "/lock"}, options{dir: "/lock"}, true},
		"no dir":     {[]string{"-address", ":1"}, options{address: ":1"}, true},
		"more":       {[]string{"-address", ":1", "-dir", "/lock", "more"}, options{":1", "/lock", ""}, true},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := parse(tt.args, io.Discard)
			if got != tt.want || (err != nil) != tt.bad {
				t.Errorf("%+v, %v", got, err)
			}
		})
	}
}

// TestJobKeepsNobodyOut: a job of the pod may take all the connections that it gets, and leaves some to others.
func TestJobKeepsNobodyOut(t *testing.T) {
	dir := t.TempDir()
	if err := (tally.Snapshot{}).Write(dir); err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	// 127.0.0.2 is somebody else here.
	byAddress := func(c net.Conn) string { host, _, _ := net.SplitHostPort(c.RemoteAddr().String()); return host }
	go func() {
		done <- serve(ctx, listener, byAddress, collector{dir: dir}, slog.New(slog.DiscardHandler))
	}()
	for range maxConnections + 8 {
		conn, err := net.Dial("tcp", listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
	}
	other := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}}
	client := http.Client{Timeout: requestTime / 2, Transport: &http.Transport{DialContext: other.DialContext}}
	answer, err := client.Get("http://" + listener.Addr().String() + "/metrics")
	if err != nil {
		t.Fatalf("a scrape beside a job with %d connections: %v", maxConnections+8, err)
	}
	answer.Body.Close()
	client.CloseIdleConnections()
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// ends are the addresses of a connection.
type ends struct {
	net.Conn
	local, remote string
}

func (e ends) LocalAddr() net.Addr  { return address(e.local) }
func (e ends) RemoteAddr() net.Addr { return address(e.remote) }

type address string

func (address) Network() string  { return "tcp" }
func (a address) String() string { return string(a) }

func TestPeerOf(t *testing.T) {
	for _, tt := range []struct{ local, remote, want string }{
		{"10.0.0.7:9464", "10.0.0.9:5", "10.0.0.9"},
		{"10.0.0.7:9464", "10.0.0.7:5", thisPod},
		{"127.0.0.1:9464", "127.1.2.3:5", thisPod},
		{"[::1]:9464", "[::1]:5", thisPod},
		{"[::ffff:10.0.0.7]:9464", "10.0.0.7:5", thisPod},
		{"[fe80::1%eth0]:9464", "[fe80::1%eth0]:5", thisPod},
		{"[fd00::1]:9464", "[fd00:1:2:3:4::5]:5", "fd00:1:2:3::/64"},
	} {
		if got := peerOf(ends{local: tt.local, remote: tt.remote}); got != tt.want {
			t.Errorf("%s at %s: %q, want %q", tt.remote, tt.local, got, tt.want)
		}
	}
}
