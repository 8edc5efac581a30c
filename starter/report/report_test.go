package report

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"podstarter/payload"
	"podstarter/starter/journal"
	"podstarter/starter/outlet"
	"podstarter/starter/podhealth"
	"podstarter/starter/settings"
	"podstarter/starter/tally"
)

// pod is a state directory whose FIFO a test reads.
type pod struct {
	testing.TB
	dir, lock string
	journal   journal.Journal
	out       *os.File // nil if nobody reads
}

func newPod(t testing.TB) *pod {
	t.Helper()
	p := &pod{TB: t, dir: t.TempDir(), lock: t.TempDir()}
	if err := os.Chmod(p.dir, 0o700); err != nil {
		t.Fatal(err)
	}
	p.journal = journal.Journal{StateDir: p.dir}
	return p
}

// listen makes the FIFO, and reads it as the entrypoint does.
func (p *pod) listen() {
	p.Helper()
	path := filepath.Join(p.dir, outlet.File)
	if err := unix.Mkfifo(path, 0o600); err != nil {
		p.Fatal(err)
	}
	var err error
	if p.out, err = os.OpenFile(path, os.O_RDWR|unix.O_NONBLOCK, 0); err != nil {
		p.Fatal(err)
	}
	p.Cleanup(func() { p.out.Close() })
}

