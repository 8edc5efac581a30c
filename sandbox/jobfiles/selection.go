package jobfiles

import (
	"context"
	"iter"
	"log/slog"
	"slices"

	"golang.org/x/sys/unix"

	"podstarter/sandbox/beneath"
)

// Selection is the list of names to upload, before directories are expanded
// (DetermineWhichFilesToSend, FindChangedFiles).
type Selection struct {
	Names   []string // requested by name
	Encrypt bool     // the encryption lists apply

	// For a job that names no output: everything at the top of the sandbox
	// that is new or has changed. Names then are those added while the job
	// ran, which count even if nothing changed.
	Changed      bool
	before       Catalog
	skip         []string // executable, proxy
	intermediate []string // saved by an earlier run, to be returned again
}

// Wanted is what an upload is asked for.
type Wanted struct {
	Kind    Kind
	Added   []string // names that joined the output while the job ran
	Removed []string // names that left it, and those never to be sent
}

// Select chooses what an upload returns. before is nil if input never
// arrived.
func Select(j *Files, u Wanted, before Catalog) Selection {
	added := slices.DeleteFunc(slices.Clone(u.Added), func(name string) bool {
		return slices.Contains(u.Removed, name)
	})
	if j.KeepStarterLog && !slices.Contains(added, starterLogName) {
		added = append(added, starterLogName)
	}
	switch {
	case u.Kind == Checkpoint && j.HasCheckpoint:
		return Selection{Names: j.WithStdio(j.Checkpoint)} // its encryption lists are empty in HTCondor
	case u.Kind == Failure:
		names := j.WithStdio(j.Failure)
		if j.KeepStarterLog && len(names) > 0 && !slices.Contains(names, starterLogName) {
			names = append(slices.Clip(names), starterLogName)
		}
		return Selection{Names: names}
	case j.HasOutput:
		return Selection{Names: union(j.WithStdio(j.Output), added), Encrypt: true}
	case before == nil:
		return Selection{Names: added, Encrypt: true}
	}
	s := Selection{Names: added, Encrypt: true, Changed: true, before: before}
	if j.Executable != "" {
		s.skip = append(s.skip, j.Executable)
	}
	if j.Proxy != "" {
		s.skip = append(s.skip, BaseName(j.Proxy))
	}
	if u.Kind.Final() {
		s.intermediate = j.Intermediate
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

// each visits the names of the selection, as the identity of the calling thread. A
// search for changed files holds nothing in memory; if it finds nothing, each still
// visits the names that were added. left hears of what the search has to leave out, and
// of a sandbox that the job has closed.
func (s *Selection) each(ctx context.Context, root *beneath.Root, log *slog.Logger, visit func(name string) error, left func(name string, err error)) error {
	if !s.Changed {
		return visitAll(slices.Values(s.Names), visit)
	}
	found := false
	err := EachTop(root, func(name string, st *unix.Stat_t) error {
		if err := ctx.Err(); err != nil {
			return context.Cause(ctx)
		}
		if why := s.why(name, st); why != "" {
			log.Debug("file to return", "name", name, "because", why)
			found = true
			return visit(name)
		}
		return nil
	}, func(name string, err error) {
		if !slices.Contains(s.skip, name) {
			left(name, err)
		}
	})
	if isAny(err, unix.EACCES, unix.EPERM) {
		left(".", err)
		err = nil
	}
	if err == nil && !found {
		err = visitAll(slices.Values(s.Names), visit)
	}
	return err
}

// why gives the reason to return a file at the top of the sandbox, empty if there is
// none.
func (s *Selection) why(name string, st *unix.Stat_t) string {
	if slices.Contains(s.skip, name) {
		return ""
	}
	added := slices.Contains(s.Names, name)
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
