package harness

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
)

// File is one file of a job's submit directory.
type File struct {
	Name    string
	Mode    os.FileMode // 0 means 0644
	Content []byte
	Link    string // when set, the file is a hard link to this one of this machine instead
	Sparse  int64  // when above 0, the file is this long and holds nothing
	Symlink string // when set, it is a symbolic link that leads there instead
}

// Submission is a job as an ordinary user would write it.
type Submission struct {
	Name         string // part of the directory's name
	Side         Side
	Requirements string // in addition to those that pick the side
	Commands     string // of the submit file: one a line, without log and queue
	Files        []File
	Count        int      // jobs of the cluster, 0 means 1
	Queue        string   // queue statement, when it is not "queue Count"
	Options      []string // of condor_submit
}

// Job is one submitted job.
type Job struct {
	Cluster, Proc int
	Dir           string // submit directory on this machine
	Log           string // event log on this machine
	Side          Side
	Owner         string // who submitted it
	pool          *Pool
	marks         LogMarks // where the logs of its execution point ended when the job was submitted
}

// ID is the job's name in HTCondor's tools.
func (j Job) ID() string { return fmt.Sprintf("%d.%d", j.Cluster, j.Proc) }

var (
	tersePattern = regexp.MustCompile(`(\d+)\.(\d+) - (\d+)\.(\d+)`)
	sequence     atomic.Int64
)

// Submit writes the submit directory and calls condor_submit in it. All jobs
// of one submission share an event log.
func (p *Pool) Submit(ctx context.Context, s Submission) ([]Job, error) {
	if s.Count == 0 {
		s.Count = 1
	}
	s.Commands = p.imageMacros(s.Commands) + s.Commands
	name := fmt.Sprintf("%s-%s-%d-%d", s.Name, s.Side, os.Getpid(), sequence.Add(1))
	dir := filepath.Join(p.User.Visible, "jobs", name)
	inside := filepath.Join(p.User.Home, "jobs", name)
	if err := p.writeFiles(dir, append(s.Files, File{Name: "job.sub", Content: []byte(s.text(inside))})); err != nil {
		return nil, fmt.Errorf("writing job %s: %w", s.Name, err)
	}
	// A new pool numbers jobs from the beginning: lines that the logs already have
	// are about others.
	marks, err := p.MarkLogs(s.Side)
	if err != nil {
		return nil, err
	}
	out, err := p.AP(ctx, append([]string{"sh", "-c", `cd "$1" && shift && exec condor_submit -terse "$@" job.sub`, "submit", inside}, s.Options...)...)
	if err != nil {
		return nil, fmt.Errorf("submitting %s: %w\n%s", s.Name, err, s.text(inside))
	}
	m := tersePattern.FindStringSubmatch(out)
	if m == nil {
		return nil, fmt.Errorf("submitting %s: condor_submit said %q", s.Name, out)
	}
	cluster, _ := strconv.Atoi(m[1])
	jobs := make([]Job, s.Count)
	for i := range jobs {
		jobs[i] = Job{Cluster: cluster, Proc: i, Dir: dir, Log: filepath.Join(dir, "job.log"), Side: s.Side, Owner: p.User.Name, pool: p, marks: marks}
	}
	return jobs, nil
}

// imageMacros are lines of a submit description that define the references of images which
// commands, the rest of it, use: $(IMAGE_busybox), $(REGISTRY) for their registry, $(PRIVATE_REGISTRY) for the same one where it wants a
// password, and $(IMAGE_FILES) for the directory of those that are files.
func (p *Pool) imageMacros(commands string) string {
	var used strings.Builder
	for name, reference := range p.Images {
		registry, _, _ := strings.Cut(reference, "/")
		for macro, value := range map[string]string{"IMAGE_" + name: reference, "REGISTRY": registry, "PRIVATE_REGISTRY": PrivateRegistry(registry), "IMAGE_FILES": filepath.Join(p.User.Home, imageFiles)} {
			if strings.Contains(commands, "$("+macro+")") && !strings.Contains(used.String(), macro+" = ") {
				fmt.Fprintf(&used, "%s = %s\n", macro, value)
			}
		}
	}
	return used.String()
}

// PrivateRegistry is where a registry of the pool wants a password.
func PrivateRegistry(registry string) string {
	return strings.Replace(registry, "127.0.0.1:", "127.0.0.2:", 1)
}

// PrivateLogin is the user who may pull there, and the password. The submit side's user has them as docker login keeps them.
const PrivateLogin = "scientist:not for everybody"

// SubmitOne is Submit for a submission of one job.
func (p *Pool) SubmitOne(ctx context.Context, s Submission) (Job, error) {
	jobs, err := p.Submit(ctx, s)
	if err != nil {
		return Job{}, err
	}
	return jobs[0], nil
}

