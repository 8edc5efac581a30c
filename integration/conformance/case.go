package conformance

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"podstarter/integration/harness"
)

// Case is a job, what the test does to it, and what it compares.
type Case struct {
	Name   string
	Shows  string         // what the case shows, for the page
	Submit string         // commands of the submit file, one a line; they come after, and win over, those of every case
	Files  []harness.File // of the submit directory; the probe is always there
	Count  int            // jobs of the cluster, 0 means 1
	Queue  string         // queue statement, when it is not "queue Count"
	// Requirements are those of the job beside the one that picks the side. condor_submit
	// adds none about an attribute of the slot that they name.
	Requirements string
	// Options are those of condor_submit.
	Options []string
	// Steps run in order after the submission. Then the case waits until all its
	// jobs have left the queue. A job on hold is removed first.
	Steps []Step
	// Facts says that the file "out" has the output of the probe's step "facts". It
	// is compared by name and not as text.
	Facts bool
	// Stuck says that the stock starter does not end by itself after this, so the
	// startd kills it. What the startd keeps of that starter is not compared.
	Stuck bool
	// Alone says that no other case may run at the same time on either execution
	// point, for example because a daemon is killed that serves all.
	Alone bool
	// Spooled says that the access point keeps the job's files and its event log
	// until a step fetches them. A step must then remove the job from the queue.
	Spooled bool
	// Fleeting is what is left out of every comparison, since chance decides about it
	// under the stock starter too.
	Fleeting []Chance
	// Versions are the pairs of versions (EP+AP) that the case is for, the first *
	// of one stands for any text; empty for all.
	Versions []string
	// Pools are the kinds of pools that the case is for, as [Rule] has them; empty
	// for all.
	Pools []string
	// Reference is the execution point that ours is compared with; empty for
	// [harness.Stock].
	Reference harness.Side
	// Patience is the longest time that the case may take; 0 means [Patience].
	Patience time.Duration
	// OnRequest says that the case takes long, or shows in another way what others
	// show: a run without the flag -all has it only when its turn comes. See package turn.
	OnRequest bool
}

// Patience is the default for a case. It is long, since a case that passes never
// uses it up.
const Patience = 2 * time.Minute

// Subject is a group of cases, in one file.
type Subject struct {
	Name  string
	Title string // for the page
	Cases []Case
	Setup Setup
}

// Setup is configuration that the cases of a subject need. All setups are in force
// for all cases, so each must select its own jobs: hooks by HookKeyword, a wrapper
// by an attribute of the job that it reads.
type Setup struct {
	Execute  string         // lines for the configuration of both execution points
	Submit   string         // lines for that of the submit side
	Programs []harness.File // of $(CONFORMANCE_PROGRAMS) in both execution points; the mode is 0755 unless said
	// Submitting are programs of the same directory on the submit side, where no
	// knob names it.
	Submitting []harness.File
	// Web are files that the web server has, whose authority both execution points
	// trust then.
	Web []harness.File
}

