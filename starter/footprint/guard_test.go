package footprint_test

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"
)

// waiting are the functions that a starter needs a goroutine for while a job runs, and what
// each waits for.
var waiting = map[string]string{
	"starter/activation.(*activation).follow":       "an event of the job's life",
	"starter/activation.(*activation).follow.func1": "the end of the job's main process",
	"starter/activation.(*activation).follow.func2": "nothing: it looks at what the job uses, and ends",
	"starter/activation.(*activation).follow.func3": "nothing: it sends an update, and ends",
	"starter/activation.(*activation).run.func1":    "the shadow's return",
	"starter/endpoint.Serve.func2":                  "a command",
	"starter/endpoint.Serve.func3":                  "a signal",
	"starter/endpoint.Serve.func4":                  "the end of the two keep-alives",
	"condor/startd.(*KeepAlive).Run.func1":          "the end of the startd",
	"condor/startd.(*KeepAlive).Run.func2":          "the time to say that this starter is alive",
	"condor/shadow.(*watch).start.func1":            "the end of the connection to the shadow",
	"condor/chirp.(*Server).accept":                 "a connection of the job to the chirp proxy",
	"k8sexec.(*container).attend":                   "the end of the container",
	"payload.(*Client).receive":                     "a word of the wrapper",
	"payload/procfamily.(*Killer).run":              "the order to kill, with the payload's user",
	"payload/memcg.NewWatch.func1":                  "the time to look at the memory",
	"payload/memcg.(*ringer).listen":                "the kernel's report that the limit is hit",
}

// TestWaiting: while its job runs, a starter has no connection to the API server, and no
// goroutine that waits for nothing.
func TestWaiting(t *testing.T) {
	s := start(t, 1, true)
	one := s.all[0]
	_, api := s.cluster.address()
	for deadline := time.Now().Add(time.Minute); slices.Contains(connections(t, one.cmd.Process.Pid), api); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) { // nothing tells when a connection of another process ends
			t.Error("a connection to the API server stays open")
			break
		}
	}
	rest(t, one.cmd.Process.Pid) // the connection ends before the memory of the start is given back
	all := one.goroutines(t)
	if len(all) < 10 {
		t.Errorf("only %d goroutines are found", len(all))
	}
	seen := map[string]bool{}
	for _, g := range all {
		kind := ""
		for known := range waiting {
			if strings.Contains(g, "podstarter/"+known+"(") && len(known) > len(kind) {
				kind = known
			}
		}
		switch {
		case strings.Contains(g, "os/signal.signal_recv"): // the standard library's own
		case strings.Contains(g, "main.dieAtOnce.func1("): // of SIGABRT, with which this test asks
		case kind == "":
			t.Errorf("for what does this goroutine wait?\n%s", g)
		case seen[kind]:
			t.Errorf("another goroutine waits for %s:\n%s", waiting[kind], g)
		}
		seen[kind] = true
	}
}

// heavy are packages that would make every starter larger.
var heavy = map[string]string{
	"k8s.io/client-go/kubernetes":  "it registers all types of all API groups",
	"k8s.io/client-go/tools/cache": "a starter makes a few calls and keeps no copy of the cluster",
	"html/template":                "templates find methods by name, so that the linker keeps all methods of all types",
	"text/template":                "templates find methods by name, so that the linker keeps all methods of all types",
	"runtime/pprof":                "the runtime then samples allocations, into tables of its own",
	"testing":                      "it brings runtime/pprof",
}

// TestLinked: none of them is part of the starter.
func TestLinked(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", "..").Output()
	must(t, err)
	linked := strings.Fields(string(out))
	if !slices.Contains(linked, "podstarter/starter") {
		t.Fatalf("the list of packages is not the starter's: %v", linked)
	}
	for _, name := range linked {
		if why, ok := heavy[name]; ok {
			t.Errorf("%s is linked: %s", name, why)
		}
	}
}
