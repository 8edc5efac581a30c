package sandbox

import (
	"context"
	"iter"
	"log/slog"
	"slices"

	"golang.org/x/sys/unix"

	"podstarter/sandbox/beneath"
)

// selection is the list of names to upload, before directories are expanded
// (DetermineWhichFilesToSend, FindChangedFiles).
type selection struct {
	names   []string // what was asked for by name
	encrypt bool     // the encryption lists apply

	// For a job that names no output: everything at the top of the sandbox
	// that is new or has changed. names then are those added while the job
	// ran, which count even if nothing changed.
	changed      bool
	before       catalog
	skip         []string // executable, proxy
	intermediate []string // saved by an earlier run, to be returned again
}

// selectFiles chooses what an upload returns. before is nil if input never
// arrived.
func selectFiles(j *jobFiles, u Upload, before catalog) selection {
	added := slices.DeleteFunc(slices.Clone(u.Added), func(name string) bool {
		return slices.Contains(u.Removed, name)
	})
	if j.keepStarterLog && !slices.Contains(added, starterLogName) {
		added = append(added, starterLogName)
	}
	switch {
	case u.Kind == Checkpoint && j.hasCheckpoint:
		return selection{names: j.withStdio(j.checkpoint)} // its encryption lists are empty in HTCondor
	case u.Kind == Failure:
		names := j.withStdio(j.failure)
		if j.keepStarterLog && len(names) > 0 && !slices.Contains(names, starterLogName) {
			names = append(slices.Clip(names), starterLogName)
		}
		return selection{names: names}
	case j.hasOutput:
		return selection{names: union(j.withStdio(j.output), added), encrypt: true}
	case before == nil:
		return selection{names: added, encrypt: true}
	}
	s := selection{names: added, encrypt: true, changed: true, before: before}
	if j.executable != "" {
		s.skip = append(s.skip, j.executable)
	}
	if j.proxy != "" {
		s.skip = append(s.skip, baseName(j.proxy))
	}
	if u.Kind.final() {
		s.intermediate = j.intermediate
	}
	return s
}

func union(a, b []string) []string {
	a = slices.Clip(a)
	for _, name := range b {
		if !slices.Contains(a, name) {
			a = append(a, name)
		}
	}
	return a
}

// each visits the names of the selection, as the identity of the calling
// thread. Of a search for changed files nothing is held in memory; if it
// finds nothing, the names that were added are visited all the same.
func (s *selection) each(ctx context.Context, root *beneath.Root, log *slog.Logger, visit func(name string) error) error {
	if !s.changed {
		return visitAll(slices.Values(s.names), visit)
	}
	found := false
	err := eachTop(root, func(name string, st *unix.Stat_t) error {
		if err := ctx.Err(); err != nil {
			return context.Cause(ctx)
		}
		if why := s.why(name, st); why != "" {
			log.Debug("file to return", "name", name, "because", why)
			found = true
			return visit(name)
		}
		return nil
	})
	if err == nil && !found {
		err = visitAll(slices.Values(s.names), visit)
	}
	return err
}

// why says why a file at the top of the sandbox is returned, empty if it is
// not.
func (s *selection) why(name string, st *unix.Stat_t) string {
	if slices.Contains(s.skip, name) {
		return ""
	}
	added := slices.Contains(s.names, name)
	if st.Mode&unix.S_IFMT == unix.S_IFDIR {
		if added {
			return "added"
		}
		return ""
	}
	known, same := s.before.look(name, st)
	switch {
	case !known:
		return "new"
	case slices.Contains(s.intermediate, name):
		return "changed by an earlier run"
	case added:
		return "added"
	case !same:
		return "changed"
	}
	return ""
}

func visitAll(names iter.Seq[string], visit func(string) error) error {
	for name := range names {
		if err := visit(name); err != nil {
			return err
		}
	}
	return nil
}
