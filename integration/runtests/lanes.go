package main

import (
	"path/filepath"
	"slices"
	"strings"
)

// some is the part of the conformance suite that also runs with older daemons; all of it
// passes there, but takes ten minutes each.
const some = "basic/|shadow/|plain|credentials/"

// mainPath are tests of e2e/ that each run has: a job from its start to each kind of end, its image, and what must not stay behind.
const mainPath = "^(TestCheckOfHealthyPod|TestPlainJob|TestExits|TestImages|TestRefusals|TestEntryPoint|TestImageFiles|TestProgramOfTheImage|TestHold|TestUsage|" +
	"TestTransferFailures|TestVacate|TestRemoveLeavesNoProcess|TestNoProcessOutlivesItsJob|TestNoTokenInPayload|TestKilledStarter|TestStarterLog)$"

// firstLane has HTCondor 25.14 in the default mode, which stays running afterwards: the
// cases that run under the stock starter too, the ClassAd language, and the main path.
func firstLane(pool string) []step {
	return []step{
		fresh(pool, "--stock", "--slots", "4"),
		removeJobs(pool),
		cases("5m"),
		language(pool),
		up(pool, "--stock", "--slots", "1", "--partitionable=false"),
		tests("e2e", "-condor", "25.14", "-run", mainPath),
	}
}

// secondLane has some of the cases, and the main path, with HTCondor 23.9 on one side or both.
func secondLane(pool string) []step {
	return []step{
		fresh(pool, "--stock", "--slots", "4", "--ap-condor", "23.9"),
		tests("conformance", "-case", some),
		up(pool, "--condor", "23.9"),
		tests("conformance", "-case", some),
		up(pool, "--slots", "1"),
		tests("e2e", "-condor", "23.9", "-run", "TestPoolHasTheVersionAskedFor|TestPlainJob|TestExits|TestImages|TestVacate$|TestRemoveLeavesNoProcess|TestStarterLog|TestLargePackets"),
	}
}

// rulesLane has the rules of Kubernetes that all else stands on.
func rulesLane(pool string) []step {
	return []step{fresh(pool, "--stock"), tests("kubeletrules")}
}

// attacksLane has what a hostile job can try.
func attacksLane(pool string) []step {
	return []step{fresh(pool, "--stock"), tests("attacks")}
}

// faultsLane has daemons and networks that fail.
func faultsLane(pool string) []step {
	return []step{
		fresh(pool, "--stock", "--slots", "4"),
		tests("daemonfaults", "-run", "TestScheddRestarts|TestShadowKilled|TestTransferBreaks|TestNetworkCut|TestKilledInEachPhase|TestShadowHearsLate"),
	}
}

// chaosLane has everything at once, in three payload containers of one pod.
func chaosLane(pool string) []step {
	return []step{fresh(pool, "--slots", "3", "--partitionable"), tests("chaos", "-v", "-jobs", "40")}
}

// earlyLane and lateLane have all tests of e2e/, which share one slot, in steps of some minutes each.
func earlyLane(pool string) []step { return endToEnd(pool, "A-C", "D-H", "I-L") }

func lateLane(pool string) []step { return endToEnd(pool, "M", "N-R", "S-Z") }

// withoutPod are tests of e2e/ with HTCondor pools of their own, on the machine of the stock execution point. They take minutes, so
// rounds have them.
const withoutPod = "^(TestAccessPointBehindBroker|TestCommonFilesWithoutRoot|TestFetchedWork|TestLocalUniverse|TestNodesWithoutPod|TestOwnProcesses|TestSiteKnobs)$"

// ofKnobs are those in which such pools wait for what knobs say, under the stock starter and under ours at once.
const ofKnobs = "^(TestLocalEnds|TestSilence|TestSiteHabits)$"

// withStore are those that need an object store, which is built for them.
const withStore = "^TestObjectStore$"

// withDocker are those beside the stock starter with Docker.
const withDocker = "^TestDockerOfSite$"

// ofProvisioner are those in which such a pool has a provisioner.
const ofProvisioner = "^(TestOfflineAds|TestOfflineAdsWithdrawn|TestProvisionerBatch|TestRoosterWakes)$"

// withGroups are tests of e2e/ beside a stock starter that has a control group of version 2 for each job, as in a guest.
const withGroups = "^(TestControlGroups|TestControlGroupsWithoutPod|TestMachineKnobs)$"

// endToEnd has the tests of e2e/ whose names begin with one of the letters.
func endToEnd(pool string, letters ...string) []step {
	all := []step{fresh(pool, "--stock")}
	for _, some := range letters {
		all = append(all, tests("e2e", "-condor", "25.14", "-run", "^Test["+some+"]", "-skip", withoutPod+"|"+ofKnobs+"|"+withStore+"|"+withDocker+"|"+ofProvisioner+"|"+withGroups))
	}
	return all
}

// failuresLane has failures of what is between pilot and payload container. Jobs that go
// back to the queue run again in one of these slots.
func failuresLane(pool string) []step {
	return []step{fresh(pool, "--slots", "3"), tests("podfailures")}
}

// podsLane has pods with pullers, with spares, and with GPUs.
func podsLane(pool string) []step {
	return []step{
		fresh(pool, "--slots", "2", "--pullers", "1"),
		tests("pulls"),
		up(pool, "--slots", "2", "--pullers", "0", "--spares", "2"),
		tests("spares"),
		up(pool, "--stock", "--slots", "3", "--spares", "0", "--gpus", "2"),
		tests("gpus"),
		up(pool, "--partitionable"),
		tests("gpus"),
	}
}

