package main

import (
	"fmt"
	"os"
	"strings"
	"time"

	"podstarter/integration/turn"
)

// The cases of a round in another kind of pool. integration/README.md has the commands for all cases.
const (
	ofModes = "basic/|leftovers/|steering/|moments/|reporting/|hooks/|chirp/|credentials/|environment/"
	ofSlots = "basic/|submit/|policy/|steering/|moments/|guidance/|reporting/|shadow/|tools/"
)

// A round is what takes too long for each run: one of them runs, in turn.
type round struct {
	name  string
	steps []step
}

// many are the subjects of conformance cases that a round has in another world: more than a
// hundred cases, and few that wait for long.
const many = "^(basic|submit|files|policy|steering|shadow|chirp)/"

// manyJobs are tests of the provisioner whose pods have several payload containers, or GPUs.
const manyJobs = "^(TestSeveralJobsInAPod|TestGPUs)$"

// roundsOf are all rounds. Each begins with a pool of its own choices, or starts all that it needs itself.
func roundsOf(pool string) []round {
	host := func(args ...string) step {
		return fresh(pool, append([]string{"--stock", "--slots", "4"}, args...)...)
	}
	network := func(name, kind string) round {
		return round{name, []step{host("--network", kind), cases("6m", "-case", fromOutside)}}
	}
	// The modes in which pilot and payload container share less.
	mode := func(name string) round {
		return round{name + " mode", []step{
			fresh(pool, "--mode", name),
			tests("e2e", "-condor", "25.14", "-run", "TestMode|TestMountOrders|TestPlainJob|TestExits|TestVacate$|TestRemoveLeavesNoProcess|TestKilledStarter"),
			tests("attacks"),
		}}
	}
	return []round{
		{"jobs with images beside Docker and Apptainer", []step{
			host("--stock-docker", "--stock-apptainer"), cases("6m", "-case", "^(docker|apptainer|file)-"), tests("e2e", "-condor", "25.14", "-run", "TestApptainerWithoutPod|TestJavaWithoutPod|"+withDocker),
		}},
		{"several users", []step{host("--slots", "6"), cases("6m", "-world", "users", "-turn", "none", "-case", many)}},
		{"a submit side with HTCondor 23.9", []step{host("--slots", "6", "--ap-condor", "23.9"), cases("6m", "-turn", "none", "-case", many)}},
		{"execution points with HTCondor 23.9", []step{
			host("--slots", "6", "--condor", "23.9", "--ap-condor", "25.14"), cases("6m", "-turn", "none", "-case", many)}},
		{"HTCondor 23.9 on both sides", []step{host("--slots", "6", "--condor", "23.9"), cases("6m", "-turn", "none", "-case", many)}},
		network("execution points behind NAT", "nat"),
		network("execution points behind NAT, with IPv6 only", "nat6"),
		network("execution points with IPv6 only", "ipv6"),
		// What looks at processes, users, files and programs of the site, on which the modes differ.
		{"cases in unshared mode", []step{
			host("--mode", "unshared"), cases("6m", "-turn", "none", "-case", ofModes+"|tools/|shadow/|plugins/"),
		}},
		{"cases in rootless mode", []step{
			// A pilot without root has one payload container. Its kernel confines plugins.
			host("--mode", "rootless", "--slots", "1"), cases("6m", "-turn", "none", "-case", ofModes+"|plugins/|urls/"),
			host("--mode", "rootless", "--slots", "1", "--partitionable"), cases("2m", "-turn", "none", "-case", "^(url-)?common-"),
		}},
		{"cases with partitionable slots", []step{
			// A startd numbers slots on while those before them end. There are users for eight.
			host("--partitionable", "--slots", "4"), cases("6m", "-turn", "none", "-case", ofSlots), volumes(),
		}},
		{"payload containers as sidecars", []step{
			host("--sidecars"), cases("6m", "-turn", "none", "-case", ofSlots),
			up(pool, "--stock=false", "--slots", "1"),
			tests("e2e", "-condor", "25.14", "-run", "TestCheckOf|TestPolicy|TestLifetime|TestVacate$|TestKilledStarter|TestOutOfMemory"), tests("attacks"),
			up(pool, "--slots", "3"), tests("podfailures", "-rows", "^pod deleted"),
		}},
		{"Jobs and Deployments", []step{fresh(pool, "--controllers"), tests("controllers", "-v"), chart()}},
		{"the provisioner", []step{fresh(pool, "--controllers"), tests("provision", "-v", "-skip", manyJobs)}},
		{"the provisioner with several jobs and GPUs in a pod", []step{fresh(pool, "--controllers", "--gpus", "1"), tests("provision", "-v", "-run", manyJobs)}},
		{"the first job, as the page says", []step{fresh(pool, "--controllers", "--network", "nat"), tests("firstjob", "-v")}},
		{"daemons killed", []step{host(), tests("daemonfaults", "-run", "TestStartdKilled|TestPilotKilled|TestHungStarter")}},
		mode("unshared"),
		mode("rootless"),
		{"intervals as sites have them", []step{host(), cases("6m", "-world", "defaults", "-case", "^(basic|policy|shadow|credentials)/")}},
		{"chaos with rests and intervals as sites have them", []step{
			fresh(pool, "--slots", "3", "--partitionable"),
			tests("chaos", "-v", "-defaults", "-jobs", "40", "-mean", "15s"),
		}},
		{"chaos with spares and pullers", []step{
			fresh(pool, "--slots", "8", "--spares", "4", "--pullers", "2", "--partitionable"),
			tests("chaos", "-v", "-run", "TestChaos", "-jobs", "180"),
		}},
		{"execution points and schedds without a pod", []step{fresh(pool, "--stock"), tests("e2e", "-condor", "25.14", "-run", withoutPod)}},
		{"daemons that fall silent, and a site's habits", []step{fresh(pool, "--stock"), tests("e2e", "-condor", "25.14", "-run", ofKnobs)}},
		{"the provisioner with a batch system, and with offline ads", []step{fresh(pool, "--stock"), tests("e2e", "-condor", "25.14", "-run", ofProvisioner)}},
		{"provisioners that stand by, and their page in a browser", []step{tests("standby", "-v"), tests("statuspage", "-v")}},
		{"addresses that starters call and tell", []step{tests("addresses", "-parallel", "4")}},
		{"virtual machines", []step{tests("vmuniverse", "-v")}},
		{"an object store", []step{
			fresh(pool, "--stock"), tests("e2e", "-condor", "25.14", "-run", withStore),
		}},
		{"the provisioner's faults", []step{ // it starts all that it needs
			tests("provisionfaults", "-v", "-parallel", "12", "-skip", "TestScale"), tests("provisionfaults", "-v", "-run", "TestScale"),
		}},
		{"a stock starter with control groups, in a guest", []step{
			down(pool), boot(pool), inGuest(pool, "e2e", "-condor", "25.14", "-run", withGroups), down(pool), // a pool is in a guest or not
		}},
		{"32 slots in a pod", []step{
			fresh(pool, "--slots", "32"),
			tests("manyslots", "-v"),
		}},
	}
}

// fromOutside are subjects whose cases reach the starter from outside, and those about all that it sends.
const fromOutside = "^(steering|tools|shadow|chirp|moments|reporting|guidance|basic|files|policy)/"

// roundAt are the steps of the round for a run that begins then. The end of the run says
// which it was.
func roundAt(now time.Time, pool string) ([]step, error) {
	all := roundsOf(pool)
	at := turn.Index(now, len(all))
	var left []string
	for i, r := range all {
		if i != at {
			left = append(left, r.name)
		}
	}
	text := fmt.Sprintf("the round of this hour, %d of %d: %s; others: %s; for all: integration/run-tests -lane rounds\n",
		at+1, len(all), all[at].name, strings.Join(left, ", "))
	if err := appendTo(os.Getenv(inTurn), text); err != nil {
		return nil, fmt.Errorf("noting which round runs: %w", err)
	}
	return all[at].steps, nil
}

func appendTo(path, text string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	return err
}

func steps(rounds []round) [][]step {
	var all [][]step
	for _, r := range rounds {
		all = append(all, r.steps)
	}
	return all
}
