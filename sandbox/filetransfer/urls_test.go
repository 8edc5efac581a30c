package filetransfer

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"podstarter/classads"
	"podstarter/sandbox"
	"podstarter/sandbox/jobfiles"
	"podstarter/sandbox/sandboxtest"
)

// urlPlugins serve every method but "none": those that begin with "one" one file a
// run. A method of which "bad" is part fails; one of which "mute" is part gives no
// reason; one of which "odd" is part succeeds, and says that something is wrong.
type urlPlugins struct {
	s     *sandbox.Sandbox
	runs  []string
	made  map[string]*urlPlugin
	block func(context.Context) // in a run
}

type urlPlugin struct {
	all    *urlPlugins
	method string
}

func (f *urlPlugins) For(_ context.Context, url string) (Plugin, *PluginFailure) {
	m := jobfiles.URLMethod(url)
	if m == "none" {
		return nil, &PluginFailure{Subcode: -1001, Text: "nobody takes " + url}
	}
	if f.made == nil {
		f.made = map[string]*urlPlugin{}
	}
	if f.made[m] == nil {
		f.made[m] = &urlPlugin{f, m}
	}
	return f.made[m], nil
}

func (p *urlPlugin) Path() string { return p.method }
func (p *urlPlugin) Many() bool   { return !strings.HasPrefix(p.method, "one") }

func (p *urlPlugin) Run(ctx context.Context, class PluginClass, files []URLFile, proxy string) (*PluginRun, error) {
	if p.all.block != nil {
		p.all.block(ctx)
		return nil, context.Cause(ctx)
	}
	run := &PluginRun{Took: 3 * time.Second}
	told := fmt.Sprintf("%s %d %q:", p.method, class, filepath.Base(proxy))
	for _, f := range files {
		rest, err := filepath.Rel(p.all.s.Scratch(), f.Path)
		if err != nil {
			return nil, err
		}
		told += " " + f.URL + ">" + rest
		if err := os.WriteFile(f.Path, []byte(f.URL), 0o604); err != nil {
			return nil, err
		}
		ad := classads.NewAd()
		ad.SetString("TransferUrl", f.URL)
		if !p.Many() {
			ad.SetString("TransferProtocol", p.method)
			ad.SetBool("TransferSuccess", true)
			ad.SetInt("TransferTotalBytes", 100)
		}
		run.Reports = append(run.Reports, PluginReport{URL: f.URL, FileName: filepath.Base(f.Path), Judged: true, Success: true, Protocol: strings.ToUpper(p.method), Sized: p.Many(), Bytes: 100, Ad: ad})
		run.Results = append(run.Results, ad)
	}
	p.all.runs = append(p.all.runs, told)
	switch {
	case strings.Contains(p.method, "bad"):
		run.Said = p.method + " went wrong"
		run.Failure = &PluginFailure{Subcode: 256, Text: run.Said}
	case strings.Contains(p.method, "mute"):
		run.Said, run.Unexplained = p.method+" failed", true
		run.Failure = &PluginFailure{Subcode: 512, TryAgain: true, Text: run.Said}
	case strings.Contains(p.method, "odd"):
		run.Said = p.method + " is odd"
	}
	return run, nil
}

func fetchItem(url, name string) sent { return sent{command: 5, name: name, url: url} }

