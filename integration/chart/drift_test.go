package chart

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// hash is the end of a ConfigMap's name, which both make of its contents, each in its own way.
var hash = regexp.MustCompile(`^(` + name + `-config)-[a-z0-9]+$`)

// A difference is on purpose: a line of an object that only the chart has.
type difference struct {
	path string
	line any
	why  string
}

var differences = []difference{
	{"ConfigMap/glidein-config .immutable", true, "Helm removes the ConfigMap of the last revision while a Deployment's pods are still replaced; of one that " +
		"cannot change, the kubelet keeps what it has. kustomize removes none"},
}

// generated are files of the configuration that the chart makes from values. Comments are left out of them; the macros are the same.
var generated = []string{"70-spares.conf", "70-lifetime.conf", "72-gpus.conf"}

// TestSameAsKustomize: in each combination the chart makes the objects that the kustomization makes, line by line.
func TestSameAsKustomize(t *testing.T) { compareAll(t, kustomized) }

func compareAll(t *testing.T, build func(*testing.T, string) ([]byte, error)) {
	for what, c := range combinations {
		t.Run(what, func(t *testing.T) {
			text, err := build(t, c.siteDir(t))
			if err != nil {
				t.Fatal(err)
			}
			objects, err := byName(text)
			if err != nil {
				t.Fatal(err)
			}
			want := lines(objects)
			objects, _, err = template(t, merged(parsed(t, required), parsed(t, c.values)))
			if err != nil {
				t.Fatal(err)
			}
			got := lines(objects)
			for _, d := range differences {
				if want[d.path] != nil || got[d.path] != d.line {
					t.Errorf("%s is %v in the chart and %v in the kustomization: the stated difference is no more", d.path, got[d.path], want[d.path])
				}
				delete(got, d.path)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-kustomization +chart):\n%s", diff)
			}
		})
	}
}

// siteDir is the folder of a site that has the combination, in its own namespace and pool, as docs/admin/first-job.md says, and with
// an instance of its own, as docs/admin/install.md says of Deployments.
func (c combination) siteDir(t *testing.T) string {
	t.Helper()
	list := ""
	for _, component := range c.components {
		list += "\n  - ../components/" + component
	}
	if list != "" {
		list = "components:" + list + "\n"
	}
	dir := siteDir(t, "namespace: "+namespace+"\nresources: [../"+c.folder+"]\n"+list+`
images: [{name: registry.example.org/podstarter/pilot, newName: registry.physics.example/pilot, newTag: "1.0"}]
configMapGenerator: [{name: glidein-config, namespace: podstarter, behavior: merge, files: [70-site.conf]}]
labels:
  - {pairs: {app.kubernetes.io/name: podstarter, app.kubernetes.io/component: glidein}}
  - {pairs: {app.kubernetes.io/instance: glidein}, includeSelectors: true}
`+c.kustomization)
	text := "CONDOR_HOST = cm.physics.example\nUID_DOMAIN = physics.example\n"
	if err := os.WriteFile(filepath.Join(dir, "70-site.conf"), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return dir
}

// merged are values with more values, as Helm merges files of them.
func merged(values, more map[string]any) map[string]any {
	for k, v := range more {
		if old, ok := values[k].(map[string]any); ok {
			v = merged(old, v.(map[string]any))
		}
		values[k] = v
	}
	return values
}

// lines are all values in the objects, by their paths.
func lines(objects map[string]object) map[string]any {
	all := map[string]any{}
	for key, o := range objects {
		flatten(all, key+" ", o)
	}
	return all
}

// flatten gives each value a path. Elements with a name are called by it, and those whose order counts by their place as well.
func flatten(all map[string]any, path string, value any) {
	switch v := value.(type) {
	case object:
		for k, one := range v {
			flatten(all, path+"."+k, one)
		}
		if len(v) > 0 {
			return
		}
	case []any:
		for i, one := range v {
			at := fmt.Sprint(i)
			if o, ok := one.(object); ok && o["name"] != nil {
				if strings.HasSuffix(path, ".volumes") || strings.HasSuffix(path, ".env") {
					at = ""
				}
				at += fmt.Sprintf(" %v", o["name"])
			}
			flatten(all, fmt.Sprintf("%s[%s]", path, at), one)
		}
		if len(v) > 0 {
			return
		}
	case string:
		for _, file := range generated {
			if strings.HasSuffix(path, ".data."+file) {
				v = comment.ReplaceAllString(v, "")
			}
		}
		value = hash.ReplaceAllString(v, "$1")
	}
	all[path] = value
}

var comment = regexp.MustCompile(`(?m)^(#.*)?\n`)

// TestCombinationsAreAll: whatever is in deploy/ is in a combination, or is left out for a reason.
func TestCombinationsAreAll(t *testing.T) {
	covered := map[string]bool{"components/one-role": true} // glidein-job and glidein-deployment have it
	for _, c := range combinations {
		covered[c.folder] = true
		for _, one := range c.components {
			covered["components/"+one] = true
		}
	}
	for folder, why := range notInChart {
		if covered[folder] {
			t.Errorf("%s is in a combination, and is said to be left out: %s", folder, why)
		}
		covered[folder] = true
	}
	// What other components are made of.
	parts := []string{"components/sidecars/copy", "components/sidecars/spares/copy", "components/job/template", "components/deployment/template"}
	var found []string
	err := fs.WalkDir(os.DirFS(manifests), ".", func(path string, d fs.DirEntry, err error) error {
		dir := filepath.Dir(path)
		if err == nil && d.Name() == "kustomization.yaml" && (strings.HasPrefix(dir, "glidein") || strings.HasPrefix(dir, "components/")) && !slices.Contains(parts, dir) {
			found = append(found, dir)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(found)
	if diff := cmp.Diff(found, slices.Sorted(maps.Keys(covered))); diff != "" {
		t.Errorf("(-folders of deploy +combinations and what is left out):\n%s", diff)
	}
}
