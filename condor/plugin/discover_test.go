package plugin

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"podstarter/classads"
	"podstarter/condor/config"
)

func finder(t *testing.T, knobs map[string]string, asked *[]string) Finder {
	return Finder{
		Config: config.FromMap(knobs), Env: []string{"PATH=/usr/bin:/bin"}, Cache: OpenCache(t.TempDir()), Log: newRunner(t, "").Log,
		Exec: func(ctx context.Context, p Program) (Outcome, error) {
			*asked = append(*asked, filepath.Base(p.Path)) // one at a time in these tests: see ask
			return execute(ctx, p)
		},
	}
}

// TestFind: which plugin serves what, and what is reported about those that do not.
func TestFind(t *testing.T) {
	dir := t.TempDir()
	many := script(t, dir, "many_plugin", `echo 'MultipleFileSupport = true'; echo 'SupportedMethods = "http, X"'; echo '# no'; echo junk; exit 9`)
	four := script(t, dir, "four.py", `echo 'MultipleFileSupport = true'; echo 'ProtocolVersion = 4'; echo 'SupportedMethods = "https,pelican"'`)
	one := script(t, dir, "one_plugin.sh", `echo 'SupportedMethods = "x" ' >&2; echo 'ProtocolVersion = 1000'`)
	silent := script(t, dir, "silent", "exit 0")
	wrong := script(t, dir, "wrong", "echo Traceback")
	missing := filepath.Join(dir, "missing")
	var asked []string
	f := finder(t, map[string]string{"FILETRANSFER_PLUGINS": strings.Join([]string{many, four, one, silent, wrong, missing, many}, ", ")}, nil)
	f.Exec = execute
	set, err := f.Find(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var problems []string
	for _, p := range set.Problems() {
		problems = append(problems, p.Error())
	}
	want := []string{
		"No output from " + silent + " -classad, ignoring",
		wrong + " -classad did not produce a valid classad, ignoring",
		"FILETRANSFER: Failed to execute " + missing + " -classad: no such file or directory skipping",
	}
	if diff := cmp.Diff(want, problems); diff != "" {
		t.Error(diff)
	}
	type row struct {
		Name     string
		Protocol int
		Many     bool
	}
	for url, want := range map[string]*row{
		"http://h/f":      {"MANY", 2, true},
		"a+HTTP://h/f":    {"MANY", 2, true},
		"x://h":           {"ONE", 1, false}, // the later one wins
		"https://h":       {"PELICAN", 4, true},
		"pelican://h":     {"PELICAN", 4, true},
		"ftp://h":         nil,
		"no url":          nil,
		"http:///":        {"MANY", 2, true},
		"http://":         nil,
		"https.http://h/": {"MANY", 2, true},
	} {
		var got *row
		if p := set.Find(url); p != nil {
			got = &row{p.Name, p.Protocol, p.Multi}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", url, diff)
		}
	}
	if diff := cmp.Diff([]string{"http", "https", "pelican", "x"}, set.Methods()); diff != "" {
		t.Error(diff)
	}
	_ = asked
}

// TestKnobs: the knobs that switch plugins off.
func TestKnobs(t *testing.T) {
	dir := t.TempDir()
	list := script(t, dir, "many", `echo 'MultipleFileSupport = true'; echo 'SupportedMethods = "m"'`) + "," +
		script(t, dir, "one", `echo 'SupportedMethods = "o"'`)
	for _, tt := range []struct {
		knobs    map[string]string
		want     []string
		disabled bool
		failed   bool
	}{
		{map[string]string{"ENABLE_MULTIFILE_TRANSFER_PLUGINS": "false"}, []string{"o"}, false, false},
		{map[string]string{"ENABLE_URL_TRANSFERS": "false"}, nil, true, false},
		{map[string]string{"ENABLE_URL_TRANSFERS": "perhaps"}, nil, true, true},
		{map[string]string{"FILETRANSFER_PLUGIN_CLASSAD_TIMEOUT": "soon"}, nil, true, true},
	} {
		tt.knobs["FILETRANSFER_PLUGINS"] = list
		f := finder(t, tt.knobs, nil)
		f.Exec = execute
		set, err := f.Find(t.Context())
		if (err != nil) != tt.failed || set.Disabled() != tt.disabled {
			t.Errorf("%v: disabled %t, %v", tt.knobs, set.Disabled(), err)
		}
		if diff := cmp.Diff(tt.want, set.Methods()); diff != "" {
			t.Error(diff)
		}
	}
}

// TestCache: which plugins are asked again.
func TestCache(t *testing.T) {
	dir := t.TempDir()
	good := script(t, dir, "good", `echo 'SupportedMethods = "g"'`)
	silent := script(t, dir, "silent", "")
	var asked []string
	f := finder(t, map[string]string{"FILETRANSFER_PLUGINS": good}, &asked)
	find := func(want ...string) {
		t.Helper()
		asked = nil
		set, err := f.Find(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, asked); diff != "" {
			t.Error(diff)
		}
		if set.Find("g://x") == nil {
			t.Error("the plugin is not there")
		}
	}
	find("good")
	find()
	f.Fresh = true
	find("good")
	f.Fresh = false
	find()
	if err := os.Chtimes(good, time.Time{}, time.Unix(1, 2)); err != nil {
		t.Fatal(err)
	}
	find("good")
	find()
	file := filepath.Join(f.Cache.dir, CacheFile)
	if err := os.Chmod(file, 0o666); err != nil {
		t.Fatal(err)
	}
	find("good") // and it is written anew
	if st, err := os.Stat(file); err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", st.Mode(), err)
	}
	if err := os.WriteFile(file, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	find("good")
	// A plugin that does not answer is not asked again immediately.
	f.Config = config.FromMap(map[string]string{"FILETRANSFER_PLUGINS": silent})
	for _, want := range [][]string{{"silent"}, nil} {
		asked = nil
		if _, err := f.Find(t.Context()); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, asked); diff != "" {
			t.Error(diff)
		}
	}
	if a := (Answer{Trouble: "x", Asked: time.Now().Add(-time.Hour).Unix()}); !a.stale(time.Now()) {
		t.Error("a failure of an hour ago still counts")
	}
}

