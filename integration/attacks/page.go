package attacks

import (
	"fmt"
	"strings"
)

// The generated part of docs/threats.md lies between these lines.
const (
	pageBegin = "<!-- generated from integration/attacks; do not edit -->"
	pageEnd   = "<!-- end of the generated part -->"
)

// tables are the generated part of the page.
func tables() string {
	var b strings.Builder
	b.WriteString("| threat | how a hostile job tries it | it gets through without |\n| --- | --- | --- |\n")
	for _, a := range Attacks {
		var ways []string
		for _, list := range a.Falls {
			ways = append(ways, "*"+strings.Join(list, "* and *")+"*")
		}
		fmt.Fprintf(&b, "| %s | %s | %s |\n", a.Threat, a.Tried, strings.Join(ways, ", or without "))
	}
	b.WriteString("\n## Defences\n\n| defence | what it is | where it is switched off for the tests |\n| --- | --- | --- |\n")
	for _, d := range Defences {
		fmt.Fprintf(&b, "| %s | %s | %s |\n", d.Name, d.What, strings.Join(d.places(), ", "))
	}
	b.WriteString("\n## Settings\n\nEvery attack is tried in each of these.\n\n| setting | defences that are off |\n| --- | --- |\n")
	for _, s := range Settings {
		off := strings.Join(s.off(), ", ")
		if off == "" {
			off = "none"
		}
		fmt.Fprintf(&b, "| %s | %s |\n", s.Name, off)
	}
	return b.String()
}

// places say what is changed to switch a defence off.
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