// Subjects are all cases.
func Subjects() []Subject {
	return []Subject{
		{Name: "basic", Title: "Plain jobs from submission to end", Cases: basicCases},
		{Name: "submit", Title: "What a submit description can say", Cases: submitCases},
		{Name: "wishes", Title: "What a submit description can ask of a starter", Cases: wishesCases},
		{Name: "files", Title: "Files in and out", Cases: filesCases},
		{Name: "input", Title: "Input files of every kind", Cases: inputCases},
		{Name: "output", Title: "Output files of every kind", Cases: outputCases},
		{Name: "plugins", Title: "Inputs at URLs", Cases: pluginsCases, Setup: pluginsSetup},
		{Name: "urls", Title: "Files at URLs, with the plugins that HTCondor has", Cases: urlsCases, Setup: urlsSetup},
		{Name: "destinations", Title: "Output and checkpoints that go elsewhere", Cases: destinationsCases, Setup: destinationsSetup},
		{Name: "leftovers", Title: "What jobs leave behind, and limits", Cases: leftoversCases},
		{Name: "transfer-failures", Title: "Transfers that fail", Cases: failuresCases},
		{Name: "policy", Title: "Policy of the queue", Cases: policyCases, Setup: policySetup},
		{Name: "steering", Title: "Orders to a running job", Cases: steeringCases, Setup: steeringSetup},
		{Name: "parallel", Title: "Nodes of parallel jobs", Cases: parallelCases, Setup: parallelSetup},
		{Name: "moments", Title: "Orders at awkward moments", Cases: momentsCases, Setup: momentsSetup},
		{Name: "guidance", Title: "Guidance by the shadow", Cases: guidanceCases, Setup: guidanceSetup},
		{Name: "reporting", Title: "Reports during a job and after it", Cases: reportingCases, Setup: reportingSetup},
		{Name: "shadow", Title: "A shadow that goes away and comes back", Cases: shadowCases, Setup: shadowSetup},
		{Name: "hooks", Title: "Hooks and wrappers of the site", Cases: hooksCases, Setup: hooksSetup},
		{Name: "chirp", Title: "Chirp and streams", Cases: chirpCases, Setup: chirpSetup},
		{Name: "tools", Title: "Tools that reach into a job", Cases: toolsCases, Setup: toolsSetup},
		{Name: "credentials", Title: "Credentials", Cases: credentialsCases, Setup: credentialsSetup},
		{Name: "environment", Title: "What a job finds", Cases: environmentCases, Setup: environmentSetup},
		{Name: "names", Title: "Knobs and attributes that the other subjects do not set", Cases: slices.Concat(namesCases, attributesCases, knobsCases), Setup: namesSetup},
		{Name: "docker", Title: "Jobs of the docker universe, beside Docker", Cases: dockerCases},
		{Name: "apptainer", Title: "Jobs of the container universe, beside Apptainer", Cases: apptainerCases},
		{Name: "image-files", Title: "Jobs whose image is a file, beside Apptainer", Cases: imageFilesCases, Setup: imageFilesSetup},
	}
}

// Cases returns the cases of all subjects.
func Cases() []Case {
	var all []Case
	for _, s := range Subjects() {
		all = append(all, s.Cases...)
	}
	return all
}

// reference is the execution point that ours is compared with.
func (c Case) reference() harness.Side { return cmp.Or(c.Reference, harness.Stock) }

// Check finds mistakes in the tables.
func Check(subjects []Subject) error {
	seen := map[string]bool{}
	for _, s := range subjects {
		for _, c := range s.Cases {
			switch {
			case c.Name == "" || c.Shows == "":
				return fmt.Errorf("a case of %s has no name or does not say what it shows: %q", s.Name, c.Name)
			case seen[c.Name]:
				return fmt.Errorf("two cases are called %s", c.Name)
			case !c.reference().IsStock():
				return fmt.Errorf("the case %s is compared with %s, which is no reference", c.Name, c.reference())
			}
			seen[c.Name] = true
		}
	}
	return nil
}

// For reports whether the case is meant for such a pool.
func (c Case) For(k harness.Kind) bool {
	return (len(c.Versions) == 0 || listed(c.Versions, k.Versions.String())) && (len(c.Pools) == 0 || ofKind(c.Pools, k))
}

// only limits the case to pools of these pairs of versions.
func (c Case) only(versions ...string) Case {
	c.Versions = versions
	return c
}

// onRequest leaves the case to its turn. The page of differences says so.
func (c Case) onRequest() Case {
	c.OnRequest = true
	return c
}

// Submission is the case's job for one side.
func (c Case) Submission(side harness.Side, probe harness.File) harness.Submission {
	return harness.Submission{
		Name: "case-" + c.Name,
		Side: side,
		Commands: "executable = " + harness.ProbeName + "\nshould_transfer_files = YES\n" +
			"request_cpus = 1\nrequest_memory = 64\nrequest_disk = 16M\n" + c.Submit,
		Files:   append([]harness.File{probe}, c.Files...),
		Count:   c.Count,
		Queue:   c.Queue,
		Options: c.Options,

		Requirements: c.Requirements,
	}
}

// Script is a file of the submit directory that a shell runs. Both execution points
// have /bin/sh and the usual commands of a small Debian.
func Script(name, text string) harness.File {
	return harness.File{Name: name, Mode: 0o755, Content: []byte("#!/bin/sh\n" + text)}
}
