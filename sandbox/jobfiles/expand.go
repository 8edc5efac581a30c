package jobfiles

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"strings"

	"golang.org/x/sys/unix"
)

// Item is one thing to send (FileTransferItem).
type Item struct {
	Source string // name in the sandbox, absolute path, or URL
	Dest   string // directory at the receiver, empty for its top
	Size   int64  // bytes, 0 for everything but regular files
	Mode   uint32 // permission bits
	Kind   ItemKind
	URL    string // where a plugin puts it, empty if it goes by CEDAR
	Err    error  // why it cannot be sent, if that is known already
}

// ItemKind is what an item is at the sender.
type ItemKind uint8

// Kinds of items.
const (
	PlainFile ItemKind = iota // also what could not be examined
	Directory
	LinkToDirectory
	SourceURL
)

// WireName is the name that the receiver gets.
func (i *Item) WireName() string {
	source := i.Source
	if i.Kind == SourceURL {
		source, _, _ = strings.Cut(source, "?")
	}
	base := BaseName(source)
	if base == "" {
		base = BaseName(strings.TrimRight(source, "/"))
	}
	return joinName(i.Dest, base)
}

// maxLeftTold is how many of the things that it leaves out one upload logs: a job can
// make millions of them.
const maxLeftTold = 100

// expander turns names into items (ExpandFileTransferList). Its methods act
// as the identity of the calling thread.
type expander struct {
	View
	ctx      context.Context
	log      *slog.Logger
	preserve bool            // PreserveRelativePaths
	made     map[string]bool // directories that were yielded for a path
	depth    int             // directories that are being read
	dangling int             // links that lead nowhere
	yield    func(Item) error
	left     func(name string, err error) // hears of what is found and cannot be sent
}

// name expands an entry of the list.
func (e *expander) name(source string) error {
	if URLScheme(source) != "" {
		return e.yield(Item{Source: source, Kind: SourceURL})
	}
	st, err := e.lstat(source)
	return e.entry(source, "", st, err, e.preserve && !strings.HasPrefix(source, "/"))
}

// entry expands a name for which lstat(2) returned st and err. With path, it keeps what
// precedes the last slash of the name: it yields the directories first.
func (e *expander) entry(source, dest string, st unix.Stat_t, err error, path bool) error {
	link := err == nil && st.Mode&unix.S_IFMT == unix.S_IFLNK
	if link {
		st, err = e.Stat(source)
	}
	if err != nil {
		return e.yield(Item{Source: source, Dest: dest, Err: err})
	}
	it := Item{Source: source, Dest: dest, Mode: st.Mode & 0o777}
	slash := strings.HasSuffix(source, "/")
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFSOCK, unix.S_IFIFO:
		return nil
	case unix.S_IFDIR:
		switch {
		case link && !slash:
			it.Kind = LinkToDirectory
			return e.yield(it)
		case path:
			dest = strings.TrimRight(source, "/")
			if dest == "." {
				return e.contents(source, "")
			}
			if slash {
				return e.contentsBelow(source, dest)
			}
			if err := e.parents(dest); err != nil {
				return err
			}
			return e.contents(source, dest)
		case slash:
			return e.contents(source, dest)
		}
		it.Kind = Directory
		if err := e.yield(it); err != nil {
			return err
		}
		return e.contents(source, joinName(dest, BaseName(source)))
	default:
		if st.Mode&unix.S_IFMT == unix.S_IFREG {
			it.Size = st.Size
		}
		if dir := DirName(source); path && dir != "." {
			if err := e.parents(dir); err != nil {
				return err
			}
			it.Dest = dir
		}
		return e.yield(it)
	}
}

// parents yields a directory and those above it, each once
// (ExpandParentDirectories).
func (e *expander) parents(dir string) error {
	if e.made == nil {
		e.made = map[string]bool{}
	}
	if e.made[dir] {
		return nil
	}
	parent := DirName(dir)
	if parent == "." && !strings.HasPrefix(dir, "./") || dir == "." {
		parent = ""
	} else if err := e.parents(parent); err != nil {
		return err
	}
	st, err := e.lstat(dir)
	if err != nil {
		return e.yield(Item{Source: dir, Dest: parent, Err: err})
	}
	it := Item{Source: dir, Dest: parent, Mode: st.Mode & 0o777, Kind: Directory}
	if st.Mode&unix.S_IFMT == unix.S_IFLNK {
		it.Kind = LinkToDirectory
	}
	e.made[dir] = true
	return e.yield(it)
}

// contents expands what is in a directory. It leaves out what HTCondor leaves out
// because it cannot examine it (src/condor_utils/directory.cpp:Next): links that lead
// nowhere or in circles, files of a directory that may not be entered, paths that are
// too long. It also leaves out links that lead out of the sandbox: their targets in a
// container do not exist here.
func (e *expander) contents(dir, dest string) error {
	named := e.depth == 0
	d, err := e.readDir(dir)
	if err != nil {
		return e.unreadable(dir, dest, named, err)
	}
	defer d.Close()
	const usualDepth = 32
	if e.depth++; e.depth > usualDepth {
		d.Lean()
	}
	defer func() { e.depth-- }()
	prefix := dir
	if !strings.HasSuffix(prefix, "/") {
		prefix += "/"
	}
	room := unix.PathMax - len(e.absolute(prefix)) // a longer path cannot be opened
	for {
		name, err := d.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return e.unreadable(dir, dest, named, err)
		}
		if e.ctx.Err() != nil {
			return context.Cause(e.ctx)
		}
		st, err := d.Lstat(name)
		switch {
		case len(name) >= room:
			err = unix.ENAMETOOLONG
		case err == nil && st.Mode&unix.S_IFMT == unix.S_IFLNK:
			if _, err = e.Stat(prefix + name); nothing(err) {
				if e.dangling++; e.dangling <= maxLeftTold {
					e.log.Info("leaving out a symbolic link that leads nowhere", "link", prefix+name, "error", err)
				}
				continue
			}
		}
		switch {
		case err == nil, !permanent(err):
			if err := e.entry(prefix+name, dest, st, err, false); err != nil {
				return err
			}
		case !nothing(err): // or it is gone
			e.left(prefix+name, err)
		}
	}
}

// contentsBelow expands what is in a directory whose path is kept, but which is not
// itself requested: it yields this directory and those above it only if there is
// something in it.
func (e *expander) contentsBelow(dir, dest string) error {
	yield := e.yield
	defer func() { e.yield = yield }()
	e.yield = func(it Item) error {
		e.yield = yield
		if err := e.parents(dest); err != nil {
			return err
		}
		return yield(it)
	}
	return e.contents(dir, dest)
}

// unreadable leaves out the unreadable contents of a directory. If the job named the
// directory itself, it yields an item that fails in their place: HTCondor would send the
// directory as an empty one, and nobody would learn that results are missing.
func (e *expander) unreadable(dir, dest string, named bool, err error) error {
	if !named && permanent(err) {
		e.left(dir, err)
		return nil
	}
	if dest = DirName(dest); dest == "." {
		dest = ""
	}
	return e.yield(Item{Source: dir, Dest: dest, Err: err})
}
