package conformance

import "slices"

// Chance is what chance decides about, under the stock starter too: names that appear
// or not, or values that differ from run to run. The page by attribute shows why.
type Chance struct {
	Names []string // the first * of one stands for any text
	Why   string
}

// byChance is one [Chance] as a list.
func byChance(why string, names ...string) []Chance { return []Chance{{names, why}} }

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
