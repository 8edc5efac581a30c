//go:build pool

package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"podstarter/integration/harness"
)

// outcomes counts runs of jobs by how they ended in the pod.
type outcomes map[string]int

// TestMetricsAgreeWithHistory: what the pilot serves while all kinds of jobs run adds up to
// what HTCondor knows of them, a real Prometheus takes it, the alerts and the dashboard find
// what they ask for, and the pilot's log has a line for each end.
func TestMetricsAgreeWithHistory(t *testing.T) {
	oursOnly(t)
	if pool.Network != harness.HostNetwork {
		t.Skip("this test scrapes the pilot by its loopback address, which is the machine's in other pools")
	}
	address := freeAddress(t)
	configure(t, "POD_STARTER_METRICS_ADDRESS = "+address)
	reconfigureMaster(t)
	awaitMetrics(t, address, func(series) bool { return true })
	before := scrape(t, address)
	prometheus := startPrometheus(t, address)

	docker := func(steps, image string) harness.Job {
		return submit(t, job(steps, "universe = docker", "docker_image = "+image, "max_retries = 0"))[0]
	}
	want := outcomes{}
	good := submit(t, harness.Submission{Files: []harness.File{probe}, Commands: job("exit=0").Commands, Count: 3})
	died, exits := submit(t, job("signal=9"))[0], docker("exit=7", pool.Image("probe"))
	missing := docker("facts", registry()+"/no/such-image:1")
	for _, j := range good {
		mustExit(t, j, 0)
		want["succeeded"]++
	}
	mustExit(t, exits, 7)
	want["failed"]++
	if end := ending(t, died); end.Exited {
		t.Fatalf("job %s: %s, want a signal", died.ID(), end)
	}
	want["signaled"]++
	holds(t, missing, 1)
	want["held"]++

	removed, held := submit(t, job("ready forever"))[0], submit(t, job("forever"))[0]
	running(t, removed, 1)
	jobTool(t, removed, "condor_rm")
	want["withdrawn"]++
	running(t, held, 1)
	jobTool(t, held, "condor_hold")
	holds(t, held, 1)
	want["withdrawn"]++

	killed := submit(t, job("ready forever"))[0]
	running(t, killed, 1)
	kill(t)
	want["lost"]++
	running(t, killed, 2) // in its second run
	jobTool(t, killed, "condor_rm")
	want["withdrawn"]++

	refused := docker("facts", registry()+"/toomany/image:1")
	if _, err := refused.WaitEvents(soon(t, patience), "an attempt that fails", failed); err != nil {
		t.Fatal(err)
	}
	jobTool(t, refused, "condor_rm") // in its next run, or before

	jobs := append([]harness.Job{died, exits, missing, removed, held, killed, refused}, good...)
	for _, j := range []harness.Job{missing, held} {
		jobTool(t, j, "condor_rm")
	}
	runs, ofRefused := 0, 0
	for _, j := range jobs {
		ad, err := j.History(soon(t, patience))
		if err != nil {
			t.Fatal(err)
		}
		n := int(ad.IntOr("NumShadowStarts", 0))
		if runs += n; j.ID() == refused.ID() {
			ofRefused = n
		}
	}
	ended := func(s series) int {
		sum := 0
		for _, value := range s.of("podstarter_jobs_ended_total") {
			sum += value
		}
		return sum
	}
	after := awaitMetrics(t, address, func(s series) bool { return ended(s)-ended(before) == runs })
	if got := after["podstarter_jobs_begun_total"] - before["podstarter_jobs_begun_total"]; got != runs {
		t.Errorf("%d jobs began by the metrics, %d by the history", got, runs)
	}
	for outcome, n := range want {
		name := `podstarter_jobs_ended_total{outcome="` + outcome + `"}`
		got, most := after[name]-before[name], n
		if outcome == "withdrawn" {
			most++ // the refused job may have been removed while it ran
		}
		if got < n || got > most {
			t.Errorf("%s: %d, want %d", outcome, got, n)
		}
	}
	requeued := `podstarter_jobs_ended_total{outcome="requeued"}`
	if got := after[requeued] - before[requeued]; got < 1 || got < ofRefused-1 || got > ofRefused {
		t.Errorf("requeued: %d, and the history has %d runs", got, ofRefused)
	}
	for name, least := range map[string]int{
		`podstarter_failures_total{blame="user",phase="binding",reason="ErrImagePull"}`: 1,
		`podstarter_failures_total{blame="site",phase="binding",reason="ErrImagePull"}`: 1,
		`podstarter_job_codes_total{code="35",outcome="held"}`:                          1,
		`podstarter_api_requests_total{code="200",verb="patch"}`:                        len(jobs) - 1,
	} {
		if got := after[name] - before[name]; got < least {
			t.Errorf("%s: %d more, want at least %d", name, got, least)
		}
	}
	promtool(t, after.text(t, address), "check", "metrics")
	prometheus.judge(t, after)
	judgeLog(t, jobs, runs)
	judgeServer(t)
}

