package plugin

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
)

// FuzzReports: any report file of a plugin gives a result with a bounded number of
// ads that the shadow may get.
func FuzzReports(f *testing.F) {
	for _, seed := range []string{
		"", strings.Repeat(" ", 100), reportOK, reportOK + reportOK + "[", "[ TransferClass = 1; TransferSuccess = true ]",
		`[ TransferSuccess = false; TransferError = "a|b;c"; TransferUrl = "x://h?s" ]`, `[ TransferProtocol = "a b"; TransferTotalBytes = -5 ]`,
		`[ TransferErrorData = {{{{[ ErrorType = "x" ]}}}} ]`, "\x00[\xff]", `[ a = b; b = a; TransferSuccess = a ]`,
	} {
		f.Add([]byte(seed), 0, 0)
		f.Add([]byte(seed), 3, 0)
		f.Add([]byte(seed), 0, 9)
	}
	f.Fuzz(func(t *testing.T, text []byte, code, signal int) {
		res := &Result{Plugin: &Plugin{Path: "/p"}, code: code & 0xff, signal: signal & 0x3f}
		if res.code != 0 || res.signal != 0 {
			res.Status = Failed
		}
		res.take(text, Input, []File{{"x://h", "/a"}}, nil, "/out", time.Second)
		if len(res.Ads) != len(res.Reports)+1 || len(res.Reports) > 18 {
			t.Errorf("%d ads of %d reports", len(res.Ads), len(res.Reports))
		}
		for i, ad := range res.Ads[1:] {
			if ad.Has("TransferClass") {
				t.Errorf("report %d looks like an invocation", i)
			}
			for name, e := range ad.All() {
				if v, ok := literal(e); !ok || v.Kind() != reportTypes[strings.ToLower(name)] {
					t.Errorf("the shadow gets %s = %s", name, e)
				}
			}
		}
		if (res.Failure == nil) != (res.Status == Success) {
			t.Errorf("status %d with failure %v", res.Status, res.Failure)
		}
		for _, r := range res.Reports {
			if r.Bytes < 0 || r.Protocol != "" && !attributePart(r.Protocol) {
				t.Errorf("counted: %+v", r)
			}
		}
	})
}

// FuzzLines: any answer of a plugin about itself, or by protocol 1, a transfer.
func FuzzLines(f *testing.F) {
	f.Add("MultipleFileSupport = true\nSupportedMethods = \"a,b\"\nProtocolVersion = 2\nStartdAttrs = \"X\"\nX = 1\na_proxy = \"p\"")
	f.Add("SupportedMethods = strcat(\"a\", SupportedMethods)\r\n= 3\n#\n\x00")
	f.Fuzz(func(t *testing.T, text string) {
		p, err := newPlugin("/p/x_plugin", Answer{Text: text})
		if err != nil {
			return
		}
		set := newSet()
		set.add(p, words(p.Ad.StringOr("SupportedMethods", "")))
		ad := mustAd(t, "HasFileTransfer = true")
		set.Publish(ad)
		if !ad.BoolOr("HasFileTransfer", false) || p.Protocol < 1 || p.Protocol > 100 {
			t.Errorf("a plugin got through: %+v, %s", p, ad.FormatOld())
		}
	})
}

// FuzzCache: any file of cached answers.
func FuzzCache(f *testing.F) {
	whole, err := json.Marshal(cacheFile{Version: cacheVersion, Plugins: []Answer{{Key: Key{Path: "/p", Size: 1, MTime: 2, Inode: 3}, Text: "x", Asked: 4}}})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(whole)
	f.Add([]byte(`{"version":1,"plugins":[{"path":"/p","answer":"a","trouble":"b"}]}`))
	f.Add([]byte(`{"version":2}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		known, err := parseCache(data)
		if err != nil && known != nil {
			t.Error("a part of an invalid cache counts")
		}
		for path, a := range known {
			if path != a.Path || a.Path == "" || len(a.Text) > maxAnswer {
				t.Errorf("got %+v", a)
			}
		}
	})
}

// FuzzJobPlugins: any TransferPlugins of a job.
func FuzzJobPlugins(f *testing.F) {
	f.Add("m1,m2=path;m3=path2")
	f.Add(";;==;a=/;=b;a=..")
	f.Fuzz(func(t *testing.T, text string) {
		ad := mustAd(t, "")
		ad.SetString("TransferPlugins", text)
		s := newSet()
		s.AddJob(ad, Allow)
		r := newRunner(t, "/scratch")
		for _, p := range s.Plugins() {
			path := r.program(p)
			rest, ok := strings.CutPrefix(path, "/scratch/")
			if !ok || strings.Contains(rest, "/") {
				t.Errorf("%q would be executed for %q", path, p.Path)
			}
		}
	})
}
