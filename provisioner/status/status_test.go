package status

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"podstarter/provisioner/backoff"
	"podstarter/provisioner/decision"
	"podstarter/provisioner/demand"
	"podstarter/provisioner/match"
	"podstarter/provisioner/offline"
	"podstarter/provisioner/platform"
	"podstarter/provisioner/resources"
	"podstarter/provisioner/round"
)

// world is a board with a clock and an election.
type world struct {
	t      *testing.T
	now    time.Time
	leader string
	mine   bool
	*Board
}

func newWorld(t *testing.T) *world {
	w := &world{t: t, now: time.Date(2026, 11, 2, 8, 0, 0, 0, time.UTC), leader: "me", mine: true}
	w.Board = NewBoard(Config{
		Name: "site", Templates: []string{"plain", "gpu"}, Interval: time.Minute,
		Leader: func() (string, bool) { return w.leader, w.mine }, Now: func() time.Time { return w.now },
	})
	return w
}

func (w *world) get(path string) (int, string) {
	w.t.Helper()
	answer := httptest.NewRecorder()
	w.Handler().ServeHTTP(answer, httptest.NewRequest(http.MethodGet, path, nil))
	return answer.Code, answer.Body.String()
}

// report is a round with two groups, four units and an error.
func report(at time.Time) round.Report {
	unit := func(name, template string, phase platform.Phase) platform.Unit {
		return platform.Unit{Spec: platform.Spec{Name: name, Template: template}, Phase: phase}
	}
	return round.Report{
		At: at, Took: 300 * time.Millisecond, Shapes: []string{"plain/one", "gpu/one"},
		Groups: []demand.Group{
			{ID: "aaaa", Parts: []demand.Part{{User: "alice@x", Idle: 10, Jobs: "ap: 1.0 ... 1.9"}}},
			{ID: "bbbb", Parts: []demand.Part{{User: "bob@x", Idle: 3}}},
		},
		Matches: [][]match.Result{{{Matches: true}, {Why: "it has no GPU"}}, {{Why: "no"}, {Why: "no"}}},
		Units: []platform.Unit{
			unit("p1", "plain", platform.Pending), unit("p2", "plain", platform.Running), unit("p3", "plain", platform.Ended), unit("p4", "gone", platform.Running),
		},
		Output: decision.Output{Groups: []decision.Outcome{
			{Idle: 10, Free: 1, Soon: 2, Coming: 3, New: 2, Waiting: []decision.Reason{{Jobs: 2, Why: "the limit of 5 pods is reached", Cause: decision.PodLimit}}},
			{Idle: 3, Waiting: []decision.Reason{{Jobs: 3, Why: "no template has slots that match", Cause: decision.NoMatch}}},
		}},
		Made: []string{"p5", "p6"}, Withdrawn: []string{"p7"},
		Failed:   []round.Failure{{Unit: "p3", Template: "plain", Reason: backoff.Failed, Detail: "exit code 1"}, {Unit: "p8", Template: "gone", Reason: backoff.ImageFailed}},
		Backoff:  []backoff.State{{LastReport: at.Add(-time.Hour)}, {Reason: backoff.ImageFailed, Failures: 2, Until: at.Add(9 * time.Minute)}},
		Untaken:  []round.Untaken{{Left: 21, State: backoff.State{Reason: backoff.Untaken, Failures: 2, Until: at.Add(12 * time.Minute)}}, {Left: 3}},
		Smaller:  []round.Smaller{{Shape: 0, Says: resources.Amount{CPUs: 1, Memory: 4096}, Offers: resources.Amount{CPUs: 1, Memory: 4000}}},
		Problems: []round.Problem{{Source: round.Accountant, Err: errors.New("the negotiator is away")}},
	}
}

// samples are the lines of a text that have values other than zero.
func series(t *testing.T, text string) []string {
	var out []string
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if !strings.HasPrefix(line, "#") && !strings.HasSuffix(line, " 0") && !strings.Contains(line, "_bucket{") && !strings.Contains(line, "build_info") {
			out = append(out, strings.TrimPrefix(line, namespace+"_"))
		}
	}
	if problems, err := promlint.New(strings.NewReader(text)).Lint(); err != nil || len(problems) > 0 {
		t.Errorf("%v, %v", problems, err)
	}
	return out
}

