package main

// inProvisioner selects some of the tests of a package of the provisioner.
func inProvisioner(pkg, run string) []tests { return []tests{{"provisioner/" + pkg, run}} }

// Mistakes in what the provisioner learns, and in what it makes of it.
var provisionerMutants = []mutant{
	{
		Name:  "a pod's START widens that of the site",
		File:  "provisioner/template/slot.go",
		Old:   "			ad.Insert(classads.AttrRequirements, both(ad, site))\n",
		New:   "			_ = site\n",
		Tests: inProvisioner("template", "TestStartOfTheSiteCounts"),
	},
	{
		Name:  "START of a pod counts for pods of another size",
		File:  "provisioner/template/slot.go",
		Old:   "case seen.Shape != s.Name:",
		New:   "case false:",
		Tests: inProvisioner("template", "TestSlot$"),
	},
	{
		Name:  "a new pod is expected to end when an old one does",
		File:  "provisioner/template/seen.go",
		Old:   "n + now.Unix()/step*step - began",
		New:   "n",
		Tests: inProvisioner("template", "TestLearn$"),
	},
	{
		Name:  "payload containers that are in use are missing in a new pod",
		File:  "provisioner/template/seen.go",
		Old:   "			s.ad.Insert(name, total)\n",
		New:   "			_ = total\n",
		Tests: inProvisioner("template", "TestLearn$"),
	},
	{
		Name:  "a slot's ad makes a group of each job",
		File:  "provisioner/template/seen.go",
		Old:   "return nil, fmt.Errorf(\"the slot's Requirements refer to %s, which each job has for itself\", name)",
		New:   "s.References = append(s.References, name)",
		Tests: inProvisioner("template", "TestAdsThatAreNotLearnt"),
	},
	{
		Name:  "jobs are matched by attributes that they were not asked for",
		File:  "provisioner/round/round.go",
		Old:   "		r.lookAgain(ctx, &seen, rep)\n",
		New:   "",
		Tests: inProvisioner("round", "TestSlotsAreLearnt"),
	},
	{
		Name:  "slots' ads that make too many groups are kept",
		File:  "provisioner/round/round.go",
		Old:   "	r.unlearn(seen.demandErr, rep.At)\n",
		New:   "",
		Tests: inProvisioner("round", "TestAdsThatMakeTooManyGroups"),
	},
	{
		Name:  "a pod that has had a job for long opens the way for others each round",
		File:  "provisioner/round/takers.go",
		Old:   "if o.now && !o.taken {",
		New:   "if o.now {",
		Tests: inProvisioner("round", "TestJobsThatTakeNoPod"),
	},
	{
		Name:  "pods that end unused within five minutes are forgotten",
		File:  "provisioner/round/takers.go",
		Old:   "			k.leave(o, now)\n		}\n		delete(k.units, name)",
		New:   "		}\n		delete(k.units, name)",
		Tests: inProvisioner("round", "TestJobsThatTakeNoPod"),
	},
	{
		Name:  "a pod is blamed for which there is no job any more",
		File:  "provisioner/round/takers.go",
		Old:   "k.follow(o, free && idle[o.group], now)",
		New:   "k.follow(o, free, now)",
		Tests: inProvisioner("round", "TestPodsWithoutDemand"),
	},
	{
		Name:  "any number of pods is made for jobs that have taken none",
		File:  "provisioner/decision/gates.go",
		Old:   "if f.Bounded && ",
		New:   "if false && ",
		Tests: append(inProvisioner("decision", "TestBoundedFit"), inProvisioner("round", "TestJobsThatTakePods")...),
	},
	{
		Name:  "jobs have ended in the middle of an hour without a look",
		File:  "provisioner/runtimes/runtimes.go",
		Old:   "if there && since > 0 && since <= gap {",
		New:   "if there {",
		Tests: inProvisioner("runtimes", "TestEndsThatSayNothing"),
	},
	{
		Name:  "a cluster of several groups teaches one of them",
		File:  "provisioner/runtimes/runtimes.go",
		Old:   "h.group, h.seen = \"\", now",
		New:   "h.seen = now",
		Tests: inProvisioner("runtimes", "TestClusterOfSeveralGroups"),
	},
	{
		Name:  "a startd's figures count for one of several groups",
		File:  "provisioner/runtimes/runtimes.go",
		Old:   "		if l.group(j.ID) != one {\n			return \"\"\n		}\n",
		New:   "		_ = j\n",
		Tests: inProvisioner("runtimes", "TestPodOfSeveralGroups"),
	},
	{
		Name:  "a slot says in vain which pod it is in",
		File:  "provisioner/supply/supply.go",
		Old:   "host := ad.StringOr(podName, \"\")",
		New:   "host := \"\"",
		Tests: inProvisioner("supply", "TestPodName"),
	},
	{
		Name:  "pods are made for jobs whose image they refuse",
		File:  "provisioner/match/match.go",
		Old:   "if s.Refuses != nil {",
		New:   "if false {",
		Tests: inProvisioner("round", "TestImageThatPodsRefuse"),
	},
	{
		Name:  "-explain does not look into START",
		File:  "provisioner/match/explain.go",
		Old:   "if inner, ok := s.my.Lookup(r.Name); ok {",
		New:   "if inner, ok := s.my.Lookup(r.Name); ok && false {",
		Tests: inProvisioner("match", "TestExplain$"),
	},
	{
		Name:  "a job is not found in its group",
		File:  "provisioner/demand/job.go",
		Old:   "		ad.Delete(name)\n",
		New:   "		_ = name\n",
		Tests: inProvisioner("demand", "TestJobIsInItsGroup"),
	},
}
