//go:build pool

package statuspage

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"podstarter/integration/pool/browser"
	"podstarter/provisioner/backoff"
	"podstarter/provisioner/decision"
	"podstarter/provisioner/demand"
	"podstarter/provisioner/match"
	"podstarter/provisioner/platform"
	"podstarter/provisioner/round"
	"podstarter/provisioner/status"
)

// hostile are names that somebody chose: of users, pods, groups and in errors.
var hostile = []string{
	`<script>document.title='broken'</script>`, `<img src=x onerror="document.title='broken'">`, `</style><script>document.title='broken'</script>`,
	`<svg onload="document.title='broken'">`, `"><iframe src="javascript:document.title='broken'"></iframe>`, "\u202eexe.gnp\u202c\u2066\u200f",
	strings.Repeat("x", 10<<10), strings.Repeat("<b>", 4<<10), strings.Repeat("\u05d0", 3<<10), "\x1b[31m\x00red", "{{.Groups}}",
	"<meta http-equiv=refresh content=0;url=https://example.org/>",
}

// reports fill a day: jobs come, wait and run.
func reports(begin time.Time, minute int) round.Report {
	wave := (minute * 7) % 600
	unit := func(name, template string, phase platform.Phase) platform.Unit {
		return platform.Unit{Spec: platform.Spec{Name: name, Template: template}, Phase: phase}
	}
	rep := round.Report{
		At: begin.Add(time.Duration(minute) * time.Minute), Took: 1234 * time.Millisecond, Shapes: []string{"plain/small", "gpu/large"},
		Backoff: []backoff.State{{LastReport: begin.Add(time.Duration(minute-3) * time.Minute)}, {Reason: backoff.ImageFailed, Failures: 3, Until: begin.Add(time.Duration(minute+9) * time.Minute)}, {}},
	}
	add := func(id, user string, idle, waiting int, cause decision.Cause, why string) {
		rep.Groups = append(rep.Groups, demand.Group{ID: id, Parts: []demand.Part{{User: user, Idle: idle, Jobs: "ap: 1.0 ... 1.9"}},
			Schedds: []demand.Share{{Schedd: demand.Source{Name: "ap.pool.example.org"}, Idle: idle - 2}, {Schedd: demand.Source{Name: "ap", Pool: "cm.home.example.org:9618"}, Idle: 2}}})
		o := decision.Outcome{Idle: idle, Coming: idle - waiting}
		if waiting > 0 {
			o.Waiting = []decision.Reason{{Jobs: waiting, Why: why, Cause: cause}}
		}
		rep.Output.Groups = append(rep.Output.Groups, o)
		rep.Matches = append(rep.Matches, []match.Result{{Matches: true}, {Why: "the job's Requirements do not hold for the slot"}})
	}
	add("0123456789abcdef", "alice@pool.example.org", 400+wave, wave/3, decision.PodLimit, "the limit of 200 pods is reached")
	add("fedcba9876543210", "bob@pool.example.org", 12, 12, decision.NoMatch, "no template has slots that match")
	for i := range 100 + wave/6 {
		rep.Units = append(rep.Units, unit(fmt.Sprint("site-plain-", i), "plain", platform.Running))
	}
	for i := range wave / 40 {
		rep.Units = append(rep.Units, unit(fmt.Sprint("site-gpu-", i), "gpu", platform.Pending))
	}
	if minute%20 == 0 {
		rep.Made = []string{"site-plain-1a2b3c4d", "site-plain-5e6f7a8b"}
	}
	if minute%90 == 0 {
		rep.Failed = []round.Failure{{Unit: "site-gpu-00112233", Template: "gpu", Reason: backoff.ImageFailed, Detail: "container pilot: ErrImagePull: not found"}}
		rep.Problems = []round.Problem{{Source: round.Schedds, Err: errors.New("the jobs of the schedd ap2: not all idle jobs are known: running condor_q -allusers: it has not ended after 1m0s")}}
	}
	return rep
}

// spoil puts hostile names wherever a name can be.
func spoil(rep round.Report) round.Report {
	for i, name := range hostile {
		rep.Groups = append(rep.Groups, demand.Group{ID: fmt.Sprintf("%016d", i), Parts: []demand.Part{{User: name, Idle: 5, Jobs: name}, {User: name, Idle: 5}},
			Schedds: []demand.Share{{Schedd: demand.Source{Name: name, Pool: name}, Idle: 5}}})
		rep.Output.Groups = append(rep.Output.Groups, decision.Outcome{Idle: 10, Waiting: []decision.Reason{{Jobs: 10, Why: name, Cause: decision.NoMatch}}})
		rep.Matches = append(rep.Matches, []match.Result{{Why: name}, {Why: name}})
		rep.Made = append(rep.Made, name)
		rep.Failed = append(rep.Failed, round.Failure{Unit: name, Template: name, Reason: backoff.Failed, Detail: name})
		rep.Problems = append(rep.Problems, round.Problem{Source: round.Making, Err: errors.New(name)})
		rep.Units = append(rep.Units, platform.Unit{Spec: platform.Spec{Name: name, Template: name}})
	}
	return rep
}