func TestMetrics(t *testing.T) {
	w := newWorld(t)
	if code, text := w.get("/metrics"); code != http.StatusOK || strings.Contains(text, "idle_jobs ") || !strings.Contains(text, namespace+"_pods_made_total 0\n") {
		t.Errorf("before the first round: %d\n%s", code, text)
	}
	w.Lead()
	w.Note(report(w.now))
	w.Note(report(w.now))
	code, text := w.get("/metrics")
	want := []string{
		`errors_total{source="accountant"} 2`,
		`idle_jobs 13`,
		`jobs{place="coming"} 3`, `jobs{place="free"} 1`, `jobs{place="new"} 2`, `jobs{place="soon"} 2`, `jobs{place="waiting"} 5`,
		`last_round_timestamp_seconds 1.7936064e+09`,
		`leader 1`,
		`pods{phase="running",template="(other)"} 1`,
		`pods{phase="ended",template="plain"} 1`, `pods{phase="pending",template="plain"} 1`, `pods{phase="running",template="plain"} 1`,
		`pods_failed_total{reason="ImageFailed",template="(other)"} 2`, `pods_failed_total{reason="Failed",template="plain"} 2`,
		`pods_made_total 4`, `pods_withdrawn_total 2`,
		`round_seconds_sum 0.6`, `round_seconds_count 2`,
		`template_failures{template="gpu"} 2`, `template_waits{template="gpu"} 1`, `template_waits_until_seconds{template="gpu"} 1.79360694e+09`,
		`template_smaller_shapes{template="plain"} 1`,
		`template_untaken{template="gpu"} 3`, `template_untaken{template="plain"} 21`,
		`template_waits{template="plain"} 1`, `template_waits_until_seconds{template="plain"} 1.79360712e+09`,
		`waiting_jobs{cause="NoMatch"} 3`, `waiting_jobs{cause="PodLimit"} 2`,
	}
	sort := func(s []string) map[string]bool {
		m := map[string]bool{}
		for _, l := range s {
			m[l] = true
		}
		return m
	}
	if diff := cmp.Diff(sort(want), sort(series(t, text))); code != http.StatusOK || diff != "" {
		t.Errorf("%d: -want +got\n%s", code, diff)
	}
	w.Rest()
	if _, text := w.get("/metrics"); strings.Contains(text, "idle_jobs ") || !strings.Contains(text, namespace+"_leader 0\n") || !strings.Contains(text, namespace+"_pods_made_total 4\n") {
		t.Errorf("one that stands by has\n%s", text)
	}
}

// The page for admins names each metric.
func TestMetricsOnThePage(t *testing.T) {
	page, err := os.ReadFile("../../docs/admin/provisioner.md")
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t)
	w.Lead()
	rep := report(w.now)
	rep.Groups[0].Schedds = []demand.Share{{Schedd: demand.Source{Name: "ap"}, Idle: 1}}
	w.Note(rep)
	_, text := w.get("/metrics")
	seen := 0
	for line := range strings.Lines(text) {
		name, ok := strings.CutPrefix(line, "# TYPE "+namespace+"_")
		if !ok {
			continue
		}
		seen++
		name, _, _ = strings.Cut(name, " ")
		if !strings.Contains(string(page), "`"+name+"`") && !strings.Contains(string(page), "`"+name+"{") {
			t.Errorf("docs/admin/provisioner.md does not name %s", name)
		}
	}
	if seen != len(all)+1 {
		t.Errorf("%d metrics were looked at, and there are %d", seen, len(all)+1)
	}
}

// Numbers that are not known are left out, and not 0: a scaler would act on them.
func TestMetricsOfUnknown(t *testing.T) {
	w := newWorld(t)
	w.Lead()
	rep := report(w.now)
	rep.Unknown, rep.Units, rep.Output = true, nil, decision.Output{}
	w.Note(rep)
	if _, text := w.get("/metrics"); strings.Contains(text, "idle_jobs ") || strings.Contains(text, namespace+"_pods{") || !strings.Contains(text, "last_round_timestamp") {
		t.Errorf("%s", text)
	}
	_, text := w.get("/")
	if !strings.Contains(text, "did not learn which pods there are") || strings.Contains(text, "pods that run</div>") || strings.Contains(text, "get no pod</div>") || strings.Contains(text, ">0<") {
		t.Errorf("%s", text)
	}
}

