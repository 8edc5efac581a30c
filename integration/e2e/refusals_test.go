//go:build pool

package e2e

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"podstarter/integration/harness"
	"podstarter/k8sexec/verdict"
)

// Codes of condor_utils/condor_holdcodes.h.
const (
	holdFailedToCreateProcess = 6
	holdTransferOutputError   = 12
	holdTransferInputError    = 13
	holdInvalidDockerImage    = 35
	holdPrimaryGroup          = 49
)

// TestRefusals: a user's mistake puts the job on hold, with HTCondor's code and a
// message that says what to do.
func TestRefusals(t *testing.T) {
	image := func(reference string) string { return "universe = docker\ndocker_image = " + reference }
	cases := []struct {
		name          string
		commands      string
		requirements  string // condor_submit adds none about what they name
		free          bool   // it is freed of those that condor_submit added
		oursOnly      bool
		code, subcode int
		words         []string
	}{
		{name: "no such image", oursOnly: true,
			commands: image(repository(pool.Image("busybox")) + "/no-such-image:1"),
			code:     holdInvalidDockerImage, subcode: verdict.SubcodeNotFound, words: []string{"no-such-image:1", "does not exist", "check the name"}},
		{name: "invalid image name", oursOnly: true,
			commands: image("UPPER/Case:::tag"),
			code:     holdInvalidDockerImage, subcode: verdict.SubcodeInvalidReference, words: []string{"UPPER/Case:::tag", "is not valid"}},
		{name: "missing executable",
			commands: "executable = /no/such/program\ntransfer_executable = false",
			code:     holdFailedToCreateProcess, subcode: 2, words: []string{"/no/such/program", "No such file or directory"}},
		// Not straight after another image that cannot be pulled: the kubelet
		// publishes the second of two such failures a quarter of a minute late.
		{name: "image that is not for everybody", oursOnly: true,
			commands: image(registry() + "/forbidden/image:1"),
			code:     holdInvalidDockerImage, subcode: verdict.SubcodeDenied, words: []string{"/forbidden/image:1"}},
		{name: "missing executable in an image", oursOnly: true,
			commands: image(pool.Image("probe")) + "\nexecutable = /bin/sh\ntransfer_executable = false",
			code:     holdFailedToCreateProcess, subcode: 2, words: []string{"/bin/sh", "No such file or directory"}},
		{name: "executable without an interpreter", oursOnly: true,
			commands: image(pool.Image("probe")) + "\nexecutable = script",
			code:     holdFailedToCreateProcess, subcode: 2, words: []string{"script", "No such file or directory"}},
		{name: "java", oursOnly: true, free: true,
			commands: "universe = java\narguments = Main",
			code:     holdFailedToCreateProcess, words: []string{"universe = java", "universe = docker"}},
		{name: "a tool beside the job, which waits for it", oursOnly: true, requirements: "TARGET.HasTDP =!= 7",
			commands: "tool_daemon_cmd = script\nsuspend_job_at_exec = True",
			code:     holdFailedToCreateProcess, words: []string{"tool_daemon_cmd", "suspend_job_at_exec"}},
		{name: "what only attributes ask for", oursOnly: true,
			commands: "+StarterUserLog = \"events\"\n+UseParrot = True\n+WantExecutionVisaFromStarter = True\n+StarterWaitForDebug = 1",
			code:     holdFailedToCreateProcess, words: []string{"+StarterUserLog", "+UseParrot", "+WantExecutionVisaFromStarter", "+StarterWaitForDebug"}},
		{name: "an encrypted sandbox", oursOnly: true, requirements: "TARGET.EncryptExecuteDirectory =!= 7",
			commands: "encrypt_execute_directory = True",
			code:     holdFailedToCreateProcess, words: []string{"encrypt_execute_directory"}},
		{name: "a group for shared files", oursOnly: true,
			commands: "primary_unix_group = " + pool.User.Name + "\nexecutable = /bin/true\ntransfer_executable = false\nshould_transfer_files = NO\noutput =\nMY.FileSystemDomain = TARGET.FileSystemDomain",
			code:     holdPrimaryGroup, words: []string{"primary_unix_group", "should_transfer_files"}},
	}
	jobs := make([]harness.Job, len(cases))
	for i, c := range cases {
		if c.oursOnly && side != harness.Ours {
			continue
		}
		s := harness.Submission{
			Name:     "refused-" + strings.ReplaceAll(c.name, " ", "-"),
			Commands: "should_transfer_files = YES\noutput = out\n" + c.commands, Requirements: c.requirements,
			Files: []harness.File{{Name: "script", Mode: 0o755, Content: []byte("#!/no/such/interpreter\n")}},
		}
		if !strings.Contains(c.commands, "executable") {
			s.Commands += "\nexecutable = " + harness.ProbeName
			s.Files = append(s.Files, probe)
		}
		jobs[i] = submit(t, s)[0]
		if c.free {
			if _, err := pool.AP(t.Context(), "condor_qedit", jobs[i].ID(), "Requirements", side.Requirements()); err != nil {
				t.Fatal(err)
			}
		}
	}
	for i, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if c.oursOnly {
				oursOnly(t)
			}
			end := ending(t, jobs[i])
			if !end.Held || end.Code != c.code || end.Subcode != c.subcode {
				t.Errorf("%s; want held with code %d, subcode %d", end, c.code, c.subcode)
			}
			for _, word := range c.words {
				if !strings.Contains(end.Reason, word) {
					t.Errorf("the reason %q does not contain %q", end.Reason, word)
				}
			}
			t.Log(end.Reason)
		})
	}
	// The next job is unharmed.
	mustExit(t, submit(t, job("exit=4"))[0], 4)
}