// serve serves a board with a day of rounds, the last of which is last.
func serve(t *testing.T, last func(round.Report) round.Report) string {
	t.Helper()
	begin := time.Now().Add(-24 * time.Hour).Truncate(time.Minute)
	now := begin
	b := status.NewBoard(status.Config{
		Name: "site", Templates: []string{"plain", "gpu", "a-template-with-a-long-name-xx"}, Interval: time.Minute,
		Leader: func() (string, bool) { return "me", true }, Now: func() time.Time { return now },
	})
	b.Lead()
	const minutes = 24 * 60
	for m := range minutes {
		if m > 500 && m < 600 {
			continue // the provisioner was away
		}
		now = begin.Add(time.Duration(m) * time.Minute)
		rep := reports(begin, m)
		if m == minutes-1 {
			rep = last(rep)
		}
		b.Note(rep)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- b.Serve(ctx, listener) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return "http://" + listener.Addr().String() + "/"
}

// open starts a browser. It returns what the browser complained of and which addresses it asked.
func open(t *testing.T) (ctx context.Context, heard func() (complaints, asked []string)) {
	t.Helper()
	program, err := browser.Chromium(t.Context(), t.Output())
	if err != nil {
		t.Fatal(err)
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(program), chromedp.NoSandbox, chromedp.UserDataDir(t.TempDir()))
	ctx, stop := chromedp.NewExecAllocator(context.Background(), options...)
	t.Cleanup(stop)
	ctx, cancel := context.WithTimeout(ctx, 3*time.Minute)
	t.Cleanup(cancel)
	var mu sync.Mutex
	var complaints, asked []string
	ctx, end := chromedp.NewContext(ctx, chromedp.WithListener(func(event any) {
		mu.Lock()
		defer mu.Unlock()
		switch e := event.(type) {
		case *log.EventEntryAdded:
			complaints = append(complaints, fmt.Sprintf("%s: %s", e.Entry.Source, e.Entry.Text))
		case *runtime.EventExceptionThrown:
			complaints = append(complaints, "an exception: "+e.ExceptionDetails.Text)
		case *page.EventJavascriptDialogOpening:
			complaints = append(complaints, "a dialog: "+e.Message)
		case *network.EventRequestWillBeSent:
			asked = append(asked, e.Request.URL)
		}
	}))
	t.Cleanup(end)
	err = chromedp.Do(ctx, func(ctx context.Context, _ *chromedp.Target) (chromedp.Void, error) {
		_, err := chromedp.Call(ctx, log.Enable, cdp.Empty{})
		if err == nil {
			_, err = chromedp.Call(ctx, network.Enable, network.EnableParams{})
		}
		return chromedp.Void{}, err
	})
	if err != nil {
		t.Fatal(err)
	}
	return ctx, func() ([]string, []string) {
		mu.Lock()
		defer mu.Unlock()
		return complaints, asked
	}
}

// shots is where pictures of the page are left for whoever wants to look at them.
func shots(t *testing.T, name string, png []byte) {
	t.Helper()
	dir := os.Getenv("PODSTARTER_SHOTS")
	if dir == "" {
		return
	}
	if err := os.WriteFile(filepath.Join(dir, name+".png"), png, 0o644); err != nil {
		t.Error(err)
	}
}

// look is what a page is like once it is shown.
type look struct {
	Title                                           string
	Scripts, Frames, Images, Handlers, Bold, Tables int
	Width, Inner, Groups, Pictures                  int
	Wide                                            []string
	Font                                            string
	Text                                            string
}

const script = `(() => {
	const all = [...document.querySelectorAll('*')];
	const width = document.documentElement.clientWidth;
	return {
		title: document.title,
		scripts: document.scripts.length,
		frames: document.querySelectorAll('iframe, object, embed, form, link').length,
		images: document.images.length,
		handlers: all.filter(e => [...e.attributes].some(a => a.name.startsWith('on') || a.value.trim().startsWith('javascript:'))).length,
		bold: document.querySelectorAll('b').length,
		tables: document.querySelectorAll('table').length,
		width: document.documentElement.scrollWidth,
		inner: width,
		groups: document.querySelectorAll('#groups tbody tr').length,
		pictures: [...document.querySelectorAll('svg')].filter(s => s.getBoundingClientRect().width > 200 && [...s.querySelectorAll('path.s')].some(p => p.getTotalLength() > 100 && getComputedStyle(p).stroke !== 'none')).length,
		wide: all.filter(e => e.getBoundingClientRect().right > width + 1 && getComputedStyle(e).position !== 'absolute').map(e => e.tagName + '.' + e.className).slice(0, 10),
		font: getComputedStyle(document.body).fontFamily,
		text: document.body.innerText,
	};
})()`

// show opens the page at a width and looks at it.
func show(t *testing.T, ctx context.Context, url, name string, width int64, dark bool) look {
	t.Helper()
	scheme := "light"
	if dark {
		scheme = "dark"
	}
	err := chromedp.Do(ctx, chromedp.EmulateViewport(width, 900), func(ctx context.Context, _ *chromedp.Target) (chromedp.Void, error) {
		_, err := chromedp.Call(ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}})
		return chromedp.Void{}, err
	}, chromedp.Navigate(url))
	if err != nil {
		t.Fatal(err)
	}
	l, err := chromedp.Run(ctx, chromedp.Evaluate[look](script))
	if err != nil {
		t.Fatal(err)
	}
	png, err := chromedp.Run(ctx, chromedp.FullScreenshot(100))
	if err != nil {
		t.Fatal(err)
	}
	shots(t, name, png)
	return l
}