// A round that did not know what is there does not make the curves fall to 0.
func TestHistoryOfUnknown(t *testing.T) {
	w := newWorld(t)
	w.Lead()
	w.Note(report(w.now))
	w.now = w.now.Add(2 * time.Minute)
	w.Note(round.Report{At: w.now, Unknown: true})
	for _, p := range w.history.day(w.now)[samples-3:] {
		if p.running != 2 || p.pending != 1 || p.waiting != 5 || !p.known {
			t.Errorf("a minute is %+v", p)
		}
	}
}

// In the mode offline-ads nobody counts idle jobs: that is not none.
func TestOfflineAds(t *testing.T) {
	w := newWorld(t)
	w.Lead()
	rep := report(w.now)
	rep.Groups, rep.Matches, rep.Output, rep.Offline = nil, nil, decision.Output{}, &offline.Output{}
	w.Note(rep)
	if _, text := w.get("/metrics"); strings.Contains(text, "idle_jobs ") || strings.Contains(text, namespace+"_jobs{") || strings.Contains(text, namespace+"_waiting_jobs{") || !strings.Contains(text, namespace+"_pods{") {
		t.Errorf("%s", text)
	}
	if _, text := w.get("/"); strings.Contains(text, "No jobs are idle") || strings.Contains(text, "get no pod</div>") || !strings.Contains(text, "The negotiator chooses") {
		t.Errorf("%s", text)
	}
}

// Whatever units say of themselves, the number of series is that of the
// configuration.
func TestCardinality(t *testing.T) {
	w := newWorld(t)
	w.Lead()
	w.Note(report(w.now))
	_, text := w.get("/metrics")
	before := strings.Count(text, "\n")
	rep := report(w.now)
	for i := range 5000 {
		name := fmt.Sprintf("x%d\"\n}", i)
		rep.Units = append(rep.Units, platform.Unit{Spec: platform.Spec{Name: name, Template: name}, Phase: platform.Phase(i)})
		rep.Failed = append(rep.Failed, round.Failure{Unit: name, Template: name, Reason: backoff.Failed})
		rep.Groups = append(rep.Groups, demand.Group{ID: name, Parts: []demand.Part{{User: name, Idle: 1}}})
		rep.Output.Groups = append(rep.Output.Groups, decision.Outcome{Idle: 1, Waiting: []decision.Reason{{Jobs: 1, Why: name, Cause: decision.NoMatch}}})
	}
	w.Note(rep)
	if _, text := w.get("/metrics"); strings.Count(text, "\n") != before {
		t.Errorf("%d lines became %d", before, strings.Count(text, "\n"))
	}
}

func TestHealth(t *testing.T) {
	w := newWorld(t)
	check := func(name string, wantCode int, want string) {
		t.Helper()
		if code, text := w.get("/healthz"); code != wantCode || !strings.Contains(text, want) {
			t.Errorf("%s: %d %q, want %d %q", name, code, text, wantCode, want)
		}
	}
	w.mine, w.leader = false, ""
	check("nobody leads", http.StatusOK, "ok: standby; no leader is known\n")
	w.leader = "other<script>"
	check("another one leads", http.StatusOK, "ok: standby; leader is other<script>\n")
	w.now = w.now.Add(24 * time.Hour)
	check("one that stands by does no rounds", http.StatusOK, "standby")
	w.mine = true
	w.Lead()
	check("it begins", http.StatusOK, "ok: leader\n")
	w.now = w.now.Add(9 * time.Minute)
	check("no round has ended for three intervals and more", http.StatusServiceUnavailable, "no round has ended for 9m0s")
	w.Note(report(w.now))
	check("a round ended", http.StatusOK, "ok")
	for range 8 {
		w.now = w.now.Add(time.Minute)
		rep := report(w.now)
		rep.Unknown, rep.Problems = true, []round.Problem{{Source: round.Collector, Err: errors.New("away")}}
		w.Note(rep)
	}
	w.now = w.now.Add(time.Minute)
	check("the pool is away, which a new start would not change", http.StatusOK, "ok")
	for range 9 {
		w.now = w.now.Add(time.Minute)
		rep := report(w.now)
		rep.Unknown, rep.Problems = true, []round.Problem{{Source: round.Platform, Err: errors.New("the watch is broken")}}
		w.Note(rep)
	}
	check("the watch is broken", http.StatusServiceUnavailable, "it has not been known which pods there are")
	w.Rest()
	check("it stands by again", http.StatusOK, "ok")
}

