package shown

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// Commands are the attributes of the job that commands of a submit description set, by the command's name in lower case.
type Commands map[string][]string

// CommandSources are HTCondor's files, below its source directory, that say it: the commands' names, their attributes, and the attributes' names.
var CommandSources = []string{"src/condor_utils/submit_utils.h", "src/condor_utils/submit_utils.cpp", "src/condor_includes/condor_attributes.h"}

var (
	commandConstant   = regexp.MustCompile(`(?m)^#define\s+SUBMIT_KEY_(\w+)\s+"(\w+)"`)
	attributeConstant = regexp.MustCompile(`(?m)^#define\s+(ATTR_\w+)\s+"(\w+)"`)
	// commandPair is a row of condor_submit's table, or a call that looks a command up by either name.
	commandPair = regexp.MustCompile(`\bSUBMIT_KEY_(\w+)\s*,\s*(?:(ATTR_\w+)|"(\w+)")`)
)

// alsoSet are attributes that condor_submit sets for a command without naming both in one place.
var alsoSet = Commands{
	"arguments":   {"Arguments"},
	"environment": {"Environment", "Env"},
}

// FindCommands reads condor_submit's commands from its source.
func FindCommands(source string) Commands {
	names, attributes := map[string]string{}, map[string]string{}
	for _, m := range commandConstant.FindAllStringSubmatch(source, -1) {
		names[m[1]] = strings.ToLower(m[2])
	}
	for _, m := range attributeConstant.FindAllStringSubmatch(source, -1) {
		attributes[m[1]] = m[2]
	}
	found := Commands{}
	add := func(command, attribute string) {
		if !slices.Contains(found[command], attribute) {
			found[command] = append(found[command], attribute)
		}
	}
	for _, m := range commandPair.FindAllStringSubmatch(source, -1) {
		attribute := m[3]
		if m[2] != "" {
			attribute = attributes[m[2]]
		}
		if names[m[1]] != "" && attribute != "" {
			add(names[m[1]], attribute)
		}
	}
	for command, all := range alsoSet {
		for _, attribute := range all {
			if len(found[command]) > 0 {
				add(command, attribute)
			}
		}
	}
	for _, all := range found {
		slices.Sort(all)
	}
	return found
}

// Format is the list as a text, which [ParseCommands] reads.
func (c Commands) Format(release string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# Commands of a submit description, and the attributes that condor_submit of HTCondor %s sets for them.\n"+
		"# Written by: go -C integration run ./stocknames -source DIR -release %[1]s\n", release)
	for _, command := range slices.Sorted(maps.Keys(c)) {
		fmt.Fprintf(&b, "%s\t%s\n", command, strings.Join(c[command], " "))
	}
	return b.String()
}

// ParseCommands reads such a list.
func ParseCommands(text string) (Commands, error) {
	all := Commands{}
	for i, line := range strings.Split(strings.TrimSuffix(text, "\n"), "\n") {
		if strings.HasPrefix(line, "#") {
			continue
		}
		command, attributes, ok := strings.Cut(line, "\t")
		if !ok || command == "" || attributes == "" {
			return nil, fmt.Errorf("line %d, %q, is not a COMMAND and its ATTRIBUTES with a tab between: write the list anew with -source", i+1, line)
		}
		all[command] = strings.Split(attributes, " ")
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("the list has no commands: write it anew with -source")
	}
	return all, nil
}