// series are values of metrics, by name and labels.
type series map[string]int

// of gives those of one name.
func (s series) of(name string) map[string]int {
	out := map[string]int{}
	for key, value := range s {
		if strings.HasPrefix(key, name+"{") || key == name {
			out[key] = value
		}
	}
	return out
}

func (series) text(t *testing.T, address string) []byte {
	return fetch(t, "http://"+address+"/metrics")
}

func fetch(t *testing.T, url string) []byte {
	t.Helper()
	data, err := get(soon(t, patience), url)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func get(ctx context.Context, url string) ([]byte, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	data, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s: %.500s", url, answer.Status, data)
	}
	return data, err
}

func parseSeries(text []byte) series {
	out := series{}
	for line := range strings.Lines(string(text)) {
		at := strings.LastIndexByte(strings.TrimSpace(line), ' ')
		if value, err := strconv.ParseFloat(strings.TrimSpace(line[at+1:]), 64); err == nil && !strings.HasPrefix(line, "#") {
			out[line[:at]] = int(value)
		}
	}
	return out
}

func scrape(t *testing.T, address string) series {
	t.Helper()
	return parseSeries(fetch(t, "http://"+address+"/metrics"))
}

// awaitMetrics waits until metrics are as they should be.
func awaitMetrics(t *testing.T, address string, enough func(series) bool) series {
	t.Helper()
	var last series
	err := harness.Poll(soon(t, patience), "metrics at "+address, func() (bool, error) {
		data, err := get(t.Context(), "http://"+address+"/metrics")
		if err != nil {
			return false, nil // the program is not there yet
		}
		last = parseSeries(data)
		return enough(last), nil
	})
	if err != nil {
		t.Fatalf("%v; they are %v", err, last.of("podstarter_jobs_ended_total"))
	}
	return last
}

// freeAddress is a loopback address with a port that nobody has.
func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// reconfigureMaster lets condor_master start and end daemons by its configuration, now and
// when the test ends.
func reconfigureMaster(t *testing.T) {
	t.Helper()
	reconfig := func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if out, err := pool.EP(ctx, side, "condor_reconfig", "-daemon", "master"); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
	}
	reconfig()
	t.Cleanup(reconfig)
}

func jobTool(t *testing.T, j harness.Job, name string) {
	t.Helper()
	if err := j.Tool(t.Context(), name); err != nil {
		t.Fatal(err)
	}
}

func holds(t *testing.T, j harness.Job, n int) {
	t.Helper()
	if _, err := j.WaitEvent(soon(t, patience), harness.EventHeld, n); err != nil {
		t.Fatal(err)
	}
}

// kill kills the starter of the job that is ready.
func kill(t *testing.T) {
	t.Helper()
	ready(t)
	starters, err := harness.WaitSome(soon(t, patience), 1, pool.Starters(side))
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range starters {
		if err := unix.Kill(s.PID, unix.SIGKILL); err != nil {
			t.Fatal(err)
		}
	}
}

// judgeLog: kubectl logs shows a line for each begin and each end.
func judgeLog(t *testing.T, jobs []harness.Job, runs int) {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(pool.State, "log", "pods", "podstarter_glidein_*", "pilot", "*.log"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no log of the pilot container: %v", err)
	}
	var text strings.Builder
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		text.Write(data)
	}
	count := map[string]int{}
	for _, j := range jobs {
		for _, message := range []string{"job begins", "job ends"} {
			count[message] += strings.Count(text.String(), `msg="`+message+`" job=`+j.ID()+" owner="+pool.User.Name+"@")
		}
	}
	if count["job begins"] != runs || count["job ends"] != runs {
		t.Errorf("%v in the log, want %d of each", count, runs)
	}
}