// TestPassingTroubleIsNotCached: a plugin that could not be run because the pod had no room for a
// process is asked again.
func TestPassingTroubleIsNotCached(t *testing.T) {
	good := script(t, t.TempDir(), "good", `echo 'SupportedMethods = "g"'`)
	for errno, again := range map[syscall.Errno]bool{syscall.EAGAIN: true, syscall.ENOMEM: true, syscall.EACCES: false} {
		var asked []string
		f := finder(t, map[string]string{"FILETRANSFER_PLUGINS": good}, &asked)
		usual := f.Exec
		f.Exec = func(context.Context, Program) (Outcome, error) {
			return Outcome{}, &os.PathError{Op: "fork/exec", Path: good, Err: errno}
		}
		set, err := f.Find(t.Context())
		if err != nil || set.Find("g://x") != nil || len(set.Problems()) != 1 {
			t.Errorf("%v: %v, %v", errno, set.Problems(), err)
		}
		f.Exec = usual
		set, err = f.Find(t.Context())
		if err != nil || (set.Find("g://x") != nil) != again || len(asked) > 0 != again {
			t.Errorf("after %v: asked %q, %v, %v", errno, asked, set.Problems(), err)
		}
	}
}

// TestLimitOfAnswer: a plugin that does not end does not delay the others.
func TestLimitOfAnswer(t *testing.T) {
	path := script(t, t.TempDir(), "slow", `echo 'SupportedMethods = "s"'; exec sleep 600`)
	f := finder(t, map[string]string{"FILETRANSFER_PLUGINS": path, "FILETRANSFER_PLUGIN_CLASSAD_TIMEOUT": "1"}, nil)
	f.Exec = execute
	set, err := f.Find(t.Context())
	if err != nil || len(set.Methods()) != 0 || len(set.Problems()) != 1 {
		t.Errorf("%v, %v, %v", set.Methods(), set.Problems(), err)
	}
}