// text is the submit file. The path of the log is absolute, because a job may have
// another initial directory.
func (s Submission) text(dir string) string {
	requirements := s.Side.Requirements()
	if s.Requirements != "" {
		requirements += " && (" + s.Requirements + ")"
	}
	queue := s.Queue
	if queue == "" {
		queue = fmt.Sprintf("queue %d", s.Count)
	}
	return strings.Join([]string{
		"DIRECTORY = " + dir, // for the commands to use
		strings.TrimRight(s.Commands, "\n"),
		"requirements = " + requirements,
		"log = " + filepath.Join(dir, "job.log"),
		queue,
		"",
	}, "\n")
}

// writeFiles makes a directory with files that belong to the pool's user.
func (p *Pool) writeFiles(dir string, files []File) error {
	made := []string{filepath.Dir(dir), dir}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for _, f := range files {
		path := filepath.Join(dir, f.Name)
		for parent := filepath.Dir(path); parent != dir; parent = filepath.Dir(parent) {
			made = append(made, parent)
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if f.Link != "" {
			if err := os.Link(f.Link, path); err != nil {
				return err
			}
			continue
		}
		if f.Symlink != "" {
			if err := os.Symlink(f.Symlink, path); err != nil {
				return err
			}
			made = append(made, path)
			continue
		}
		mode := f.Mode
		if mode == 0 {
			mode = 0o644
		}
		if err := os.WriteFile(path, f.Content, mode); err != nil {
			return err
		}
		if f.Sparse > 0 {
			if err := os.Truncate(path, f.Sparse); err != nil {
				return err
			}
		}
		made = append(made, path)
	}
	for _, path := range made {
		if err := os.Lchown(path, p.User.UID, p.User.GID); err != nil {
			return err
		}
	}
	return nil
}

// Events reads the job's event log as it is now.
func (j Job) Events() ([]Event, error) {
	text, err := os.ReadFile(j.Log)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return j.events(text)
}

func (j Job) events(text []byte) ([]Event, error) {
	events, err := ParseEvents(string(text))
	return slices.DeleteFunc(events, func(e Event) bool { return e.Cluster != j.Cluster || e.Proc != j.Proc }), err
}

// WaitEvents returns the job's events when enough accepts them.
func (j Job) WaitEvents(ctx context.Context, what string, enough func([]Event) bool) ([]Event, error) {
	var events []Event
	err := WaitFile(ctx, j.Log, func(text []byte) (bool, error) {
		var err error
		events, err = j.events(text)
		return err == nil && enough(events), err
	})
	if err != nil {
		return events, fmt.Errorf("job %s, waiting for %s: %w; its events so far: %s", j.ID(), what, err, Headlines(events))
	}
	return events, nil
}

// WaitEvent returns the n-th event (from 1) of a kind. It fails at once if the job
// ends or is held before.
func (j Job) WaitEvent(ctx context.Context, number, n int) (Event, error) {
	var found *Event
	var ended *Ending
	_, err := j.WaitEvents(ctx, fmt.Sprintf("event %03d", number), func(events []Event) bool {
		seen := 0
		for _, e := range events {
			if e.Number == number {
				if seen++; seen == n {
					found = &e
					return true
				}
			}
			if ending, ok := EndingOf(e); ok {
				ended = &ending
			}
		}
		// A job on hold may still be released or removed.
		return ended != nil && !(ended.Held && (number == EventReleased || number == EventAborted))
	})
	if err != nil {
		return Event{}, err
	}
	if found == nil {
		return Event{}, fmt.Errorf("job %s ended before event %03d: %s", j.ID(), number, ended)
	}
	return *found, nil
}

// WaitEnding returns how the job ended, or that it was put on hold.
func (j Job) WaitEnding(ctx context.Context) (Ending, error) {
	var ending Ending
	_, err := j.WaitEvents(ctx, "its end", func(events []Event) bool {
		for _, e := range slices.Backward(events) {
			if e.Number == EventReleased {
				return false
			}
			var ok bool
			if ending, ok = EndingOf(e); ok {
				return true
			}
		}
		return false
	})
	return ending, err
}

// Output reads a file of the submit directory.
func (j Job) Output(name string) (string, error) {
	text, err := os.ReadFile(filepath.Join(j.Dir, name))
	return string(text), err
}

// Tool runs an HTCondor tool of the submit side for this job, such as condor_rm or
// condor_vacate_job.
func (j Job) Tool(ctx context.Context, argv ...string) error {
	_, err := j.pool.AP(ctx, append(argv, j.ID())...)
	return err
}

// Headlines is the sequence of events on one line.
func Headlines(events []Event) string {
	var lines []string
	for _, e := range events {
		lines = append(lines, fmt.Sprintf("%03d %s", e.Number, e.Headline))
	}
	return strings.Join(lines, "; ")
}
