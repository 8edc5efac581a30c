package lives_test

import (
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"podstarter/condor/condortest"
	"podstarter/payload"
	"podstarter/starter/activation"
)

// life is one life of a job. In all texts @/ stands for the life's own directory.
type life struct {
	name string

	script   string            // the job's program, of which a shell reads this
	job      string            // attributes that replace the recorded job's
	without  []string          // attributes that it does not have
	files    map[string]string // in the submit directory
	knobs    map[string]string // of the site
	programs map[string]string // of the site: shell scripts in @/site

	submit  func(*condortest.ShadowOptions)
	machine func(*condortest.StartdOptions)
	backend func(*world, payload.Backend) payload.Backend // instead of localexec
	options func(*activation.Options)

	plan func(*world) // before the life begins
	live func(*world) // beside it
	want want
}

// want is what is to come of a life.
type want struct {
	code   int    // exit code of Run
	orCode int    // another one that is as good; 0: none
	last   string // the last word to the shadow, as [world.lastWords] has it; empty: none
	says   string // in the last word's message, or in the log if there is no such word

	calls  []string          // heard by the shadow, as Heard.String has it; nil: not looked at
	only   []string          // names of what is looked at in calls; nil: all but get_job_info, by which the starter asks again and again
	output map[string]string // files that came back; nil: not looked at
	log    []string          // in the starter's log

	again bool         // the last word was lost, and is said twice
	deaf  bool         // the startd's socket is closed: it hears no last word
	check func(*world) // whatever else
}

// run runs lives side by side, and beside those of other tests.
func run(t *testing.T, lives []life) {
	t.Helper()
	t.Parallel()
	for _, l := range lives {
		t.Run(l.name, func(t *testing.T) {
			t.Parallel()
			l.run(t)
		})
	}
}

func (l life) run(t *testing.T) {
	t.Helper()
	w := newWorld(t, l)
	if l.plan != nil {
		l.plan(w)
	}
	w.begin()
	if l.live != nil {
		l.live(w)
	}
	w.end()
	w.judge()
}

// judge compares what came of the life with what was wanted, and with the rules.
func (w *world) judge() {
	w.Helper()
	want := w.life.want
	if w.code != want.code && (want.orCode == 0 || w.code != want.orCode) {
		w.Errorf("exit code %d, want %d", w.code, want.code)
	}
	w.judgeLastWord(want)
	w.judgeStartd(want)
	w.judgeNotes()
	if want.calls != nil {
		if diff := cmp.Diff(want.calls, w.story(want.only...)); diff != "" {
			w.Errorf("the shadow heard (-want +got):\n%s", diff)
		}
	}
	if want.output != nil {
		if diff := cmp.Diff(want.output, w.shadow.Outputs()); diff != "" {
			w.Errorf("files that came back (-want +got):\n%s", diff)
		}
	}
	for _, text := range want.log {
		if !strings.Contains(w.log.String(), w.at(text)) {
			w.Errorf("no %q in the log", w.at(text))
		}
	}
	w.judgeRemains()
	if want.check != nil {
		want.check(w)
	}
}

// judgeLastWord: the shadow hears one last word, or none if none is wanted, and nothing
// of the job's state after it.
func (w *world) judgeLastWord(want want) {
	w.Helper()
	var words []string
	if want.last != "" {
		words = []string{want.last}
	}
	got, text := w.lastWords()
	if n := len(got); want.again && n == 2 && strings.HasPrefix(got[0], "job_exit") {
		got = got[1:]
	}
	if diff := cmp.Diff(words, got); diff != "" {
		w.Errorf("last words to the shadow (-want +got):\n%s", diff)
	}
	if text == "" {
		text = w.log.String()
	}
	if !strings.Contains(text, w.at(want.says)) {
		w.Errorf("the last word has no %q, but says %q", w.at(want.says), text)
	}
}

// judgeStartd: the startd hears one final update, and nothing after it.
func (w *world) judgeStartd(want want) {
	w.Helper()
	if want.deaf {
		return
	}
	names := []string{}
	for _, h := range w.startd.Heard() {
		if h.Call != condortest.Alive && h.Call != condortest.Again {
			names = append(names, h.Call)
		}
	}
	finals := 0
	for _, name := range names {
		if name == condortest.Final {
			finals++
		}
	}
	if n := len(names); finals != 1 || n < 2 || names[n-2] != condortest.Final || names[n-1] != condortest.Closed {
		w.Errorf("the startd heard no final update, or not in the end: %v", names)
	}
}

// at puts the life's directory into a text, for @/.
func (w *world) at(text string) string { return strings.ReplaceAll(text, "@/", w.dir+"/") }

// atAll does so in the values of a map.
func (w *world) atAll(texts map[string]string) map[string]string {
	out := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		out[name] = w.at(texts[name])
	}
	return out
}

// execute is where the sandboxes are.
func (w *world) execute() string { return filepath.Join(w.dir, "execute") }

// story is what the shadow heard.
func (w *world) story(only ...string) []string {
	if only != nil {
		return w.shadow.Story(only...)
	}
	return slices.DeleteFunc(w.shadow.Story(), func(line string) bool { return line == "get_job_info" })
}

// same compares what is wanted with what came.
func (w *world) same(want, got any) {
	w.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		w.Errorf("(-want +got):\n%s", diff)
	}
}
