package registry

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/opencontainers/go-digest"

	"podstarter/internal/atomicfile"
	"podstarter/k8sexec/privatedir"
)

const (
	// keptDir is the directory below the private one.
	keptDir = "registry"
	// maxKept bounds the files of each kind in it; the oldest go.
	maxKept = 256
	// maxKeptFile bounds a file, in bytes: the volume of the private directory is small. What is longer is
	// asked for each time.
	maxKeptFile = 8 << 10
	// unreachedTime is how long a registry is left alone that was not reached.
	unreachedTime = time.Minute

	commandPrefix   = "command-"
	unreachedPrefix = "unreached-"
)

// kept gives a command that some starter has read.
func (c *Client) kept(d digest.Digest) (Command, bool) {
	private, err := privatedir.Open(c.opt.PrivateDir)
	if err != nil {
		return Command{}, false
	}
	defer private.Close()
	text, err := privatedir.Read(private, keptDir+"/"+commandFile(d), maxKeptFile)
	if err != nil {
		return Command{}, false
	}
	var kept Command
	if err := json.Unmarshal(text, &kept); err != nil || kept.check() != nil {
		return Command{}, false // the next answer replaces it
	}
	return kept, true
}

// commandFile is the name of the file with a command. A digest was validated: it has no slash.
func commandFile(d digest.Digest) string {
	return commandPrefix + strings.ReplaceAll(d.String(), ":", "-")
}

// keep keeps a command. The next job asks again if that fails.
func (c *Client) keep(d digest.Digest, found Command) {
	text, err := json.Marshal(found)
	if err == nil && len(text) <= maxKeptFile {
		err = c.write(commandPrefix, commandFile(d), text)
	}
	if err != nil {
		c.opt.Log.Warn("Cannot keep the command of an image", "digest", d, "error", err)
	}
}

// unreached is an error for a registry that was not reached a short time ago.
func (c *Client) unreached(host string) error {
	private, err := privatedir.Open(c.opt.PrivateDir)
	if err != nil {
		return nil //nolint:nilerr // nothing is known: ask
	}
	defer private.Close()
	info, err := private.Stat(keptDir + "/" + unreachedFile(host))
	if err != nil {
		return nil //nolint:nilerr // nothing is known: ask
	}
	if age := c.now().Sub(info.ModTime()); age >= 0 && age < unreachedTime {
		return fmt.Errorf("the pilot container did not reach %s %s ago, and does not try again before %s are over", host, age.Round(time.Second), unreachedTime)
	}
	return nil
}

func unreachedFile(host string) string {
	sum := sha256.Sum256([]byte(host))
	return unreachedPrefix + hex.EncodeToString(sum[:16])
}

func (c *Client) noteUnreached(host string) {
	if err := c.write(unreachedPrefix, unreachedFile(host), nil); err != nil {
		c.opt.Log.Warn("Cannot note that a registry is not reached", "registry", host, "error", err)
	}
}

// write puts a file in place, and makes room for it among those of its kind.
func (c *Client) write(prefix, name string, text []byte) error {
	private, err := privatedir.Open(c.opt.PrivateDir)
	if err != nil {
		return fmt.Errorf("opening the private directory: %w", err)
	}
	defer private.Close()
	if err := private.Mkdir(keptDir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("making the directory for what registries told: %w", err)
	}
	dir, err := private.OpenRoot(keptDir)
	if err != nil {
		return fmt.Errorf("opening the directory for what registries told: %w", err)
	}
	defer dir.Close()
	if err := makeRoom(dir, prefix); err != nil {
		return err
	}
	return atomicfile.Replace(dir, name, text, atomicfile.Options{Mode: 0o600})
}

// makeRoom removes the oldest files of too many with that prefix.
func makeRoom(dir *os.Root, prefix string) error {
	all, err := fs.ReadDir(dir.FS(), ".")
	if err != nil {
		return fmt.Errorf("listing what registries told: %w", err)
	}
	all = slices.DeleteFunc(all, func(e fs.DirEntry) bool { return !strings.HasPrefix(e.Name(), prefix) })
	if len(all) < maxKept {
		return nil
	}
	age := make(map[string]time.Time, len(all))
	for _, e := range all {
		if info, err := e.Info(); err == nil {
			age[e.Name()] = info.ModTime()
		}
	}
	slices.SortFunc(all, func(a, b fs.DirEntry) int {
		return cmp.Or(age[a.Name()].Compare(age[b.Name()]), strings.Compare(a.Name(), b.Name()))
	})
	for _, e := range all[:len(all)-maxKept+1] {
		if err := dir.Remove(e.Name()); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("making room for what registries tell: %w", err)
		}
	}
	return nil
}
