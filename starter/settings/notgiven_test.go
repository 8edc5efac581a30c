package settings

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"podstarter/condor/config"
)

// TestKnobsNotGiven: a site that sets such a knob learns of it, unless it asks for what it gets anyway.
func TestKnobsNotGiven(t *testing.T) {
	for name, tt := range map[string]struct {
		knobs map[string]string
		local bool // without a pod
		want  []string
	}{
		"none": {},
		"HTCondor's defaults": {knobs: map[string]string{
			"SSH_TO_JOB_SSHD": "", "PID_SNAPSHOT_INTERVAL": "15", "CGROUP_MEMORY_LIMIT_POLICY": "hard", "USE_PID_NAMESPACES": "False", "USE_PID_NAMESPACE_INIT": "true", "PER_JOB_NAMESPACES": "True", "LOG_TO_SYSLOG": "false", "TCP_KEEPALIVE_INTERVAL": "360", "PARROT": "", "SOFT_UID_DOMAIN": "",
			"DOCKER_DROP_ALL_CAPABILITIES": "true", "MOUNT_UNDER_SCRATCH": `"/tmp,/var/tmp"`, "DOCKER_NETWORKS": "", "DOCKER_MOUNT_VOLUMES": "", "DOCKER": "/usr/bin/docker", "DOCKER_IMAGE_CACHE_SIZE": "8",
		}},
		"all": {
			knobs: map[string]string{
				"DOCKER_NETWORKS": "campus", "DOCKER_EXTRA_ARGUMENTS": "--privileged", "DOCKER_MOUNT_VOLUMES": "A, B", "DOCKER_VOLUME_DIR_A": "/a", "DOCKER_VOLUME_DIR_A_MOUNT_IF": "true",
				"DOCKER_SHM_SIZE": "1000", "DOCKER_DROP_ALL_CAPABILITIES": "TARGET.Owner == \"x\"", "DOCKER_RUN_AS_ROOT": "true", "SINGULARITY_EXTRA_ARGUMENTS": "--nv",
				"MOUNT_UNDER_SCRATCH": `"/tmp,/scratch"`,
			},
			want: []string{
				"DOCKER_NETWORKS", "DOCKER_EXTRA_ARGUMENTS", "DOCKER_MOUNT_VOLUMES", "DOCKER_VOLUME_DIR_A", "DOCKER_VOLUME_DIR_A_MOUNT_IF",
				"DOCKER_SHM_SIZE", "DOCKER_DROP_ALL_CAPABILITIES", "DOCKER_RUN_AS_ROOT", "SINGULARITY_EXTRA_ARGUMENTS", "MOUNT_UNDER_SCRATCH",
			},
		},
		"of a kind": {
			knobs: map[string]string{"SLOT1_USER": "nobody1", "SLOT2_7_USER": "nobody2", "SLOT1_USERS": "x", "STARTER_LOG": "/x", "STARTER_STATS_LOG": "/y", "CLASSAD_USER_LIBS": "/x.so", "CLASSAD_USER_PYTHON_MODULES": "m", "TCP_KEEPALIVE_INTERVAL": "60", "LOWPORT": "9000"},
			want:  []string{"SLOT1_USER", "SLOT2_7_USER", "CLASSAD_USER_LIBS", "CLASSAD_USER_PYTHON_MODULES", "STARTER_STATS_LOG", "LOWPORT", "TCP_KEEPALIVE_INTERVAL"},
		},
		"in a pod": {
			knobs: map[string]string{"SINGULARITY_EXTRA_ARGUMENTS": "--nv", "CGROUP_MEMORY_LIMIT_POLICY": "soft", "USE_PID_NAMESPACES": "true"},
			want:  []string{"SINGULARITY_EXTRA_ARGUMENTS", "USE_PID_NAMESPACES", "CGROUP_MEMORY_LIMIT_POLICY"},
		},
		"without a pod": {
			knobs: map[string]string{"SINGULARITY_EXTRA_ARGUMENTS": "--nv", "CGROUP_MEMORY_LIMIT_POLICY": "soft", "CGROUP_HARD_MEMORY_LIMIT_EXPR": "1", "DOCKER_SHM_SIZE": "1", "LOG_TO_SYSLOG": "1"},
			local: true, want: []string{"LOG_TO_SYSLOG"},
		},
		"what the machine gives": {
			knobs: map[string]string{"USE_PID_NAMESPACES": "true", "MOUNT_UNDER_SCRATCH": "/tmp"},
			local: true,
		},
		"processes without mounts": {
			knobs: map[string]string{"USE_PID_NAMESPACES": "1", "PER_JOB_NAMESPACES": "1 > 2", "USE_PID_NAMESPACE_INIT": "false"},
			local: true, want: []string{"USE_PID_NAMESPACE_INIT", "USE_PID_NAMESPACES"},
		},
		"mounts of a pod":                {knobs: map[string]string{"PER_JOB_NAMESPACES": "false", "USE_PID_NAMESPACE_INIT": "false"}, want: []string{"PER_JOB_NAMESPACES"}},
		"no mounts":                      {knobs: map[string]string{"PER_JOB_NAMESPACES": "false", "MOUNT_UNDER_SCRATCH": "/tmp"}, local: true, want: []string{"MOUNT_UNDER_SCRATCH"}},
		"none wanted":                    {knobs: map[string]string{"PER_JOB_NAMESPACES": "false", "MOUNT_UNDER_SCRATCH": " "}, local: true},
		"what the machine does not give": {knobs: map[string]string{"USE_PID_NAMESPACES": "false", "MOUNT_UNDER_SCRATCH": ""}, local: true},
		"for the starter alone":          {knobs: map[string]string{"STARTER.DOCKER_SHM_SIZE": "1"}, want: []string{"STARTER.DOCKER_SHM_SIZE"}},
		"for other daemons":              {knobs: map[string]string{"SCHEDD.CLASSAD_USER_LIBS": "/x.so", "MASTER.LOG_TO_SYSLOG": "true", "SHADOW.LOWPORT": "9000", "slot_type_1.LOWPORT": "9000"}, want: []string{"SLOT_TYPE_1.LOWPORT"}},
		"an expression":                  {knobs: map[string]string{"MOUNT_UNDER_SCRATCH": `ifThenElse(TARGET.X, "/tmp", "/var/tmp")`}, want: []string{"MOUNT_UNDER_SCRATCH"}},
	} {
		var got []string
		for _, n := range KnobsNotGiven(config.FromMap(tt.knobs), !tt.local) {
			got = append(got, n.Name)
			if text := n.String(); !strings.HasPrefix(text, n.Name) || n.Instead == "" {
				t.Errorf("%s: %q, change %q", name, text, n.Instead)
			}
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// TestKnobsNotGivenPage: the page about images names those about containers.
// TestEachKnobNotGiven: each of them is reported where it is not obeyed, and not elsewhere.
func TestEachKnobNotGiven(t *testing.T) {
	for _, name := range []string{
		"CGROUP_HARD_MEMORY_LIMIT_EXPR", "CGROUP_LOW_MEMORY_LIMIT", "CLASSAD_USER_PYTHON_LIB", "DATA_REUSE_DIRECTORY", "LIGO_NFS_SERVER_HACKS", "NAMED_CHROOT",
		"SINGULARITY_IS_SETUID", "SSH_TO_JOB_SSHD_ARGS", "SSH_TO_JOB_SSHD_CONFIG_TEMPLATE", "SSH_TO_JOB_SSH_KEYGEN", "STARTD_ENFORCE_DISK_LIMITS",
	} {
		if len(KnobsNotGiven(config.FromMap(map[string]string{name: "something"}), true)) != 1 {
			t.Errorf("nobody hears that %s is not obeyed", name)
		}
	}
	for _, row := range knobsWithoutEffect {
		name := strings.ReplaceAll(row.name, "*", "1")
		for _, pod := range []bool{true, false} {
			reported := slices.ContainsFunc(KnobsNotGiven(config.FromMap(map[string]string{name: "something"}), pod), func(n NotGiven) bool { return n.Name == name })
			others := slices.ContainsFunc(knobsWithoutEffect, func(o withoutEffect) bool { return o.name == row.name && o.on.covers(pod) })
			if reported != others {
				t.Errorf("%s (in a pod: %v): reported %v, want %v", name, pod, reported, others)
			}
		}
	}
}

func TestKnobsNotGivenPage(t *testing.T) {
	page, err := os.ReadFile("../../docs/admin/images.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range knobsWithoutEffect {
		if name := strings.Replace(w.name, "*", "…", 1); w.on == inPods && strings.HasPrefix(name, "DOCKER_") && !strings.Contains(string(page), "`"+name+"`") {
			t.Errorf("docs/admin/images.md does not name %s", w.name)
		}
	}
}

// TestRefusedKnobs: with such a knob no job runs, and the error says what to change.
func TestRefusedKnobs(t *testing.T) {
	for name, tt := range map[string]struct {
		knobs map[string]string
		want  []string
	}{
		"none":            {},
		"off":             {knobs: map[string]string{"ENCRYPT_EXECUTE_DIRECTORY": "False", "STARTD_ENCRYPT_EXECUTE_DISK": "0"}},
		"off by a letter": {knobs: map[string]string{"ENCRYPT_EXECUTE_DIRECTORY": "F"}},
		"off by a sum":    {knobs: map[string]string{"ENCRYPT_EXECUTE_DIRECTORY": "1 > 2"}},
		"on":              {knobs: map[string]string{"ENCRYPT_EXECUTE_DIRECTORY": "True", "STARTD_ENCRYPT_EXECUTE_DISK": "1"}, want: []string{"ENCRYPT_EXECUTE_DIRECTORY: ", "STARTD_ENCRYPT_EXECUTE_DISK: "}},
		"on by a letter":  {knobs: map[string]string{"ENCRYPT_EXECUTE_DIRECTORY": "T"}, want: []string{"STARTER.ENCRYPT_EXECUTE_DIRECTORY = False"}},
		"misspelt":        {knobs: map[string]string{"ENCRYPT_EXECUTE_DIRECTORY": "yess"}, want: []string{"ENCRYPT_EXECUTE_DIRECTORY: "}},
		"elsewhere":       {knobs: map[string]string{"STARTER_REMOTE_CMD": "/usr/bin/ssh there"}, want: []string{"STARTER_REMOTE_CMD: "}},
	} {
		t.Run(name, func(t *testing.T) {
			knobs := map[string]string{"POD_STARTER_BACKEND": "local"}
			for k, v := range tt.knobs {
				knobs[k] = v
			}
			_, err := Read(config.FromMap(knobs))
			if (err != nil) != (len(tt.want) > 0) {
				t.Fatalf("%v", err)
			}
			for _, want := range tt.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%v does not say %q", err, want)
				}
			}
		})
	}
}

// TestRemarks: what the log of each activation says of knobs.
func TestRemarks(t *testing.T) {
	set, err := Read(config.FromMap(map[string]string{
		"POD_STARTER_BACKEND": "local", "STRICT_CLASSAD_EVALUATION": "very", "POD_STARTER_IMAGE_POLICI": "x", "LOG_TO_SYSLOG": "True", "ENABLE_IPV4": "auto",
		"STARTER_CLASSAD_USER_MAP_NAMES": "m", "CLASSAD_USER_MAPFILE_m": "/no/such/map",
	}))
	if err != nil {
		t.Fatal(err)
	}
	got := strings.Join(set.Remarks(), "\n")
	for _, want := range []string{"STRICT_CLASSAD_EVALUATION", "/no/such/map", "POD_STARTER_IMAGE_POLICI", "LOG_TO_SYSLOG is not obeyed"} {
		if strings.Count(got, want) == 0 {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
	if n := len(set.Remarks()); n != 4 {
		t.Errorf("%d remarks:\n%s", n, got)
	}
}