func TestPage(t *testing.T) {
	w := newWorld(t)
	w.mine, w.leader = false, "pod-b_1234"
	if code, text := w.get("/"); code != http.StatusOK || !strings.Contains(text, "standby; leader is pod-b_1234") || !strings.Contains(text, "No round has been done here yet") {
		t.Errorf("%d\n%s", code, text)
	}
	w.mine = true
	w.Lead()
	w.Note(report(w.now))
	w.now = w.now.Add(time.Minute)
	w.Note(report(w.now))
	code, text := w.get("/")
	for _, want := range []string{
		`<b>13</b>idle jobs`, `<b>5</b>get no pod`, `2: the limit of 5 pods is reached`, `3: no template has slots that match`, `href="explain?group=aaaa"`,
		`2 times in a row pods came to nothing (ImageFailed); the next one is tried at 08:10:00`, `1h0m0s ago`, `made p5`, `withdrew p7`,
		`p3 came to nothing (Failed): exit code 1`, `<td class="wide bad">works; the last 21 pods came and no job took one; the next one is tried at 08:13:00; slots of the shape one have 1 CPUs, 4000 MiB memory`, `the negotiator is away`, `2 times, first 1m0s ago, last 0s ago`, `no longer configured`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing", want)
		}
	}
	if code != http.StatusOK || t.Failed() {
		t.Errorf("%d\n%s", code, text)
	}
	// The group that waits more comes first.
	if strings.Index(text, "bbbb") > strings.Index(text, "aaaa") {
		t.Error("the groups have another order")
	}
	for path, want := range map[string]string{"/explain?group=aaaa": "10 idle jobs of alice@x (ap: 1.0 ... 1.9)\nplain/one: matches", "/explain?group=none": "No idle jobs have been in this group", "/explain": "No idle jobs"} {
		if _, text := w.get(path); !strings.Contains(text, want) {
			t.Errorf("%s: %q", path, text)
		}
	}
	if code, _ := w.get("/explain?group=none"); code != http.StatusNotFound {
		t.Errorf("a group that is not there: %d", code)
	}
}

// hostile is a round in which all names are chosen by somebody who is hostile.
func hostile(at time.Time) round.Report {
	rep := report(at)
	for _, name := range []string{
		`<script>document.title="broken"</script>`, `"><img src=x onerror=alert(1)>`, "</style><script>alert(1)</script>", "\u202egnp.exe\u202c", "\x1b[31m\x00\x07",
		strings.Repeat("x", 10<<10), strings.Repeat("<b>", 10<<10), "\xff\xfe", "{{.}}", "javascript:alert(1)",
	} {
		rep.Groups = append(rep.Groups, demand.Group{ID: name, Parts: []demand.Part{{User: name, Idle: 7, Jobs: name}}})
		rep.Output.Groups = append(rep.Output.Groups, decision.Outcome{Idle: 7, Waiting: []decision.Reason{{Jobs: 7, Why: name, Cause: decision.NoMatch}}})
		rep.Matches = append(rep.Matches, []match.Result{{Why: name}, {Why: name}})
		rep.Units = append(rep.Units, platform.Unit{Spec: platform.Spec{Name: name, Template: name}})
		rep.Made = append(rep.Made, name)
		rep.Failed = append(rep.Failed, round.Failure{Unit: name, Template: name, Reason: backoff.Failed, Detail: name})
		rep.Problems = append(rep.Problems, round.Problem{Source: round.Schedds, Err: errors.New(name)})
	}
	return rep
}

func TestHostileNames(t *testing.T) {
	w := newWorld(t)
	w.Lead()
	w.Note(hostile(w.now))
	_, text := w.get("/")
	for _, bad := range []string{"<script", "<img", "<b>b", "\u202e", "\x1b", "\x00", "\xff", `href="javascript`} {
		if strings.Contains(text, bad) {
			t.Errorf("the page has %q", bad)
		}
	}
	if strings.Count(text, "</style>") != 1 {
		t.Error("a name ends the style")
	}
	if len(text) > 300<<10 {
		t.Errorf("the page has %d bytes", len(text))
	}
	if strings.Contains(text, strings.Repeat("x", maxDetail+1)) {
		t.Error("a name is not cut")
	}
}

