package main

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"podstarter/integration/images/probe/facts"
)

// account prints what the chaos test wants to know about this job. The argument is
// JOB:INPUT. The exit code follows from the input's content.
func account(s *state, argument string) error {
	job, input, _ := strings.Cut(argument, ":")
	content, err := os.ReadFile(input)
	if err != nil {
		return err
	}
	sum := sha256.Sum256(content)
	a := facts.Account{Job: job, Layer: upperDirectory(), UID: os.Getuid(), Digest: hex.EncodeToString(sum[:])}
	if name, err := os.ReadFile("/image-name"); err == nil {
		a.Image = strings.TrimSpace(string(name))
	}
	entries, err := os.ReadDir(".")
	if err != nil {
		return err
	}
	for _, e := range entries {
		a.Files = append(a.Files, e.Name())
	}
	if a.Others, err = others(a.UID); err != nil {
		return err
	}
	for _, place := range []string{"/", "/tmp", "/var/tmp", "/run", "/run/lock", "/home", "/root", "/opt", "/srv", "/dev/shm", "/dev/mqueue"} {
		met, err := leave(place, job, a.UID)
		if err != nil {
			return err
		}
		a.Met = append(a.Met, met...)
	}
	if a.Readable, err = neighbours(); err != nil {
		return err
	}
	s.code = a.ExitCode()
	text, err := json.Marshal(a)
	if err != nil {
		return err
	}
	return print(os.Stdout, string(text))
}

// others are the processes of a user except this one.
func others(uid int) ([]string, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, err
	}
	var found []string
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}
		info, err := os.Lstat("/proc/" + e.Name())
		if err != nil {
			continue // it went
		}
		if st, ok := info.Sys().(*syscall.Stat_t); ok && int(st.Uid) == uid {
			comm, _ := os.ReadFile("/proc/" + e.Name() + "/comm")
			found = append(found, e.Name()+" "+strings.TrimSpace(string(comm)))
		}
	}
	return found, nil
}

// markBegin begins the names of files that jobs leave for each other to find.
const markBegin = "chaos-"

// leave makes a file that no later job must find, and lists those of earlier ones. An
// image may have no such directory, or not let the job write. What is below /dev all
// containers of the pod share: there, other jobs that run have such files too, each as
// its own user.
func leave(dir, job string, uid int) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	mark := markBegin + job + "-" + strconv.Itoa(os.Getpid()) // jobs run again
	var met []string
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), markBegin) || e.Name() == mark {
			continue // ours, if one directory is a link to another
		}
		info, err := os.Lstat(filepath.Join(dir, e.Name()))
		if err != nil {
			continue // it went
		}
		st, ok := info.Sys().(*syscall.Stat_t)
		if strings.HasPrefix(dir, "/dev/") && ok && int(st.Uid) != uid {
			continue
		}
		met = append(met, filepath.Join(dir, e.Name()))
	}
	f, err := os.OpenFile(filepath.Join(dir, mark), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return met, nil // the job may not write there
	}
	return met, f.Close()
}

// neighbours are the directories of other jobs that can be read.
func neighbours() ([]string, error) {
	own, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	top := own
	for !strings.HasPrefix(filepath.Base(top), "dir_") {
		if top = filepath.Dir(top); top == "/" {
			return nil, fmt.Errorf("no sandbox above %s", own)
		}
	}
	entries, err := os.ReadDir(filepath.Dir(top))
	if err != nil {
		return nil, err
	}
	var found []string
	for _, e := range entries {
		dir := filepath.Join(filepath.Dir(top), e.Name())
		if dir == top {
			continue
		}
		for _, path := range []string{filepath.Join(dir, ".job.ad"), filepath.Join(dir, "scratch"), filepath.Join(dir, "user")} {
			if f, err := os.Open(path); err == nil {
				f.Close()
				found = append(found, path)
			}
		}
	}
	return found, nil
}

// end prints the last line of this job's output, and exits with the code of its
// account.
func end(s *state, _ string) error {
	if err := print(os.Stdout, facts.End); err != nil {
		return err
	}
	os.Exit(s.code)
	return nil
}