func TestPage(t *testing.T) {
	for name, c := range map[string]struct {
		last   func(round.Report) round.Report
		groups int
	}{
		"as it should be": {func(r round.Report) round.Report { return r }, 2},
		"hostile names":   {spoil, 2 + len(hostile)},
	} {
		t.Run(name, func(t *testing.T) {
			url := serve(t, c.last)
			ctx, heard := open(t)
			for _, width := range []int64{1280, 400} {
				l := show(t, ctx, url, fmt.Sprintf("%s-%d", strings.ReplaceAll(name, " ", "-"), width), width, width == 400)
				if l.Title != "site: HTCondor pod provisioner" || l.Scripts+l.Frames+l.Images+l.Handlers > 0 {
					t.Errorf("%d: a name became a part of the page: %+v", width, l)
				}
				if l.Width > l.Inner || len(l.Wide) > 0 {
					t.Errorf("%d: the page is %d wide in a window of %d: %q", width, l.Width, l.Inner, l.Wide)
				}
				if l.Groups != c.groups || l.Pictures != 3 || l.Tables != 4 || !strings.Contains(l.Font, "system-ui") {
					t.Errorf("%d: %d groups, %d pictures, %d tables, in %s", width, l.Groups, l.Pictures, l.Tables, l.Font)
				}
				for _, want := range []string{"leader", "alice@pool.example.org", "no template has slots that match", "3 times in a row pods came to nothing (ImageFailed)", "idle jobs", "cm.home.example.org:9618; its jobs flock here", "it has not ended after 1m0s"} {
					if !strings.Contains(l.Text, want) && !(name == "hostile names" && want == "it has not ended after 1m0s") {
						t.Errorf("%d: %q cannot be read", width, want)
					}
				}
				if strings.ContainsAny(l.Text, "\u202e\u202c\u2066\u200f\x1b") {
					t.Errorf("%d: a name changes the order of the page's words", width)
				}
			}
			// The explanation of a group is a text, whatever is in it.
			if err := chromedp.Do(ctx, chromedp.Navigate(url), chromedp.Click(chromedp.CSS("#groups tbody tr:last-child a")), chromedp.WaitReady(chromedp.CSS("body > pre"))); err != nil {
				t.Fatal(err)
			}
			text, err := chromedp.Run(ctx, chromedp.Evaluate[[]string]("[document.contentType, document.body.innerText]"))
			if err != nil {
				t.Fatal(err)
			}
			kind, body := text[0], text[1]
			if kind != "text/plain" || !strings.Contains(body, "idle jobs of") {
				t.Errorf("%s: %.300q", kind, body)
			}
			complaints, asked := heard()
			for _, text := range complaints {
				if !strings.Contains(text, "favicon") {
					t.Errorf("the browser complains: %s", text)
				}
			}
			for _, a := range asked {
				if !strings.HasPrefix(a, url) {
					t.Errorf("the browser asked %s", a)
				}
			}
			if len(asked) < 3 {
				t.Errorf("the browser asked only %q", asked)
			}
		})
	}
}

// The policy keeps a script from running, also if one came into the page.
func TestPolicy(t *testing.T) {
	url := serve(t, func(r round.Report) round.Report { return r })
	ctx, heard := open(t)
	add := `(() => { const s = document.createElement('script'); s.textContent = "document.title = 'broken'"; document.body.append(s);
		const i = document.createElement('img'); i.src = 'https://example.org/'; document.body.append(i);
		document.body.setAttribute('onclick', "document.title = 'broken'"); document.body.click(); return document.title })()`
	if err := chromedp.Do(ctx, chromedp.Navigate(url)); err != nil {
		t.Fatal(err)
	}
	title, err := chromedp.Run(ctx, chromedp.Evaluate[string](add))
	if err != nil {
		t.Fatal(err)
	}
	complaints, asked := heard()
	if title != "site: HTCondor pod provisioner" || len(complaints) == 0 {
		t.Errorf("the title is %q, the browser complains: %q", title, complaints)
	}
	for _, a := range asked {
		if !strings.HasPrefix(a, url) && !strings.HasPrefix(a, "https://example.org/") {
			t.Errorf("the browser asked %s", a)
		}
	}
}
