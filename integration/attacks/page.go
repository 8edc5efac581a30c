package attacks

import (
	"fmt"
	"slices"
	"strings"
)

// The generated part of docs/developer/threats.md lies between these lines.
const (
	pageBegin = "<!-- generated from integration/attacks; do not edit -->"
	pageEnd   = "<!-- end of the generated part -->"
)

// tables are the generated part of the page.
func tables() string {
	var b strings.Builder
	b.WriteString("| attack | threat | how a hostile job tries it | it gets through without |\n| --- | --- | --- | --- |\n")
	for _, a := range Attacks {
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", a.Name, a.Threat, a.Tried, byMode(a.described))
	}
	b.WriteString("\n## Defences\n\n| defence | modes | what it is | where it is switched off for the tests |\n| --- | --- | --- | --- |\n")
	for _, d := range Defences {
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", d.Name, names(d.In), d.What, strings.Join(d.places(), ", "))
	}
	b.WriteString("\n## Settings\n\nEvery attack is tried in each of these, if its mode has it. Some are tried in a guest as well, which has another kernel, cgroup v2 and later versions of containerd and runc.\n\n" +
		"| setting | modes | in a guest | defences that are off |\n| --- | --- | --- | --- |\n")
	for _, s := range Settings {
		guest := ""
		if s.Guest {
			guest = "yes"
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", s.Name, names(s.In), guest, byMode(func(mode Mode) string {
			if !in(mode, s.In) {
				return ""
			}
			if off := s.off(mode); len(off) > 0 {
				return strings.Join(off, ", ")
			}
			return "none"
		}))
	}
	return b.String()
}

// described are the ways of an attack in a mode.
func (a Attack) described(mode Mode) string {
	if !in(mode, a.In) {
		return a.Else
	}
	var ways []string
	for _, w := range a.waysIn(mode) {
		if text := "*" + strings.Join(w.of(mode), "* and *") + "*"; !slices.Contains(ways, text) {
			ways = append(ways, text)
		}
	}
	return strings.Join(ways, ", or without ")
}

// byMode puts together what holds in each mode; once if all modes that have an entry
// have the same.
func byMode(say func(Mode) string) string {
	var texts []string
	of := map[string][]string{}
	for _, mode := range Modes {
		text := say(mode)
		if text == "" {
			continue
		}
		if of[text] == nil {
			texts = append(texts, text)
		}
		of[text] = append(of[text], string(mode))
	}
	if len(texts) == 1 {
		return texts[0]
	}
	for i, text := range texts {
		texts[i] = strings.Join(of[text], ", ") + ": " + text
	}
	return strings.Join(texts, "<br>")
}

// names are those of modes.
func names(modes []Mode) string {
	if modes == nil {
		return "all"
	}
	var all []string
	for _, m := range modes {
		all = append(all, string(m))
	}
	return strings.Join(all, ", ")
}

// places says what is changed to switch a defence off.
func (d Defence) places() []string {
	var all []string
	add := func(place string) {
		for _, p := range all {
			if p == place {
				return
			}
		}
		all = append(all, place)
	}
	if d.Pod != nil {
		add("the pod's manifest")
	}
	if d.Config != "" {
		add("HTCondor's configuration")
	}
	if d.Pilot != nil || d.Beside != nil {
		add("a command in the pilot container")
	}
	for _, c := range d.Changes {
		add("`" + c.File + "`")
	}
	return all
}

// replaceTables puts the tables between the marks of the page.
func replaceTables(page string) (string, error) {
	before, rest, ok := strings.Cut(page, pageBegin)
	_, after, closed := strings.Cut(rest, pageEnd)
	if !ok || !closed {
		return "", fmt.Errorf("the page lacks the line %q or %q", pageBegin, pageEnd)
	}
	return before + pageBegin + "\n" + tables() + pageEnd + after, nil
}