// TestJobPlugins: plugins that jobs bring.
func TestJobPlugins(t *testing.T) {
	site := func() *Set {
		s := newSet()
		s.add(&Plugin{Path: "/libexec/curl_plugin", Name: "CURL", Protocol: 4, Multi: true}, []string{"http", "https"})
		return s
	}
	job := mustAd(t, `TransferPlugins = "http,m=/home/me/My_plugin.py; pelican = stash ;nothing;x=;c=/libexec/curl_plugin"`)
	for _, tt := range []struct {
		mode UserPlugins
		want string
	}{
		{Allow, "http MY /home/me/My_plugin.py 2 true false; https CURL /libexec/curl_plugin 4 false false; m MY /home/me/My_plugin.py 2 true false; pelican PELICAN stash 2 true false; c CURL /libexec/curl_plugin 4 false false; "},
		{Ignore, "http CURL /libexec/curl_plugin 4 false false; https CURL /libexec/curl_plugin 4 false false; "},
		{Refuse, "http MY /home/me/My_plugin.py 2 true true; https CURL /libexec/curl_plugin 4 false false; m MY /home/me/My_plugin.py 2 true true; pelican PELICAN stash 2 true true; c CURL /libexec/curl_plugin 2 true true; "},
	} {
		s := site()
		s.AddJob(job, tt.mode)
		got := ""
		for _, m := range []string{"http", "https", "m", "pelican", "c", "x", "nothing"} {
			if p := s.Find(m + "://h"); p != nil {
				got += strings.Join([]string{m, p.Name, p.Path, string(rune('0' + p.Protocol)), yes(p.FromJob), yes(p.Refused)}, " ") + "; "
			}
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("mode %d: %s", tt.mode, diff)
		}
	}
	none := Disabled()
	none.AddJob(job, Allow)
	if none.Find("m://h") != nil {
		t.Error("a site without URL transfers runs a job's plugin")
	}
}

func yes(b bool) string {
	if b {
		return "true"
	}
	return "false"
}

// TestPublish: the attributes in the slot's ad.
func TestPublish(t *testing.T) {
	s := newSet()
	p := &Plugin{Path: "/p", Multi: true, Protocol: 2, Failed: []string{"broken"}, Ad: mustAd(t, `StartdAttrs = "Word, Number,List,HasFileTransfer Missing, Long,Sum,bad-name"
Word = "w"
Number = 3
List = {1}
HasFileTransfer = false
Long = "`+strings.Repeat("x", 2000)+`"
Sum = Number + 1
https_proxy = "cache:80"
other_proxy = "never"`)}
	s.add(p, []string{"https", "x"})
	ad := mustAd(t, "HasFileTransfer = true")
	left := s.Publish(ad)
	const want = `HasFileTransfer = true
HasFileTransferPluginMethods = "https,x,s3,gs"
OfflineFileTransferPluginMethods = "broken"
Word = "w"
Number = 3
Sum = 4
https_proxy = "cache:80"
`
	if diff := cmp.Diff(want, ad.FormatOld()); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"HasFileTransfer", "Long"}, left); diff != "" {
		t.Error(diff)
	}
	empty := classads.NewAd()
	newSet().Publish(empty)
	if empty.Len() != 0 {
		t.Errorf("a site without plugins publishes %s", empty.FormatOld())
	}
}

// TestTestedMethods: a method whose test fails stays with the plugin that had it before.
func TestTestedMethods(t *testing.T) {
	dir := t.TempDir()
	first := script(t, dir, "first", `echo 'SupportedMethods = "a,b"'`)
	second := script(t, dir, "second", `echo 'SupportedMethods = "a,b"'`)
	f := finder(t, map[string]string{"FILETRANSFER_PLUGINS": first + "," + second}, nil)
	f.Exec = execute
	f.Test = func(_ context.Context, p *Plugin, method string) error {
		if p.Path == second && method == "b" {
			return errors.New("no connection")
		}
		return nil
	}
	set, err := f.Find(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if a, b := set.Find("a://h"), set.Find("b://h"); a.Path != second || b.Path != first {
		t.Errorf("a: %s, b: %s", a.Path, b.Path)
	}
}
