package inventory

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
)

// maxList bounds each list, in bytes: that of a million files with names of 250 bytes.
const maxList = 256 << 20

// Sandbox writes files as the job's user and leads nowhere else; a
// [podstarter/sandbox.Sandbox] does.
type Sandbox interface {
	Mkdir(name string, mode fs.FileMode) error
	WriteList(ctx context.Context, name string, limit int64) error
	OverwriteFile(name string, data []byte) error
}

// Inventory is the manifest of one job. The zero value is that of a job which wants none.
// One goroutine uses it.
type Inventory struct {
	dir     string
	sandbox Sandbox
	log     *slog.Logger
	made    bool
}

// New returns the inventory of a job that wants it in this directory of its sandbox; dir
// may be empty.
func New(dir string, s Sandbox, log *slog.Logger) Inventory {
	return Inventory{dir: dir, sandbox: s, log: log}
}

// Before lists what the job will find, when its input has come
// (condor_starter.V6.1/jic_shadow.cpp:doneWithInputTransfer).
func (v *Inventory) Before(ctx context.Context) { v.list(ctx, "in") }

// After lists what the job has left, before its output is sent
// (jic_shadow.cpp:transferOutputStart).
func (v *Inventory) After(ctx context.Context) { v.list(ctx, "out") }

// Environment writes the job's variables when it begins, as HTCondor shows them, which
// shown returns (os_proc.cpp:StartJob).
func (v *Inventory) Environment(shown func() (string, error)) {
	v.keep("environment", func(name string) error {
		text, err := shown()
		if err != nil {
			return err
		}
		return v.sandbox.OverwriteFile(name, []byte(text+"\n"))
	})
}

func (v *Inventory) list(ctx context.Context, name string) {
	v.keep(name, func(name string) error { return v.sandbox.WriteList(ctx, name, maxList) })
}

// keep has one of the files written. What does not work, such as in a directory that the
// job has closed, is the job's loss and no reason to stop it.
func (v *Inventory) keep(name string, write func(name string) error) {
	if v.dir == "" {
		return
	}
	const mode fs.FileMode = 0o700
	var err error
	for at := range v.dir {
		if v.dir[at] == '/' && err == nil {
			err = v.sandbox.Mkdir(v.dir[:at], mode)
		}
	}
	if err == nil {
		err = v.sandbox.Mkdir(v.dir, mode)
	}
	v.made = err == nil
	if err == nil {
		err = write(v.dir + "/" + name)
		v.made = !errors.Is(err, fs.ErrPermission) // a directory that the job has closed cannot be returned
	}
	if err != nil {
		v.log.Warn("Part of the job's manifest is missing", "directory", v.dir, "file", name, "error", err)
	}
}

// Output names the directory for the output; nothing if there is none.
func (v *Inventory) Output() []string {
	if !v.made {
		return nil
	}
	return []string{v.dir}
}
