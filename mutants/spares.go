package main

// spareTests selects some of the tests of containers that are made ahead.
func spareTests(run string) []tests { return []tests{{"k8sexec", run}} }

// jointTests selects some of the tests of patches for several starters.
func jointTests(run string) []tests { return []tests{{"k8sexec/jointpatch", run}} }

// watchTests selects some of the tests of the watch for several starters.
func watchTests(run string) []tests { return []tests{{"k8sexec/jointwatch", run}} }

// Mistakes in containers that are made ahead, and in patches and the watch for several starters.
var spareMutants = []mutant{
	{
		Name:  "a fresh container is not asked which program its wrapper is",
		File:  "k8sexec/fresh.go",
		Old:   `if err = b.genuine(client, l.name, ready.Program); err != nil {`,
		New:   `if false {`,
		Tests: spareTests("TestFreshContainerMustBeGenuine"),
	},
	{
		Name:  "a fresh container is taken for any image",
		File:  "k8sexec/fresh.go",
		Old:   `return known.Fresh && known.Nonce != "" && known.Image == img.String() && l.stillCurrent(img, known)`,
		New:   `return known.Fresh && known.Nonce != ""`,
		Tests: spareTests("TestPick$"),
	},
	{
		Name:  "a container stays fresh after its first job",
		File:  "k8sexec/fresh.go",
		Old:   "\tknown.Fresh = false\n",
		New:   "",
		Tests: spareTests("TestFreshContainerIsThere"),
	},
	{
		Name:  "a job takes any fresh container before a used one",
		File:  "k8sexec/pick.go",
		Old:   "\t\treturn pickOthers\n",
		New:   "\t\treturn pickFresh\n",
		Tests: spareTests("TestPick$|TestJobsTakeTheirOwnImage"),
	},
	{
		Name:  "a container that a job has taken meanwhile is made new",
		File:  "k8sexec/stock.go",
		Old:   `case one.known.InUse, one.known.Unproven, one.known.PlainOnly:`,
		New:   `case one.known.PlainOnly:`,
		Tests: spareTests("TestNothingIsMadeAhead"),
	},
	{
		Name:  "containers that are kept for their owners are made new",
		File:  "k8sexec/stock.go",
		Old:   `room -= len(all)`,
		New:   `room -= 0`,
		Tests: spareTests("TestKeptContainersStay"),
	},
	{
		Name:  "what a webhook has changed counts as fresh",
		File:  "k8sexec/stock.go",
		Old:   `if s.known.Spec == s.plan.spec {`,
		New:   `if true {`,
		Tests: spareTests("TestWebhookRewritesWhatIsMadeAhead"),
	},
	{
		Name:  "a container whose patch was broken off is forgotten",
		File:  "k8sexec/spares.go",
		Old:   "\t\ttrying.Ahead = true\n",
		New:   "",
		Tests: spareTests("TestRestockFails"),
	},
	{
		Name:  "a job waits at its end for what is made ahead",
		File:  "k8sexec/spares.go",
		Old:   `ctx, cancel := context.WithTimeout(ctx, b.timing.ahead)`,
		New:   `ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), b.timing.ahead)`,
		Tests: spareTests("TestRestockEndsWithTheJob"),
	},
	{
		Name:  "starters send their own bindings only",
		File:  "k8sexec/jointpatch/jointpatch.go",
		Old:   `if !isOf(own, container) && !carriesOut(done, []podapi.Binding{b}) {`,
		New:   `if false && !isOf(own, container) && !carriesOut(done, []podapi.Binding{b}) {`,
		Tests: jointTests("TestHerd"),
	},
	{
		Name:  "bindings come in any order",
		File:  "k8sexec/jointpatch/jointpatch.go",
		Old:   "\t\tbindings = sorted(pod, bindings)\n",
		New:   "",
		Tests: jointTests("TestOrder"),
	},
	{
		Name:  "one refused binding refuses all",
		File:  "k8sexec/jointpatch/jointpatch.go",
		Old:   `if err != nil && len(all) > len(bindings) && !podapi.IsPassing(err) {`,
		New:   `if false {`,
		Tests: jointTests("TestOneIsRefused"),
	},
	{
		Name:  "a joint patch leaves no trace for those who wait",
		File:  "k8sexec/jointpatch/jointpatch.go",
		Old:   `if err == nil && (first || len(all) > len(bindings)) {`,
		New:   `if false {`,
		Tests: jointTests("TestHerd"),
	},
	{
		Name:  "a state before the patch is taken for news",
		File:  "k8sexec/jointwatch/jointwatch.go",
		Old:   `if err != nil || next <= last {`,
		New:   `if err != nil || next == last {`,
		Tests: watchTests("TestBadLeader"),
	},
	{
		Name:  "who hears nothing waits on",
		File:  "k8sexec/jointwatch/listen.go",
		Old:   `conn.SetReadDeadline(time.Now().Add(w.Pace.Silence))`,
		New:   `conn.SetReadDeadline(time.Now().Add(time.Hour))`,
		Tests: watchTests("TestBadLeader"),
	},
	{
		Name:  "a leader says nothing while the pod does not change",
		File:  "k8sexec/jointwatch/lead.go",
		Old:   `q.put(&state{frame: beat})`,
		New:   `_ = q`,
		Tests: watchTests("TestQuietPod"),
	},
	{
		Name:  "a leader leaves when its own need ends",
		File:  "k8sexec/jointwatch/lead.go",
		Old:   `enough = time.After(l.pace.Linger)`,
		New:   `enough = time.After(0)`,
		Tests: watchTests("TestLinger"),
	}, {
		Name:  "a sidecar is patched among the containers",
		File:  "k8sexec/podapi/patch.go",
		Old:   "\t\tif b.Sidecar {\n",
		New:   "\t\tif false {\n",
		Tests: []tests{{"k8sexec/jointpatch", "TestBothLists"}},
	},
	{
		Name:  "a container with a restartPolicy is taken for a sidecar",
		File:  "k8sexec/podapi/containers.go",
		Old:   `slices.ContainsFunc(pod.Spec.InitContainers, func(c corev1.Container) bool { return c.Name == container && isSidecar(&c) })`,
		New:   `slices.ContainsFunc(Containers(pod), func(c *corev1.Container) bool { return c.Name == container && isSidecar(c) })`,
		Tests: []tests{{"k8sexec", "TestContainerWithARestartPolicy"}},
	},
	{
		Name:  "a starter does not ask why the job in a sidecar is vacated",
		File:  "k8sexec/container.go",
		Old:   "\tif known.Sidecar {\n",
		New:   "\tif false {\n",
		Tests: []tests{{"k8sexec", "TestSuspicion"}},
	},
	{
		Name:  "each vacated job in a sidecar is told that its pod ends",
		File:  "k8sexec/notice.go",
		Old:   `if verdict.OfPod(pod, "") == nil && verdict.Disruption(pod) == "" && !isOverdue(pod, told) {`,
		New:   `if false {`,
		Tests: []tests{{"k8sexec", "TestSuspicion"}},
	},
	{
		Name:  "a sidecar's pod is looked at once, though the kubelet publishes its end a moment later",
		File:  "k8sexec/notice.go",
		Old:   `again = time.After(c.lease.backend.timing.notice)`,
		New:   `again = nil`,
		Tests: []tests{{"k8sexec", "TestPilotTold"}},
	},
	{
		Name:  "a starter that begins when its pilot is being stopped is not told",
		File:  "k8sexec/notice.go",
		Old:   `if watch.Told() {`,
		New:   `if false {`,
		Tests: []tests{{"k8sexec", "TestPilotTold"}},
	},
}
