package chart

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"helm.sh/helm/v4/pkg/action"
	"helm.sh/helm/v4/pkg/chart/common"
	chartv2 "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	release "helm.sh/helm/v4/pkg/release/v1"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	sigsyaml "sigs.k8s.io/yaml"
)

// manifests is the folder deploy/.
var manifests = filepath.Join("..", "..", "deploy")

// The release of the tests. Its name is that of the kustomizations' objects.
const (
	name      = "glidein"
	namespace = "physics"
)

type object = map[string]any

// load reads the chart as `helm install deploy/chart` does.
var load = sync.OnceValues(func() (*chartv2.Chart, error) { return loader.Load(filepath.Join(manifests, "chart")) })

// TestMain silences Helm, which tells of each link that it follows.
func TestMain(m *testing.M) {
	slog.SetDefault(slog.New(slog.DiscardHandler))
	os.Exit(m.Run())
}

func loaded(t *testing.T) *chartv2.Chart {
	t.Helper()
	c, err := load()
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// parsed are values as a site writes them.
func parsed(t *testing.T, text string) map[string]any {
	t.Helper()
	values := map[string]any{}
	if err := sigsyaml.Unmarshal([]byte(text), &values); err != nil {
		t.Fatal(err)
	}
	return values
}

// required are the values without which there is no glidein.
const required = "pool: {collector: cm.physics.example, domain: physics.example}\npilot: {image: registry.physics.example/pilot:1.0}\n"

// template is what `helm template` says: the objects, by kind and name, and the notes.
func template(t *testing.T, values map[string]any) (map[string]object, string, error) {
	t.Helper()
	i := action.NewInstall(action.NewConfiguration())
	i.DryRunStrategy, i.ReleaseName, i.Namespace = action.DryRunClient, name, namespace
	i.KubeVersion = &common.KubeVersion{Version: "v1.34.0", Major: "1", Minor: "34"}
	made, err := i.Run(loaded(t), values)
	if err != nil {
		return nil, "", err
	}
	r := made.(*release.Release)
	if len(r.Hooks) > 0 {
		t.Errorf("the chart has hooks: %v", r.Hooks)
	}
	objects, err := byName([]byte(r.Manifest))
	return objects, r.Info.Notes, err
}

// byName are the objects of a stream of YAML. No two may have the same kind and name.
func byName(text []byte) (map[string]object, error) {
	all := map[string]object{}
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096)
	for {
		var o object
		if err := decoder.Decode(&o); errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return nil, fmt.Errorf("reading the objects: %w\n%s", err, text)
		}
		if len(o) == 0 {
			continue
		}
		key := fmt.Sprintf("%v/%v", o["kind"], hash.ReplaceAllString(fmt.Sprint(o["metadata"].(object)["name"]), "$1"))
		if all[key] != nil {
			return nil, fmt.Errorf("there are two objects %s", key)
		}
		all[key] = o
	}
}

// siteDir is a folder beside those of deploy/, with the kustomization of a site.
func siteDir(t *testing.T, kustomization string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "deploy")
	if err := os.CopyFS(dir, os.DirFS(manifests)); err != nil {
		t.Fatal(err)
	}
	own := filepath.Join(dir, "site")
	if err := os.Mkdir(own, 0o755); err != nil {
		t.Fatal(err)
	}
	text := "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\n" + kustomization
	if err := os.WriteFile(filepath.Join(own, "kustomization.yaml"), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return own
}

// kustomized is what `kubectl kustomize` makes of a folder, by the library that kubectl has.
func kustomized(_ *testing.T, dir string) ([]byte, error) {
	made, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), dir)
	if err != nil {
		return nil, err
	}
	return made.AsYaml()
}
