package filetransfer

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"

	"podstarter/classads"
	"podstarter/rescue"
	"podstarter/sandbox/beneath"
	"podstarter/sandbox/jobfiles"
	"podstarter/sandbox/manifest"
)

// A plugin of this side stores output whose destination is a URL. The starter reports
// the result of each file to the shadow in an item of command 999
// (FileTransfer::uploadFileList, InvokeMultiUploadPlugin).

// mostStored is how many files one run of a plugin gets, which bounds the memory for
// them. HTCondor gives it all files.
const mostStored = 10_000

// batch holds the files that the next run of a plugin stores.
type batch struct {
	plugin Plugin
	items  []jobfiles.Item
}

// chooseDestination sets the destination of files that do not go to the access point.
func (u *upload) chooseDestination(number int64) {
	switch p := &u.plan; {
	case u.kind.Final():
		p.Base, p.Remap = u.job.Destination, jobfiles.ParseRemaps(u.job.OutputRemaps)
	case u.kind == jobfiles.Checkpoint && u.job.CheckpointDestination != "":
		// (HTCondor sends checkpoints of a job without a CheckpointDestination to its
		// OutputDestination, where no later run finds them.)
		p.Base = u.job.CheckpointBase(number)
		p.Stdio = true
		u.manifest, u.listing = &manifest.Manifest{}, manifest.Name(number)
	}
}

// everything sends all items, and what belongs to them.
func (u *upload) everything() error {
	if err := u.signNext(); err != nil || u.unsigned {
		return err
	}
	if err := u.plan.Each(u.ctx, u.send); err != nil {
		return err
	}
	if err := u.flush(); err != nil {
		return err
	}
	return u.sendManifest()
}

// sendManifest sends the list of a checkpoint's stored files. By the list of an
// incomplete checkpoint the shadow removes them.
func (u *upload) sendManifest() error {
	if u.manifest == nil || u.manifest.Empty() {
		return nil
	}
	text := u.manifest.Seal(u.listing)
	if err := u.head(cmdFile, u.listing); err != nil {
		return err
	}
	u.s.PutInt(0o600)
	if err := u.s.EndMessage(); err != nil {
		return err
	}
	if err := u.s.PutFile(bytes.NewReader(text), int64(len(text))); err != nil {
		return err
	}
	u.stats.files++
	u.stats.cedar++
	u.stats.bytes += int64(len(text))
	return u.s.EndMessage()
}

// store takes an item for a plugin. It adds the item to the batch, if one run of the
// plugin can take them all.
func (u *upload) store(it jobfiles.Item) error {
	if !u.storable(&it) {
		return nil
	}
	if err := u.signOne(&it); err != nil || u.unsigned {
		return err
	}
	plugin, why := u.pluginFor(it.URL)
	if plugin == nil {
		if err := u.flush(); err != nil {
			return err
		}
		return u.unstored(&it, why)
	}
	b := &u.batch
	if b.plugin != nil && (b.plugin != plugin || !plugin.Many() || len(b.items) == mostStored) {
		if err := u.flush(); err != nil {
			return err
		}
	}
	if len(b.items) == 0 {
		// The go-ahead comes before anything is stored.
		if err := u.head(cmdOther, it.WireName()); err != nil {
			return err
		}
		b.plugin = plugin
	}
	b.items = append(b.items, it)
	if !u.ready || !u.peerReady {
		return u.flush() // each item needs its own
	}
	return nil
}

// storable says whether a plugin may have a file, and lists it in the manifest of a
// checkpoint. It records a failure for one that cannot be stored.
func (u *upload) storable(it *jobfiles.Item) bool {
	why := it.Err
	switch {
	case it.Kind == jobfiles.SourceURL:
		u.fail(&Error{Code: CodeUpload, Subcode: int(syscall.EINVAL),
			Text: fmt.Sprintf("|Error: sending file %s: what is at a URL already cannot be sent to another: %s", jobfiles.SafeURL(it.Source), jobfiles.SafeURL(it.URL))})
		return false
	case errors.Is(why, beneath.ErrOutside), errors.Is(why, beneath.ErrNotRegular):
		// A plugin would follow the link in a file system that is not the job's.
	case u.manifest != nil && why == nil:
		var sum []byte
		if sum, why = u.sum(u.plan.View, it.Source); why == nil {
			why = u.manifest.Add(sum, it.Source)
		}
	case u.manifest != nil:
	default:
		return true // the plugin will say what is wrong
	}
	if why == nil {
		return true
	}
	u.unread(it, why)
	return false
}

