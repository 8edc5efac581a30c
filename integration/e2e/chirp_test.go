//go:build pool

package e2e

import (
	"strings"
	"testing"

	"podstarter/integration/harness"
)

// requests are what the probe sends to the chirp proxy of its job.
func requests(lines ...string) harness.File {
	return harness.File{Name: "requests", Content: []byte("cookie $cookie\n" + strings.Join(lines, "\n") + "\n")}
}

// TestModeChirpAndStreams is one job that does all of it at once, in an image
// without a shell: streamed input to streamed output, requests to the proxy, and a
// process that stays behind with the streams open.
func TestModeChirpAndStreams(t *testing.T) {
	s := job("copy chirp=requests err=complaint detach=1 exit=3",
		"stream_input = true", "stream_output = true", "stream_error = true", "input = in",
		"+WantIOProxy = true", "transfer_input_files = requests", `transfer_output_files = ""`)
	if side == harness.Ours {
		s.Commands += "\nuniverse = docker\ndocker_image = " + pool.Image("probe")
	}
	large := strings.Repeat("a line that is streamed in and out\n", 5000)
	s.Files = append(s.Files, harness.File{Name: "in", Content: []byte(large)}, harness.File{Name: "data", Content: []byte("on the submit side\n")},
		requests("getfile data", "putfile sent 420 5|hello", "set_job_attr MyNumber 41 + 1", "set_job_attr_delayed ChirpLast 7", "ulog a\\ word\\ from\\ the\\ job", "stat none"))
	job := submit(t, s)[0]
	mustExit(t, job, 3)
	want := large + "cookie $cookie: 0\ngetfile data: 19 on the submit side\n\nputfile sent 420 5: 5\nset_job_attr MyNumber 41 + 1: 0\n" +
		"set_job_attr_delayed ChirpLast 7: 0\nulog a\\ word\\ from\\ the\\ job: 0\nstat none: -3\n"
	if got := output(t, job, "out"); got != want {
		t.Errorf("output: %d bytes, want %d; its end is %q", len(got), len(want), got[max(0, len(got)-300):])
	}
	for name, want := range map[string]string{"err": "complaint\n", "sent": "hello"} {
		if got := output(t, job, name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	ad, err := job.History(soon(t, patience))
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]int64{"MyNumber": 41, "ChirpLast": 7} {
		if got, err := ad.GetInt(name); err != nil || got != want {
			t.Errorf("%s is %d (%v), want %d", name, got, err, want)
		}
	}
	events, err := job.Events()
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(harness.Headlines(events), "a word from the job") {
		t.Errorf("the job's text is not in its event log: %s", harness.Headlines(events))
	}
}

// TestChirpOfTheImage runs the image's condor_chirp. A directory that does not
// exist breaks the stock starter and its shadow, but is only an error here.
func TestChirpOfTheImage(t *testing.T) {
	oursOnly(t)
	const script = `#!/bin/sh
chirp=/usr/libexec/condor/condor_chirp
$chirp fetch data here && cat here
$chirp set_job_attr MyTool '"a b"'
echo new >new; $chirp put new none/new; echo "put: $?"
$chirp put new put; echo over; echo name >/dev/stdout; echo error >/dev/stderr
`
	s := harness.Submission{
		Commands: strings.Join([]string{
			"universe = container", "container_image = docker://" + pool.Image("pilot"), "executable = script",
			"should_transfer_files = YES", "+WantIOProxy = true", "output = both", "error = both", "stream_output = true", "stream_error = true",
			"request_memory = 64", "request_disk = 16M",
		}, "\n"),
		Files: []harness.File{{Name: "script", Mode: 0o755, Content: []byte(script)}, {Name: "data", Content: []byte("fetched\n")}},
	}
	job := submit(t, s)[0]
	mustExit(t, job, 0)
	if got := output(t, job, "both"); !strings.HasPrefix(got, "fetched\n") || !strings.Contains(got, "put: 1\n") || !strings.HasSuffix(got, "over\nname\nerror\n") {
		t.Errorf("%q", got)
	}
	if got := output(t, job, "put"); got != "new\n" {
		t.Errorf("%q", got)
	}
	ad, err := job.History(soon(t, patience))
	if err != nil {
		t.Fatal(err)
	}
	if got := ad.StringOr("MyTool", ""); got != "a b" {
		t.Errorf("MyTool is %q", got)
	}
}
