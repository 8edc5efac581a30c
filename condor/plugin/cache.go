package plugin

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"podstarter/internal/atomicfile"
)

// Key identifies a plugin's file at the time of its answer.
type Key struct {
	Path  string `json:"path"`
	Size  int64  `json:"size"`
	MTime int64  `json:"mtime_ns"` // nanoseconds since 1970
	Inode uint64 `json:"inode"`
}

// Answer is what a plugin said about itself.
type Answer struct {
	Key
	Text    string `json:"answer,omitempty"`
	Trouble string `json:"trouble,omitempty"` // why there is no answer
	Asked   int64  `json:"asked"`             // seconds since 1970
}

// troubleTime is how long a plugin that gave no answer is not asked again. An answer
// is valid until the file changes.
const troubleTime = 5 * time.Minute

func (a Answer) stale(now time.Time) bool {
	return a.Trouble != "" && now.Sub(time.Unix(a.Asked, 0)).Abs() > troubleTime
}

func keyOf(path string) (Key, error) {
	st, err := os.Stat(path)
	if err != nil {
		return Key{}, err
	}
	sys, ok := st.Sys().(*syscall.Stat_t)
	if !ok || !st.Mode().IsRegular() {
		return Key{}, &fs.PathError{Op: "execute", Path: path, Err: syscall.EACCES}
	}
	return Key{Path: path, Size: st.Size(), MTime: st.ModTime().UnixNano(), Inode: sys.Ino}, nil
}

func unwrapPath(err error) error {
	if p := (*fs.PathError)(nil); errors.As(err, &p) {
		return p.Err
	}
	return err
}

// Cache keeps answers for later starters of an execution point, so that a job with a
// URL does not wait for interpreters to start. It is a file in a directory that only
// this process's user may write to. A nil Cache keeps nothing.
type Cache struct {
	dir string
}

// CacheFile is the name of the file.
const CacheFile = "transfer-plugins.json"

// Bounds of the file.
const (
	maxAnswer = 64 << 10
	maxCache  = 4 << 20
)

// OpenCache returns the cache in a directory, whose path is trusted. The file need
// not exist yet.
func OpenCache(dir string) *Cache { return &Cache{dir: dir} }

type cacheFile struct {
	Version int      `json:"version"`
	Plugins []Answer `json:"plugins"`
}

const cacheVersion = 1

// parseCache reads a cache file; an invalid one counts as empty.
func parseCache(data []byte) (map[string]Answer, error) {
	var file cacheFile
	in := json.NewDecoder(bytes.NewReader(data))
	in.DisallowUnknownFields()
	if err := in.Decode(&file); err != nil {
		return nil, err
	}
	if file.Version != cacheVersion || len(file.Plugins) > mostPlugins {
		return nil, fmt.Errorf("version %d with %d plugins was not written by this program", file.Version, len(file.Plugins))
	}
	known := map[string]Answer{}
	for _, a := range file.Plugins {
		if a.Path != "" && len(a.Text) <= maxAnswer && len(a.Trouble) <= maxAnswer && (a.Text == "") != (a.Trouble == "") {
			known[a.Path] = a
		}
	}
	return known, nil
}

func (c *Cache) read(log *slog.Logger) map[string]Answer {
	if c == nil {
		return nil
	}
	path := filepath.Join(c.dir, CacheFile)
	data, err := readOwn(path)
	if err == nil {
		var known map[string]Answer
		if known, err = parseCache(data); err == nil {
			return known
		}
	}
	if !errors.Is(err, fs.ErrNotExist) {
		log.Warn("The cached answers of plugins cannot be used; all plugins are asked again", "file", path, "error", err)
	}
	return nil
}

// readOwn reads a file only if nobody else can have written it.
func readOwn(path string) ([]byte, error) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	f := os.NewFile(uintptr(fd), path)
	defer f.Close()
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return nil, &fs.PathError{Op: "stat", Path: path, Err: err}
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG || int(st.Uid) != os.Geteuid() || st.Mode&0o022 != 0 {
		return nil, &fs.PathError{Op: "trust", Path: path, Err: errors.New("others may write to it")}
	}
	data, err := io.ReadAll(io.LimitReader(f, maxCache+1))
	if err == nil && len(data) > maxCache {
		err = &fs.PathError{Op: "read", Path: path, Err: syscall.EFBIG}
	}
	return data, err
}

// write replaces the file. A failure only costs the next job time.
func (c *Cache) write(answers []Answer, log *slog.Logger) {
	if c == nil {
		return
	}
	file := cacheFile{Version: cacheVersion, Plugins: []Answer{}}
	for _, a := range answers {
		if a.Asked != 0 {
			file.Plugins = append(file.Plugins, a)
		}
	}
	data, err := json.Marshal(file)
	if err == nil && len(data) <= maxCache {
		err = replace(c.dir, CacheFile, data)
	}
	if err != nil {
		log.Debug("The answers of plugins could not be cached", "error", err)
	}
}

// replace replaces a file in a directory that only this user can write to.
func replace(dir, name string, data []byte) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	return atomicfile.Replace(root, name, data, atomicfile.Options{Mode: 0o600})
}