// The page has a bounded size, whatever there is.
func TestManyGroups(t *testing.T) {
	w := newWorld(t)
	w.Lead()
	rep := report(w.now)
	user, why := strings.Repeat("u", 1000), strings.Repeat("w", 1000)
	for i := range 20_000 {
		g := demand.Group{ID: fmt.Sprint(i)}
		o := decision.Outcome{Idle: 100}
		for u := range 20 {
			g.Parts = append(g.Parts, demand.Part{User: user, Idle: 5})
			o.Waiting = append(o.Waiting, decision.Reason{Jobs: 5, Why: why[u:]})
		}
		rep.Groups, rep.Output.Groups = append(rep.Groups, g), append(rep.Output.Groups, o)
	}
	w.Note(rep)
	_, text := w.get("/")
	if len(text) > 1<<20 || !strings.Contains(text, "19902 other groups with 1990013 jobs are not shown") {
		t.Errorf("the page has %d bytes", len(text))
	}
}

// The history has a day and no more, with gaps where the provisioner was away.
func TestHistory(t *testing.T) {
	var h history
	start := time.Date(2026, 11, 2, 8, 0, 0, 0, time.UTC)
	for i := range 2 * samples {
		if i > samples+100 && i < samples+400 {
			continue // five hours without a round
		}
		h.add(start.Add(time.Duration(i)*time.Minute), sample{idle: i, made: 1})
		h.add(start.Add(time.Duration(i)*time.Minute+30*time.Second), sample{idle: i + 1, made: 2})
	}
	day := h.day(start.Add(time.Duration(2*samples-1) * time.Minute))
	if len(day) != samples || day[0].idle != samples+1 || day[samples-1].idle != 2*samples || day[0].made != 3 {
		t.Errorf("%d samples, the first %+v, the last %+v", len(day), day[0], day[len(day)-1])
	}
	if p := day[101]; !p.known || p.idle != samples+101 || p.made != 0 {
		t.Errorf("a minute without a round is %+v", p)
	}
	if p := day[200]; p.known {
		t.Errorf("a minute of which nothing is known is %+v", p)
	}
	if d := path(series2(day), 5000); strings.Count(d, "M") != 2 {
		t.Errorf("the line has %d parts, want 2", strings.Count(d, "M"))
	}
	// A clock before 1970 or one that was set back breaks nothing.
	h.add(time.Unix(-1e6, 0), sample{})
	_ = h.day(time.Unix(-1e6, 0))
}

func series2(day []point) []float64 {
	return seriesOf(day, line{value: func(s sample) int { return s.idle }})
}

func TestScale(t *testing.T) {
	for v, want := range map[float64]float64{0: 1, 1: 1, 1.5: 2, 3: 5, 7: 10, 10: 10, 11: 20, 1001: 2000} {
		if got := round125(v); got != want {
			t.Errorf("%g: %g, want %g", v, got, want)
		}
	}
}

// A browser may do nothing with an answer except show it, and who connects gets
// nothing else.
func TestServe(t *testing.T) {
	w := newWorld(t)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- w.Serve(ctx, listener) }()
	for _, c := range []struct {
		method, path, header string
		want                 int
	}{
		{http.MethodGet, "/", "", http.StatusOK},
		{http.MethodGet, "/healthz", "", http.StatusOK},
		{http.MethodGet, "/metrics", "", http.StatusOK},
		{http.MethodGet, "/explain?group=x", "", http.StatusNotFound},
		{http.MethodPost, "/", "", http.StatusMethodNotAllowed},
		{http.MethodGet, "/debug/pprof/", "", http.StatusNotFound},
		{http.MethodGet, "/x", "", http.StatusNotFound},
		{http.MethodGet, "/", strings.Repeat("x", 64<<10), http.StatusRequestHeaderFieldsTooLarge},
	} {
		r, err := http.NewRequestWithContext(ctx, c.method, "http://"+listener.Addr().String()+c.path, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("X-Long", c.header)
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, answer.Body)
		answer.Body.Close()
		if answer.StatusCode != c.want {
			t.Errorf("%s %s: %d, want %d", c.method, c.path, answer.StatusCode, c.want)
		}
		if h := answer.Header; c.header == "" && (!strings.HasPrefix(h.Get("Content-Security-Policy"), "default-src 'none'; style-src 'sha256-") || h.Get("X-Content-Type-Options") != "nosniff") {
			t.Errorf("%s %s: the headers are %v", c.method, c.path, h)
		}
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func FuzzCut(f *testing.F) {
	f.Add("a\u202e\xff b", 5)
	f.Fuzz(func(t *testing.T, text string, most int) {
		most = min(max(most, 0), 1000)
		got := cut(text, most)
		if len(got) > most+len("…") || !utf8.ValidString(got) || strings.ContainsAny(got, "\n\t\u202e\x1b") {
			t.Errorf("%q", got)
		}
	})
}
