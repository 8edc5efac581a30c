package scraped

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/config"
	"github.com/prometheus/prometheus/discovery/targetgroup"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/scrape"
	"github.com/prometheus/prometheus/tsdb"
	"golang.org/x/sync/errgroup"

	"podstarter/integration/scraped/site"
)

// server is as much of a Prometheus server as reads a target and answers queries.
type server struct {
	db      *tsdb.DB
	engine  *promql.Engine
	manager *scrape.Manager
}

// configuration scrapes each second.
const configuration = `scrape_configs:
- job_name: provisioner
  scrape_interval: 1s
  scrape_timeout: 1s
`

func serve(t *testing.T, address string) *server {
	t.Helper()
	log := slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn}))
	db, err := tsdb.Open(t.TempDir(), log, nil, tsdb.DefaultOptions(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	set, err := config.Load(configuration, log)
	if err != nil {
		t.Fatal(err)
	}
	manager, err := scrape.NewManager(&scrape.Options{DiscoveryReloadInterval: model.Duration(100 * time.Millisecond)}, log, nil, nil, db, prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	if err := manager.ApplyConfig(set); err != nil {
		t.Fatal(err)
	}
	targets := make(chan map[string][]*targetgroup.Group, 1)
	targets <- map[string][]*targetgroup.Group{"provisioner": {{Source: "test", Targets: []model.LabelSet{{model.AddressLabel: model.LabelValue(address)}}}}}
	var run errgroup.Group
	run.Go(func() error { return manager.Run(targets) })
	t.Cleanup(func() {
		manager.Stop()
		if err := run.Wait(); err != nil {
			t.Error(err)
		}
	})
	engine := promql.NewEngine(promql.EngineOpts{MaxSamples: 1_000_000, Timeout: 10 * time.Second, EnableAtModifier: true, EnableNegativeOffset: true, Parser: parser.NewParser(parser.Options{})})
	return &server{db, engine, manager}
}

// ask evaluates an expression now.
func (s *server) ask(ctx context.Context, expr string) (promql.Vector, error) {
	q, err := s.engine.NewInstantQuery(ctx, s.db, nil, expr, time.Now())
	if err != nil {
		return nil, err
	}
	defer q.Close()
	res := q.Exec(ctx)
	v, err := res.Vector()
	return slices.Clone(v), err
}

// wait asks until an expression has a value.
func (s *server) wait(ctx context.Context, t *testing.T, expr string) {
	t.Helper()
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for {
		v, err := s.ask(ctx, expr)
		if err == nil && len(v) > 0 {
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("%s has no value: %v, %v", expr, err, context.Cause(ctx))
		}
	}
}

// alerts are those of a file of rules of deploy/, by their names.
func alerts(t *testing.T, file string) map[string]string {
	t.Helper()
	groups, wrong := rulefmt.ParseFile("../../deploy/"+file, false, model.UTF8Validation, parser.NewParser(parser.Options{}), slog.New(slog.DiscardHandler))
	if len(wrong) > 0 {
		t.Fatal(wrong)
	}
	all := map[string]string{}
	for _, g := range groups.Groups {
		for _, r := range g.Rules {
			all[r.Alert] = r.Expr
		}
	}
	if len(all) == 0 {
		t.Fatalf("%s has no alerts", file)
	}
	return all
}

// TestPrometheus: Prometheus' own scraper takes the provisioner's page, knows type and help of each metric, and its queries and the alerts have
// the values that they should have, while the provisioner works and once it is gone.
func TestPrometheus(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	address, stop := site.Start(t, "../..")
	s := serve(t, address)
	// The second round sees the pods of the first.
	s.wait(ctx, t, `podstarter_provisioner_pods{phase="pending"} == 3`)
	for expr, want := range map[string]float64{
		`up`: 1, `podstarter_provisioner_leader`: 1, `podstarter_provisioner_idle_jobs`: 5,
		`podstarter_provisioner_jobs{place="coming"}`: 3, `podstarter_provisioner_jobs{place="waiting"}`: 2,
		`sum(podstarter_provisioner_waiting_jobs)`: 2, `podstarter_provisioner_waiting_jobs{cause="NoMatch"}`: 2,
		`podstarter_provisioner_pods_made_total`: 3, `sum(podstarter_provisioner_jobs) - sum(podstarter_provisioner_idle_jobs)`: 0,
		`histogram_quantile(0.9, podstarter_provisioner_round_seconds_bucket) < bool 60`: 1,
		`time() - podstarter_provisioner_last_round_timestamp_seconds < bool 60`:         1,
		`count(podstarter_provisioner_build_info)`:                                       1,
	} {
		if v, err := s.ask(ctx, expr); err != nil || len(v) != 1 || v[0].F != want {
			t.Errorf("%s is %v, %v; want %v", expr, v, err, want)
		}
	}
	target := s.manager.TargetsActive()["provisioner"][0]
	known := target.ListMetadata()
	if err := target.LastError(); err != nil || len(known) < 10 {
		t.Errorf("%d metrics are known of the target: %v", len(known), err)
	}
	for _, m := range known {
		if m.Type == model.MetricTypeUnknown || m.Help == "" {
			t.Errorf("%s has the type %s and the help %q", m.MetricFamily, m.Type, m.Help)
		}
	}

	rules := alerts(t, "provisioner/monitoring/rules.yaml")
	for name, expr := range rules {
		if unknown := s.unknown(ctx, t, expr); len(unknown) > 0 {
			t.Errorf("the alert %s refers to metrics that the provisioner does not have: %q", name, unknown)
		}
	}
	if got, want := s.firing(ctx, t, rules), []string{"PodStarterJobsMatchNothing"}; !slices.Equal(got, want) {
		t.Errorf("the alerts %q fire, want %q", got, want)
	}
	stop()
	s.wait(ctx, t, "up == 0")
	if got, want := s.firing(ctx, t, rules), []string{"PodStarterNoProvisioner"}; !slices.Equal(got, want) {
		t.Errorf("with no provisioner the alerts %q fire, want %q", got, want)
	}
}

// firing are the alerts whose expressions have values.
func (s *server) firing(ctx context.Context, t *testing.T, rules map[string]string) []string {
	t.Helper()
	var names []string
	for _, name := range slices.Sorted(maps.Keys(rules)) {
		v, err := s.ask(ctx, rules[name])
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if len(v) > 0 {
			names = append(names, name)
		}
	}
	return names
}

// unknown are metrics of an expression of which there is no series.
func (s *server) unknown(ctx context.Context, t *testing.T, expr string) []string {
	t.Helper()
	parsed, err := parser.NewParser(parser.Options{}).ParseExpr(expr)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	parser.Inspect(parsed, func(n parser.Node, _ []parser.Node) error {
		v, ok := n.(*parser.VectorSelector)
		if !ok {
			return nil
		}
		selector := "{" + strings.Join(func() (all []string) {
			for _, m := range v.LabelMatchers {
				all = append(all, fmt.Sprintf("%s%s%s", m.Name, m.Type, strconv.Quote(m.Value)))
			}
			return all
		}(), ",") + "}"
		if found, err := s.ask(ctx, selector); err != nil || len(found) == 0 {
			names = append(names, selector)
		}
		return nil
	})
	return names
}

// TestRulesOfGlideins: Prometheus takes the alerts for glideins.
func TestRulesOfGlideins(t *testing.T) {
	for name := range alerts(t, "components/metrics/rules.yaml") {
		if !strings.HasPrefix(name, "PodStarter") {
			t.Errorf("an alert is called %s", name)
		}
	}
}
