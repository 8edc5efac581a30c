//go:build pool

package provisionfaults

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"
)

// boundary makes an object that bounds a namespace, and waits until it is in force: until a pod of it is refused, or its controller has
// counted.
func (s *site) boundary(path string, o object, inForce func() error) {
	s.t.Helper()
	s.api(http.MethodPost, path, o, nil)
	s.await("the boundary to be in force", time.Minute, inForce)
}

// trial tries, without an effect, to make a pod as the provisioner does, with a number of CPUs.
func (s *site) trial(cpus int, labels object) error {
	resources := object{"limits": object{"cpu": fmt.Sprint(cpus), "memory": "1Gi"}}
	return plane.Do(s.t.Context(), http.MethodPost, "/api/v1/namespaces/"+s.namespace()+"/pods?dryRun=All", "application/json", object{
		"apiVersion": "v1", "kind": "Pod", "metadata": object{"name": "trial", "labels": labels},
		"spec": object{"containers": []object{{"name": "payload", "image": "x", "resources": resources}}},
	}, nil)
}

func (s *site) refuses(cpus int, labels object) func() error {
	return func() error {
		if s.trial(cpus, labels) == nil {
			return errors.New("it allows what it should refuse")
		}
		return nil
	}
}

// makes does one round, which makes so many pods.
func (s *site) makes(want int) record {
	s.t.Helper()
	got, err := s.once()
	if got.Made != want {
		s.t.Fatalf("%d pods are made, want %d: %v", got.Made, want, err)
	}
	return got
}

// TestQuota: the quota of the namespace has room for two pods. Two are made, the third is refused, and made when there is room.
func TestQuota(t *testing.T) {
	t.Parallel()
	s := newSite(t, "quota")
	s.boundary("/api/v1/namespaces/"+s.namespace()+"/resourcequotas", object{"apiVersion": "v1", "kind": "ResourceQuota", "metadata": object{"name": "q"},
		"spec": object{"hard": object{"pods": "2"}}}, func() error {
		var q struct {
			Status struct{ Hard map[string]string }
		}
		s.api(http.MethodGet, "/api/v1/namespaces/"+s.namespace()+"/resourcequotas/q", nil, &q)
		if q.Status.Hard["pods"] != "2" {
			return errors.New("it is not counted yet")
		}
		return nil
	})
	condor.submit(t, one, alice, s.name, "queue 3")
	p := s.start(t.Context())
	p.await("the first round", roundOf, func(r record) bool { return r.Made == 2 })
	if !strings.Contains(p.errors(), "exceeded quota") {
		t.Errorf("nothing is said of the quota: %s", p.errors())
	}
	p.await("a round that does not try", roundOf, func(r record) bool { return r.Without == 1 })
	s.api(http.MethodPatch, "/api/v1/namespaces/"+s.namespace()+"/resourcequotas/q", object{"spec": object{"hard": object{"pods": "3"}}}, nil)
	p.await("the third pod", roundOf, func(r record) bool { return r.Made == 1 })
	if n := len(s.pods()); n != 3 {
		t.Errorf("there are %d pods, want 3", n)
	}
}

