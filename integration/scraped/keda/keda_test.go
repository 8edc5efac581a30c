package keda

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/kedacore/keda/v2/pkg/scalers"
	"github.com/kedacore/keda/v2/pkg/scalers/scalersconfig"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"podstarter/integration/scraped/site"
)

// TestScaler: KEDA's metrics-api scaler takes numbers of the provisioner's page. Of what the page does not have it makes an error, on which KEDA
// leaves what it scales as it is, and no zero.
func TestScaler(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	log.SetLogger(logr.Discard())
	address, stop := site.Start(t, "../../..")
	ask := func(series string) (float64, bool, error) {
		s, err := scalers.NewMetricsAPIScaler(&scalersconfig.ScalerConfig{
			ScalableObjectName: "glideins", ScalableObjectNamespace: "podstarter", TriggerType: "metrics-api", GlobalHTTPTimeout: 5 * time.Second,
			TriggerMetadata: map[string]string{"url": "http://" + address + "/metrics", "format": "prometheus", "valueLocation": series, "targetValue": "1"},
		}, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close(ctx)
		values, active, err := s.GetMetricsAndActivity(ctx, "jobs")
		if err != nil {
			return 0, active, err
		}
		return values[0].Value.AsApproximateFloat64(), active, nil
	}
	// The second round sees the pods of the first.
	for tick := time.NewTicker(200 * time.Millisecond); ; {
		if n, _, err := ask(`podstarter_provisioner_pods{template="plain",phase="pending"}`); err == nil && n == 3 {
			tick.Stop()
			break
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatal(context.Cause(ctx))
		}
	}
	for series, want := range map[string]float64{
		`podstarter_provisioner_idle_jobs`: 5, `podstarter_provisioner_jobs{place="coming"}`: 3, `podstarter_provisioner_jobs{place="waiting"}`: 2,
		`podstarter_provisioner_waiting_jobs{cause="NoMatch"}`: 2, `podstarter_provisioner_jobs{place="free"}`: 0,
	} {
		if got, active, err := ask(series); got != want || active != (want > 0) || err != nil {
			t.Errorf("%s is %v for KEDA, active: %t, %v; want %v", series, got, active, err, want)
		}
	}
	if _, _, err := ask("podstarter_provisioner_nothing"); err == nil || !strings.Contains(err.Error(), "not found") {
		t.Errorf("of a metric that is not there KEDA says %v", err)
	}
	stop()
	if _, _, err := ask("podstarter_provisioner_idle_jobs"); err == nil {
		t.Error("KEDA takes a number of a provisioner that is gone")
	}
}