// TestRegistryAway: a problem that only the site can solve sends the job back to
// the queue, and its log says what is wrong.
func TestRegistryAway(t *testing.T) {
	oursOnly(t)
	// The starter waits for problems to pass; the test does not.
	configure(t, "POD_STARTER_BIND_TIMEOUT = 3")
	job := submit(t, job("facts", "universe = docker", "docker_image = "+registry()+"/down/image:1"))[0]
	events, err := job.WaitEvents(soon(t, patience), "an attempt that fails", failed)
	if err != nil {
		t.Fatal(err)
	}
	givenBack(t, events, "/down/image:1")
}

// failed reports whether an attempt to run the job came to nothing.
func failed(events []harness.Event) bool {
	return has(events, harness.EventRemoteError) || has(events, harness.EventHeld) || has(events, harness.EventShadowException)
}

// givenBack checks that the user is not blamed for the failed attempt, and that the
// log says why it failed.
func givenBack(t *testing.T, events []harness.Event, word string) {
	t.Helper()
	if has(events, harness.EventHeld) {
		t.Fatalf("the job was held although its user did nothing wrong: %s", harness.Headlines(events))
	}
	at := slices.IndexFunc(events, func(e harness.Event) bool { return e.Number == harness.EventRemoteError })
	if at < 0 {
		t.Fatalf("no event says why the attempt failed: %s", harness.Headlines(events))
	}
	if text := events[at].Text(); !strings.Contains(text, word) {
		t.Errorf("the event %q does not contain %q", text, word)
	} else {
		t.Log(text)
	}
}

// TestTransferFailures: code, subcode and words are those of the stock starter,
// which runs the same jobs.
func TestTransferFailures(t *testing.T) {
	cases := []struct {
		name string
		job  harness.Submission
		code int
	}{
		{name: "missing output file", job: job("out=hello", "transfer_output_files = never-written"), code: holdTransferOutputError},
		{name: "missing input file", job: missingInput(), code: holdTransferInputError},
	}
	type pair struct{ ours, stock harness.Job }
	pairs := make([]pair, len(cases))
	for i, c := range cases {
		for _, on := range []harness.Side{harness.Ours, harness.Stock} {
			s := c.job
			s.Side = on
			s.Name = "transfer-" + strings.ReplaceAll(c.name, " ", "-")
			job := submit(t, s)[0]
			if on == harness.Ours {
				pairs[i].ours = job
			} else {
				pairs[i].stock = job
			}
		}
	}
	for i, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			ours, stock := ending(t, pairs[i].ours), ending(t, pairs[i].stock)
			if !ours.Held || ours.Code != c.code {
				t.Errorf("%s, want held with code %d", ours, c.code)
			}
			if diff := cmp.Diff(plain(stock.String()), plain(ours.String())); diff != "" {
				t.Errorf("reports of the stock starter (-) and ours (+) differ:\n%s", diff)
			}
			t.Log(ours.Reason)
		})
	}
}

// missingInput is a job whose input file is gone when the job starts:
// condor_submit would refuse it otherwise.
func missingInput() harness.Submission {
	s := job("out=hello", "transfer_input_files = never-there")
	s.Options = []string{"-disable"}
	return s
}

var particular = regexp.MustCompile(`dir_\d+|slot\d+(_\d+)?@\S+|[a-z-]+-(ours|stock)-\d+-\d+|\bhttps?://\S+`)

// plain removes from a message what differs between two runs.
func plain(text string) string {
	return particular.ReplaceAllString(text, "…")
}

// registry is the address of the pool's registry.
func registry() string {
	address, _, _ := strings.Cut(pool.Image("busybox"), "/")
	return address
}

// repository is what a reference names, up to the last slash.
func repository(reference string) string {
	return reference[:strings.LastIndexByte(reference, '/')]
}
