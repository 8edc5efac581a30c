package main

// fitTests selects some of the tests of changed limits.
func fitTests(run string) []tests { return []tests{{"k8sexec", run}} }

// sizeTests selects some of the checks of sizes.
func sizeTests(run string) []tests { return []tests{{"k8sexec/audit", run}} }

// Mistakes in the sizes of payload containers, and in what slots offer.
var sizeMutants = []mutant{
	{
		Name:  "a container keeps the limits of its last job",
		File:  "k8sexec/lease.go",
		Old:   "	l.unfit(ctx)\n",
		New:   "",
		Tests: fitTests("TestFit$"),
	},
	{
		Name:  "a container gets less than it requests",
		File:  "k8sexec/fit.go",
		Old:   "return max(job, least)",
		New:   "return job",
		Tests: fitTests("TestFit$"),
	},
	{
		Name:  "limits are changed whether they differ or not",
		File:  "k8sexec/fit.go",
		Old:   "if want == m.Now {",
		New:   "if false {",
		Tests: fitTests("TestFit$"),
	},
	{
		Name:  "limits that a starter was about to change when it died are believed",
		File:  "k8sexec/fit.go",
		Old:   "	m.Now = podapi.Limits{}\n",
		New:   "	m.Own = m.Now\n",
		Tests: fitTests("TestFitAfterDeath"),
	},
	{
		Name:  "a job runs in a container that is smaller than its slot",
		File:  "k8sexec/fit.go",
		Old:   "if err != nil && want.Memory > max(m.Now.Memory, m.Least.Memory) {",
		New:   "if false {",
		Tests: fitTests("TestNotResized"),
	},
	{
		Name:  "a job does not wait for its container's limits",
		File:  "k8sexec/fit.go",
		Old:   "if !known || has < 0 || has >= want {",
		New:   "if !known || has >= 0 || has >= want {",
		Tests: fitTests("TestFitWaits|TestNotResized"),
	},
	{
		Name:  "a limit that is no whole page is waited for in vain",
		File:  "k8sexec/fit.go",
		Old:   "&^ (pageSize - 1)",
		New:   "",
		Tests: fitTests("TestNotResized"),
	},
	{
		Name:  "spares count as room for jobs",
		File:  "k8sexec/audit/check_sizes.go",
		Old:   "} else if i < len(b.Options.Containers)-b.Options.Spares {",
		New:   "} else {",
		Tests: sizeTests("TestSizes"),
	},
	{
		Name:  "a volume for shared memory may be that of several containers",
		File:  "k8sexec/audit/check_spares.go",
		Old:   "&& len(b.payloadsWith(pod, volume)) == 1",
		New:   "",
		Tests: sizeTests("TestSharedMemory"),
	},
	{
		Name:  "a bound that START leaves out is believed",
		File:  "starter/settings/offer.go",
		Old:   `if condition == "" || !strings.Contains(cfg.String("START", ""), condition) {`,
		New:   `if condition == "" {`,
		Tests: []tests{{"starter/settings", "TestOffer"}},
	},
}