// TestQuotaOfJobs: the pods of Jobs are refused by the quota, and not the Jobs. No Jobs are heaped up for which there is no room.
func TestQuotaOfJobs(t *testing.T) {
	t.Parallel()
	s := newSite(t, "jobs", "policy: {settle: 1m}")
	s.template("plain", fmt.Sprintf(jobManifest, held), oneShape)
	s.prove()
	s.boundary("/api/v1/namespaces/"+s.namespace()+"/resourcequotas", object{"apiVersion": "v1", "kind": "ResourceQuota", "metadata": object{"name": "q"},
		"spec": object{"hard": object{"pods": "2"}}}, func() error {
		var q struct {
			Status struct{ Used map[string]string }
		}
		s.api(http.MethodGet, "/api/v1/namespaces/"+s.namespace()+"/resourcequotas/q", nil, &q)
		if q.Status.Used["pods"] != "1" {
			return errors.New("it is not counted yet")
		}
		return nil
	})
	condor.submit(t, one, alice, s.name, "queue 2")
	p := s.start(t.Context())
	p.await("both Jobs", roundOf, func(r record) bool { return r.Made == 2 })
	made := time.Now()
	s.await("the Job without a pod to be old enough", 4*time.Minute, func() error {
		if age := time.Since(made); age < 130*time.Second {
			return fmt.Errorf("it is %s old", age)
		}
		return nil
	})
	condor.submit(t, one, alice, s.name, "queue 5")
	p.await("a round that knows the new jobs", roundOf, func(r record) bool { return r.Idle == 7 })
	p.await("one more round", roundOf, func(record) bool { return true })
	var jobs struct{ Items []object }
	s.api(http.MethodGet, "/apis/batch/v1/namespaces/"+s.namespace()+"/jobs", nil, &jobs)
	if n := len(jobs.Items); n > 4 {
		t.Errorf("there are %d Jobs, of which 2 have pods: more are made although one gets none", n)
	}
}

// TestLimitRange: a size that the namespace does not allow is refused, and the other template's pods are made in the same round.
func TestLimitRange(t *testing.T) {
	t.Parallel()
	s := newSite(t, "limitrange")
	s.template("large", fmt.Sprintf(podManifest, held), "shapes:\n- {name: four, cpus: 4, memory: 8Gi, disk: 1Gi}\n")
	s.boundary("/api/v1/namespaces/"+s.namespace()+"/limitranges", object{"apiVersion": "v1", "kind": "LimitRange", "metadata": object{"name": "l"},
		"spec": object{"limits": []object{{"type": "Container", "max": object{"cpu": "2"}}}}}, s.refuses(4, nil))
	condor.submit(t, one, alice, s.name, "request_cpus = $(CPUS)\nqueue 2 CPUS in (3, 1)")
	got, err := s.once()
	if s.of("plain") != 2 || s.of("large") != 0 || got.Made != 2 || !strings.Contains(fmt.Sprint(err), "exit status") {
		t.Errorf("%d pods are made, %d of them plain and %d large, with the error %v", got.Made, s.of("plain"), s.of("large"), err)
	}
}

// TestAdmission: an admission policy denies one template's pods. Those of the other are made in the same round.
func TestAdmission(t *testing.T) {
	t.Parallel()
	s := newSite(t, "admission")
	s.template("denied", fmt.Sprintf(podManifest, held), "rank: '10'\n"+oneShape)
	const base = "/apis/admissionregistration.k8s.io/v1/"
	s.api(http.MethodPost, base+"validatingadmissionpolicies", object{"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy", "metadata": object{"name": s.namespace()},
		"spec": object{"failurePolicy": "Fail", "matchConstraints": object{"resourceRules": []object{{"apiGroups": []string{""}, "apiVersions": []string{"v1"}, "operations": []string{"CREATE"}, "resources": []string{"pods"}}}},
			"validations": []object{{"expression": "!has(object.metadata.labels) || !('provisioner.podstarter/template' in object.metadata.labels) || object.metadata.labels['provisioner.podstarter/template'] != 'denied'", "message": "the site does not want it"}}}}, nil)
	s.boundary(base+"validatingadmissionpolicybindings", object{"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicyBinding", "metadata": object{"name": s.namespace()},
		"spec": object{"policyName": s.namespace(), "validationActions": []string{"Deny"}, "matchResources": object{"namespaceSelector": object{"matchLabels": object{"kubernetes.io/metadata.name": s.namespace()}}}}},
		s.refuses(1, object{"provisioner.podstarter/template": "denied"}))
	t.Cleanup(func() {
		for _, kind := range []string{"validatingadmissionpolicybindings/", "validatingadmissionpolicies/"} {
			s.api(http.MethodDelete, base+kind+s.namespace(), nil, nil)
		}
	})
	condor.submit(t, one, alice, s.name, "queue 2")
	p := s.start(t.Context())
	// The site prefers the template that is denied; when that is known, the other one serves.
	p.await("pods of the other template", roundOf, func(record) bool { return s.of("plain") == 2 })
	if !strings.Contains(p.errors(), "the site does not want it") {
		t.Errorf("nothing is said of the policy: %s", p.errors())
	}
}

