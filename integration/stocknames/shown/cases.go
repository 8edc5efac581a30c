package shown

import (
	"regexp"
	"slices"
	"strings"

	"podstarter/integration/conformance"
	"podstarter/integration/harness"
	"podstarter/integration/stocknames/cppnames"
)

// ByCases are the conformance cases, as SUBJECT/CASE, that set a name in their submit description, in their files or with their
// steps. A name that only the configuration or a program of a subject has, and none of its cases picks, is shown by SUBJECT/.
func ByCases(subjects []conformance.Subject, commands Commands, names []Name) map[Name][]string {
	x := newIndex(names)
	found, inSetup := map[Name][]string{}, map[Name][]string{}
	common := conformance.Case{}.Submission(harness.Stock, harness.File{}).Commands
	for _, m := range submitLine.FindAllStringSubmatch(common, -1) {
		for _, n := range x.byCommand(m[2], commands) {
			add(found, n, EachCase)
		}
	}
	for _, s := range subjects {
		picks := map[string][]string{} // what picks a part of the configuration, in lower case, and whose jobs have it
		for _, c := range s.Cases {
			name := s.Name + "/" + c.Name
			for _, n := range x.ofCase(c, commands) {
				add(found, n, name)
			}
			for _, p := range picksOf(c.Submit) {
				if !slices.Contains(picks[p], name) {
					picks[p] = append(picks[p], name)
				}
			}
		}
		for n, by := range x.ofSetup(s, picks) {
			for _, name := range by {
				to := found
				if strings.HasSuffix(name, "/") {
					to = inSetup
				}
				add(to, n, name)
			}
		}
	}
	for n, by := range inSetup {
		if len(found[n]) == 0 {
			found[n] = by
		}
	}
	return found
}

func add(to map[Name][]string, n Name, by string) {
	if !slices.Contains(to[n], by) {
		to[n] = append(to[n], by)
	}
}

var (
	submitLine = regexp.MustCompile(`(?m)^\s*(\+|MY\.)?([A-Za-z_][A-Za-z0-9_]*)\s*=(.*)$`)
	quoted     = regexp.MustCompile(`^\s*"(\w+)"\s*$`)
)

// picksOf are the attributes that a submit description adds to the job's ad, and the words that are their values.
func picksOf(submit string) []string {
	var all []string
	for _, m := range submitLine.FindAllStringSubmatch(submit, -1) {
		if m[1] == "" {
			continue
		}
		all = append(all, strings.ToLower(m[2]))
		if v := quoted.FindStringSubmatch(m[3]); v != nil {
			all = append(all, strings.ToLower(v[1]))
		}
	}
	return all
}

// ofCase are the names that a case sets, and the attributes that it looks at.
func (x index) ofCase(c conformance.Case, commands Commands) []Name {
	var found []Name
	for _, m := range submitLine.FindAllStringSubmatch(c.Submit, -1) {
		if m[1] != "" {
			found = append(found, x.set(cppnames.Attribute, m[2])...)
			continue
		}
		found = append(found, x.byCommand(m[2], commands)...)
	}
	texts := []string{c.Requirements}
	for _, f := range c.Files {
		texts = append(texts, string(f.Content))
	}
	for _, s := range c.Steps {
		texts = append(texts, s.Words)
	}
	for _, t := range texts {
		found = append(found, x.named(cppnames.Attribute, t)...)
		found = append(found, x.assigned(cppnames.Knob, t)...)
	}
	return found
}

// byCommand are the attributes that a command of a submit description sets. condor_submit takes their own names for commands, too.
func (x index) byCommand(command string, commands Commands) []Name {
	var found []Name
	for _, attribute := range commands[strings.ToLower(command)] {
		found = append(found, x.set(cppnames.Attribute, attribute)...)
	}
	for _, all := range commands {
		for _, attribute := range all {
			if strings.EqualFold(attribute, command) {
				return append(found, x.set(cppnames.Attribute, attribute)...)
			}
		}
	}
	return found
}

var knobLine = regexp.MustCompile(`(?m)^([A-Za-z_][A-Za-z0-9_.]*)\s*=(.*)$`)

// ofSetup are the knobs that the configuration of a subject sets for execution points, and the attributes that its programs
// name, with the cases that pick them: by an attribute that the knob's value looks at, or by the keyword that its name begins with.
func (x index) ofSetup(s conformance.Subject, picks map[string][]string) map[Name][]string {
	found := map[Name][]string{}
	for _, m := range knobLine.FindAllStringSubmatch(s.Setup.Execute, -1) {
		var by []string
		for _, w := range word.FindAllString(m[2], -1) {
			by = append(by, picks[strings.ToLower(w)]...)
		}
		if keyword, _, ok := strings.Cut(m[1], "_HOOK_"); ok {
			by = append(by, picks[strings.ToLower(keyword)]...)
		}
		if len(by) == 0 {
			by = []string{s.Name + "/"}
		}
		for _, n := range x.set(cppnames.Knob, m[1]) {
			for _, name := range by {
				add(found, n, name)
			}
		}
	}
	for _, f := range s.Setup.Programs {
		for _, n := range x.named(cppnames.Attribute, string(f.Content)) {
			add(found, n, s.Name+"/")
		}
	}
	return found
}