// judgeServer: the program that anybody can connect to has no rights.
func judgeServer(t *testing.T) {
	t.Helper()
	found, err := harness.WaitSome(soon(t, patience), 1, func(p harness.Process) bool { return p.Comm == "condor_pod_metr" && pool.InPod(side)(p) })
	if err != nil {
		t.Fatal(err)
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", found[0].PID))
	if err != nil {
		t.Fatal(err)
	}
	if !regexp.MustCompile(`(?m)^CapEff:\s*0+$`).Match(status) || regexp.MustCompile(`(?m)^Uid:.*\b0\b`).Match(status) {
		t.Errorf("the program that serves metrics has rights:\n%s", status)
	}
}

// prometheusServer is Debian's Prometheus.
type prometheusServer struct{ address string }

// startPrometheus starts one that scrapes an address each second, with the alerts of deploy/,
// and waits until it has scraped.
func startPrometheus(t *testing.T, target string) prometheusServer {
	t.Helper()
	dir, p := t.TempDir(), prometheusServer{freeAddress(t)}
	rules := filepath.Join(pool.Root, "deploy", "components", "metrics", "rules.yaml")
	config := fmt.Sprintf(`global: {scrape_interval: 1s, evaluation_interval: 1s}
rule_files: [%q]
scrape_configs:
- job_name: podstarter
  static_configs: [{targets: [%q], labels: {pod: glidein}}]
`, rules, target)
	path := filepath.Join(dir, "prometheus.yml")
	if err := os.WriteFile(path, []byte(config), 0o644); err != nil {
		t.Fatal(err)
	}
	promtool(t, nil, "check", "config", path)
	daemon(t, prometheusProgram(t, "prometheus"), "--config.file="+path, "--storage.tsdb.path="+filepath.Join(dir, "data"), "--web.listen-address="+p.address)
	err := harness.Poll(soon(t, patience), "Prometheus to scrape", func() (bool, error) {
		values, err := p.query(t.Context(), "up == 1 and on() podstarter_build_info")
		return err == nil && len(values) == 1, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// sample is one of an answer.
type sample struct {
	Metric map[string]string `json:"metric"`
	Value  [2]any            `json:"value"`
}

// query asks for the value of an expression now.
func (p prometheusServer) query(ctx context.Context, expression string) ([]sample, error) {
	u := "http://" + p.address + "/api/v1/query?query=" + escape(expression)
	data, err := get(ctx, u)
	if err != nil {
		return nil, fmt.Errorf("query %s: %w", expression, err)
	}
	var answer struct {
		Data struct{ Result []sample }
	}
	if err := json.Unmarshal(data, &answer); err != nil {
		return nil, err
	}
	return answer.Data.Result, nil
}

// judge: the server has what was scraped at last, each query of the dashboard finds
// something, and no alert fails.
func (p prometheusServer) judge(t *testing.T, want series) {
	t.Helper()
	for name, value := range want.of("podstarter_jobs_ended_total") {
		err := harness.Poll(soon(t, patience), fmt.Sprintf("Prometheus to have %s %d", name, value), func() (bool, error) {
			got, err := p.query(t.Context(), name)
			return err == nil && len(got) == 1 && got[0].Value[1] == strconv.Itoa(value), err
		})
		if err != nil {
			t.Error(err)
		}
	}
	data, err := os.ReadFile(filepath.Join(pool.Root, "deploy", "components", "metrics", "dashboard.json"))
	if err != nil {
		t.Fatal(err)
	}
	var dashboard struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal(data, &dashboard); err != nil || len(dashboard.Panels) == 0 {
		t.Fatalf("a dashboard with %d panels: %v", len(dashboard.Panels), err)
	}
	grafana := strings.NewReplacer("$__rate_interval", "5m", "$__range", "1h", "$pod", "glidein")
	for _, panel := range dashboard.Panels {
		for _, target := range panel.Targets {
			switch got, err := p.query(t.Context(), grafana.Replace(target.Expr)); {
			case err != nil:
				t.Errorf("%s: %v", panel.Title, err)
			case len(got) == 0:
				t.Errorf("%s: %s finds nothing", panel.Title, target.Expr)
			}
		}
	}
	var rules struct {
		Data struct {
			Groups []struct {
				Rules []struct{ Name, Health, LastError string }
			}
		}
	}
	err = harness.Poll(soon(t, patience), "all alerts to be well", func() (bool, error) {
		data, err := get(t.Context(), "http://"+p.address+"/api/v1/rules")
		if err != nil {
			return false, err
		}
		if err := json.Unmarshal(data, &rules); err != nil {
			return false, err
		}
		n := 0
		for _, g := range rules.Data.Groups {
			for _, r := range g.Rules {
				if n++; r.Health != "ok" {
					return false, nil
				}
			}
		}
		return n > 0, nil
	})
	if err != nil {
		t.Errorf("%v: %+v", err, rules)
	}
}

// promtool runs Prometheus's tool, which must find nothing wrong.
func promtool(t *testing.T, stdin []byte, args ...string) {
	t.Helper()
	if out, err := told(t, prometheusProgram(t, "promtool"), bytes.NewReader(stdin), args...); err != nil {
		t.Errorf("promtool %v: %v\n%s", args, err, out)
	}
}
