//go:build pool

package provisionfaults

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"podstarter/integration/harness"
	"podstarter/integration/pool/upstreamroot"
)

var (
	//go:embed testdata/pool.sh
	poolScript string
	//go:embed testdata/condor_config
	poolConfiguration string
	//go:embed testdata/home_config
	homeConfiguration string
)

// Users who submit jobs; the root file system has both.
const (
	alice  = "tester"
	mallet = "tlmiller"
)

// Names of the schedds.
const (
	one = "one"
	two = "two"
	// home is of another pool, and flocks to this one.
	home = "home"
)

// htcondor is a collector and two schedds, and another pool whose schedd flocks. Its programs, and the provisioner, run in its root file system.
type htcondor struct {
	root string // as its processes' mount namespace has it
	site string // the directory that is /site inside
	port int    // the collector's
	// home is the address of the other pool's collector.
	home string
	// keeper is the process in whose namespace the root file system is mounted.
	keeper *exec.Cmd
	ended  chan error
	// schedds are the names that the schedds have at the collector.
	schedds map[string]string
}

// startCondor starts the daemons below a directory, and waits until the collector knows all schedds.
func startCondor(ctx context.Context, dir string) (*htcondor, error) {
	lower, err := upstreamroot.Make(ctx, os.Stderr)
	if err != nil {
		return nil, err
	}
	port, err := harness.FreePort()
	if err != nil {
		return nil, err
	}
	other, err := harness.FreePort()
	if err != nil {
		return nil, err
	}
	c := &htcondor{home: fmt.Sprintf("127.0.0.1:%d", other), root: filepath.Join(dir, "root"), site: filepath.Join(dir, "site"), port: port, ended: make(chan error, 1), schedds: map[string]string{}}
	if err := os.MkdirAll(c.site, 0o755); err != nil {
		return nil, err
	}
	for name, text := range map[string]string{
		"condor_config": strings.ReplaceAll(poolConfiguration, "$PORT", strconv.Itoa(port)),
		"home_config":   strings.NewReplacer("$PORT", strconv.Itoa(other), "$FLOCK", strconv.Itoa(port)).Replace(homeConfiguration),
	} {
		if err := os.WriteFile(filepath.Join(c.site, name), []byte(text), 0o644); err != nil {
			return nil, err
		}
	}
	log, err := os.Create(filepath.Join(dir, "output"))
	if err != nil {
		return nil, err
	}
	defer log.Close()
	// The kernel ends all of the pool's processes with unshare's child, and that with this program.
	c.keeper = exec.Command("unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c", poolScript, "pool", lower, dir, c.site)
	c.keeper.Stdout, c.keeper.Stderr = log, log
	c.keeper.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := c.keeper.Start(); err != nil {
		return nil, fmt.Errorf("starting HTCondor: %w", err)
	}
	go func() { c.ended <- c.keeper.Wait() }()
	if err := c.await(ctx); err != nil {
		c.stop()
		return nil, fmt.Errorf("%w; see %s and %s/log", err, log.Name(), c.site)
	}
	return c, nil
}

func (c *htcondor) await(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, 2*time.Minute, errors.New("the collector does not know three schedds after two minutes"))
	defer cancel()
	return poll(ctx, 100*time.Millisecond, func() error {
		select {
		case err := <-c.ended:
			cancel()
			return fmt.Errorf("HTCondor has ended: %w", err)
		default:
		}
		if _, err := os.Stat(filepath.Join(c.site, "ready")); err != nil {
			return err
		}
		out, err := c.run(ctx, "", "", "condor_status", "-schedd", "-af", "Name")
		if err != nil {
			return err
		}
		for name := range strings.FieldsSeq(out) {
			short, _, _ := strings.Cut(name, "@")
			c.schedds[short] = name
		}
		if c.schedds[one] == "" || c.schedds[two] == "" || c.schedds[home] == "" {
			return fmt.Errorf("the collector knows the schedds %q", out)
		}
		return nil
	})
}

// stop ends all of it.
func (c *htcondor) stop() {
	_ = c.keeper.Process.Kill()
	<-c.ended
}

// command is a program in the pool's root file system, as a user, or as root. Its process is the one that is started.
func (c *htcondor) command(ctx context.Context, user string, args ...string) *exec.Cmd {
	root := []string{"chroot", c.root}
	if user != "" {
		root = []string{"chroot", "--userspec=" + user, c.root}
	}
	all := slices.Concat([]string{"--mount=/proc/" + strconv.Itoa(c.keeper.Process.Pid) + "/ns/mnt"}, root,
		[]string{"env", "-i", "PATH=/usr/bin:/usr/sbin:/bin:/sbin", "HOME=/", "CONDOR_CONFIG=/site/condor_config"}, args)
	return exec.CommandContext(ctx, "nsenter", all...)
}

