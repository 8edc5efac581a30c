package jobfiles

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
)

// Plan is everything that an upload sends, in order (computeFileList). A plan of usual
// size is a list; of millions of files it keeps only the sum, and Each walks the
// sandbox again while they are sent.
type Plan struct {
	Log   *slog.Logger
	View  View      // of the sandbox
	Pick  Selection // what is to be sent
	Job   *Files
	Base  string // URL that files go to, below which they keep their names; empty: to the access point
	Stdio bool   // standard output and error go there, too
	Remap Remaps // only those of output

	Excluded map[string]bool // names that are left out; see [Excluded]
	Max      int64           // allowed number of items, 0 for any

	most  int    // items that may be kept in memory, 0 for maxPlanned
	kept  int    // bytes that the kept items take
	items []Item // nil if there are more
	whole bool   // items is everything
	size  int64  // SandboxSize: bytes of all regular files
	count int64
	left  LeftOut
}

// Bounds of the items that an upload keeps in memory. A job can give its files paths of
// 4 KiB; with names of usual length the number of items matters.
const (
	maxPlanned      = 50_000
	maxPlannedBytes = 16 << 20
	itemCost        = 100 // bytes of an item beside its texts
)

// Names that are never sent, at any depth, not even when they are asked for
// (src/condor_starter.V6.1/jic_shadow.cpp:ALWAYS_EXCLUDED_FILES,
// _remove_files_from_output).
var alwaysExcluded = []string{
	".job.ad", ".execution_overlay.ad", ".machine.ad", ".docker_sock", ".docker_stdout", ".docker_stderror",
	".condor_container_launched", ".update.ad", ".update.ad.tmp",
}

// Excluded are the names that an upload leaves out at any depth.
func Excluded(j *Files, removed []string) map[string]bool {
	out := map[string]bool{}
	for _, list := range [][]string{alwaysExcluded, removed} {
		for _, name := range list {
			out[name] = true
		}
	}
	if j.HasStarterLog {
		out[starterLogName+".old"] = true
		if !j.KeepStarterLog {
			out[starterLogName] = true
		}
	}
	return out
}

// ErrTooMany is found in the error of [Plan.Make] for more items than there may be.
var ErrTooMany = errors.New("too many files to return")

// Make walks the sandbox once, as the identity of the calling thread.
func (p *Plan) Make(ctx context.Context) error {
	p.whole, p.items, p.kept, p.count, p.size, p.left = true, nil, 0, 0, 0, LeftOut{}
	err := p.walk(ctx, p.leaveOut, func(it Item) error {
		if p.count++; p.Max > 0 && p.count > p.Max {
			return fmt.Errorf("%w: more than %d files and directories, which is what this execution point allows (POD_STARTER_MAX_OUTPUT_FILES); "+
				"pack them into an archive, or name fewer of them in transfer_output_files", ErrTooMany, p.Max)
		}
		p.size += it.Size
		p.hold(it)
		return nil
	})
	if err != nil || !p.whole {
		return err
	}
	p.items = dropDuplicates(p.items)
	slices.SortStableFunc(p.items, compareItems)
	return nil
}

// hold keeps an item, as long as there is room for all of them.
func (p *Plan) hold(it Item) {
	if !p.whole {
		return
	}
	p.kept += itemCost + len(it.Source) + len(it.Dest) + len(it.URL)
	if len(p.items) == cmp.Or(p.most, maxPlanned) || p.kept > maxPlannedBytes {
		p.items, p.whole = nil, false
		return
	}
	p.items = append(p.items, it)
}

// Held returns all items in the order in which they are sent, nil if they are too many
// to keep.
func (p *Plan) Held() []Item { return p.items }

// LeftOut is what cannot be sent, and was not named by the job.
func (p *Plan) LeftOut() LeftOut { return p.left }

