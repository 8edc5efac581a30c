package status

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"podstarter/provisioner/demand"
)

// A schedd of another pool is named with its pool, whatever it is called.
func TestSchedds(t *testing.T) {
	w := newWorld(t)
	w.Lead()
	rep := report(w.now)
	guest := demand.Source{Name: "guest@<b>\x1b", Pool: `cm.guest"` + strings.Repeat("x", 500)}
	rep.Groups[0].Schedds = []demand.Share{{Schedd: demand.Source{Name: "ap"}, Idle: 6}, {Schedd: guest, Idle: 4}}
	rep.Groups[1].Schedds = []demand.Share{{Schedd: guest, Idle: 3}}
	w.Note(rep)
	_, page := w.get("/")
	pool := `cm.guest&#34;` + strings.Repeat("x", maxName-len(`cm.guest"`)) + "…"
	for _, want := range []string{
		`<bdi>ap</bdi></td><td class="wide" data-label="of the pool">this one</td><td class="n" data-label="idle jobs that count">6<`,
		`<bdi>guest@&lt;b&gt;?</bdi></td><td class="wide" data-label="of the pool"><bdi>` + pool + `</bdi>; its jobs flock here</td><td class="n" data-label="idle jobs that count">7<`,
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %s:\n%s", want, page)
		}
	}
	_, text := w.get("/metrics")
	for _, want := range []string{`schedd_idle_jobs{pool="",schedd="ap"} 6`, `schedd="guest@<b>?"} 7`} {
		if !strings.Contains(text, want) {
			t.Errorf("the metrics lack %s:\n%s", want, strings.Join(series(t, text), "\n"))
		}
	}
}

// Schedds of other pools say what they like, and none of this pool's disappears
// because of them.
func TestScheddsOfThisPoolComeFirst(t *testing.T) {
	w := newWorld(t)
	w.Lead()
	rep := report(w.now)
	rep.Groups[0].Schedds = []demand.Share{{Schedd: demand.Source{Name: "ap"}, Idle: 1}}
	for i := range 2 * maxSchedds {
		rep.Groups[0].Schedds = append(rep.Groups[0].Schedds, demand.Share{Schedd: demand.Source{Name: fmt.Sprint("guest", i), Pool: "cm.guest"}, Idle: 1 << 30})
	}
	w.Note(rep)
	if _, text := w.get("/metrics"); !strings.Contains(text, `schedd_idle_jobs{pool="",schedd="ap"} 1`) {
		t.Errorf("the pool's own schedd is not named:\n%s", strings.Join(series(t, text), "\n"))
	}
}

// Prometheus keeps each series for weeks: names that change from round to round must
// not make others without end.
func TestScheddsThatChangeTheirNames(t *testing.T) {
	w := newWorld(t)
	w.Lead()
	names := map[string]bool{}
	for i := range 100 {
		rep := report(w.now)
		rep.Groups[0].Schedds = []demand.Share{{Schedd: demand.Source{Name: "ap"}, Idle: 1}}
		for j := range 10 {
			rep.Groups[0].Schedds = append(rep.Groups[0].Schedds, demand.Share{Schedd: demand.Source{Name: fmt.Sprintf("guest%d-%d", i, j), Pool: "cm.guest"}, Idle: 2})
		}
		w.Note(rep)
		_, text := w.get("/metrics")
		sum := 0
		for _, line := range strings.Split(text, "\n") {
			name, value, ok := strings.Cut(line, "} ")
			if !ok || !strings.Contains(name, "_schedd_idle_jobs{") {
				continue
			}
			names[name] = true
			n, err := strconv.Atoi(value)
			if err != nil {
				t.Fatal(err)
			}
			sum += n
		}
		if sum != 21 {
			t.Fatalf("the schedds have %d jobs together, want 21", sum)
		}
	}
	if len(names) > mostNamed+2 {
		t.Errorf("there have been %d series", len(names))
	}
}

// However many schedds there are, and whatever their names, the metrics can be read.
func TestManySchedds(t *testing.T) {
	w := newWorld(t)
	w.Lead()
	rep := report(w.now)
	for i := range 500 {
		name := fmt.Sprint("ap", i)
		if i%2 == 0 {
			name = strings.Repeat("x", 100) + name // the same after it was cut
		}
		rep.Groups[0].Schedds = append(rep.Groups[0].Schedds, demand.Share{Schedd: demand.Source{Name: name}, Idle: 1}, demand.Share{Schedd: demand.Source{Name: other}, Idle: 1})
	}
	w.Note(rep)
	code, text := w.get("/metrics")
	if n := strings.Count(text, "\n"+namespace+"_schedd_idle_jobs{"); code != http.StatusOK || n != maxSchedds+1 {
		t.Errorf("%d: %d series", code, n)
	}
	if !strings.Contains(text, `schedd_idle_jobs{pool="",schedd="(other)"} 701`) {
		t.Errorf("the others are not counted together:\n%s", strings.Join(series(t, text), "\n"))
	}
}