// reporter is one that lives for one turn.
func (p *pod) reporter() *Reporter {
	p.Helper()
	r, err := New(Options{StateDir: p.dir, PublishDir: p.lock, Format: settings.EventLogText, Slots: 3, Pod: "ns/pod", Version: "v1", Condor: "25.14.1", Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		p.Fatal(err)
	}
	p.Cleanup(r.Close)
	return r
}

// once reports what there is, and stops.
func (p *pod) once() {
	p.Helper()
	r := p.reporter()
	if err := r.turn(r.announce()); err != nil {
		p.Fatal(err)
	}
}

var times = regexp.MustCompile(`time=\S+ |(seconds|until)=\S+ ?`)

// printed are the lines since the last call, without times.
func (p *pod) printed() []string {
	p.Helper()
	buffer := make([]byte, 1<<16)
	n, err := unix.Read(int(p.out.Fd()), buffer)
	if errors.Is(err, unix.EAGAIN) {
		return nil
	}
	if err != nil {
		p.Fatal(err)
	}
	return strings.Split(strings.TrimSuffix(times.ReplaceAllString(string(buffer[:n]), ""), "\n"), "\n")
}

// awaits reads lines until one has a text.
func (p *pod) awaits(text string) string {
	p.Helper()
	if err := unix.SetNonblock(int(p.out.Fd()), false); err != nil {
		p.Fatal(err)
	}
	var all strings.Builder
	for buffer := make([]byte, 1<<16); ; {
		n, err := unix.Read(int(p.out.Fd()), buffer) // the test's own time limit ends it
		if err != nil {
			p.Fatal(err)
		}
		if all.Write(buffer[:n]); strings.Contains(all.String(), text) {
			return all.String()
		}
	}
}

func (p *pod) note(events ...journal.Event) {
	p.Helper()
	for _, e := range events {
		if err := p.journal.Write(e); err != nil {
			p.Fatal(err)
		}
	}
}

func (p *pod) totals() tally.Snapshot {
	p.Helper()
	s, err := tally.Read(p.lock)
	if err != nil {
		p.Fatal(err)
	}
	return s
}

const begins = `level=INFO msg="pilot begins" pod=ns/pod slots=3 version=v1 htcondor=25.14.1`

func TestLines(t *testing.T) {
	zero, seven := 0, 7
	for name, tt := range map[string]struct {
		e    journal.Event
		want string
	}{
		"begin":  {journal.Event{Kind: journal.JobBegins, Job: "1.0", Owner: "ann@pool", Slot: "slot1_1", SubmitHost: "<ap>"}, `level=INFO msg="job begins" job=1.0 owner=ann@pool slot=slot1_1 from=<ap>`},
		"copied": {journal.Event{Kind: journal.ImageBound, Job: "1.0", Image: "x.sif", How: "made", Seconds: 5, Copied: 4.5, CopiedBytes: 3 << 19}, `level=INFO msg="image bound" job=1.0 image=x.sif how=made copied_copied_mib=1.5`},
		"bound":  {journal.Event{Kind: journal.ImageBound, Job: "1.0", Container: "payload", Image: "docker.io/a:1", How: "pulled", Seconds: 1.23456}, `level=INFO msg="image bound" job=1.0 container=payload image=docker.io/a:1 how=pulled `},
		"good":   {journal.Event{Kind: journal.JobEnds, Job: "1.0", Outcome: journal.Succeeded, Exit: &zero, Ran: 1, CPU: 0.5, Memory: 3 << 19}, `level=INFO msg="job ends" job=1.0 outcome=succeeded exit=0 ran_cpu_memory_mib=1.5`},
		"exit":   {journal.Event{Kind: journal.JobEnds, Outcome: journal.Exited, Exit: &seven}, `level=INFO msg="job ends" outcome=failed exit=7`},
		"user":   {journal.Event{Kind: journal.JobEnds, Outcome: journal.Held, Code: 35, Subcode: 2, Blame: "user", Cause: "ErrImagePull", Reason: `no "x"`}, `level=INFO msg="job ends" outcome=held code=35 subcode=2 blame=user cause=ErrImagePull reason="no \"x\""`},
		"site":   {journal.Event{Kind: journal.JobEnds, Outcome: journal.Requeued, Code: 1021, Blame: "site"}, `level=WARN msg="job ends" outcome=requeued code=1021 blame=site`},
		"pilot":  {journal.Event{Kind: journal.JobEnds, Outcome: journal.Requeued, Code: 1021, Blame: payload.Pilot.String()}, `level=ERROR msg="job ends" outcome=requeued code=1021 blame=pilot`},
		"fit":    {journal.Event{Kind: journal.Checked}, `level=INFO msg="pod takes jobs"`},
		"unfit":  {journal.Event{Kind: journal.Checked, Reason: "no token"}, `level=ERROR msg="pod takes no jobs until this is corrected" reason="no token"`},
		"forged": {journal.Event{Kind: journal.JobBegins, Owner: "x\nlevel=ERROR msg=gotcha", Slot: "\x1b[2J"}, `level=INFO msg="job begins" owner="x level=ERROR msg=gotcha" slot=?[2J`},
		"newer":  {journal.Event{Kind: "something else"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPod(t)
			p.listen()
			p.note(tt.e)
			p.once()
			want := []string{begins}
			if tt.want != "" {
				want = append(want, strings.TrimSuffix(tt.want, " "))
			}
			got := p.printed()[:len(want)]
			for i := range got {
				got[i] = strings.TrimSuffix(got[i], " ")
			}
			if tt.e.Kind == journal.JobBegins { // its starter is this process
				want, got = want[1:2], got[1:2]
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestLongestLines: what a FIFO takes whole (pipe(7), PIPE_BUF).
func TestLongestLines(t *testing.T) {
	for _, c := range []string{`"`, "é", " ", "="} {
		for _, format := range []string{settings.EventLogText, settings.EventLogJSON} {
			s := strings.Repeat(c+"a", 5000)
			p, code := newPod(t), 255
			p.note(journal.Event{Kind: journal.JobEnds, Job: s, Owner: s, Slot: s, SubmitHost: s, Container: s, Image: s, How: s, Seconds: 1e9 / 3, Fetched: 1e9 / 3, Copied: 1e9 / 3, CopiedBytes: 1 << 62,
				Outcome: journal.Succeeded, Exit: &code, Signal: 64, Code: 1 << 30, Subcode: 1 << 30, Blame: s, Cause: s, Reason: s, Ran: 1e9 / 3, CPU: 1e9 / 3, Memory: 1 << 62})
			r := p.reporter()
			events, _, err := r.reader.Read(journal.Position{})
			if err != nil || len(events) != 1 {
				t.Fatal(len(events), err)
			}
			var out strings.Builder
			print(newLines(format, &out), events[0])
			if n := out.Len(); n > 4096 || n < 1000 || strings.Count(out.String(), "\n") != 1 {
				t.Errorf("%s, %q: %d bytes", format, c, n)
			}
		}
	}
}

// TestEachCountsOnce: whenever a reporter ends, the next goes on where it was.
func TestEachCountsOnce(t *testing.T) {
	p := newPod(t)
	p.listen()
	end := journal.Event{Kind: journal.JobEnds, Outcome: journal.Succeeded}
	p.note(end, end)
	p.once()
	p.note(end)
	p.once()
	p.once()
	if got := p.totals().Totals.Ended[journal.Succeeded]; got != 3 {
		t.Errorf("%d jobs, want 3", got)
	}
	if n := len(regexp.MustCompile(`job ends`).FindAllString(strings.Join(p.printed(), "\n"), -1)); n != 3 {
		t.Errorf("%d lines, want 3", n)
	}
}

// TestDamagedMemory: counting begins anew.
func TestDamagedMemory(t *testing.T) {
	p := newPod(t)
	p.note(journal.Event{Kind: journal.JobBegins})
	p.once()
	if err := os.WriteFile(filepath.Join(p.dir, memoryDir, memoryFile), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	p.once()
	if got := p.totals().Totals.Begun; got != 1 {
		t.Errorf("%d, want 1", got)
	}
}

// TestNobodyListens: nothing waits for readers of the lines, and what they missed is counted.
func TestNobodyListens(t *testing.T) {
	full := func(p *pod) {
		p.listen()
		for {
			if _, err := unix.Write(int(p.out.Fd()), make([]byte, 4096)); err != nil {
				return
			}
		}
	}
	for name, prepare := range map[string]func(*pod){
		"no FIFO": func(*pod) {},
		"no reader": func(p *pod) {
			p.listen()
			p.out.Close()
		},
		"a full FIFO": full,
		"a file": func(p *pod) {
			if err := os.WriteFile(filepath.Join(p.dir, outlet.File), nil, 0o600); err != nil {
				p.Fatal(err)
			}
		},
		"a link": func(p *pod) {
			p.listen()
			path := filepath.Join(p.dir, outlet.File)
			if err := errors.Join(os.Rename(path, path+".real"), os.Symlink(path+".real", path)); err != nil {
				p.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPod(t)
			prepare(p)
			p.note(journal.Event{Kind: journal.JobEnds, Outcome: journal.Held})
			p.once()
			s := p.totals()
			if s.Totals.LinesLost != 2 || s.Totals.Ended[journal.Held] != 1 {
				t.Errorf("lost %d lines, counted %v", s.Totals.LinesLost, s.Totals.Ended)
			}
		})
	}
}

// TestLateReader: a reader that comes later gets what comes later.
func TestLateReader(t *testing.T) {
	p := newPod(t)
	r := p.reporter()
	r.say(slog.LevelInfo, "one")
	p.listen()
	r.say(slog.LevelInfo, "two")
	if diff := cmp.Diff([]string{"level=INFO msg=two"}, p.printed()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// starter is a process that begins a job and then waits.
func (p *pod) starter() (kill func()) {
	p.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^TestHelperStarter$")
	cmd.Env = append(os.Environ(), "REPORT_TEST_DIR="+p.dir)
	in, err := cmd.StdinPipe()
	if err != nil {
		p.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		p.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		p.Fatal(err)
	}
	if _, err := out.Read(make([]byte, 1)); err != nil {
		p.Fatal(err)
	}
	return func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		in.Close()
	}
}

func TestHelperStarter(t *testing.T) {
	dir := os.Getenv("REPORT_TEST_DIR")
	if dir == "" {
		return // for TestStarterDies
	}
	if err := (journal.Journal{StateDir: dir}).Write(journal.Event{Kind: journal.JobBegins, Job: "7.1", Slot: "slot1_1"}); err != nil {
		t.Fatal(err)
	}
	_, _ = os.Stdout.WriteString("!")
	_, _ = io.Copy(io.Discard, os.Stdin)
}

// TestStarterDies: a job whose starter died without a word ends all the same.
func TestStarterDies(t *testing.T) {
	p := newPod(t)
	p.listen()
	kill := p.starter()
	defer kill()
	p.once()
	if s := p.totals(); s.Running != 1 || s.Totals.Ended[journal.Lost] != 0 {
		t.Errorf("%d jobs run, %v ended", s.Running, s.Totals.Ended)
	}
	kill()
	p.once()
	if s := p.totals(); s.Running != 0 || s.Totals.Ended[journal.Lost] != 1 {
		t.Errorf("%d jobs run, %v ended", s.Running, s.Totals.Ended)
	}
	if text := strings.Join(p.printed(), "\n"); !strings.Contains(text, `level=WARN msg="job ends" job=7.1 slot=slot1_1 outcome=lost`) {
		t.Error(text)
	}
}

// TestEarlierPilot: starters of an earlier pilot are dead, whoever has their process IDs now.
func TestEarlierPilot(t *testing.T) {
	p := newPod(t)
	p.note(journal.Event{Kind: journal.JobBegins, Job: "1.0"})
	p.once()
	r := p.reporter()
	r.memory.Master = "another"
	if err := r.remember(); err != nil {
		t.Fatal(err)
	}
	p.note(journal.Event{Kind: journal.JobBegins, Job: "2.0"}) // of this pilot, before its keeper began
	p.once()
	if s := p.totals(); s.Running != 1 || s.Totals.Ended[journal.Lost] != 1 { // the two have one process ID
		t.Errorf("%d jobs run, %v ended", s.Running, s.Totals.Ended)
	}
	r = p.reporter()
	r.memory.Master = "another"
	if err := r.remember(); err != nil {
		t.Fatal(err)
	}
	p.once()
	if s := p.totals(); s.Running != 0 || s.Totals.Ended[journal.Lost] != 2 {
		t.Errorf("%d jobs run, %v ended", s.Running, s.Totals.Ended)
	}
}

// TestGoesOn: what could not be noted once, perhaps since the disk was full, is noted later; nobody else would ever count again.
func TestGoesOn(t *testing.T) {
	p := newPod(t)
	p.listen()
	inTheWay := filepath.Join(p.dir, memoryDir)
	if err := os.WriteFile(inTheWay, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	r := p.reporter()
	log := make(lineChannel, 10)
	r.opt.Log = slog.New(slog.NewTextHandler(log, nil))
	stop, stopped := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- r.Run(t.Context(), stop, nil) }()
	end := journal.Event{Kind: journal.JobEnds, Outcome: journal.Succeeded, Job: "1.0"}
	p.note(end)
	p.awaits("job=1.0")
	if line := <-log; !strings.Contains(line, "note in ") {
		t.Error(line)
	}
	if err := os.Remove(inTheWay); err != nil {
		t.Fatal(err)
	}
	end.Job = "2.0"
	p.note(end)
	p.awaits("job=2.0")
	stopped()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if got := p.totals().Totals.Ended[journal.Succeeded]; got != 2 {
		t.Errorf("%d jobs, want 2", got)
	}
	close(log)
	for line := range log {
		if strings.Contains(line, "note in ") {
			t.Errorf("the error is logged again: %s", line)
		}
	}
}

// lineChannel gives what is logged line by line.
type lineChannel chan string

func (c lineChannel) Write(line []byte) (int, error) {
	c <- string(line)
	return len(line), nil
}

// TestStop: a reporter that is told to stop waits for the end of the jobs that run.
func TestStop(t *testing.T) {
	p := newPod(t)
	p.listen()
	kill := p.starter()
	defer kill()
	r := p.reporter()
	stop, stopped := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- r.Run(t.Context(), stop, nil) }()
	stopped()
	text := p.awaits("pilot stops")
	if !strings.Contains(text, `msg="pilot stops" running=1`) {
		t.Error(text)
	}
	select {
	case err := <-done:
		t.Fatalf("it has not waited: %v", err)
	default:
	}
	kill()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if text := p.awaits("pilot has stopped"); !strings.Contains(text, "outcome=lost") {
		t.Error(text)
	}
}

func TestHealth(t *testing.T) {
	soon, later := time.Now().Add(time.Minute), time.Now().Add(time.Hour)
	p := newPod(t)
	p.listen()
	r := p.reporter()
	for i, step := range []struct {
		c    podhealth.Condition
		want []string
	}{
		{podhealth.Condition{}, nil},
		{podhealth.Condition{Until: soon, Reason: "no\nrights"}, []string{`level=ERROR msg="pod is sick and takes no jobs" reason="no rights"`}},
		{podhealth.Condition{Until: later, Reason: "no\nrights"}, nil},
		{podhealth.Condition{}, []string{`level=INFO msg="pod takes jobs again"`}},
		{podhealth.Condition{Rests: map[string]podhealth.Rest{"2": {Reason: "429", Until: soon}}}, []string{`level=WARN msg="slot rests and takes no jobs" slot=slot2 reason=429`}},
		{podhealth.Condition{Rests: map[string]podhealth.Rest{"2": {Reason: "429", Until: soon}}}, nil},
	} {
		r.tellHealth(step.c)
		if diff := cmp.Diff(step.want, p.printed()); diff != "" {
			t.Errorf("step %d (-want +got):\n%s", i, diff)
		}
	}
}
