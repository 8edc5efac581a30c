package batch

import (
	"maps"
	"strings"
	"testing"
	"time"

	"podstarter/provisioner/resources"
	"podstarter/provisioner/template"
)

func TestMistakes(t *testing.T) {
	for want, change := range map[string]func(f *File){
		"batch.submit: it is empty":                                       func(f *File) { f.Submit = nil },
		"batch.submit: argument 1: line 1: {nam} is no placeholder here":  func(f *File) { f.Submit = []string{"x", "{nam}"} },
		"batch.submit: the program \"{name}\" has a placeholder":          func(f *File) { f.Submit = []string{"{name}"} },
		"batch.submit: argument 1: line 1: it has a byte that is zero":    func(f *File) { f.Submit = []string{"x", "\x00"} },
		"batch.submit: it has 101 arguments":                              func(f *File) { f.Submit = strings.Split(strings.Repeat("x ", 100), " ") },
		"batch.submit: argument 0 has":                                    func(f *File) { f.Submit = []string{strings.Repeat("x", maxArg+1)} },
		"batch.status: argument 1: line 1: {name} is no placeholder here": func(f *File) { f.Status = []string{"x", "{name}"} },
		"batch.cancel: it has neither {id} nor {name}":                    func(f *File) { f.Cancel = []string{"x"} },
		`batch.id: "x" has 0 groups; it must have one`:                    func(f *File) { f.ID = "x" },
		"batch.id: error parsing regexp":                                  func(f *File) { f.ID = "(" },
		"batch.denied: error parsing regexp":                              func(f *File) { f.Denied = "(" },
		`batch.fields: there is no field "colour"`:                        func(f *File) { f.Fields = append(f.Fields[:7], "colour") },
		"batch.fields: note is not in it":                                 func(f *File) { f.Fields = f.Fields[:3] },
		"batch.fields: name is in it twice":                               func(f *File) { f.Fields = append(f.Fields[:7], "name") },
		"batch.fields: reason is the rest of the line":                    func(f *File) { f.Fields = append(f.Fields, "-") },
		`batch.states: B means "broken"`:                                  func(f *File) { f.States["B"] = "broken" },
		`batch.states: "a b" is no word`:                                  func(f *File) { f.States["a b"] = "pending" },
		"batch.states: no word means pending":                             func(f *File) { delete(f.States, "R") },
		`batch.timeout: it is "soon"`:                                     func(f *File) { f.Timeout = "soon" },
		`batch.timeout: it is "1ms"`:                                      func(f *File) { f.Timeout = "1ms" },
	} {
		f := site(t, "/")
		f.States = maps.Clone(f.States)
		change(&f)
		if _, err := f.Parse(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the error is %v, want one with %q", err, want)
		}
	}
	// All are found in one go.
	_, err := File{}.Parse()
	for _, key := range []string{"submit", "status", "cancel", "id", "fields", "states"} {
		if err == nil || !strings.Contains(err.Error(), "batch."+key+":") {
			t.Errorf("the error lacks %s: %v", key, err)
		}
	}
}

func TestManifestsThatAreWrong(t *testing.T) {
	for want, change := range map[string]func(t *template.Template){
		"line 2: {nam} is no placeholder here": func(t *template.Template) { t.Manifest = "x\n{nam}" },
		"line 3: a } ends no placeholder":      func(t *template.Template) { t.Manifest = "\n\n}" },
		"line 1: {} is no placeholder here":    func(t *template.Template) { t.Manifest = "{}" },
		"line 1: a { begins no placeholder":    func(t *template.Template) { t.Manifest = "{name" },
		"the shapes differ in gpus": func(t *template.Template) {
			t.Shapes = append(t.Shapes, template.Shape{Name: "large", Lifetime: time.Hour, Size: resources.Amount{GPUs: 1}})
		},
		"the template has no lifetime": func(t *template.Template) { t.Manifest, t.Shapes[0].Lifetime = "{minutes}", 0 },
	} {
		c, err := site(t, "/").Parse()
		if err != nil {
			t.Fatal(err)
		}
		tpl := plain()
		change(&tpl)
		if _, err := New("p", c, []template.Template{tpl}); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "reading job of the template plain") {
			t.Errorf("the error is %v, want one with %q", err, want)
		}
	}
	for _, key := range []string{"{name}", "{note}"} {
		f := site(t, "/")
		f.Submit = []string{"x", key}
		c, err := f.Parse()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := New("p", c, []template.Template{plain()}); err == nil || !strings.Contains(err.Error(), "neither it nor batch.submit has {") {
			t.Errorf("only %s is there, and the error is %v", key, err)
		}
	}
}
