package apptainer_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"podstarter/localexec/apptainer"
)

// disk has these paths; those that end in a slash are directories.
type disk []string

func (d disk) Exists(path string) bool {
	for _, p := range d {
		if strings.TrimSuffix(p, "/") == path {
			return true
		}
	}
	return false
}

func (d disk) IsDir(path string) bool {
	for _, p := range d {
		if p == path+"/" {
			return true
		}
	}
	return false
}

var machine = disk{"/data/", "/etc/OpenCL/vendors/", "/tree/", "/tree//data/"}

const (
	slot = "/execute/dir_1"
	iwd  = "/home/alice"
)

// site and wish are what an example changes.
func site() apptainer.Site {
	return apptainer.Site{Program: "/usr/bin/apptainer", Verbosity: "-s", PIDNamespaces: true}
}

func wish() apptainer.Wish {
	return apptainer.Wish{Image: "image.sif", Path: slot + "/job", Args: []string{"exec", "-B"}, Slot: slot, Sandbox: slot, Iwd: slot, Machine: "slot1@h"}
}

// TestCommand compares with what condor_starter 25.14 builds for the same job (singularity.cpp:Singularity::setup,
// runTest).
func TestCommand(t *testing.T) {
	const usual = " -W /execute/dir_1 --pwd /execute/dir_1 -B /execute/dir_1"
	for name, tt := range map[string]struct {
		site       func(*apptainer.Site)
		wish       func(*apptainer.Wish)
		want, test string
		control    string
	}{
		"a file": {
			want:    "-s exec" + usual + " --home /execute/dir_1 -C image.sif /execute/dir_1/job exec -B",
			test:    "-s -q test" + usual + " --home /execute/dir_1 -C image.sif",
			control: "-s exec" + usual + " --home /execute/dir_1 -C",
		},
		"the image's own program": {
			wish: func(w *apptainer.Wish) { w.Path, w.Args = "", []string{"a b"} },
			want: "-s run" + usual + " --home /execute/dir_1 -C image.sif a b",
			test: "-s -q test" + usual + " --home /execute/dir_1 -C image.sif",
		},
		"a program of the image": {
			wish: func(w *apptainer.Wish) { w.Path, w.Args, w.Image = "/bin/date", nil, "docker://busybox" },
			want: "-s exec" + usual + " --home /execute/dir_1 -C docker://busybox /bin/date",
		},
		"quiet": {
			site: func(s *apptainer.Site) { s.Verbosity = "" },
			want: "exec" + usual + " --home /execute/dir_1 -C image.sif /execute/dir_1/job exec -B",
			test: "-q test" + usual + " --home /execute/dir_1 -C image.sif",
		},
		"no PID namespace": {
			site: func(s *apptainer.Site) { s.PIDNamespaces = false },
			want: "-s exec" + usual + " --home /execute/dir_1 --contain --ipc --cleanenv image.sif /execute/dir_1/job exec -B",
		},
		"nested sandbox, another name for it": {
			wish: func(w *apptainer.Wish) {
				w.Sandbox, w.Iwd, w.Path, w.TargetDir = slot+"/scratch", slot+"/scratch", slot+"/scratch/job", "/srv"
			},
			want:    "-s exec -W /execute/dir_1/scratch --pwd /srv/scratch -B /execute/dir_1:/srv --home /execute/dir_1/scratch -C image.sif /srv//scratch/job exec -B",
			control: "-s exec -W /execute/dir_1/scratch --pwd /execute/dir_1/scratch -B /execute/dir_1 --home /execute/dir_1/scratch -C",
		},
		"the site's name for the sandbox": {
			site:    func(s *apptainer.Site) { s.TargetDir = "/srv" },
			wish:    func(w *apptainer.Wish) { w.TargetDir, w.Path = "/own", "/bin/x" },
			want:    "-s exec -W /execute/dir_1 --pwd /srv -B /execute/dir_1:/srv --home /execute/dir_1 -C image.sif /bin/x exec -B",
			control: "-s exec -W /execute/dir_1 --pwd /srv -B /execute/dir_1:/srv --home /execute/dir_1 -C",
		},
		"without file transfer": {
			wish: func(w *apptainer.Wish) { w.Iwd, w.Path = iwd, iwd+"/job" },
			want: "-s exec -B /home/alice -W /execute/dir_1 --pwd /home/alice -B /home/alice -C /home/alice/image.sif /home/alice/job exec -B",
		},
		"without file transfer, another name": {
			wish: func(w *apptainer.Wish) { w.Iwd, w.Path, w.TargetDir, w.Image = iwd, iwd+"/job", "/srv", "docker://x" },
			want: "-s exec -B /home/alice -W /execute/dir_1 --pwd /srv -B /execute/dir_1:/condor_scratch -B /home/alice:/srv -C docker://x /home/alice/job exec -B",
		},
		"scratch": {
			site:    func(s *apptainer.Site) { s.Scratch = []string{"/tmp", "/var/tmp"} },
			wish:    func(w *apptainer.Wish) { w.Scratch = []string{"/opt"} },
			want:    "-s exec -S /tmp -S /var/tmp -S /opt" + usual + " --home /execute/dir_1 -C image.sif /execute/dir_1/job exec -B",
			control: "-s exec -S /tmp -S /var/tmp" + usual + " --home /execute/dir_1 -C",
		},
		"scratch that site and job name": {
			site: func(s *apptainer.Site) { s.Scratch = []string{"/tmp", "/tmp"} },
			wish: func(w *apptainer.Wish) { w.Scratch = []string{"/tmp", "/opt", "/opt"} },
			want: "-s exec -S /tmp -S /opt" + usual + " --home /execute/dir_1 -C image.sif /execute/dir_1/job exec -B",
		},
		"binds": {
			site: func(s *apptainer.Site) { s.Binds = []string{"/data", "/data:/d:ro", "/none", "/none:/data"} },
			want: "-s exec" + usual + " -B /data -B /data:/d:ro --home /execute/dir_1 -C image.sif /execute/dir_1/job exec -B",
		},
		"binds of the job": {
			site:    func(s *apptainer.Site) { s.Binds = []string{"/data"} },
			wish:    func(w *apptainer.Wish) { w.Binds = []string{"/data:/d:ro"} },
			want:    "-s exec" + usual + " -B /data -B /data:/d:ro --home /execute/dir_1 -C image.sif /execute/dir_1/job exec -B",
			control: "-s exec" + usual + " -B /data --home /execute/dir_1 -C",
		},
		"binds without a place in a directory": {
			site: func(s *apptainer.Site) {
				s.Binds, s.IgnoreMissingTargets = []string{"/data", "/data:/d:ro", "/etc/OpenCL/vendors:/data"}, true
			},
			wish: func(w *apptainer.Wish) { w.Image = "/tree" },
			want: "-s exec" + usual + " -B /data -B /etc/OpenCL/vendors:/data --home /execute/dir_1 -C /tree /execute/dir_1/job exec -B",
		},
		"binds without a place in a file": {
			site: func(s *apptainer.Site) { s.Binds, s.IgnoreMissingTargets = []string{"/data:/d"}, true },
			want: "-s exec" + usual + " -B /data:/d --home /execute/dir_1 -C image.sif /execute/dir_1/job exec -B",
		},
		"GPUs": {
			wish: func(w *apptainer.Wish) { w.GPUs = apptainer.GPUs{Assigned: true, Nvidia: true} },
			want: "-s exec" + usual + " --nv -B /etc/OpenCL/vendors --home /execute/dir_1 -C image.sif /execute/dir_1/job exec -B",
		},
		"GPUs of AMD, by the knob": {
			site: func(s *apptainer.Site) { s.ROCm, s.Binds = true, []string{"/etc/OpenCL/vendors"} },
			wish: func(w *apptainer.Wish) { w.GPUs = apptainer.GPUs{Assigned: true} },
			want: "-s exec" + usual + " --rocm -B /etc/OpenCL/vendors --home /execute/dir_1 -C image.sif /execute/dir_1/job exec -B",
		},
		"GPUs of others": {
			site: func(s *apptainer.Site) { s.ROCm = true },
			wish: func(w *apptainer.Wish) { w.GPUs = apptainer.GPUs{Nvidia: true, ROCm: true} },
			want: "-s exec" + usual + " --home /execute/dir_1 -C image.sif /execute/dir_1/job exec -B",
		},
		"launcher and more arguments": {
			site: func(s *apptainer.Site) { s.Launcher, s.Extra = "/libexec/l.sh", []string{"--no-mount", "tmp"} },
			want: "-s exec -B /libexec/l.sh:/condor_container_launcher.sh" + usual + " --home /execute/dir_1 -C --no-mount tmp image.sif /condor_container_launcher.sh /execute/dir_1/job exec -B",
			test: "-s -q test -B /libexec/l.sh:/condor_container_launcher.sh" + usual + " --home /execute/dir_1 -C --no-mount tmp image.sif",
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, w := site(), wish()
			if tt.site != nil {
				tt.site(&s)
			}
			if tt.wish != nil {
				tt.wish(&w)
			}
			c, err := apptainer.Build(s, apptainer.Runtime{}, w, machine)
			if err != nil {
				t.Fatal(err)
			}
			for _, line := range []struct {
				what, want string
				got        []string
			}{{"job", tt.want, c.Args}, {"test", tt.test, c.Test}, {"control", tt.control, c.Control}} {
				if got := strings.Join(line.got, " "); line.want != "" && got != line.want {
					t.Errorf("the %s is\n%s\nwant\n%s", line.what, got, line.want)
				}
			}
			if c.Path != "/usr/bin/apptainer" {
				t.Errorf("the program is %q", c.Path)
			}
		})
	}
}

