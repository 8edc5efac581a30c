package conformance

import (
	"slices"

	"podstarter/integration/harness"
)

// Chance is what chance decides about, under the stock starter too: names that appear
// or not, or values that differ from run to run. The page by attribute shows why.
type Chance struct {
	Names    []string // the first * of one stands for any text
	Why      string
	Versions []string // pairs of versions (EP+AP) where that is so, the first * of one stands for any text; empty for all
}

// byChance is one [Chance] as a list.
func byChance(why string, names ...string) []Chance { return []Chance{{Names: names, Why: why}} }

// withOlder is the same where one side or both have HTCondor 23.9.
func withOlder(why string, names ...string) []Chance {
	return []Chance{{Names: names, Why: why, Versions: []string{"23.9+*", "*+23.9"}}}
}

// chancesWith are those of a pool with these versions.
func chancesWith(all []Chance, v harness.Versions) []Chance {
	return slices.DeleteFunc(slices.Clone(all), func(c Chance) bool { return len(c.Versions) > 0 && !listed(c.Versions, v.String()) })
}

// leftToChance reports whether chance decides about the name.
func leftToChance(all []Chance, name string) bool {
	return slices.ContainsFunc(all, func(c Chance) bool { return listed(c.Names, name) })
}

// fleeting is what chance decides about in every case.
var fleeting = slices.Concat(
	byChance("the startd hands the rate of CPU use to the starter from time to time, in a file, and hears of that of a payload in another container when it changes",
		"CpusUsage", "CpusAverageUsage", "RecentCpusUsage", "JobVMCpuUtilization"),
	byChance("the negotiator notes that a job had to wait", "LastRejMatch*"),
	byChance("the schedd notes a job's first match, except with a claim that is used again", "FirstJobMatchDate"),
	byChance("the machine decides whether a job has a control group of its own", "CgroupEnforced"),
)
