package plugin

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"podstarter/classads"
	"podstarter/condor/config"
	"podstarter/rescue"
)

// DefaultAnswerTime is FILETRANSFER_PLUGIN_CLASSAD_TIMEOUT's default.
const DefaultAnswerTime = 20 * time.Second

// Finder finds the plugins of a site.
type Finder struct {
	Config *config.Config
	Exec   Exec     // of "<path> -classad", as a user with no rights
	Env    []string // of these runs
	Cache  *Cache   // of their answers; nil for none
	// Test tries a method of a plugin; nil for no tests. A method that fails is not
	// used with this plugin.
	Test func(ctx context.Context, p *Plugin, method string) error
	// Fresh asks every plugin again, and caches its answer.
	Fresh bool
	Log   *slog.Logger
}

// mostPlugins bounds FILETRANSFER_PLUGINS.
const mostPlugins = 100

// Find asks the site's plugins about themselves (InitializeSystemPlugins), except
// those in the cache. Trouble with single plugins is in the set's problems; an error
// means that a knob cannot be parsed.
func (f Finder) Find(ctx context.Context) (*Set, error) {
	on, err := f.Config.Bool("ENABLE_URL_TRANSFERS", true)
	if err != nil {
		return Disabled(), err
	}
	if !on {
		return Disabled(), nil
	}
	multi, err := f.Config.Bool("ENABLE_MULTIFILE_TRANSFER_PLUGINS", true)
	if err != nil {
		return Disabled(), err
	}
	limit, err := f.Config.Seconds("FILETRANSFER_PLUGIN_CLASSAD_TIMEOUT", DefaultAnswerTime)
	if err != nil {
		return Disabled(), err
	}
	paths := distinct(f.Config.List("FILETRANSFER_PLUGINS"))
	set := newSet()
	if len(paths) > mostPlugins {
		set.problems = append(set.problems, fmt.Errorf("FILETRANSFER_PLUGINS names %d plugins; only the first %d are used", len(paths), mostPlugins))
		paths = paths[:mostPlugins]
	}
	answers := f.ask(ctx, paths, max(limit, time.Second))
	for i, path := range paths {
		p, err := newPlugin(path, answers[i])
		if err != nil {
			set.problems = append(set.problems, err)
			continue
		}
		if p.Multi && !multi {
			set.plugins = append(set.plugins, p) // its StartdAttrs count all the same
			continue
		}
		set.add(p, f.test(ctx, set, p, words(p.Ad.StringOr("SupportedMethods", ""))))
	}
	return set, nil
}

// test returns the methods that work (TestPlugin).
func (f Finder) test(ctx context.Context, set *Set, p *Plugin, methods []string) (good []string) {
	for _, m := range methods {
		if f.Test != nil {
			if err := f.Test(ctx, p, m); err != nil {
				set.problems = append(set.problems, fmt.Errorf("protocol %q is not served by %s, whose test failed: %w", m, p.Path, err))
				p.Failed = append(p.Failed, m)
				continue
			}
		}
		good = append(good, m)
	}
	return good
}

func distinct(list []string) (out []string) {
	seen := map[string]bool{}
	for _, s := range list {
		if !seen[s] {
			seen[s] = true
			out = append(out, s)
		}
	}
	return out
}

// ask asks plugins for their answers, several at a time.
func (f Finder) ask(ctx context.Context, paths []string, limit time.Duration) []Answer {
	const together = 4
	answers := make([]Answer, len(paths))
	known := f.Cache.read(f.Log)
	places := make(chan struct{}, together)
	var all rescue.Group
	news := false
	for i, path := range paths {
		key, err := keyOf(path)
		if err != nil {
			answers[i] = Answer{Key: Key{Path: path}, Trouble: fmt.Sprintf("FILETRANSFER: Failed to execute %s -classad: %v skipping", path, unwrapPath(err))}
			continue
		}
		if a, ok := known[path]; ok && !f.Fresh && a.Key == key && !a.stale(time.Now()) {
			answers[i] = a
			continue
		}
		news = true
		all.Go(func() {
			places <- struct{}{}
			defer func() { <-places }()
			answers[i] = f.query(ctx, key, limit)
		})
	}
	all.Wait()
	if news && ctx.Err() == nil {
		f.Cache.write(answers, f.Log)
	}
	return answers
}

// query runs "<path> -classad". Its exit status is ignored.
func (f Finder) query(ctx context.Context, key Key, limit time.Duration) Answer {
	a := Answer{Key: key, Asked: time.Now().Unix()}
	end, err := f.Exec(ctx, Program{Path: key.Path, Args: []string{"-classad"}, Env: f.Env, Dir: "/", Limit: limit, Combined: true})
	switch {
	case err != nil:
		a.Trouble = fmt.Sprintf("FILETRANSFER: Failed to execute %s -classad: %v skipping", key.Path, err)
		if passing(err) {
			a.Asked = 0 // not to be remembered
		}
	case end.Late:
		a.Trouble = fmt.Sprintf("No answer from %s -classad within %s, ignoring", key.Path, limit)
	case len(end.Output) == 0:
		a.Trouble = fmt.Sprintf("No output from %s -classad, ignoring", key.Path)
	case len(end.Output) > maxAnswer:
		a.Trouble = fmt.Sprintf("%s -classad wrote more than %d bytes, ignoring", key.Path, maxAnswer)
	default:
		a.Text = strings.ToValidUTF8(string(end.Output), "?")
	}
	return a
}

// newPlugin makes a plugin from its answer (InsertPluginAndMappings).
func newPlugin(path string, a Answer) (*Plugin, error) {
	if a.Trouble != "" {
		return nil, fmt.Errorf("%s", a.Trouble)
	}
	ad, _ := ParseLines([]byte(a.Text))
	methods := words(ad.StringOr("SupportedMethods", ""))
	if len(methods) == 0 {
		return nil, fmt.Errorf("%s -classad did not produce a valid classad, ignoring", path)
	}
	p := &Plugin{Path: path, Name: nameOf(path), Ad: ad, Multi: ad.BoolOr("MultipleFileSupport", false)}
	usual := int64(1)
	if p.Multi {
		usual = 2
	}
	version := ad.IntOr("ProtocolVersion", usual)
	if version < 1 || version > 100 {
		version = usual
	}
	p.Protocol = int(version)
	// Stock looks only at the version (FileTransferPlugin::multi_file).
	p.Multi = p.Protocol >= 2
	return p, nil
}

// attributes copies the plugin's attributes for the slot's ad (printClassAd): those
// that its StartdAttrs name, if they are plain values.
func (p *Plugin) attributes(into *classads.Ad) {
	if p.Ad == nil {
		return
	}
	for _, name := range words(p.Ad.StringOr("StartdAttrs", "")) {
		e, ok := p.Ad.Lookup(name)
		if !ok {
			continue
		}
		v := e.Eval(classads.Env{My: p.Ad})
		switch v.Kind() {
		case classads.Bool, classads.Int, classads.Real, classads.String:
			into.Insert(name, classads.Literal(v))
		}
	}
}
