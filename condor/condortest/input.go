package condortest

import (
	"os"
	"path/filepath"
	"strings"

	"podstarter/internal/cedar"
)

// input is what the job's ad has as input, as a shadow would find it.
func (s *Shadow) input() (items []Item, err error) {
	if o := s.transferOptions(); o.Items != nil {
		return o.Items, nil
	}
	job := s.Job()
	var names []string
	proxy := job.StringOr("x509userproxy", "")
	if proxy != "" {
		it := Item{Command: ItemProxy, Name: filepath.Base(proxy)}
		if path, err := s.path(proxy); err == nil {
			data, _ := os.ReadFile(path) // it counts for the size of the input
			it.Data = string(data)
		}
		items = append(items, it)
	}
	for name := range strings.SplitSeq(job.StringOr("TransferInput", ""), ",") {
		if name = strings.TrimSpace(name); name != "" && name != proxy {
			names = append(names, name)
		}
	}
	if in := job.StringOr("In", "/dev/null"); in != "/dev/null" && job.BoolOr("TransferIn", true) {
		names = append(names, in)
	}
	if job.BoolOr("TransferExecutable", true) {
		names = append(names, job.StringOr("Cmd", ""))
	}
	for _, name := range names {
		if strings.Contains(name, "://") {
			items = append(items, Item{Command: ItemURL, Name: filepath.Base(name), URL: name})
			continue
		}
		more, err := s.file(name)
		if items = append(items, more...); err != nil {
			return items, err
		}
	}
	return items, nil
}

// file makes items of a file, or of a directory and all that is in it.
func (s *Shadow) file(name string) (items []Item, err error) {
	path, err := s.path(name)
	if err != nil {
		return []Item{missing(name)}, &os.PathError{Op: "open", Path: s.submitName(name), Err: err}
	}
	base := filepath.Base(name)
	err = filepath.Walk(path, func(at string, st os.FileInfo, err error) error {
		if err != nil {
			items = append(items, missing(name))
			return &os.PathError{Op: "open", Path: s.submitName(name), Err: errnoOf(err)}
		}
		to := filepath.Join(base, strings.TrimPrefix(at, path))
		if st.IsDir() {
			items = append(items, Item{Command: ItemDirectory, Name: to, Mode: int64(st.Mode()&0o777) | 0o40000})
			return nil
		}
		data, err := os.ReadFile(at)
		items = append(items, Item{Command: ItemFile, Name: to, Mode: int64(st.Mode() & 0o777), Data: string(data)})
		return err
	})
	return items, err
}

// submitName is the whole name of a file at the access point.
func (s *Shadow) submitName(name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(s.iwd, name)
}

// missing is a file that cannot be read: it has no permissions, and no contents.
func missing(name string) Item {
	return Item{Command: ItemFile, Name: filepath.Base(name), Send: func(s *cedar.Stream) error {
		const end = 666 // reli_sock.h: PUT_FILE_EOM_NUM
		for _, numbers := range [][]int64{{cedar.MissingPermissions}, {0, 1}, {end}} {
			for _, n := range numbers {
				s.PutInt(n)
			}
			if err := s.EndMessage(); err != nil {
				return err
			}
		}
		return nil
	}}
}
