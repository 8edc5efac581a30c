package config

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"
)

// DefaultTool is the program that prints the configuration. It is looked up
// in PATH, then where the packages of HTCondor install it, since a startd may
// have been started with any PATH.
const DefaultTool = "condor_config_val"

const packagedTool = "/usr/bin/" + DefaultTool

const (
	// loadTimeout leaves room for a slow name service: the tool looks up the
	// host's full name.
	loadTimeout = 60 * time.Second
	// tailTimeout is how long after the tool's end its output may still be read. A child of
	// it may hold the pipe for ever; a machine with too much to do takes seconds.
	tailTimeout = 15 * time.Second
	// maxDump is the most bytes that the tool may print. A stock configuration
	// has 110 kB, and as much again of notes.
	maxDump   = 16 << 20
	usualDump = 256 << 10
	// maxStderr is how many bytes of the tool's stderr an error repeats.
	maxStderr = 2 << 10
)

// Options say how the configuration is read.
type Options struct {
	// LocalName is the value of -local-name on the starter's command line. With
	// it, a knob LOCALNAME.KNOB overrides KNOB.
	LocalName string
	// Env is the environment for the tool, in which _CONDOR_KNOB variables
	// override knobs; nil is the environment of the process. Variables with
	// keys are not passed on.
	Env []string
	// Tool is the program to run instead of DefaultTool.
	Tool string
	// PID replaces $(PID) in values; 0 means this process. The tool itself
	// would use its own.
	PID int
}

// Load reads the whole configuration of the STARTER subsystem once. It leaves
// the macro language of HTCondor's files to the tool that comes with the
// daemons, so that both always agree.
func Load(ctx context.Context, opt Options) (*Config, error) {
	tool, err := findTool(opt.Tool)
	if err != nil {
		return nil, err
	}
	args := []string{"-subsystem", subsystem}
	if opt.LocalName != "" {
		args = append(args, "-local-name", opt.LocalName)
	}
	// -verbose marks the end of each value, since a value may contain lines
	// that look like other knobs, and tells where it was set.
	args = append(args, "-dump", "-expanded", "-verbose")

	ctx, cancel := context.WithTimeout(ctx, loadTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, tool, args...)
	cmd.Env = withoutSecrets(opt.Env)
	cmd.WaitDelay = tailTimeout
	stdout := &bounded{limit: maxDump, overflow: cancel}
	stdout.buf.Grow(usualDump)
	stderr := &bounded{limit: maxStderr}
	cmd.Stdout, cmd.Stderr = stdout, stderr
	err = cmd.Run()
	switch {
	case stdout.full:
		return nil, fmt.Errorf("reading the configuration: %s printed more than %d bytes", tool, maxDump)
	case ctx.Err() != nil:
		return nil, fmt.Errorf("reading the configuration: %s gave no answer within %s: %w", tool, loadTimeout, context.Cause(ctx))
	case err != nil:
		return nil, fmt.Errorf("reading the configuration: %s: %w; it says: %s", strings.Join(append([]string{tool}, args...), " "), err, stderr.text())
	}
	pid := opt.PID
	if pid == 0 {
		pid = os.Getpid()
	}
	cfg, err := parse(stdout.buf.String(), opt.LocalName, pid)
	if err != nil {
		return nil, fmt.Errorf("reading the configuration: output of %s: %w", tool, err)
	}
	return cfg, nil
}

func findTool(tool string) (string, error) {
	if tool == "" {
		tool = DefaultTool
	}
	path, err := exec.LookPath(tool)
	if err == nil {
		return path, nil
	}
	if tool == DefaultTool {
		if path, err := exec.LookPath(packagedTool); err == nil {
			return path, nil
		}
	}
	if errors.Is(err, exec.ErrDot) {
		return "", fmt.Errorf("reading the configuration: %s is found in the working directory only; put the directory of HTCondor's tools into PATH: %w", tool, err)
	}
	return "", fmt.Errorf("reading the configuration: cannot run %s; install HTCondor's tools beside the startd or put their directory into PATH: %w", tool, err)
}

// withoutSecrets drops the variables with secrets that HTCondor's daemons pass to
// each other. The tool does not need them, and a job that runs as the same user
// could read them from the tool's environment.
func withoutSecrets(env []string) []string {
	if env == nil {
		env = os.Environ()
	}
	kept := make([]string, 0, len(env))
	for _, v := range env {
		if strings.HasPrefix(v, "CONDOR_INHERIT=") || strings.HasPrefix(v, "CONDOR_PRIVATE_") {
			continue
		}
		kept = append(kept, v)
	}
	return kept
}

// bounded keeps the first limit bytes and remembers whether there were more.
type bounded struct {
	buf      bytes.Buffer
	limit    int
	full     bool
	overflow func()
}

func (b *bounded) Write(p []byte) (int, error) {
	room := b.limit - b.buf.Len()
	if len(p) <= room {
		return b.buf.Write(p)
	}
	b.buf.Write(p[:room])
	if !b.full {
		b.full = true
		if b.overflow != nil {
			b.overflow()
		}
	}
	return len(p), nil
}

func (b *bounded) text() string {
	s := strings.TrimSpace(b.buf.String())
	if s == "" {
		return "nothing"
	}
	return s
}
