package status

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"podstarter/internal/buildinfo"
	"podstarter/provisioner/backoff"
	"podstarter/provisioner/decision"
	"podstarter/provisioner/demand"
	"podstarter/provisioner/round"
)

// Bounds of the page, whatever there is.
const (
	maxGroups  = 100
	maxReasons = 5
	maxUsers   = 5
	maxName    = 60 // bytes
	maxWhy     = 300
	maxActs    = 30
	maxSchedds = 50
	maxShown   = 600 // of an error
)

//go:embed page.css
var css string

//go:embed page.html
var pageText string

var pageTemplate = template.Must(template.New("page").Parse(pageText))

// policy lets a browser use the page's own style and nothing else: no script, no
// picture, no frame, no form, no connection. SVG in the page is a part of it.
var policy = func() string {
	sum := sha256.Sum256([]byte(css))
	return "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
}()

// view is what the page shows.
type view struct {
	Name, Version, Role, At, Took string
	CSS                           template.CSS
	Leader, Known                 bool
	Unhealthy                     string
	Refresh                       int
	Figures                       []figure
	Pictures                      []picture
	Groups                        []groupView
	Schedds                       []scheddView
	MoreGroups, MoreJobs          int
	Offline                       bool
	Templates                     []templateView
	Acts                          []string
	MoreActs                      int
	Errors                        []errorView
}

type figure struct {
	Label string
	Value int
	Class string
}

type groupView struct {
	ID, Link, Users string
	Idle            int
	Placed, Waits   string
	Reasons         []string
}

type scheddView struct {
	Name, Pool string
	Idle       int
}

type templateView struct {
	Name                     string
	Pending, Running         string
	State, Class, LastReport string
}

type errorView struct{ Source, Text, When string }

// page shows the page.
func (b *Board) page(w http.ResponseWriter, _ *http.Request) {
	var text bytes.Buffer
	if err := pageTemplate.Execute(&text, b.look()); err != nil {
		plain(w, http.StatusInternalServerError, []byte("The page cannot be written: "+cut(err.Error(), maxDetail)+"\n"))
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = w.Write(text.Bytes())
}

func (b *Board) look() view {
	unhealthy, role := b.unhealthy(), b.role()
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.config.Now()
	v := view{
		Name: b.config.Name, Version: buildinfo.Version(), Role: role, CSS: template.CSS(css),
		Leader: !b.begun.IsZero(), Refresh: int(max(b.config.Interval, 10*time.Second).Seconds()),
	}
	if unhealthy != nil {
		v.Unhealthy = cut(unhealthy.Error(), maxDetail)
	}
	v.Pictures = pictures(b.history.day(now))
	for _, m := range slices.Backward(b.errors) {
		when := ago(now, m.Last)
		if m.Times > 1 {
			when = fmt.Sprintf("%d times, first %s, last %s", m.Times, ago(now, m.First), when)
		}
		v.Errors = append(v.Errors, errorView{Source: string(m.Source), Text: cut(m.Text, maxShown), When: when})
	}
	rep := b.last
	if rep == nil {
		return v
	}
	v.At = fmt.Sprintf("%s UTC (%s)", b.ended.UTC().Format(time.DateTime), ago(now, b.ended))
	v.Took, v.Known = rep.Took.Round(time.Millisecond).String(), !rep.Unknown
	s := sampleOf(*rep)
	v.Offline = rep.Offline != nil
	if !v.Offline && v.Known {
		v.Figures = []figure{{"idle jobs", s.idle, "demand"}, {"get no pod", s.waiting, "waiting"}}
	}
	if v.Known {
		v.Figures = append(v.Figures, figure{"pods on their way", s.pending, "pending"}, figure{"pods that run", s.running, "running"})
	}
	v.Groups, v.MoreGroups, v.MoreJobs = groups(rep)
	v.Schedds = access(rep)
	v.Templates = b.templates(rep, now)
	v.Acts, v.MoreActs = acts(rep)
	return v
}

func pictures(day []point) []picture {
	return []picture{
		draw("Demand", "jobs", day,
			line{Name: "idle", Class: "demand", value: func(s sample) int { return s.idle }},
			line{Name: "get no pod", Class: "waiting", value: func(s sample) int { return s.waiting }}),
		draw("Supply", "pods", day,
			line{Name: "run", Class: "running", value: func(s sample) int { return s.running }},
			line{Name: "on their way", Class: "pending", value: func(s sample) int { return s.pending }}),
		draw("Decisions", "pods in 15 minutes", day,
			line{Name: "made", Class: "running", sums: true, value: func(s sample) int { return s.made }},
			line{Name: "withdrawn", Class: "pending", sums: true, value: func(s sample) int { return s.withdrawn }},
			line{Name: "failed", Class: "waiting", sums: true, value: func(s sample) int { return s.failed }}),
	}
}

// groups returns the largest groups, first those with jobs that wait, and how many
// groups and jobs are left out.
func groups(rep *round.Report) (shown []groupView, more, moreJobs int) {
	order := make([]int, len(rep.Groups))
	waits := make([]int, len(rep.Groups))
	for i := range rep.Groups {
		order[i] = i
		for _, r := range outcome(rep, i).Waiting {
			waits[i] += r.Jobs
		}
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return cmp.Or(cmp.Compare(waits[b], waits[a]), cmp.Compare(rep.Groups[b].Idle(), rep.Groups[a].Idle()))
	})
	for n, i := range order {
		g := rep.Groups[i]
		if n >= maxGroups {
			more++
			moreJobs += g.Idle()
			continue
		}
		v := groupView{ID: cut(g.ID, maxName), Users: users(g), Idle: g.Idle(), Waits: number(waits[i], rep)}
		if len(g.ID) <= maxName {
			v.Link = "explain?group=" + url.QueryEscape(g.ID)
		}
		o := outcome(rep, i)
		v.Placed = number(o.Free+o.Soon+o.Coming+o.New, rep)
		for k, r := range o.Waiting {
			if k == maxReasons {
				v.Reasons = append(v.Reasons, fmt.Sprintf("and %d other reasons", len(o.Waiting)-k))
				break
			}
			v.Reasons = append(v.Reasons, fmt.Sprintf("%d: %s", r.Jobs, cut(r.Why, maxWhy)))
		}
		shown = append(shown, v)
	}
	return shown, more, moreJobs
}