// pluginFor finds the plugin for a URL, or says why there is none.
func (u *upload) pluginFor(url string) (plugin Plugin, why *PluginFailure) {
	if u.Plugins == nil {
		return nil, &PluginFailure{Subcode: SubcodeNoPlugin, Text: noPlugin(url)}
	}
	u.apart(func() { plugin, why = u.Plugins.For(u.ctx, url) })
	return plugin, why
}

// apart runs a function on a thread that has this process' own identity.
func (x *session) apart(do func()) {
	done := make(chan error, 1)
	rescue.Go(func() { done <- rescue.Do(func() error { do(); return nil }) })
	if panicked := <-done; panicked != nil {
		panic(panicked)
	}
}

// flush runs the plugin on the batch, and reports the results. The head of the first
// item has been sent.
func (u *upload) flush() error {
	b := u.batch
	if len(b.items) == 0 {
		return nil
	}
	u.batch = batch{}
	// The shadow may as well know that the files are on their way.
	if err := u.s.Flush(); err != nil {
		return err
	}
	files := make([]URLFile, len(b.items))
	for i := range b.items {
		files[i] = URLFile{URL: b.items[i].URL, Path: u.plan.View.Shown(b.items[i].Source)}
	}
	class := PluginOutput
	if u.kind == jobfiles.Checkpoint {
		class = PluginCheckpoint
	}
	var run *PluginRun
	var err error
	u.apart(func() { run, err = b.plugin.Run(u.ctx, class, files, u.proxy()) })
	if err != nil {
		return err
	}
	u.stats.stored(run)
	if !b.plugin.Many() {
		return u.reportSingle(&b.items[0], run)
	}
	u.recordRun(run)
	return u.report(&b, run, files)
}

// report tells the shadow the result of each file, as the plugin reported it. A file
// without a report counts as not stored, even if the plugin succeeded, and the job is
// held; HTCondor counts the file as stored if there is at least one report.
func (u *upload) report(b *batch, run *PluginRun, files []URLFile) error {
	reports, missing := assign(run.Reports, files)
	var stack []string // what is wrong with the reports, the newest first
	wrong := func(text string) { stack = append([]string{"FILETRANSFER:1:" + text}, stack...) }
	for i := range b.items {
		it := &b.items[i]
		if i > 0 {
			if err := u.head(cmdOther, it.WireName()); err != nil {
				return err
			}
		}
		ad := u.storedAd(jobfiles.BaseName(it.Source), it.URL)
		if report := reports[i]; report != nil {
			judge(ad, report, func(what string) {
				if len(stack) < mostWrong {
					wrong(fmt.Sprintf("Multi-file plugin at %s did not produce valid response; missing %s", b.plugin.Path(), what))
				}
			})
		} else {
			ad.SetInt("Result", 1)
			ad.SetString("ErrorString", "the plugin reported nothing of it")
		}
		u.s.PutAd(ad)
		if err := u.s.EndMessage(); err != nil {
			return err
		}
		u.stats.files++
	}
	u.Progress(Progress{Files: u.stats.files, Bytes: u.stats.bytes})
	failure := run.Failure
	if failure == nil && missing > 0 {
		failure = &PluginFailure{Subcode: SubcodeNoReport}
	}
	if failure != nil && failure.Subcode == SubcodeNoReport && missing > 0 {
		first := files[firstMissing(reports)]
		wrong(fmt.Sprintf("|Error: file transfer plugin %s did not report file %s (%d of %d files without a report) ( URL file = %s )|",
			b.plugin.Path(), first.Path, missing, len(files), jobfiles.SafeURL(first.URL)))
	}
	if failure == nil && len(stack) == 0 {
		return nil
	}
	if failure == nil {
		failure = &PluginFailure{}
	}
	if failure.Text != "" {
		stack = append(stack, failure.Text)
	}
	u.note(&Error{Code: CodeUpload, Subcode: failure.Subcode, Text: ": " + strings.Join(stack, "|")})
	return nil
}

// mostWrong is how many complaints about reports a message may have.
const mostWrong = 20

