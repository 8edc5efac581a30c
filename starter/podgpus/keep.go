package podgpus

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"

	"podstarter/condor/gpus"
	"podstarter/internal/atomicfile"
)

const (
	knownFile     = "gpus.json"
	publishedFile = "podstarter.gpus"
	maxFile       = 1 << 20
)

// known is what was found in a pod.
type known struct {
	// Pod is the pod's identity: another pod of its name has other devices.
	Pod        string           `json:"pod"`
	Containers []gpus.Container `json:"containers"`
}

// of gives what one container has, if that is known.
func (k known) of(container string) (gpus.Container, bool) {
	i := slices.IndexFunc(k.Containers, func(c gpus.Container) bool { return c.Name == container })
	if i < 0 || len(k.Containers[i].Devices) == 0 {
		return gpus.Container{}, false
	}
	return k.Containers[i], true
}

// load reads what was found. The directory is the starters' own.
func (p Pod) load() (known, error) {
	dir, err := os.OpenRoot(p.StateDir)
	if err != nil {
		return known{}, err
	}
	defer dir.Close()
	data, err := readSmall(dir, knownFile)
	if err != nil {
		return known{}, err
	}
	var k known
	if err := json.Unmarshal(data, &k); err != nil {
		return known{}, fmt.Errorf("decode %s: %w", knownFile, err)
	}
	return k, nil
}

func (p Pod) save(k known) error {
	data, err := json.Marshal(k)
	if err == nil {
		err = replace(p.StateDir, knownFile, data, 0o600)
	}
	if err != nil {
		return fmt.Errorf("note which GPUs there are: %w", err)
	}
	return nil
}

func (p Pod) publish(text string) error {
	return replace(p.PublishDir, publishedFile, []byte(text), 0o644)
}

func replace(dir, name string, data []byte, mode fs.FileMode) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	return atomicfile.Replace(root, name, data, atomicfile.Options{Mode: mode})
}

func readSmall(dir *os.Root, name string) ([]byte, error) {
	f, err := dir.OpenFile(name, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err == nil && len(data) > maxFile {
		err = fmt.Errorf("%s is longer than %d bytes", name, maxFile)
	}
	return data, err
}

// Tried says whether somebody has looked for GPUs since the pilot container was made.
func (p Pod) Tried() bool {
	dir, err := os.OpenRoot(p.PublishDir)
	if err != nil {
		return false
	}
	defer dir.Close()
	_, err = dir.Lstat(publishedFile)
	return err == nil
}

// Print writes what is published for the startd, which reads it as the user condor. Without
// containers with GPUs, there are none.
func (p Pod) Print(out io.Writer) error {
	text, err := p.published()
	if err != nil {
		text, _ = gpus.Inventory(nil, err.Error())
	}
	_, failed := io.WriteString(out, text)
	return errors.Join(err, failed)
}

func (p Pod) published() (string, error) {
	if len(p.WithGPUs) == 0 {
		return gpus.Inventory(nil, "")
	}
	dir, err := os.OpenRoot(p.PublishDir)
	if err != nil {
		return "", fmt.Errorf("read which GPUs there are: %w", err)
	}
	defer dir.Close()
	info, err := dir.Lstat(publishedFile)
	if errors.Is(err, fs.ErrNotExist) {
		return "", errors.New("nobody has looked for GPUs: condor_pod_starter -classad does, and StarterLog.testing says why it did not")
	}
	if err != nil {
		return "", fmt.Errorf("read which GPUs there are: %w", err)
	}
	if stat, ok := info.Sys().(*syscall.Stat_t); !info.Mode().IsRegular() || ok && stat.Uid != 0 && int(stat.Uid) != os.Geteuid() {
		return "", fmt.Errorf("%s in %s is not a file of root or of user %d", publishedFile, p.PublishDir, os.Geteuid())
	}
	data, err := readSmall(dir, publishedFile)
	return string(data), err
}

// Holders names the payload containers in which a job may run whose slot has been assigned
// these GPUs, a list of names or nothing. It is nil for a pod without containers with GPUs:
// then all may.
func (p Pod) Holders(assigned string) ([]string, error) {
	if len(p.WithGPUs) == 0 {
		return nil, nil
	}
	k, err := p.load()
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("read which GPUs there are: %w", err)
	}
	var all []gpus.Container
	for _, name := range p.Containers {
		if !slices.Contains(p.WithGPUs, name) {
			all = append(all, gpus.Container{Name: name})
		} else if c, ok := k.of(name); ok {
			all = append(all, c)
		}
	}
	return gpus.Holders(all, assigned)
}

// Found gives what is known of the containers with GPUs, and the names of those of which nothing is.
func (p Pod) Found() (found []gpus.Container, missing []string) {
	k, _ := p.load() // then nothing is known
	for _, name := range p.WithGPUs {
		if c, ok := k.of(name); ok {
			found = append(found, c)
		} else {
			missing = append(missing, name)
		}
	}
	return found, missing
}

// Uneven says whether containers have different numbers of GPUs. A startd cannot cut slots from one
// slot so that each has all GPUs of a container, then.
func (p Pod) Uneven() bool {
	found, _ := p.Found()
	return len(found) > 0 && gpus.Each(found) == 0
}
