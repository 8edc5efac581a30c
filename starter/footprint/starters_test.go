package footprint_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"podstarter/condor/condortest"
)

// starters are starters whose jobs run.
type starters struct {
	cluster *cluster // nil: the jobs run beside their starters
	dir     string
	all     []*starter
}

type starter struct {
	cmd    *exec.Cmd
	shadow *condortest.Shadow
	log    string
}

// start starts so many starters and waits until their jobs run.
func start(t testing.TB, n int, inPod bool) *starters {
	t.Helper()
	dir, err := os.MkdirTemp("", "footprint")
	must(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	must(t, os.Chmod(dir, 0o711))
	s := &starters{dir: dir}
	for _, name := range []string{"execute", "lock", "log", "private", "bin"} {
		must(t, os.Mkdir(filepath.Join(dir, name), 0o755)) //nolint:forbidigo // a directory of the test
	}
	if inPod {
		s.cluster = newCluster(t, n, dir)
	}
	s.configure(t, n)
	startd := condortest.NewStartd(t, condortest.StartdOptions{})
	for i := range n {
		s.all = append(s.all, s.startOne(t, startd, fmt.Sprintf("slot1_%d", i+1)))
	}
	for _, one := range s.all {
		one.shadow.Wait(t, condortest.Call("register_job_info").With("JobState", "Running"))
	}
	return s
}

func (s *starters) startOne(t testing.TB, startd *condortest.Startd, slot string) *starter {
	t.Helper()
	one := &starter{log: filepath.Join(s.dir, "log", "StarterLog."+slot)}
	one.shadow = condortest.NewShadow(t, condortest.ShadowOptions{
		Job:     "Cmd = \"job.sh\"\nTransferInput = \"\"\nEnvironment = \"\"\nArguments = \"\"\nJobMaxVacateTime = 1\n",
		Without: []string{"TransferOutput", "TransferOutputRemaps"},
		Files:   map[string]string{"job.sh": "#!/bin/sh\nexec sleep 1000\n"},
	})
	one.cmd = exec.Command(filepath.Join(programs, "condor_pod_starter"), "-f", "-local-name", "slot_type_1", "-a", slot, "submit.invalid")
	one.cmd.Env = []string{"PATH=" + filepath.Join(s.dir, "bin") + ":/usr/bin:/bin"}
	if s.cluster != nil {
		host, port := s.cluster.address()
		one.cmd.Env = append(one.cmd.Env, "KUBERNETES_SERVICE_HOST="+host, "KUBERNETES_SERVICE_PORT="+port)
	}
	if v := os.Getenv("GODEBUG"); v != "" { // of whoever measures
		one.cmd.Env = append(one.cmd.Env, "GODEBUG="+v)
	}
	one.cmd.Stderr = os.Stderr
	startd.Activate(t, one.shadow).Give(t, one.cmd)
	must(t, one.cmd.Start())
	for _, f := range one.cmd.ExtraFiles {
		f.Close()
	}
	t.Cleanup(func() {
		_ = one.cmd.Process.Signal(syscall.SIGQUIT)
		_ = one.cmd.Wait()
		if t.Failed() {
			text, _ := os.ReadFile(one.log)
			t.Logf("%s\nthe shadow heard\n%s", text, strings.Join(one.shadow.Story(), "\n"))
		}
	})
	return one
}

// configure makes a condor_config_val that knows as many knobs as a real one.
func (s *starters) configure(t testing.TB, containers int) {
	t.Helper()
	at := func(name string) string { return filepath.Join(s.dir, name) }
	knobs := map[string]string{
		"EXECUTE": at("execute"), "LOCK": at("lock"), "LOG": at("log"), "STARTER_LOG": at("log") + "/StarterLog", "CONDOR_IDS": fmt.Sprintf("%d.%d", os.Getuid(), os.Getgid()),
		"FILESYSTEM_DOMAIN": "here.invalid", "UID_DOMAIN": "here.invalid", "ENABLE_IPV4": "true",
		"POD_STARTER_BACKEND": "local", "POD_STARTER_PRIVATE_DIR": at("private"), "POD_STARTER_PAYLOAD_UID": "57001",
	}
	if s.cluster != nil {
		var names []string
		for i := range containers {
			names = append(names, containerName(i))
		}
		for name, value := range map[string]string{
			"POD_STARTER_BACKEND": "pod", "POD_STARTER_POD_NAME": "pilot-0", "POD_STARTER_POD_NAMESPACE": "jobs", "POD_STARTER_CONTAINERS": strings.Join(names, " "),
			"POD_STARTER_CONTROL_DIR": s.cluster.control, "POD_STARTER_KUBERNETES_DIR": s.cluster.dir,
		} {
			knobs[name] = value
		}
	}
	var dump strings.Builder
	for name, value := range knobs {
		fmt.Fprintf(&dump, "%s = %s\n # at: /etc/condor/condor_config, line 9\n # raw: %s = %s\n", name, value, name, value)
	}
	const known = 1400 // knobs of HTCondor 25
	for i := range known {
		fmt.Fprintf(&dump, "SOME_KNOB_OF_HTCONDOR_%d = $(LOCAL_DIR)/some/value\n # at: <Default>\n # raw: SOME_KNOB_OF_HTCONDOR_%d = $(LOCAL_DIR)/some/value\n", i, i)
	}
	must(t, os.WriteFile(at("dump"), []byte(dump.String()), 0o644))
	must(t, os.WriteFile(at("bin/condor_config_val"), []byte("#!/bin/sh\nexec cat "+at("dump")+"\n"), 0o755))
}

// goroutines ends a starter by a signal that makes the Go runtime write what it does, and
// gives the text of each goroutine that is not the runtime's own.
func (one *starter) goroutines(t testing.TB) (all []string) {
	t.Helper()
	must(t, one.cmd.Process.Signal(syscall.SIGABRT))
	_ = one.cmd.Wait()
	text, err := os.ReadFile(one.log)
	must(t, err)
	for part := range strings.SplitSeq(string(text), "\n\n") {
		if strings.HasPrefix(part, "goroutine ") && !strings.HasPrefix(part, "goroutine 0 ") && !strings.Contains(part, "created by runtime.") {
			all = append(all, part)
		}
	}
	return all
}
