package payload

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// maxRecord bounds an exit record, which is well below 4 KiB.
const maxRecord = 64 << 10

// ExitRecordName is the name of an activation's exit record in the control
// directory.
func ExitRecordName(activation string) string { return "exit." + activation + ".json" }

// ReadExit reads the exit record of an activation from a control directory. If there is
// none, the error is [ErrNoRecord].
func ReadExit(dir, activation string) (Exit, error) {
	if !ValidActivation(activation) {
		return Exit{}, fmt.Errorf("read exit record: %.40q is not a valid activation name", activation)
	}
	path := filepath.Join(dir, ExitRecordName(activation))
	//nolint:forbidigo // the control directory is closed to payloads
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return Exit{}, fmt.Errorf("%w %s", ErrNoRecord, path)
	}
	if err != nil {
		return Exit{}, fmt.Errorf("read exit record: %w", err)
	}
	defer f.Close()
	// A wrapper that is no root has a directory that its payload can change, too: a pipe would keep this process waiting.
	if info, err := f.Stat(); err != nil {
		return Exit{}, fmt.Errorf("read exit record: %w", err)
	} else if !info.Mode().IsRegular() {
		return Exit{}, fmt.Errorf("read exit record: %s is no regular file", path)
	}
	data, err := io.ReadAll(io.LimitReader(f, maxRecord+1))
	if err != nil {
		return Exit{}, fmt.Errorf("read exit record: %w", err)
	}
	exit, err := DecodeExit(data)
	if err != nil {
		return Exit{}, fmt.Errorf("exit record %s: %w", path, err)
	}
	if exit.Activation != activation {
		return Exit{}, fmt.Errorf("exit record %s belongs to activation %q", path, exit.Activation)
	}
	return exit, nil
}

// DecodeExit decodes an exit record.
func DecodeExit(data []byte) (Exit, error) {
	if len(data) > maxRecord {
		return Exit{}, fmt.Errorf("the record has more than %d bytes", maxRecord)
	}
	var e Exit
	err := unmarshalStrict(data, &e)
	return e, err
}

// RemoveExit removes the exit record of an activation. A missing record is not an error.
func RemoveExit(dir, activation string) error {
	if !ValidActivation(activation) {
		return fmt.Errorf("remove exit record: %.40q is not a valid activation name", activation)
	}
	err := os.Remove(filepath.Join(dir, ExitRecordName(activation)))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
