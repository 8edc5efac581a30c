package main

// Mistakes about graphics processors: where they are looked for, and who gets them.
var gpuMutants = []mutant{
	{
		Name:  "any container will do for a slot with GPUs",
		File:  "k8sexec/pick.go",
		Old:   `if wish.Only == nil || slices.Contains(wish.Only, name) {`,
		New:   `if name != "" {`,
		Tests: []tests{{"k8sexec", "TestLeaseOnly"}},
	},
	{
		Name:  "a container with more GPUs than the slot will do",
		File:  "condor/gpus/gpus.go",
		Old:   `if slices.Equal(has, want) {`,
		New:   `if len(has) >= len(want) {`,
		Tests: []tests{{"condor/gpus", "TestHolders"}},
	},
	{
		Name:  "a container in an unknown image is asked for its GPUs",
		File:  "k8sexec/visit.go",
		Old:   `if client.Hello().Nonce != "" {`,
		New:   `if false {`,
		Tests: []tests{{"k8sexec", "TestVisitDistrusts"}},
	},
	{
		Name:  "what looked for GPUs may go on beside a job",
		File:  "k8sexec/visit.go",
		Old:   `return errors.Join(err, c.client.Sweep(sweep))`,
		New:   "_ = sweep\n\treturn err",
		Tests: []tests{{"k8sexec", "TestVisitUnused"}},
	},
	{
		Name:  "the GPUs of an earlier pod of the same name count",
		File:  "starter/podgpus/find.go",
		Old:   `if err != nil || before.Pod != uid {`,
		New:   `if err != nil {`,
		Tests: []tests{{"starter/podgpus", "TestFoundOnce"}},
	},
	{
		Name:  "a property may be an expression",
		File:  "condor/gpus/gpus.go",
		Old:   "\t\tv, ok := e.Literal()",
		New:   "\t\tv, ok := from.Eval(name, classads.Env{}), true",
		Tests: []tests{{"condor/gpus", "TestParse"}},
	},
	{
		Name:  "void in the manifest is no mistake beside a GPU",
		File:  "k8sexec/audit/graphics.go",
		Old:   `case nvidia && i >= 0:`,
		New:   `case nvidia && i >= 0 && !none:`,
		Tests: []tests{{"k8sexec", "TestAudit"}},
	},
}