// number writes a number that a round knows only if it knew what is there.
func number(n int, rep *round.Report) string {
	if rep.Unknown {
		return "?"
	}
	return fmt.Sprint(n)
}

// outcome returns what becomes of a group; nothing was decided in a round that did
// not know what is there.
func outcome(rep *round.Report, group int) decision.Outcome {
	if group >= len(rep.Output.Groups) {
		return decision.Outcome{}
	}
	return rep.Output.Groups[group]
}

func users(g demand.Group) string {
	var names []string
	for i, p := range g.Parts {
		if i == maxUsers {
			names = append(names, fmt.Sprintf("and %d others", len(g.Parts)-i))
			break
		}
		names = append(names, cut(p.User, maxName))
	}
	return strings.Join(names, ", ")
}

func (b *Board) templates(rep *round.Report, now time.Time) []templateView {
	counts := b.pods(rep)
	var all []templateView
	for i, name := range b.config.Templates {
		v := templateView{Name: name, Pending: number(counts[name][0], rep), Running: number(counts[name][1], rep), LastReport: "never"}
		if i < len(rep.Backoff) {
			s := rep.Backoff[i]
			v.LastReport = ago(now, s.LastReport)
			v.State, v.Class = state(s, rep.At)
		}
		if i < len(rep.Untaken) {
			if u := rep.Untaken[i]; u.State.Failures > 0 {
				v.State += "; " + u.Words(rep.At)
				v.Class = "bad"
			}
		}
		for _, s := range rep.Smaller {
			if of, shape, _ := strings.Cut(rep.Shapes[s.Shape], "/"); of == name {
				v.State += fmt.Sprintf("; slots of the shape %s have %s, and the template says %s", shape, s.Offers, s.Says)
				v.Class = cmp.Or(map[string]string{"good": "fair"}[v.Class], v.Class)
			}
		}
		all = append(all, v)
	}
	if n := counts[other]; n[0]+n[1] > 0 {
		all = append(all, templateView{Name: "no longer configured", Pending: number(n[0], rep), Running: number(n[1], rep)})
	}
	return all
}

// state says in words what a template may do.
func state(s backoff.State, now time.Time) (text, class string) {
	allowed, why := s.Allowance(now)
	switch {
	case allowed == backoff.Unlimited:
		return "works", "good"
	case allowed == 0:
		return why, "bad"
	}
	return why, "fair"
}

// acts lists what the last round did.
func acts(rep *round.Report) (shown []string, more int) {
	note := func(text string) {
		if len(shown) == maxActs {
			more++
			return
		}
		shown = append(shown, text)
	}
	for _, f := range rep.Failed {
		note(fmt.Sprintf("%s came to nothing (%s): %s", cut(f.Unit, maxName), f.Reason, cut(f.Detail, maxWhy)))
	}
	for _, name := range rep.Made {
		note("made " + cut(name, maxName))
	}
	for _, name := range rep.Removed {
		note("ended " + cut(name, maxName) + ", which has never reported to the collector")
	}
	for _, name := range rep.Withdrawn {
		note("withdrew " + cut(name, maxName))
	}
	return shown, more
}