// TestFetch: the order of runs, and what is counted and reported.
func TestFetch(t *testing.T) {
	f, s := newShadow(t), sandboxtest.New(t)
	plugins := &urlPlugins{s: s}
	f.items = []sent{
		{command: 1, name: "plain", mode: 0o644, data: "12345"},
		fetchItem("z://h/1", "1"), fetchItem("a://h/2", "d/2"), fetchItem("one://h/3", "3"), fetchItem("x+z://h/image", "image"), fetchItem("one://h/5", "5"),
		{command: 6, name: "d", mode: 0o755},
	}
	tr := f.transfer(s, plainJob+"\nContainerImage = \"image\"\n")
	tr.config.Plugins = plugins
	records := 0
	tr.config.Record = func(*classads.Ad) { records++ }
	result, err := tr.Download(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	f.mustPlay()
	want := []string{
		`one 1 ".": one://h/3>3`, `one 1 ".": one://h/5>5`, `a 1 ".": a://h/2>d/2`, `z 1 ".": z://h/1>1 x+z://h/image>image`,
	}
	if diff := cmp.Diff(want, plugins.runs); diff != "" {
		t.Error(diff)
	}
	stats, err := f.ackIn.GetAd("TransferStats")
	must(t, err)
	const told = `[ CedarFilesCount = 1; ContainerDuration = 3; CedarSizeBytes = 5; AFilesCount = 1; ASizeBytes = 100; ONEFilesCount = 2; ZFilesCount = 2; ZSizeBytes = 200; Protocols = "cedar,A,Z" ]`
	if diff := cmp.Diff(told, stats.FormatNew()); diff != "" {
		t.Error(diff)
	}
	if result.Bytes != 305 || len(result.Plugins) != 5 || records != 7 {
		t.Errorf("%d bytes, %d results, %d records", result.Bytes, len(result.Plugins), records)
	}
	got := contents(t, s.Scratch())
	for name, text := range map[string]string{"1": "604 z://h/1", "d/2": "604 a://h/2", "5": "604 one://h/5"} {
		if got[name] != text {
			t.Errorf("%s: %q", name, got[name])
		}
	}
}

// TestFetchFails: failures are reported as stock reports them. The first of a plugin
// that takes one file ends it, others run all the same: what the last one that failed
// says comes first, and its subcode counts.
func TestFetchFails(t *testing.T) {
	for name, tt := range map[string]struct {
		items   []sent
		runs    int
		results int
		want    Error
	}{
		"nobody": {items: []sent{fetchItem("none://h/1", "1"), fetchItem("z://h/2", "2")}, want: Error{Code: 12, Subcode: -1001, Text: "STARTER at 127.0.0.1 - |Error: receiving file SCRATCH/1: nobody takes none://h/1"}},
		"one":    {items: []sent{fetchItem("onebad://h/1", "1"), fetchItem("z://h/2", "2")}, runs: 1, results: 1, want: Error{Code: 12, Subcode: 256, Text: "STARTER at 127.0.0.1 - |Error: receiving file SCRATCH/1: onebad went wrong"}},
		"many":   {items: []sent{fetchItem("bad://h/1", "1"), fetchItem("z://h/2", "2")}, runs: 2, results: 2, want: Error{Code: 12, Subcode: 256, Text: "bad went wrong"}},
		"two": {items: []sent{fetchItem("bad://h/1", "1"), fetchItem("worsebad://h/2", "2"), fetchItem("z://h/3", "3")}, runs: 3, results: 3,
			want: Error{Code: 12, Subcode: 256, Text: "worsebad went wrong|bad went wrong"}},
		"one says nothing": {items: []sent{fetchItem("mute://h/1", "1")}, runs: 1, results: 1,
			want: Error{Code: 12, Subcode: 512, TryAgain: true, Text: "mute failed"}},
		"the second says nothing": {items: []sent{fetchItem("bad://h/1", "1"), fetchItem("mute://h/2", "2")}, runs: 2, results: 2,
			want: Error{Code: 12, Subcode: 512, TryAgain: true, Text: "bad went wrong"}},
		"one before is odd": {items: []sent{fetchItem("odd://h/1", "1"), fetchItem("zbad://h/2", "2")}, runs: 2, results: 2,
			want: Error{Code: 12, Subcode: 256, Text: "zbad went wrong|odd is odd"}},
		"one behind is odd": {items: []sent{fetchItem("bad://h/1", "1"), fetchItem("odd://h/2", "2")}, runs: 2, results: 2,
			want: Error{Code: 12, Subcode: 256, Text: "bad went wrong"}},
		"a file before":  {items: []sent{{command: 1, name: "../x", mode: 0o644}, fetchItem("z://h/2", "2")}, want: Error{Code: 12, Subcode: 1, Text: "Attempt to write to illegal sandbox path: ../x"}},
		"an illegal one": {items: []sent{fetchItem("z://h/2", "/etc/2")}, want: Error{Code: 12, Subcode: 1, Text: "Attempt to write to illegal sandbox path: /etc/2"}},
	} {
		t.Run(name, func(t *testing.T) {
			f, s := newShadow(t), sandboxtest.New(t)
			f.items = tt.items
			plugins := &urlPlugins{s: s}
			tr := f.transfer(s, plainJob)
			tr.config.Plugins = plugins
			result, err := tr.Download(t.Context())
			f.mustPlay()
			var got *Error
			if !errors.As(err, &got) {
				t.Fatalf("got %v", err)
			}
			tt.want.Text = strings.ReplaceAll(tt.want.Text, "SCRATCH", s.Scratch())
			if got.Code != tt.want.Code || got.Subcode != tt.want.Subcode || got.TryAgain != tt.want.TryAgain || got.Text != tt.want.Text || len(plugins.runs) != tt.runs || len(result.Plugins) != tt.results {
				t.Errorf("got %.200v after %v, with %d results", got, plugins.runs, len(result.Plugins))
			}
		})
	}
}

// TestStackedIsBounded: of more than a reason can show only the newest is kept.
func TestStackedIsBounded(t *testing.T) {
	long := strings.Repeat("x", mostSaid-4)
	if got := stacked("abc", &PluginRun{Said: long}); len(got) != mostSaid {
		t.Errorf("%d bytes", len(got))
	}
	if got := stacked("abcd", &PluginRun{Said: long}); got != long {
		t.Errorf("%d bytes", len(got))
	}
}

// TestFetchCancelled: an order that ends the job ends the plugin and the transfer.
func TestFetchCancelled(t *testing.T) {
	f, s := newShadow(t), sandboxtest.New(t)
	f.items = []sent{fetchItem("z://h/1", "1")}
	why := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	tr := f.transfer(s, plainJob)
	tr.config.Plugins = &urlPlugins{s: s, block: func(ctx context.Context) { cancel(why); <-ctx.Done() }}
	if _, err := tr.Download(ctx); !errors.Is(err, why) {
		t.Errorf("got %v", err)
	}
}