// judge copies a plugin's report into the shadow's ad.
func judge(ad *classads.Ad, report *PluginReport, missing func(attribute string)) {
	if report.FileName == "" {
		missing("TransferFileName")
	}
	if report.URL == "" {
		missing("TransferUrl")
	}
	if !report.Judged {
		missing("TransferSuccess")
	}
	if report.Judged && report.Success {
		ad.SetInt("Result", 0)
		return
	}
	ad.SetInt("Result", 1)
	if report.Judged && report.Error == "" {
		missing("TransferError for failed transfer")
	}
	ad.SetString("ErrorString", oneLine(report.Error))
}

// assign finds each file's report: by its URL, else by its name, else it takes the
// remaining reports in order, since plugins may report another URL than they were
// given.
func assign(reports []PluginReport, files []URLFile) (of []*PluginReport, missing int) {
	of = make([]*PluginReport, len(files))
	used := make([]bool, len(reports))
	pass := func(file, report func(i int) string) {
		at := map[string][]int{}
		for i := range reports {
			if key := report(i); !used[i] && key != "" {
				at[key] = append(at[key], i)
			}
		}
		for i := range files {
			if left := at[file(i)]; of[i] == nil && len(left) > 0 {
				of[i], used[left[0]] = &reports[left[0]], true
				at[file(i)] = left[1:]
			}
		}
	}
	pass(func(i int) string { return files[i].URL }, func(i int) string { return reports[i].URL })
	pass(func(i int) string { return files[i].Path }, func(i int) string { return reports[i].FileName })
	pass(func(i int) string { return jobfiles.BaseName(files[i].Path) }, func(i int) string { return jobfiles.BaseName(reports[i].FileName) })
	next := 0
	for i := range of {
		for ; of[i] == nil && next < len(reports); next++ {
			if !used[next] {
				of[i], used[next] = &reports[next], true
			}
		}
		if of[i] == nil {
			missing++
		}
	}
	return of, missing
}

func firstMissing(of []*PluginReport) int { return max(slices.Index(of, nil), 0) }

// storedAd makes the shadow's ad of a file that a plugin had to store.
func (u *upload) storedAd(name, url string) *classads.Ad {
	ad := classads.NewAd()
	ad.SetInt("ProtocolVersion", 1)
	ad.SetInt("Command", cmdOther)
	ad.SetInt("SubCommand", subUploadURL)
	if u.kind == jobfiles.Checkpoint {
		// A failure must not keep the shadow from storing the manifest, by which
		// it removes what has been stored.
		ad.SetBool("CheckpointURL", true)
	}
	ad.SetString("Filename", name)
	ad.SetString("OutputDestination", url)
	return ad
}

// pluginFailed is the result of a file that no plugin, or one of protocol 1, could
// store (src/condor_includes/reli_sock.h: GET_FILE_PLUGIN_FAILED).
const pluginFailed = -4

// reportSingle tells the shadow the result of a file that a plugin of protocol 1 had to
// store.
func (u *upload) reportSingle(it *jobfiles.Item, run *PluginRun) error {
	return u.sendStored(it, run.Failure)
}

// unstored reports a file for which there is no plugin.
func (u *upload) unstored(it *jobfiles.Item, why *PluginFailure) error {
	if err := u.head(cmdOther, it.WireName()); err != nil {
		return err
	}
	return u.sendStored(it, why)
}

func (u *upload) sendStored(it *jobfiles.Item, why *PluginFailure) error {
	ad := u.storedAd(jobfiles.BaseName(it.Source), it.URL)
	ad.SetInt("Result", 0)
	if why != nil {
		ad.SetString("ErrorString", why.Text)
		ad.SetInt("Result", pluginFailed)
		u.fail(&Error{Code: CodeUpload, Subcode: why.Subcode,
			Text: fmt.Sprintf("|Error: sending file %s: %s", u.plan.View.Shown(it.Source), why.Text)})
	}
	u.s.PutAd(ad)
	u.stats.files++
	u.Progress(Progress{Files: u.stats.files, Bytes: u.stats.bytes})
	return u.s.EndMessage()
}

// proxy is where the plugins find the job's X.509 proxy, empty if it has none.
func (u *upload) proxy() string {
	if u.job.Proxy == "" {
		return ""
	}
	name := jobfiles.BaseName(u.job.Proxy)
	if _, err := u.plan.View.Stat(name); err != nil {
		return ""
	}
	return u.plan.View.Shown(name)
}