// TestNamespaceGoes: the namespace is being deleted, is gone, and comes again.
func TestNamespaceGoes(t *testing.T) {
	t.Parallel()
	s := newSite(t, "namespace")
	s.everywhere()
	condor.submit(t, one, alice, s.name, "queue 2")
	// Something keeps the namespace from going at once.
	s.api(http.MethodPost, "/api/v1/namespaces/"+s.namespace()+"/configmaps", object{"apiVersion": "v1", "kind": "ConfigMap", "metadata": object{"name": "stays", "finalizers": []string{"example.org/stays"}}}, nil)
	p := s.start(t.Context())
	p.await("pods", roundOf, func(r record) bool { return r.Made == 2 })
	s.api(http.MethodDelete, "/api/v1/namespaces/"+s.namespace(), nil, nil)
	p.await("a refusal", roundOf, func(r record) bool { return r.Made == 0 && strings.Contains(p.errors(), "is being terminated") })
	if len(s.pods()) != 0 {
		t.Errorf("%d pods are in a namespace that is being deleted", len(s.pods()))
	}
	s.api(http.MethodPatch, "/api/v1/namespaces/"+s.namespace()+"/configmaps/stays", object{"metadata": object{"finalizers": nil}}, nil)
	s.await("the namespace to go", 2*time.Minute, func() error {
		if err := plane.Do(t.Context(), http.MethodGet, "/api/v1/namespaces/"+s.namespace(), "", nil, nil); err == nil {
			return errors.New("it is there")
		}
		return nil
	})
	s.again()
	p.await("pods again", roundOf, func(r record) bool { return r.Made == 2 })
}

// again makes the namespace again, and waits for the account that its pods have.
func (s *site) again() {
	s.t.Helper()
	s.api(http.MethodPost, "/api/v1/namespaces", object{"apiVersion": "v1", "kind": "Namespace", "metadata": object{"name": s.namespace()}}, nil)
	s.await("the namespace's account", time.Minute, func() error {
		return plane.Do(s.t.Context(), http.MethodGet, "/api/v1/namespaces/"+s.namespace()+"/serviceaccounts/default", "", nil, nil)
	})
}

// TestAnswers: what the API server may answer to a creation, or fail to, costs no other template its pods, and no pod is made twice.
func TestAnswers(t *testing.T) {
	t.Parallel()
	for name, f := range map[string]fault{
		"429": {code: 429, reason: "TooManyRequests", message: "later"},
		"500": {code: 500, reason: "InternalError", message: "failed calling webhook: no endpoints"},
		"cut": {cut: true}, "late": {late: true}, "hang": {hang: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t, "answers-"+name)
			s.template("bad", fmt.Sprintf(podManifest, held), "shapes:\n- {name: big, cpus: 2, memory: 4Gi, disk: 1Gi}\n")
			proxy := newProxy(t)
			s.server = proxy.url
			proxy.set(func(c call) fault {
				if c.verb == "create" && c.resource == "pods" && strings.Contains(c.body, "-bad-") {
					return f
				}
				return fault{}
			})
			condor.submit(t, one, alice, s.name, "request_cpus = $(CPUS)\nqueue 2 CPUS in (2, 1)")
			p := s.start(t.Context())
			p.await("the first round", roundOf, func(r record) bool {
				if n := s.of("plain"); n != 2 {
					t.Errorf("%d pods of the other template are made in the same round, want 2", n)
				}
				return true
			})
			proxy.set(nil)
			p.await("the others", roundOf, func(record) bool { return s.of("bad") == 2 })
			p.await("one more round", roundOf, func(record) bool { return true })
			if n := s.of("bad"); n != 2 {
				t.Errorf("there are %d pods for two jobs", n)
			}
		})
	}
}

