package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"podstarter/integration/images/probe/facts"
)

func look(s *state) (facts.Facts, error) {
	seen := facts.Facts{
		Args:   os.Args,
		Env:    os.Environ(),
		UID:    os.Getuid(),
		GID:    os.Getgid(),
		Peeks:  s.peeks,
		Setuid: s.suids,
	}
	if name, err := os.ReadFile("/image-name"); err == nil {
		seen.Image = strings.TrimSpace(string(name))
	}
	seen.Layer = upperDirectory()
	var err error
	if seen.Dir, err = os.Getwd(); err != nil {
		return seen, err
	}
	if seen.Groups, err = os.Getgroups(); err != nil {
		return seen, err
	}
	if seen.Status, err = status(); err != nil {
		return seen, err
	}
	sid, _, errno := syscall.Syscall(syscall.SYS_GETSID, 0, 0, 0)
	seen.Session = errno == 0 && int(sid) == os.Getpid()
	seen.Umask = syscall.Umask(0)
	syscall.Umask(seen.Umask)
	// The raw system call answers 20 minus the nice value.
	if nice, err := syscall.Getpriority(syscall.PRIO_PROCESS, 0); err == nil {
		seen.Nice = 20 - nice
	}
	if score, err := os.ReadFile("/proc/self/oom_score_adj"); err == nil {
		seen.OOMScore = strings.TrimSpace(string(score))
	}
	if seen.Limits, err = limits(); err != nil {
		return seen, err
	}
	seen.Descriptor = descriptors()
	stdin, err := io.ReadAll(io.LimitReader(os.Stdin, 1<<20))
	if err != nil {
		return seen, fmt.Errorf("reading standard input: %w", err)
	}
	seen.Stdin = string(stdin)
	seen.Files, err = files(".")
	return seen, err
}

func status() (map[string]string, error) {
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return nil, err
	}
	found := map[string]string{}
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(line, ":")
		switch name {
		case "Uid", "Gid", "CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb", "NoNewPrivs", "Seccomp", "SigIgn":
			found[name] = strings.Join(strings.Fields(value), " ")
		}
	}
	return found, nil
}

func limits() (map[string]string, error) {
	text, err := os.ReadFile("/proc/self/limits")
	if err != nil {
		return nil, err
	}
	found := map[string]string{}
	for line := range strings.Lines(string(text)) {
		if len(line) < 46 || !strings.HasPrefix(line, "Max ") {
			continue
		}
		name := strings.TrimSpace(line[:26])
		found[name] = strings.Fields(line[26:])[0]
	}
	return found, nil
}

// descriptors leaves out those that Go's runtime opens for itself.
func descriptors() map[string]string {
	entries, _ := os.ReadDir("/proc/self/fd")
	found := map[string]string{}
	for _, entry := range entries {
		target, err := os.Readlink("/proc/self/fd/" + entry.Name())
		if err != nil || strings.HasPrefix(target, "anon_inode:[event") || strings.HasSuffix(target, "/fd") || strings.HasPrefix(target, "/sys/fs/cgroup/") {
			continue
		}
		found[entry.Name()] = target
	}
	return found
}

func upperDirectory() string {
	text, _ := os.ReadFile("/proc/self/mountinfo")
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		if len(fields) < 5 || fields[4] != "/" {
			continue
		}
		for _, option := range strings.Split(fields[len(fields)-1], ",") {
			if upper, ok := strings.CutPrefix(option, "upperdir="); ok {
				return upper
			}
		}
	}
	return ""
}

func files(dir string) (map[string]string, error) {
	found := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || path == dir {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		found[path] = fmt.Sprintf("%v", info.Mode())
		if info.Mode().IsRegular() {
			found[path] += " " + strconv.FormatInt(info.Size(), 10)
		}
		return nil
	})
	return found, err
}

// peek reports whether a file could be read or a directory listed.
func peek(s *state, path string) error {
	if s.peeks == nil {
		s.peeks = map[string]string{}
	}
	s.peeks[path] = "readable"
	f, err := os.Open(path)
	if err == nil {
		defer f.Close()
		if _, err = f.Read(make([]byte, 1)); errors.Is(err, syscall.EISDIR) {
			_, err = f.Readdirnames(1)
		}
		if errors.Is(err, io.EOF) {
			err = nil
		}
	}
	if err != nil {
		var errno syscall.Errno
		if !errors.As(err, &errno) {
			return err
		}
		s.peeks[path] = errno.Error()
	}
	return nil
}

// suid runs a setuid shell that waits for input, and asks the kernel for the user
// of that process.
func suid(s *state, path string) error {
	if s.suids == nil {
		s.suids = map[string]facts.Setuid{}
	}
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	result := facts.Setuid{Mode: info.Mode().String(), Owner: int(info.Sys().(*syscall.Stat_t).Uid), Effective: -1}
	defer func() { s.suids[path] = result }()
	command := exec.Command(path, "-p")
	input, err := command.StdinPipe()
	if err != nil {
		return err
	}
	if err := command.Start(); err != nil {
		result.Error = err.Error()
		return nil
	}
	// Start returns after the exec, so the ids are the program's.
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", command.Process.Pid))
	if err != nil {
		result.Error = err.Error()
	}
	for line := range strings.Lines(string(text)) {
		if fields := strings.Fields(line); fields[0] == "Uid:" {
			result.Effective, err = strconv.Atoi(fields[2])
		}
	}
	input.Close()
	if waited := command.Wait(); waited != nil && result.Error == "" {
		result.Error = waited.Error()
	}
	return err
}