func (p *Plan) leaveOut(name string, err error) {
	if p.Excluded[BaseName(name)] {
		return
	}
	if p.left.add(name, err); p.left.Count <= maxLeftTold {
		p.Log.Warn("leaving out of the output what cannot be sent and was not named by the job", "file", name, "error", err)
	}
}

// Bytes is the size of all regular files.
func (p *Plan) Bytes() int64 { return p.size }

// Each visits the items in the order in which they are sent.
func (p *Plan) Each(ctx context.Context, visit func(Item) error) error {
	if p.whole {
		for i := range p.items {
			if err := visit(p.items[i]); err != nil {
				return err
			}
		}
		return nil
	}
	// Groups in order, without a list to sort. Schemes are not grouped any
	// further: that only saves starts of plugins.
	for rank := range ranks {
		if rank == rankDestination && p.Base == "" && len(p.Remap) == 0 {
			continue
		}
		if rank == rankSource && !slices.ContainsFunc(p.Pick.Names, func(n string) bool { return URLScheme(n) != "" }) {
			continue
		}
		err := p.walk(ctx, func(string, error) {}, func(it Item) error {
			if it.rank() != rank {
				return nil
			}
			return visit(it)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (p *Plan) walk(ctx context.Context, left func(name string, err error), visit func(Item) error) error {
	e := expander{View: p.View, ctx: ctx, log: p.Log, preserve: p.Job.PreserveRelative, left: left}
	e.yield = func(it Item) error {
		if p.Excluded[BaseName(it.Source)] {
			return nil
		}
		it.URL = p.destination(it.Source)
		if it.URL != "" && (it.Kind == Directory || it.Kind == LinkToDirectory) {
			return nil // no plugin makes directories
		}
		return visit(it)
	}
	return p.Pick.each(ctx, p.View.Root, p.Log, e.name, left)
}

// destination returns the URL to which a plugin sends a file, empty if it goes to the
// access point. The access point applies remaps to anything but a URL.
func (p *Plan) destination(source string) string {
	if base := p.Base; base != "" {
		switch {
		case source == StdoutName && !p.Stdio:
			return onlyURL(p.Job.OriginalOut)
		case source == StderrName && !p.Stdio:
			return onlyURL(p.Job.OriginalErr)
		}
		return onlyURL(strings.TrimSuffix(base, "/") + "/" + source)
	}
	target, ok, err := p.Remap.Find(source)
	if !ok || err != nil {
		return ""
	}
	return onlyURL(target)
}

func onlyURL(text string) string {
	if URLScheme(text) == "" {
		return ""
	}
	return text
}

// The order of items: first what plugins upload, since they may change what
// follows; then CEDAR; then URLs that the receiver is to fetch, which may need
// credentials that came before them (FileTransferItem::operator<).
const (
	rankDestination = iota
	rankCedar
	rankSource
	ranks
)

func (i *Item) rank() int {
	switch {
	case i.URL != "":
		return rankDestination
	case i.Kind == SourceURL:
		return rankSource
	}
	return rankCedar
}

func compareItems(a, b Item) int {
	ra, rb := a.rank(), b.rank()
	if ra != rb {
		return ra - rb
	}
	switch ra {
	case rankDestination:
		return strings.Compare(URLScheme(a.URL), URLScheme(b.URL))
	case rankSource:
		return strings.Compare(URLScheme(a.Source), URLScheme(b.Source))
	}
	return 0
}

// dropDuplicates keeps the last of the items that would overwrite each other
// at the receiver.
func dropDuplicates(items []Item) []Item {
	type place struct{ dir, name string } // one that is joined would be a copy
	seen := make(map[place]bool, len(items))
	kept := len(items)
	for i := len(items) - 1; i >= 0; i-- {
		it := &items[i]
		if it.URL == "" && it.Kind != Directory && it.Kind != LinkToDirectory {
			at := place{it.Dest, BaseName(it.Source)}
			if seen[at] {
				continue
			}
			seen[at] = true
		}
		kept--
		items[kept] = *it
	}
	return items[kept:]
}
