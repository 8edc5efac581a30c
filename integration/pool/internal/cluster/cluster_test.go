package cluster

import (
	"crypto/tls"
	"crypto/x509"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestComponentVersion(t *testing.T) {
	c := Component{Dir: "dir", Module: "k8s.io/kubernetes", VersionIn: "k8s.io/component-base/version"}
	for name, text := range map[string]string{
		"line":  "module x\n\nrequire k8s.io/kubernetes v1.34.4\n",
		"block": "module x\n\nrequire (\n\tk8s.io/api v0.34.4\n\tk8s.io/kubernetes v1.34.4 // why\n)\n",
	} {
		if got, err := c.version(text); err != nil || got != "v1.34.4" {
			t.Errorf("%s: version = %q, %v", name, got, err)
		}
	}
	if _, err := c.version("module x\n"); err == nil {
		t.Error("no error without a version")
	}
	const v = "k8s.io/component-base/version"
	want := "-s -w -X " + v + ".gitVersion=v1.34.4 -X " + v + ".gitMajor=1 -X " + v + ".gitMinor=34"
	if got := c.flags("v1.34.4"); got != want {
		t.Errorf("flags = %q, want %q", got, want)
	}
}

func TestDecodeObjects(t *testing.T) {
	got, err := decodeObjects([]byte(`{"kind":"Pod","metadata":{"name":"a"}}
{"kind":"List","items":[{"kind":"Role","metadata":{"name":"b"}},{"kind":"Secret","metadata":{"name":"c"}}]}`))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, o := range got {
		names = append(names, o.String("kind")+"/"+o.String("metadata", "name"))
	}
	if diff := cmp.Diff([]string{"Pod/a", "Role/b", "Secret/c"}, names); diff != "" {
		t.Error(diff)
	}
	if _, err := decodeObjects([]byte(`{"kind":`)); err == nil {
		t.Error("want an error for half an object")
	}
	if s := (Object{"a": "x"}).String("a", "b", "c"); s != "" {
		t.Errorf("a path through a string gives %q", s)
	}
}

func TestOutdated(t *testing.T) {
	table := `REF TYPE DIGEST SIZE PLATFORMS LABELS
h:1/p/pilot:old application/x sha256:aa 1 MiB linux/amd64 -
h:1/p/pilot@sha256:aa application/x sha256:aa 1 MiB linux/amd64 -
sha256:ca application/x sha256:aa 1 MiB linux/amd64 -
h:1/p/pilot:new application/x sha256:bb 1 MiB linux/amd64 -
sha256:cb application/x sha256:bb 1 MiB linux/amd64 -
other/image:1 application/x sha256:dd 1 MiB linux/amd64 -
`
	got := outdated(table, "h:1/", []string{"h:1/p/pilot:new"})
	want := []string{"h:1/p/pilot:old", "h:1/p/pilot@sha256:aa", "sha256:ca"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// The API server accepts the certificates that were made for its clients, and they accept it under its names.
func TestPKI(t *testing.T) {
	pki := PKI{Dir: t.TempDir()}
	if err := pki.Make("n", ""); err != nil {
		t.Fatal(err)
	}
	before, err := os.ReadFile(pki.Path("ca.crt"))
	if err != nil {
		t.Fatal(err)
	}
	if err := pki.Make("n", ""); err != nil {
		t.Fatal(err)
	}
	if err := pki.MakeController(Scheduler); err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(before)
	for name, usage := range map[string]x509.ExtKeyUsage{
		"apiserver": x509.ExtKeyUsageServerAuth, "admin": x509.ExtKeyUsageClientAuth, "node": x509.ExtKeyUsageClientAuth, Scheduler: x509.ExtKeyUsageClientAuth,
	} {
		pair, err := tls.LoadX509KeyPair(pki.Path(name+".crt"), pki.Path(name+".key"))
		if err != nil {
			t.Fatal(err)
		}
		options := x509.VerifyOptions{Roots: roots, KeyUsages: []x509.ExtKeyUsage{usage}}
		if name == "apiserver" {
			options.DNSName = "kubernetes.default.svc"
		}
		if _, err := pair.Leaf.Verify(options); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if name == "node" && (pair.Leaf.Subject.CommonName != "system:node:n" || pair.Leaf.Subject.Organization[0] != "system:nodes") {
			t.Errorf("the node is %v", pair.Leaf.Subject)
		}
		if name == Scheduler && pair.Leaf.Subject.CommonName != "system:kube-scheduler" {
			t.Errorf("the scheduler is %v", pair.Leaf.Subject)
		}
	}
}

func TestRemoveIdle(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "d")
	if err := os.MkdirAll(filepath.Join(dir, "empty", "deep"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/no/such/file", filepath.Join(dir, "dangling")); err != nil {
		t.Fatal(err)
	}
	live, err := net.Listen("unix", filepath.Join(dir, "live"))
	if err != nil {
		t.Fatal(err)
	}
	dead, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(dir, "dead"), Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	dead.SetUnlinkOnClose(false)
	dead.Close()
	RemoveIdle(dir)
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 || entries[0].Name() != "live" {
		t.Errorf("left: %v, %v; want the socket in use", entries, err)
	}
	live.Close()
	RemoveIdle(dir)
	if _, err := os.Stat(dir); err == nil {
		t.Error("the directory stays when nothing in it is used")
	}
}

func TestUnified(t *testing.T) {
	v1, v2 := hierarchy{mount: "/a"}, hierarchy{mount: "/b", unified: true}
	for _, tc := range []struct {
		name string
		tree CgroupTree
		want bool
	}{
		{"v2", CgroupTree{hierarchies: []hierarchy{v2}}, true},
		{"v1", CgroupTree{hierarchies: []hierarchy{v1}}, false},
		{"hybrid", CgroupTree{hierarchies: []hierarchy{v1, v2}}, false},
		{"hybrid, v2 first", CgroupTree{hierarchies: []hierarchy{v2, v1}}, false},
		{"none", CgroupTree{}, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := tc.tree.Unified(); got != tc.want {
				t.Errorf("Unified = %v, want %v", got, tc.want)
			}
		})
	}
}

// A module builds the version that its directory is named after, and all of Kubernetes at that one version.
func TestKubernetesModules(t *testing.T) {
	dir := filepath.Join("..", "..", "..", "components")
	versions, err := KubernetesVersions(dir)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(versions, DefaultKubernetes) {
		t.Errorf("the versions are %q, without the default %s", versions, DefaultKubernetes)
	}
	for _, minor := range versions {
		t.Run(minor, func(t *testing.T) {
			text, err := os.ReadFile(filepath.Join(dir, Kubernetes, minor, "go.mod"))
			if err != nil {
				t.Fatal(err)
			}
			version, err := Component{Dir: minor, Module: "k8s.io/kubernetes"}.version(string(text))
			if err != nil {
				t.Fatal(err)
			}
			if !strings.HasPrefix(version, "v"+minor+".") {
				t.Errorf("the module of %s requires %s", minor, version)
			}
			replaced := 0
			for line := range strings.Lines(string(text)) {
				_, to, found := strings.Cut(line, " => ")
				if !found {
					continue
				}
				replaced++
				if want := strings.Replace(version, "v1.", " v0.", 1); !strings.HasSuffix(strings.TrimSpace(to), want) {
					t.Errorf("%q: want version%s", strings.TrimSpace(line), want)
				}
			}
			if replaced == 0 {
				t.Error("no staging module has a version")
			}
		})
	}
}
