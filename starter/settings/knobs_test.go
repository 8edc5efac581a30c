package settings

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"podstarter/condor/config"
)

var update = flag.Bool("update", false, "write the pages that are made from the table of knobs")

const (
	knobPage    = "../../docs/admin/knobs.md"
	knobSnippet = "../../condor_config.d/50-podstarter.conf"

	snippetBegin = "# --- knobs, written by `make docs` ---\n"
	snippetEnd   = "# --- end of knobs ---\n"
)

// TestKnobPages keeps docs/admin/knobs.md and the snippet for condor_config.d equal to
// the table in knobs.go; `make docs` writes them.
func TestKnobPages(t *testing.T) {
	check(t, knobPage, func(string) string { return knobsAsMarkdown() })
	check(t, knobSnippet, func(old string) string {
		before, rest, ok := strings.Cut(old, snippetBegin)
		_, after, ok2 := strings.Cut(rest, snippetEnd)
		if !ok || !ok2 {
			t.Fatalf("%s lacks the lines %q and %q", knobSnippet, snippetBegin, snippetEnd)
		}
		return before + snippetBegin + knobsAsConfig() + snippetEnd + after
	})
}

func check(t *testing.T, path string, page func(old string) string) {
	t.Helper()
	old, err := os.ReadFile(path)
	if err != nil && !*update {
		t.Fatal(err)
	}
	want := page(string(old))
	if *update {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(want, string(old)); diff != "" {
		t.Errorf("%s is not what the table says; run `make docs` (-want +got):\n%s", path, diff)
	}
}

// pageNamed is a page of the folder of the knobs' own, as a sentence names it.
var pageNamed = regexp.MustCompile(`docs/admin/([a-z]+)\.md`)

func knobsAsMarkdown() string {
	var b strings.Builder
	b.WriteString("# Knobs\n\n*For admins: every knob of podstarter, its default and its meaning.*\n\nAll are HTCondor configuration knobs of the execution point. `$ENV(NAME:)` is the environment of the pilot container.\n`condor_config.d/50-podstarter.conf` has all of them with their defaults. `condor_pod_starter -check` names a knob that is misspelt or wrong, and so does the log.\n\n<!-- generated from starter/settings/knobs.go by `make docs`; do not edit -->\n\n| knob | default | meaning |\n| --- | --- | --- |\n")
	for _, k := range Knobs {
		def := "`" + k.Default + "`"
		if k.Default == "" {
			def = "(empty)"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", k.Name, def, pageNamed.ReplaceAllString(k.Sentence, "[$1]($1.md)"))
	}
	b.WriteString("\n## HTCondor's knobs with which no job runs\n\n*They demand something that this starter cannot do: slots offer nothing, and `condor_pod_starter -check` and the log say why.*\n\n")
	writeWithoutEffect(&b, knobsRefused)
	b.WriteString("\n## HTCondor's knobs that are not obeyed\n\n*If one of these is set to something that the starter does not do, `condor_pod_starter -check` and the log of each activation say so.*\n\n")
	writeWithoutEffect(&b, knobsWithoutEffect)
	return b.String()
}

func writeWithoutEffect(b *strings.Builder, table []withoutEffect) {
	b.WriteString("| knob | on which execution points | here | instead |\n| --- | --- | --- | --- |\n")
	for _, w := range table {
		fmt.Fprintf(b, "| `%s` | %s | %s | %s |\n", strings.Replace(w.name, "*", "…", 1), w.on, pageNamed.ReplaceAllString(w.means, "[$1]($1.md)"), pageNamed.ReplaceAllString(w.instead, "[$1]($1.md)"))
	}
}

func knobsAsConfig() string {
	var b strings.Builder
	for _, k := range Knobs {
		fmt.Fprintf(&b, "\n# %s\n%s = %s\n", k.Sentence, k.Name, k.Default)
	}
	return strings.ReplaceAll(b.String(), " \n", "\n") + "\n"
}

func TestReadSettings(t *testing.T) {
	tests := map[string]struct {
		knobs map[string]string
		want  string // a part of the error; empty for none
	}{
		"defaults":            {knobs: nil},
		"no number":           {knobs: map[string]string{"POD_STARTER_PAYLOAD_UID": "alice"}, want: "POD_STARTER_PAYLOAD_UID"},
		"root is no payload":  {knobs: map[string]string{"POD_STARTER_PAYLOAD_UID": "0"}, want: "POD_STARTER_PAYLOAD_UID"},
		"unknown backend":     {knobs: map[string]string{"POD_STARTER_BACKEND": "cloud"}, want: "POD_STARTER_BACKEND"},
		"relative directory":  {knobs: map[string]string{"POD_STARTER_CONTROL_DIR": "control"}, want: "POD_STARTER_CONTROL_DIR"},
		"no container":        {knobs: map[string]string{"POD_STARTER_CONTAINERS": " , "}, want: "POD_STARTER_CONTAINERS"},
		"spares":              {knobs: map[string]string{"POD_STARTER_SPARES": "1", "POD_STARTER_CONTAINERS": "payload, payload-2"}},
		"lines in JSON":       {knobs: map[string]string{"POD_STARTER_EVENT_LOG": "JSON"}},
		"lines in XML":        {knobs: map[string]string{"POD_STARTER_EVENT_LOG": "xml"}, want: "POD_STARTER_EVENT_LOG"},
		"metrics":             {knobs: map[string]string{"POD_STARTER_METRICS_ADDRESS": ":9464"}},
		"metrics of IPv6":     {knobs: map[string]string{"POD_STARTER_METRICS_ADDRESS": "[::1]:9464"}},
		"metrics, no port":    {knobs: map[string]string{"POD_STARTER_METRICS_ADDRESS": "9464"}, want: "POD_STARTER_METRICS_ADDRESS"},
		"metrics, port 0":     {knobs: map[string]string{"POD_STARTER_METRICS_ADDRESS": ":0"}, want: "POD_STARTER_METRICS_ADDRESS"},
		"metrics, large port": {knobs: map[string]string{"POD_STARTER_METRICS_ADDRESS": ":65536"}, want: "POD_STARTER_METRICS_ADDRESS"},
		"negative spares":     {knobs: map[string]string{"POD_STARTER_SPARES": "-1"}, want: "POD_STARTER_SPARES"},
		"only spares":         {knobs: map[string]string{"POD_STARTER_SPARES": "2", "POD_STARTER_CONTAINERS": "payload, payload-2"}, want: "POD_STARTER_SPARES"},
		"no truth value":      {knobs: map[string]string{"POD_STARTER_THROWAWAY_TAGS": "perhaps"}, want: "POD_STARTER_THROWAWAY_TAGS"},
		"containers are kept": {knobs: map[string]string{"POD_STARTER_RESET": "Image"}},
		"unknown reset":       {knobs: map[string]string{"POD_STARTER_RESET": "never"}, want: "POD_STARTER_RESET"},
		"timeout of no time":  {knobs: map[string]string{"POD_STARTER_BIND_TIMEOUT": "0"}, want: "POD_STARTER_BIND_TIMEOUT"},
		"image knobs":         {knobs: map[string]string{"POD_STARTER_DEFAULT_IMAGE": "Debian:12"}, want: "POD_STARTER_DEFAULT_IMAGE"},
		"environment missing": {knobs: map[string]string{"POD_STARTER_POD_NAME": "UNDEFINED", "POD_STARTER_BACKEND": "local"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := Read(config.FromMap(tt.knobs))
			if tt.want == "" && err != nil {
				t.Errorf("Read: %v", err)
			}
			if tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
				t.Errorf("Read: error %v, want one that names %s", err, tt.want)
			}
		})
	}
}