// someTests are tests of e2e/ with HTCondor 25.14.
func someTests(pool string, args []string) []step {
	return []step{
		fresh(pool, "--stock"),
		removeJobs(pool),
		tests("e2e", append([]string{"-condor", "25.14"}, args...)...),
	}
}

// up brings up the pool. The tests behind it would wait for slots that never come.
func up(pool string, args ...string) step {
	return step{name: "pool up " + strings.Join(args, " "), argv: append([]string{pool, "up"}, args...), vital: true}
}

// fresh is up with all choices that an earlier step may have made as they are by default, but for those that args make. The
// last one counts.
func fresh(pool string, args ...string) step {
	s := up(pool, append([]string{"--stock=false", "--stock-docker=false", "--stock-apptainer=false", "--slots", "1", "--spares", "0",
		"--gpus", "0", "--pullers", "0", "--sidecars=false", "--controllers=false", "--partitionable=false", "--mode", "shared", "--condor", "25.14", "--network", "host"}, args...)...)
	s.name = strings.TrimSpace("pool up anew " + strings.Join(args, " "))
	return s
}

// down takes the pool down, if there is one.
func down(pool string) step { return step{name: "pool down", argv: []string{pool, "down"}} }

// removeJobs removes the jobs of a run that was killed: they would keep the slots.
func removeJobs(pool string) step {
	return step{name: "removing the jobs of an earlier run", argv: []string{pool, "ap", "--root", "condor_rm", "-all"}}
}

// tests are those of one package: they share the pool's slots. No cached results: they
// depend on more than the source.
func tests(pkg string, args ...string) step {
	return step{
		name: strings.TrimSpace(pkg + " " + strings.Join(args, " ")),
		argv: append([]string{"go", "-C", "integration", "test", "-tags", "pool", "-count=1", "-timeout", "40m", "./" + pkg}, args...),
	}
}

// cases runs the cases that begin in that time. On a fast machine, all do.
func cases(budget string, args ...string) step {
	return tests("conformance", append([]string{"-budget", budget}, args...)...)
}

// chart installs the Helm chart, with a library that the tests of other packages do not have.
func chart() step {
	s := tests("chart", "-v")
	s.argv[2], s.argv[len(s.argv)-2] = "integration/chart", "./..."
	return s
}

// volumes shares common input files on file systems that share blocks.
func volumes() step {
	return step{name: "volumes", argv: []string{"go", "test", "-tags", "volumes", "-count=1", "-v", "-run", "TestReflinks", "./sandbox/commonfiles"}}
}

// language compares the ClassAd language with HTCondor's own library, that of the stock
// starter's pilot.
func language(pool string) step {
	return step{name: "classads", argv: []string{"go", "test", "-tags", "differential", "-count=1", "-v", "./classads", "-run", "AgainstHTCondor",
		"-args", "-python", pool + " ep --stock python3"}}
}

// unable is the exit code of `pool up --guest` on a machine that cannot run guests.
const unable = 77

// processes are the tests of e2e/ about control groups and process trees, and the main path.
const processes = "TestCheckOfHealthyPod|TestPlainJob$|TestOutOfMemory|TestUsage|TestModeUsage|TestModeSuspend|" +
	"TestRemoveLeavesNoProcess|TestNoProcessOutlivesItsJob|TestKilledStarter|TestVacate$|TestHold"

// runtimeRules are the rules of kubeletrules/ whose source is that of containerd, runc or
// their libraries. The guest has other versions of these, but the same Kubernetes.
const runtimeRules = "TestContainerIDIsInTheControlGroup|TestTagBesideDigestIsNotLookedUp|TestVolumesOutliveTheContainer|" +
	"TestStopSignalIsTheImages|TestContainersProcessesEndWithIt|TestManifestsVariableReplacesThePlugins"

// runtimeFailures are the rows of podfailures/ that are about memory, or about what containerd
// and runc say of an image, and what they do when a container is to end; and those about the node.
const runtimeFailures = "^(out of memory|layer is no archive|file in the place of a mount|link to /proc|wrapper killed|container told to stop|node low on|volume over its limit|preempted by the kubelet)"

// guestLane has a cluster and pool with cgroup v2 in a guest, which is slow, and in it what
// goes by the node's kernel, control groups and container runtime.
func guestLane(pool, state string) []step {
	variants := filepath.Join(state, "attacks")
	// The guest has the host's files below /host.
	attacks := inGuest(pool, "attacks", "-run", "TestAttacks", "-parallel", "2", "-guest", "-variants", filepath.Join("/host", variants))
	attacks.name = "attacks -guest"
	return []step{
		boot(pool),
		inGuest(pool, "e2e", "-condor", "25.14", "-run", processes),
		inGuest(pool, "kubeletrules", "-run", runtimeRules),
		inGuest(pool, "podfailures", "-run", "TestFailures$", "-guest", "-places", "2", "-rows", runtimeFailures),
		{name: "programs for attacks", argv: []string{"go", "-C", "integration", "run", "./attacks/variants", "..", variants}},
		attacks,
	}
}

// boot brings up the pool in a guest.
func boot(pool string) step {
	s := up(pool, "--guest", "--stock", "--slots", "1", "--partitionable=false", "--mode", "shared", "--condor", "25.14")
	s.unable = unable
	return s
}

// inGuest are tests that run in the guest of a pool.
func inGuest(pool, pkg string, args ...string) step {
	s := tests(pkg, args...)
	s.argv = slices.Insert(s.argv, slices.Index(s.argv, "test")+1, "-exec", pool+" in")
	return s
}