// run runs a program and returns what it prints.
func (c *htcondor) run(ctx context.Context, user, in string, args ...string) (string, error) {
	cmd := c.command(ctx, user, args...)
	cmd.Stdin = strings.NewReader(in)
	var words bytes.Buffer
	cmd.Stderr = &words
	out, err := cmd.Output()
	if err != nil {
		return string(out), fmt.Errorf("%s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(words.String()))
	}
	return string(out), nil
}

// must runs a program that must succeed.
func (c *htcondor) must(t *testing.T, user, in string, args ...string) string {
	t.Helper()
	out, err := c.run(context.WithoutCancel(t.Context()), user, in, args...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// submit submits jobs of a test to a schedd. commands end with queue.
func (c *htcondor) submit(t *testing.T, schedd, user, test, commands string) {
	t.Helper()
	text := fmt.Sprintf("executable = /bin/true\ntransfer_executable = false\nrequest_cpus = 1\nrequest_memory = 100M\nrequest_disk = 1M\nnotification = never\n+ProvisionTest = %q\n%s\n", test, commands)
	// A user may have more to say than an argument holds.
	file, err := os.CreateTemp(c.site, "*.sub")
	if err == nil {
		_, err = file.WriteString(text)
		err = errors.Join(err, file.Chmod(0o644), file.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	defer os.Remove(file.Name())
	c.must(t, user, "", "condor_submit", "-terse", "-name", c.schedds[schedd], "/site/"+filepath.Base(file.Name()))
	if schedd != home {
		c.served(t, schedd)
	}
}

// served waits until the collector has a submitter ad of a schedd: without, the negotiator would not ask for its jobs, and nor does the
// provisioner.
func (c *htcondor) served(t *testing.T, schedd string) {
	t.Helper()
	ctx, cancel := context.WithTimeoutCause(t.Context(), time.Minute, fmt.Errorf("the schedd %s sends no submitter ad", schedd))
	defer cancel()
	err := poll(ctx, 200*time.Millisecond, func() error {
		out, err := c.run(ctx, "", "", "condor_status", "-submitters", "-af", "ScheddName")
		if err == nil && !slices.Contains(strings.Fields(out), c.schedds[schedd]) {
			err = fmt.Errorf("there are ads of %q", out)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// remove removes all jobs of a test that meet a constraint.
func (c *htcondor) remove(t *testing.T, schedd, test, constraint string) {
	t.Helper()
	// It fails if there are none.
	_, err := c.run(context.WithoutCancel(t.Context()), "", "", "condor_rm", "-name", c.schedds[schedd], "-constraint", fmt.Sprintf("ProvisionTest == %q && (%s)", test, constraint))
	if err != nil && !strings.Contains(err.Error(), "Couldn't find/remove") && !strings.Contains(err.Error(), "no jobs") && !strings.Contains(err.Error(), "already marked for removal") {
		t.Fatal(err)
	}
}

// advertise sends ads of slots to the collector.
func (c *htcondor) advertise(t *testing.T, ads ...string) {
	t.Helper()
	c.must(t, "", strings.Join(ads, "\n"), "condor_advertise", "-tcp", "-multiple", "UPDATE_STARTD_AD", "-")
}

// slotAd is the ad of the only slot of a pod.
func slotAd(pod, state string, lines ...string) string {
	return fmt.Sprintf("MyType = \"Machine\"\nName = \"slot1@%s@node\"\nMachine = \"node\"\nMyAddress = \"<127.0.0.1:9>\"\nStartdIpAddr = \"<127.0.0.1:9>\"\nState = %q\nActivity = \"Idle\"\nSlotType = \"Static\"\n"+
		"Cpus = 1\nMemory = 2048\nDisk = 1048576\nStart = true\nRequirements = true\n%s\n", pod, state, strings.Join(append(lines, ""), "\n"))
}

// pid returns that of a daemon, as the machine counts.
func (c *htcondor) pid(t *testing.T, daemon, argument string) int {
	t.Helper()
	dirs, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		t.Fatal(err)
	}
	mine, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/mnt", c.keeper.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range dirs {
		line, err := os.ReadFile(filepath.Join(dir, "cmdline"))
		args := strings.Split(string(line), "\x00")
		if err != nil || filepath.Base(args[0]) != daemon || slices.Contains(args, two) != (argument == two) {
			continue
		}
		// The master hands its environment on.
		if env, _ := os.ReadFile(filepath.Join(dir, "environ")); strings.Contains(string(env), "CONDOR_CONFIG=/site/home_config\x00") != (argument == home) {
			continue
		}
		// A schedd answers queries by children of itself.
		stat, _ := os.ReadFile(filepath.Join(dir, "stat"))
		_, rest, _ := strings.Cut(string(stat), ") ")
		fields := strings.Fields(rest)
		ns, _ := os.Readlink(filepath.Join(dir, "ns", "mnt"))
		if ns != mine || len(fields) < 2 {
			continue
		}
		if name, _ := os.ReadFile("/proc/" + fields[1] + "/comm"); strings.TrimSpace(string(name)) != "condor_master" {
			continue
		}
		pid, _ := strconv.Atoi(filepath.Base(dir))
		return pid
	}
	t.Fatalf("there is no process %s %s", daemon, argument)
	return 0
}

// pause stops a daemon until the returned function is called.
func (c *htcondor) pause(t *testing.T, daemon, argument string) (resume func()) {
	t.Helper()
	pid := c.pid(t, daemon, argument)
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	resume = func() { _ = syscall.Kill(pid, syscall.SIGCONT) }
	t.Cleanup(resume)
	return resume
}