// TestSlowAnswers: each answer of the API server takes a second, and then it is away for all.
func TestSlowAnswers(t *testing.T) {
	t.Parallel()
	s := newSite(t, "slow", "policy: {settle: 1m}")
	proxy := newProxy(t)
	s.server = proxy.url
	proxy.set(func(call) fault { return fault{delay: time.Second} })
	condor.submit(t, one, alice, s.name, "queue 3")
	p := s.start(t.Context())
	p.await("all pods", roundOf, func(r record) bool { return r.Made == 3 })
	condor.submit(t, one, alice, s.name, "request_memory = 200M\nqueue 3")
	for _, f := range []fault{{cut: true}, {hang: true}} {
		proxy.set(func(call) fault { return f })
		p.await("a round without the API server", roundOf, func(record) bool { return true })
	}
	if n := len(s.pods()); n != 3 {
		t.Errorf("there are %d pods, want 3", n)
	}
	condor.remove(t, one, s.name, "true")
	proxy.set(nil)
	p.await("the pods to be withdrawn", 6*time.Minute, func(record) bool { return len(s.pods()) == 0 })
}

// TestStaleLists: the API server's cache is behind. A list that may come from it lacks all pods, and no watch tells of any. The
// provisioner makes no pod twice, whether it goes on or starts anew.
func TestStaleLists(t *testing.T) {
	t.Parallel()
	s := newSite(t, "stale")
	proxy := newProxy(t)
	s.server = proxy.url
	kinds := map[string]object{
		"pods": {"kind": "PodList", "apiVersion": "v1", "metadata": object{"resourceVersion": "1"}, "items": []any{}},
		"jobs": {"kind": "JobList", "apiVersion": "batch/v1", "metadata": object{"resourceVersion": "1"}, "items": []any{}},
	}
	proxy.set(func(c call) fault {
		switch {
		case c.cached && kinds[c.resource] != nil:
			return fault{answer: kinds[c.resource]}
		case c.verb == "watch":
			return fault{hang: true}
		}
		return fault{}
	})
	condor.submit(t, one, alice, s.name, "queue 3")
	p := s.start(t.Context())
	p.await("pods", roundOf, func(r record) bool { return r.Made == 3 })
	for range 3 {
		p.await("one more round", roundOf, func(record) bool { return true })
	}
	p.kill()
	p = s.start(t.Context())
	p.await("a round of the next one", roundOf, func(record) bool { return true })
	if n := len(s.pods()); n != 3 {
		t.Errorf("there are %d pods for 3 jobs:\n%s", n, p.text())
	}
}

// TestWatchExpires: while the provisioner cannot reach the API server, pods go, etcd forgets the versions that it knows, and the API
// server starts anew. The provisioner lists anew, and knows what is there.
func TestWatchExpires(t *testing.T) {
	s := newSite(t, "watch")
	proxy := newProxy(t)
	s.server = proxy.url
	condor.submit(t, one, alice, s.name, "queue 3")
	p := s.start(t.Context())
	p.await("pods", roundOf, func(r record) bool { return r.Made == 3 })
	p.await("a round that knows them", roundOf, func(r record) bool { return r.Pods == 3 && r.Made == 0 })
	proxy.set(func(call) fault { return fault{cut: true} })
	for _, pod := range s.pods()[:2] {
		s.api(http.MethodDelete, "/api/v1/namespaces/"+s.namespace()+"/pods/"+pod.Metadata.Name+"?gracePeriodSeconds=0", nil, nil)
	}
	for _, step := range []func() error{
		func() error { return plane.StopAPIServer(t.Context()) },
		func() error { return plane.Compact(t.Context()) },
		func() error { return plane.StartAPIServer(t.Context()) },
	} {
		if err := step(); err != nil {
			t.Fatal(err)
		}
	}
	proxy.set(nil)
	p.await("pods in the place of the two", roundOf, func(record) bool { return len(s.pods()) == 3 })
	p.await("one more round", roundOf, func(record) bool { return true })
	if n := len(s.pods()); n != 3 {
		t.Errorf("there are %d pods for 3 jobs", n)
	}
	if proxy.expired.Load() == 0 {
		t.Error("the API server never answered 410: the test shows nothing of an expired watch")
	}
}
