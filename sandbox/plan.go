package sandbox

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
)

// plan is everything that an upload sends, in order (computeFileList). A plan
// of a usual size is a list; of millions of files only the sum is kept, and
// the sandbox is gone through again while they are sent.
type plan struct {
	ctx   context.Context
	log   *slog.Logger
	view  view
	pick  selection
	job   *jobFiles
	base  string // URL that files go to, below which they keep their names; empty: to the access point
	stdio bool   // so do standard output and error
	remap remaps // only those of output

	excluded map[string]bool
	max      int64  // items that there may be, 0 for any number
	most     int    // items that may be kept in memory
	kept     int    // bytes that they take there
	items    []item // nil if there are more
	whole    bool   // items is everything
	size     int64  // SandboxSize: bytes of all regular files
	count    int64
}

// What an upload keeps of its items in memory. A job can give its files paths of
// 4 KiB; of names as people give them it is the number that counts.
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

func excludedNames(j *jobFiles, u Upload) map[string]bool {
	out := map[string]bool{}
	for _, list := range [][]string{alwaysExcluded, u.Removed} {
		for _, name := range list {
			out[name] = true
		}
	}
	if j.hasStarterLog {
		out[starterLogName+".old"] = true
		if !j.keepStarterLog {
			out[starterLogName] = true
		}
	}
	return out
}

// errTooMany is found in the error of make for more items than there may be.
var errTooMany = errors.New("too many files to return")

// make goes through the sandbox once, as the identity of the calling thread.
func (p *plan) make() error {
	p.whole, p.items, p.kept, p.count, p.size = true, nil, 0, 0, 0
	err := p.walk(func(it item) error {
		if p.count++; p.max > 0 && p.count > p.max {
			return fmt.Errorf("%w: more than %d files and directories, which is what this execution point allows (POD_STARTER_MAX_OUTPUT_FILES); "+
				"pack them into an archive, or name fewer of them in transfer_output_files", errTooMany, p.max)
		}
		p.size += it.size
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
func (p *plan) hold(it item) {
	if !p.whole {
		return
	}
	p.kept += itemCost + len(it.source) + len(it.dest) + len(it.url)
	if len(p.items) == p.most || p.kept > maxPlannedBytes {
		p.items, p.whole = nil, false
		return
	}
	p.items = append(p.items, it)
}

// each visits the items in the order in which they are sent.
func (p *plan) each(visit func(item) error) error {
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
		if rank == rankDestination && p.base == "" && len(p.remap) == 0 {
			continue
		}
		if rank == rankSource && !slices.ContainsFunc(p.pick.names, func(n string) bool { return urlScheme(n) != "" }) {
			continue
		}
		err := p.walk(func(it item) error {
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

func (p *plan) walk(visit func(item) error) error {
	e := expander{view: p.view, ctx: p.ctx, log: p.log, preserve: p.job.preserveRelative}
	e.yield = func(it item) error {
		if p.excluded[baseName(it.source)] {
			return nil
		}
		it.url = p.destination(it.source)
		if it.url != "" && (it.kind == directory || it.kind == linkToDirectory) {
			return nil // no plugin makes directories
		}
		return visit(it)
	}
	return p.pick.each(p.ctx, p.view.root, p.log, e.name)
}

// destination returns the URL that a file is sent to by a plugin, empty if
// it goes to the access point. Remaps to anything but a URL are for the access
// point to apply.
func (p *plan) destination(source string) string {
	if base := p.base; base != "" {
		switch {
		case source == StdoutName && !p.stdio:
			return onlyURL(p.job.originalOut)
		case source == StderrName && !p.stdio:
			return onlyURL(p.job.originalErr)
		}
		return onlyURL(strings.TrimSuffix(base, "/") + "/" + source)
	}
	target, ok, err := p.remap.find(source)
	if !ok || err != nil {
		return ""
	}
	return onlyURL(target)
}

func onlyURL(text string) string {
	if urlScheme(text) == "" {
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

func (i *item) rank() int {
	switch {
	case i.url != "":
		return rankDestination
	case i.kind == sourceURL:
		return rankSource
	}
	return rankCedar
}

func compareItems(a, b item) int {
	ra, rb := a.rank(), b.rank()
	if ra != rb {
		return ra - rb
	}
	switch ra {
	case rankDestination:
		return strings.Compare(urlScheme(a.url), urlScheme(b.url))
	case rankSource:
		return strings.Compare(urlScheme(a.source), urlScheme(b.source))
	}
	return 0
}

// dropDuplicates keeps the last of the items that would overwrite each other
// at the receiver.
func dropDuplicates(items []item) []item {
	type place struct{ dir, name string } // one that is joined would be a copy
	seen := make(map[place]bool, len(items))
	kept := len(items)
	for i := len(items) - 1; i >= 0; i-- {
		it := &items[i]
		if it.url == "" && it.kind != directory && it.kind != linkToDirectory {
			at := place{it.dest, baseName(it.source)}
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
