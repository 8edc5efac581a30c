package filetransfer

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"podstarter/rescue"
	"podstarter/sandbox/jobfiles"
)

// The contents of URLs do not travel over CEDAR: the execution point fetches or stores
// them with a plugin.

// urlItem is a URL to fetch.
type urlItem struct {
	url    string
	name   string // as the peer gave it
	target string // name in the sandbox
}

// url records a URL. It is fetched when all other items have arrived: the plugin may
// need some of them.
func (d *download) url(name, target string) error {
	url, err := d.s.GetString()
	if err == nil {
		err = d.s.EndOfMessage()
	}
	if err != nil || target == "" {
		return err
	}
	if d.unwritten {
		d.recordItem(name, time.Now(), 0, nil)
	}
	const most = 16 << 20 // bytes of URLs and names that are remembered
	if d.urlBytes += len(url) + len(target); d.urlBytes > most {
		d.fail(&Error{Code: CodeDownload, Subcode: int(syscall.E2BIG),
			Text: fmt.Sprintf("STARTER at %s - |Error: receiving file %s: the URLs of the job's input are too long altogether", d.local(), d.shown(target))})
		return nil
	}
	d.urls = append(d.urls, urlItem{url: url, name: name, target: target})
	return nil
}

// fetch fetches the URLs of the transfer, when all other items are there: plugins and
// what they need may be among them. Plugins that take lists run once each, after the
// others, in the order of their paths (DoDownload). The first failure of another ends
// it. The returned error is only that of a context that ended.
func (d *download) fetch() error {
	batches := map[Plugin][]urlItem{}
	for i, u := range d.urls {
		p, failure := d.plugin(u.url)
		if failure == nil && p.Many() {
			batches[p] = append(batches[p], u)
			continue
		}
		began, run := time.Now(), &PluginRun{Failure: failure}
		if failure == nil {
			var err error
			if run, err = d.move(p, []urlItem{u}); err != nil {
				return err
			}
		}
		if run.Failure != nil {
			d.failPlugin(run.Failure, fmt.Sprintf("STARTER at %s - |Error: receiving file %s: ", d.local(), d.shown(u.target)))
		}
		d.recordItem(u.name, began, 0, run.Reports)
		if run.Failure != nil {
			d.recordUnfetched(d.urls[i+1:])
			return nil
		}
	}
	return d.fetchMany(batches)
}

// fetchMany runs plugins that take lists, all of them: a plugin that fails does not stop
// the others. The last failure counts, with what each run up to it has said.
func (d *download) fetchMany(batches map[Plugin][]urlItem) error {
	var last *PluginFailure
	said := ""
	order := slices.SortedFunc(maps.Keys(batches), func(a, b Plugin) int { return strings.Compare(a.Path(), b.Path()) })
	for _, p := range order {
		run, err := d.move(p, batches[p])
		if err != nil {
			return err
		}
		said = stacked(said, run)
		if f := run.Failure; f != nil {
			last = &PluginFailure{Subcode: f.Subcode, TryAgain: f.TryAgain, Text: said}
		}
	}
	if last != nil {
		d.failPlugin(last, "")
	}
	return nil
}

// mostSaid is how long, in bytes, what several plugins have said may be together; of
// more only what the last one said is kept.
const mostSaid = 64 << 10

// stacked adds what a run has said to what those before it said
// (InvokeMultipleFileTransferPlugin, which states that a plugin gave no reason only
// where there is no other text).
func stacked(before string, run *PluginRun) string {
	switch {
	case before == "":
		return run.Said
	case run.Said == "" || run.Unexplained:
		return before
	case len(run.Said)+1+len(before) > mostSaid:
		return run.Said
	}
	return run.Said + "|" + before
}

func (d *download) failPlugin(f *PluginFailure, before string) {
	d.fail(&Error{Code: CodeDownload, Subcode: f.Subcode, TryAgain: f.TryAgain, Text: before + f.Text})
}

// plugin finds the plugin of a URL.
func (x *session) plugin(url string) (Plugin, *PluginFailure) {
	if x.Plugins == nil {
		return nil, &PluginFailure{Subcode: SubcodeNoPlugin, Text: noPlugin(url)}
	}
	return x.Plugins.For(x.ctx, url)
}

// move fetches files with one run of a plugin. Meanwhile the shadow waits silently,
// without a limit.
func (d *download) move(p Plugin, items []urlItem) (*PluginRun, error) {
	files := make([]URLFile, len(items))
	for i, u := range items {
		files[i] = URLFile{URL: u.url, Path: filepath.Join(d.Sandbox.Scratch(), u.target)}
	}
	proxy := ""
	if d.proxy != "" {
		proxy = filepath.Join(d.Sandbox.Scratch(), d.proxy)
	}
	run, err := p.Run(d.ctx, PluginInput, files, proxy)
	if err != nil {
		return nil, err
	}
	d.stats.ran(run)
	if p.Many() {
		d.recordRun(run)
	}
	for _, r := range run.Reports {
		if run.Failure == nil && !r.Success {
			d.Log.Warn("a plugin reports a failure and succeeds; its success counts", "plugin", p.Path(), "url", jobfiles.SafeURL(r.URL), "error", r.Error)
		}
	}
	for _, u := range items {
		if u.name == d.job.ContainerImage && u.name != "" {
			d.stats.image, d.stats.container = true, run.Took
		}
		if run.Failure == nil {
			d.settle(u.target)
		}
	}
	d.Progress(Progress{Files: d.stats.files, Bytes: d.stats.bytes})
	return run, nil
}

// settle gives a fetched file to the job's group: plugins run in another one.
func (d *download) settle(target string) {
	owner := d.Sandbox.Payload()
	if !owner.Switches() {
		return
	}
	f, st, err := d.Sandbox.Root().OpenRead(target)
	if err != nil {
		d.Log.Warn("a plugin succeeded, but there is no file to give to the job's group", "file", d.shown(target), "error", err)
		return
	}
	defer func() { _ = f.Close() }()
	if int(st.Uid) != owner.UID || int(st.Gid) == owner.GID {
		return
	}
	// This needs root's rights, which this thread does not have.
	done := make(chan error, 1)
	rescue.Go(func() { done <- rescue.Do(func() error { return owner.Chown(f.FD()) }) })
	if err := <-done; err != nil {
		d.Log.Warn("a fetched file stays in the plugins' group", "file", d.shown(target), "error", err)
	}
}

// noPlugin is HTCondor's message about a URL that no plugin takes
// (InvokeFileTransferPlugin), and the URL itself.
func noPlugin(url string) string {
	return fmt.Sprintf("FILETRANSFER:1:FILETRANSFER: plugin for type %s not found! ( URL file = %s )|", jobfiles.URLMethod(url), jobfiles.SafeURL(url))
}
