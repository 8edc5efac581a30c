package ospool

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const program = "../../deploy/components/ospool/ospool"

// run runs the program with these variables alone.
func run(t *testing.T, variables map[string]string, args ...string) (said string, err error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program, args...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "CVMFS_BASE=/nonexistent", "OSPOOL_ATTRIBUTES=/nonexistent"}
	for name, value := range variables {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// configure gives the configuration that the program makes, line by line, and the directory.
func configure(t *testing.T, variables map[string]string) (config map[string]string, etc string) {
	t.Helper()
	etc = t.TempDir()
	dir := filepath.Join(etc, "config.d")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if said, err := run(t, variables, "configure", dir); err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	text, err := os.ReadFile(filepath.Join(dir, "66-ospool-site.conf"))
	if err != nil {
		t.Fatal(err)
	}
	config = map[string]string{}
	for line := range strings.Lines(string(text)) {
		name, value, found := strings.Cut(strings.TrimSuffix(line, "\n"), " = ")
		if !found {
			t.Errorf("no line of a configuration: %q", line)
		}
		if old, again := config[name]; again {
			value = old + "; " + value
		}
		config[name] = value
	}
	return config, etc
}

func with(more map[string]string) map[string]string {
	all := map[string]string{"GLIDEIN_Site": "Site", "GLIDEIN_ResourceName": "Our EP_1"}
	maps.Copy(all, more)
	return all
}

func TestConfigure(t *testing.T) {
	for name, tt := range map[string]struct {
		variables map[string]string
		want      map[string]string // "" if it is not set, a part of the value after "~"
	}{
		"as it comes": {want: map[string]string{
			"GLIDEIN_Site": `"Site"`, "GLIDEIN_ResourceName": `"Our EP_1"`, "OSPOOL_RESOURCE": "Our-EP-1", "OSPool": "True", "GLIDECLIENT_Group": `"main-container"`,
			"START_EXTRA": "(True) && (TARGET.ITB_Sites =!= True)", "POD_STARTER_ACCEPT_TIME": "1209600", "POD_STARTER_RETIRE_TIME": "86400", "POD_STARTER_IDLE_TIME": "1800",
			"COLLECTOR_HOST": "~cm-1.ospool.osg-htc.org?sock=collector", "CCB_ADDRESS": "~ccb-2.ospool.osg-htc.org?sock=collector", "OSG_PROJECT_RESTRICTION": "",
			"POD_STARTER_DEFAULT_IMAGE": "~hub.opensciencegrid.org/htc/rocky:", "OSG_OS_STRING": `~"RHEL `, "POD_STARTER_IMAGE_PATHS": "",
			"STARTER_JOB_ENVIRONMENT": `"GLIDEIN_Site='Site' GLIDEIN_ResourceName='Our EP_1' OSG_SITE_NAME='Our EP_1'"`,
		}},
		"for users of its own": {variables: map[string]string{"GLIDEIN_Start_Extra": `TARGET.Owner == "ann" || True`},
			want: map[string]string{"OSPool": "False", "START_EXTRA": `(TARGET.Owner == "ann" || True) && (TARGET.ITB_Sites =!= True)`}},
		"for a project": {variables: map[string]string{"OSG_PROJECT_NAME": "Ours"},
			want: map[string]string{"OSPool": "False", "OSG_PROJECT_NAME": `"Ours"`, "OSG_PROJECT_RESTRICTION": `(TARGET.ProjectName =?= "Ours")`}},
		"of tests": {variables: map[string]string{"ITB": "yes"},
			want: map[string]string{"OSPool": "", "Is_ITB_Site": "True", "GLIDECLIENT_Group": `"itb-container"`, "START_EXTRA": "(True) && (TARGET.ITB_Sites =?= True)", "COLLECTOR_HOST": "~cm-1.ospool-itb.osg-htc.org?sock="}},
		"PATh facility": {variables: map[string]string{"POOL": "prod-path-facility"},
			want: map[string]string{"OSPool": "", "START_EXTRA": "(True)", "COLLECTOR_HOST": "cm-1.facility.path-cc.io, cm-2.facility.path-cc.io", "CCB_ADDRESS": "~:9618?sock=collector962"}},
		"another pool":    {variables: map[string]string{"POOL": "cm.example.org:9619"}, want: map[string]string{"COLLECTOR_HOST": "cm.example.org:9619", "CCB_ADDRESS": "cm.example.org:9619", "OSPool": "", "GLIDECLIENT_Group": ""}},
		"two managers":    {variables: map[string]string{"CONDOR_HOST": "cm-1.example.org:9618?sock=collector2, cm-2.example.org"}, want: map[string]string{"COLLECTOR_HOST": "cm-1.example.org:9618?sock=collector2, cm-2.example.org"}},
		"a pattern":       {variables: map[string]string{"GLIDEIN_Start_Extra": `regexp("^a$", TARGET.Queue) || (True)`}, want: map[string]string{"START_EXTRA": `(regexp("^a$", TARGET.Queue) || (True)) && (TARGET.ITB_Sites =!= True)`}},
		"another manager": {variables: map[string]string{"CONDOR_HOST": "cm.example.org"}, want: map[string]string{"COLLECTOR_HOST": "cm.example.org", "OSPool": "", "GLIDECLIENT_Group": ""}},
		"times":           {variables: map[string]string{"ACCEPT_JOBS_FOR_HOURS": "2", "RETIREMENT_HOURS": "1", "ACCEPT_IDLE_MINUTES": "5"}, want: map[string]string{"POD_STARTER_ACCEPT_TIME": "7200", "POD_STARTER_RETIRE_TIME": "3600", "POD_STARTER_IDLE_TIME": "300"}},
		"an image of its own": {variables: map[string]string{"OSG_DEFAULT_CONTAINER_DISTRIBUTION": "100%__registry.example.org:5000/a/b:1"},
			want: map[string]string{"POD_STARTER_DEFAULT_IMAGE": "registry.example.org:5000/a/b:1", "OSG_OS_STRING": ""}},
		"Ubuntu": {variables: map[string]string{"OSG_DEFAULT_CONTAINER_DISTRIBUTION": "100%__htc/ubuntu:24.04"}, want: map[string]string{"POD_STARTER_DEFAULT_IMAGE": "hub.opensciencegrid.org/htc/ubuntu:24.04", "OSG_OS_STRING": `"UBUNTU 24"`}},
		"for jobs": {variables: map[string]string{"http_proxy": "http://squid.example.org:3128", "EXTRA_JOB_ENV": "A=1 B='2 3'"},
			want: map[string]string{"STARTER_JOB_ENVIRONMENT": `~http_proxy='http://squid.example.org:3128' A=1 B='2 3'"`}},
		"backslashes": {variables: map[string]string{"EXTRA_JOB_ENV": `A='x\nSTARTER = /evil' P=C:\new`}, want: map[string]string{"STARTER": "", "STARTER_JOB_ENVIRONMENT": `~A='x\nSTARTER = /evil' P=C:\new"`}},
		"a mirror":    {variables: map[string]string{"APPTAINER_REGISTRY_MIRROR": "https://mirror.example.org/hub"}, want: map[string]string{"POD_STARTER_IMAGE_MIRRORS": "docker.io=mirror.example.org/hub"}},
		"CVMFS":       {variables: map[string]string{"CVMFS_BASE": "/usr"}, want: map[string]string{"POD_STARTER_IMAGE_PATHS": "/usr"}},
	} {
		t.Run(name, func(t *testing.T) {
			got, _ := configure(t, with(tt.variables))
			for name, want := range tt.want {
				part, isPart := strings.CutPrefix(want, "~")
				if value := got[name]; isPart && !strings.Contains(value, part) || !isPart && value != want {
					t.Errorf("%s = %s, want %s", name, value, want)
				}
			}
		})
	}
}

// TestRefused: what would become another configuration than it says ends the pilot, with the variable's name.
func TestRefused(t *testing.T) {
	for name, values := range map[string][]string{
		"GLIDEIN_Site":                       {"", `a"b`, "a\nb", "$(x)", "a\\"},
		"GLIDEIN_ResourceName":               {"", "a'b"},
		"POOL":                               {"", "production", "a.b\nSTARTER = /evil"},
		"CONDOR_HOST":                        {"a$(b)"},
		"ACCEPT_JOBS_FOR_HOURS":              {"", "0", "-1", "08", "1e3", "x", "12345678"},
		"RETIREMENT_HOURS":                   {"0", "24h"},
		"ACCEPT_IDLE_MINUTES":                {"soon"},
		"GLIDEIN_Start_Extra":                {"True\nSTARTER = /evil", "$(SECRET)", "$ENV(TOKEN)", "$INT(X)", "True \\"},
		"OSG_PROJECT_NAME":                   {`a" || True || "`},
		"OSG_DEFAULT_CONTAINER_DISTRIBUTION": {"htc/rocky:9", "x%__htc/rocky:9", "10%__", "50%__a\"b"},
		"EXTRA_JOB_ENV":                      {"A=1\nSTARTER = /evil", `A="x y"`, "A='it"},
		"http_proxy":                         {"http://a' B='c"},
		"APPTAINER_REGISTRY_MIRROR":          {"mirror, docker.io=evil"},
	} {
		for _, value := range values {
			dir := t.TempDir()
			said, err := run(t, with(map[string]string{name: value}), "configure", dir)
			if err == nil || !strings.Contains(said, "ospool: "+name) {
				t.Errorf("%s=%q: %v, and it says %q", name, value, err, said)
			}
			if _, err := os.Stat(filepath.Join(dir, "66-ospool-site.conf")); err == nil {
				t.Errorf("%s=%q: there is a configuration nevertheless", name, value)
			}
		}
	}
}

// TestDraws: default images are drawn by their weights, and a pilot uses one collector of all hosts.
func TestDraws(t *testing.T) {
	images, collectors := map[string]int{}, map[string]int{}
	const runs = 60
	for range runs {
		got, _ := configure(t, with(map[string]string{"OSG_DEFAULT_CONTAINER_DISTRIBUTION": "50%__htc/a:1 50%__htc/b:2"}))
		images[got["POD_STARTER_DEFAULT_IMAGE"]]++
		_, socket, _ := strings.Cut(got["COLLECTOR_HOST"], "?")
		socket, _, _ = strings.Cut(socket, ",")
		for _, name := range []string{"COLLECTOR_HOST", "CCB_ADDRESS"} {
			if strings.Count(got[name]+",", "?"+socket+",") != 2 {
				t.Errorf("%s = %s; want one socket", name, got[name])
			}
		}
		collectors[socket]++
	}
	if len(images) != 2 || len(collectors) < 4 || len(collectors) > 10 {
		t.Errorf("images %v, collectors %v", images, collectors)
	}
}

// TestToken: a token in the environment becomes a file for the daemons alone.
func TestToken(t *testing.T) {
	got, etc := configure(t, with(map[string]string{"TOKEN": "header.payload.signature"}))
	path := filepath.Join(etc, "tokens.d", "ospool.token")
	text, err := os.ReadFile(path)
	if err != nil || string(text) != "header.payload.signature\n" {
		t.Errorf("the token's file has %q, %v", text, err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	for name, value := range got {
		if strings.Contains(value, "payload.signature") {
			t.Errorf("%s has the token", name)
		}
	}
}

func TestAttributes(t *testing.T) {
	file := filepath.Join(t.TempDir(), "extra-attributes.cfg")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("# the site's\n\nHAS_GPFS = True\nRack=\"r1 = x\"")
	got, _ := configure(t, with(map[string]string{"OSPOOL_ATTRIBUTES": file}))
	want := map[string]string{"HAS_GPFS": " True", "Rack": `"r1 = x"`, "STARTD_ATTRS": "$(STARTD_ATTRS) HAS_GPFS; $(STARTD_ATTRS) Rack"}
	if diff := cmp.Diff(want, map[string]string{"HAS_GPFS": got["HAS_GPFS"], "Rack": got["Rack"], "STARTD_ATTRS": got["STARTD_ATTRS"]}); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, text := range []string{"word\n", "A B=1\n", "=1\n", "1A=1\n", "A=1\\\n", "A=$(SECRET)\n"} {
		write(text)
		if said, err := run(t, with(map[string]string{"OSPOOL_ATTRIBUTES": file}), "configure", t.TempDir()); err == nil || !strings.Contains(said, "extra-attributes.cfg") {
			t.Errorf("%q: %v, %s", text, err, said)
		}
	}
}

// TestAdvertise: what the startd is told, whatever the site's check says, and however long it or a repository takes.
func TestAdvertise(t *testing.T) {
	base := t.TempDir()
	if err := os.Mkdir(filepath.Join(base, "a.example.org"), 0o755); err != nil {
		t.Fatal(err)
	}
	check := func(script string) string {
		path := filepath.Join(t.TempDir(), "check")
		if err := os.WriteFile(path, []byte("#!/bin/sh\n"+script+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
		return path
	}
	repositories := []string{"HAS_CVMFS_a_example_org = True", "HAS_CVMFS_b_c_example_org = False"}
	for name, tt := range map[string]struct {
		check string
		want  []string
	}{
		"no check": {"/nonexistent", []string{"OSG_NODE_VALIDATED = True"}},
		"fit":      {check("echo fine"), []string{"OSG_NODE_VALIDATED = True"}},
		"not fit":  {check("echo first; echo 'disk \"sda\" is full' >&2; exit 1"), []string{`OSG_NODE_WARNINGS = "disk sda is full"`, "OSG_NODE_VALIDATED = False"}},
		"hangs":    {check("exec sleep 100"), []string{`OSG_NODE_WARNINGS = "node-check failed, or took too long"`, "OSG_NODE_VALIDATED = False"}},
	} {
		got, err := run(t, map[string]string{"CVMFS_BASE": base, "OSPOOL_CVMFS_REPOSITORIES": "a.example.org b-c.example.org", "OSG_NODE_CHECK": tt.check, "OSPOOL_PATIENCE": "1"}, "advertise")
		lines, ended := strings.CutSuffix(got, "\n-\n")
		if diff := cmp.Diff(slices.Sorted(slices.Values(slices.Concat(repositories, tt.want))), slices.Sorted(slices.Values(strings.Split(lines, "\n")))); err != nil || !ended || diff != "" {
			t.Errorf("%s: %v, ended %t (-want +got):\n%s", name, err, ended, diff)
		}
	}
	// Nine repositories that hang, by a program that takes the place of ls, take no longer than one.
	slow := t.TempDir()
	if err := os.WriteFile(filepath.Join(slow, "ls"), []byte("#!/bin/sh\nexec sleep 100\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	got, err := run(t, map[string]string{"PATH": slow + ":" + os.Getenv("PATH"), "CVMFS_BASE": base, "OSPOOL_PATIENCE": "3"}, "advertise")
	if err != nil || strings.Count(got, " = False\n") != 9 || !strings.Contains(got, "OSG_NODE_VALIDATED = True\n") || time.Since(began) > 20*time.Second {
		t.Errorf("hung repositories: %v after %v\n%s", err, time.Since(began), got)
	}
	if got, err := run(t, nil, "advertise"); err != nil || got != "OSG_NODE_VALIDATED = True\n-\n" {
		t.Errorf("without CVMFS: %v\n%s", err, got)
	}
}