// TestMistakes: no word of a job becomes an option of the runtime, or a bind that the site did not allow.
func TestMistakes(t *testing.T) {
	for name, tt := range map[string]struct {
		site func(*apptainer.Site)
		wish func(*apptainer.Wish)
		want string
		by   bool // the site
	}{
		"no image":           {wish: func(w *apptainer.Wish) { w.Image = " " }, want: "container_image"},
		"an option":          {wish: func(w *apptainer.Wish) { w.Image = "--bind=/:/host" }, want: "container_image"},
		"a second bind":      {wish: func(w *apptainer.Wish) { w.TargetDir = "/a,/secret" }, want: "container_target_dir"},
		"options of a bind":  {wish: func(w *apptainer.Wish) { w.TargetDir = "/a:ro" }, want: "container_target_dir"},
		"an escaped comma":   {wish: func(w *apptainer.Wish) { w.TargetDir = `/a\` }, want: "container_target_dir"},
		"a relative name":    {wish: func(w *apptainer.Wish) { w.TargetDir = "srv" }, want: "container_target_dir"},
		"bind by the iwd":    {wish: func(w *apptainer.Wish) { w.Iwd = "/tmp/x:/etc" }, want: "initialdir"},
		"bind by scratch":    {wish: func(w *apptainer.Wish) { w.Scratch = []string{"/a", "-B/:/host"} }, want: "mount_under_scratch"},
		"the site's mistake": {site: func(s *apptainer.Site) { s.TargetDir = "srv" }, want: "SINGULARITY_TARGET_DIR", by: true},
	} {
		t.Run(name, func(t *testing.T) {
			s, w := site(), wish()
			if tt.site != nil {
				tt.site(&s)
			}
			if tt.wish != nil {
				tt.wish(&w)
			}
			_, err := apptainer.Build(s, apptainer.Runtime{}, w, machine)
			var m *apptainer.Mistake
			if !errors.As(err, &m) || m.Setting != tt.want || m.Site != tt.by || !strings.Contains(err.Error(), tt.want+" is ") {
				t.Errorf("%v", err)
			}
		})
	}
}

// TestEnvironment compares with stock's (singularity.cpp: cleanEnvironment, retargetEnvs, convertEnv).
func TestEnvironment(t *testing.T) {
	with := func(env ...string) func(*apptainer.Wish) {
		return func(w *apptainer.Wish) { w.Env = env }
	}
	own := []string{
		"APPTAINERENV_APPTAINER_CACHEDIR=/execute/dir_1", "APPTAINERENV_APPTAINER_TMPDIR=/execute/dir_1", "APPTAINERENV_PS1=slot1@h$ ",
		"APPTAINER_CACHEDIR=/execute/dir_1", "APPTAINER_TMPDIR=/execute/dir_1",
	}
	for name, tt := range map[string]struct {
		site func(*apptainer.Site)
		wish func(*apptainer.Wish)
		old  bool // Singularity
		want []string
	}{
		"both outside and inside": {wish: with("A=b=c", "HOME=/home/alice", "EMPTY="),
			want: append([]string{"A=b=c", "APPTAINERENV_A=b=c", "APPTAINERENV_EMPTY=", "EMPTY="}, own...)},
		"options are refused": {wish: with("APPTAINER_BIND=/:/host", "SINGULARITY_BINDPATH=/", "APPTAINER_WRITABLE=1", "APPTAINER_CACHEDIR=/elsewhere"), want: own},
		"except those for its own image": {wish: with("APPTAINER_DOCKER_PASSWORD=p"),
			want: append([]string{"APPTAINERENV_APPTAINER_DOCKER_PASSWORD=p", "APPTAINER_DOCKER_PASSWORD=p"}, own...)},
		"and what the site allows": {site: func(s *apptainer.Site) { s.AllowedEnv = []string{"APPTAINER_NO_EVAL"} }, wish: with("APPTAINER_NO_EVAL=1"),
			want: append([]string{"APPTAINERENV_APPTAINER_NO_EVAL=1", "APPTAINER_NO_EVAL=1"}, own...)},
		"what the job says of inside counts":          {wish: with("A=out", "APPTAINERENV_A=in"), want: append([]string{"A=out", "APPTAINERENV_A=in"}, own...)},
		"how HTCondor finds processes is for outside": {wish: with("_CONDOR_ANCESTOR_1=2:3:4"), want: append([]string{"_CONDOR_ANCESTOR_1=2:3:4"}, own...)},
		"libraries are for inside": {wish: with("LD_PRELOAD=/x.so", "LD_LIBRARY_PATH=/conda/lib"),
			want: append([]string{"APPTAINERENV_LD_LIBRARY_PATH=/conda/lib", "APPTAINERENV_LD_PRELOAD=/x.so"}, own...)},
		"Singularity": {old: true, wish: with("A=b"), want: []string{
			"A=b", "SINGULARITYENV_A=b", "SINGULARITYENV_PS1=slot1@h$ ", "SINGULARITYENV_SINGULARITY_CACHEDIR=/execute/dir_1",
			"SINGULARITYENV_SINGULARITY_TMPDIR=/execute/dir_1", "SINGULARITY_CACHEDIR=/execute/dir_1", "SINGULARITY_TMPDIR=/execute/dir_1",
		}},
		"another name for the sandbox": {
			wish: func(w *apptainer.Wish) {
				w.TargetDir, w.Env = "/srv", []string{"_CONDOR_SCRATCH_DIR=" + slot, "P=" + slot + "/a:" + slot + "/b", "A=b"}
			},
			want: []string{
				"P=/execute/dir_1/a:/execute/dir_1/b", "APPTAINERENV_P=/srv/a:/execute/dir_1/b", "A=b", "APPTAINERENV_A=b",
				"_CONDOR_SCRATCH_DIR=/execute/dir_1", "APPTAINERENV__CONDOR_SCRATCH_DIR=/srv",
				"_CONDOR_SCRATCH_DIR_OUTSIDE_CONTAINER=/execute/dir_1", "APPTAINERENV__CONDOR_SCRATCH_DIR_OUTSIDE_CONTAINER=/execute/dir_1",
				"APPTAINERENV_APPTAINER_CACHEDIR=/execute/dir_1", "APPTAINERENV_APPTAINER_TMPDIR=/execute/dir_1", "APPTAINERENV_PS1=slot1@h$ ",
				"APPTAINER_CACHEDIR=/execute/dir_1", "APPTAINER_TMPDIR=/execute/dir_1",
			},
		},
		"and without file transfer": {
			wish: func(w *apptainer.Wish) {
				w.TargetDir, w.Iwd, w.Sandbox, w.Env = "/srv", iwd, slot+"/scratch", []string{"_CONDOR_SCRATCH_DIR=" + slot + "/scratch"}
			},
			want: []string{
				"_CONDOR_SCRATCH_DIR=/execute/dir_1/scratch", "APPTAINERENV__CONDOR_SCRATCH_DIR=/condor_scratch/scratch",
				"_CONDOR_SCRATCH_DIR_OUTSIDE_CONTAINER=/execute/dir_1/scratch", "APPTAINERENV__CONDOR_SCRATCH_DIR_OUTSIDE_CONTAINER=/execute/dir_1/scratch",
				"APPTAINERENV_APPTAINER_CACHEDIR=/execute/dir_1/scratch", "APPTAINERENV_APPTAINER_TMPDIR=/execute/dir_1/scratch", "APPTAINERENV_PS1=slot1@h$ ",
				"APPTAINER_CACHEDIR=/execute/dir_1/scratch", "APPTAINER_TMPDIR=/execute/dir_1/scratch",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, w, r := site(), wish(), apptainer.RuntimeOf([]byte("apptainer version 1.4.5\n"))
			if tt.old {
				r = apptainer.RuntimeOf([]byte("singularity-ce version 4.1.0\n"))
			}
			if tt.site != nil {
				tt.site(&s)
			}
			tt.wish(&w)
			c, err := apptainer.Build(s, r, w, machine)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(set(tt.want), set(c.Env)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func set(env []string) map[string]string {
	all := map[string]string{}
	for _, entry := range env {
		name, value, _ := strings.Cut(entry, "=")
		all[name] = value
	}
	return all
}
