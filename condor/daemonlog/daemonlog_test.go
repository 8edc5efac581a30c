package daemonlog

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"podstarter/condor/config"
)

var at = time.Date(2026, 11, 20, 23, 11, 38, 193_600_000, time.Local)

// open makes a log in a temporary directory and returns it with a function
// that reads what is in it.
func open(t *testing.T, flags string, change func(*Options)) (*Log, func() string) {
	t.Helper()
	opt := Options{
		Path:  filepath.Join(t.TempDir(), "StarterLog.slot1_1"),
		Flags: ParseFlags(flags), PID: 8053, Now: func() time.Time { return at },
	}
	if change != nil {
		change(&opt)
	}
	l, err := Open(opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l, func() string {
		b, err := os.ReadFile(opt.Path)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
}

// record logs as slog does, at a fixed time.
func record(l *Log, level slog.Level, msg string, args ...any) {
	r := slog.NewRecord(at, level, msg, 0)
	r.Add(args...)
	if h := l.Handler(); h.Enabled(context.Background(), level) {
		_ = h.Handle(context.Background(), r)
	}
}

func TestLines(t *testing.T) {
	for name, tt := range map[string]struct {
		flags string
		level slog.Level
		msg   string
		args  []any
		want  string
	}{
		"plain":             {"", slog.LevelInfo, "Communicating with shadow <127.0.0.1:1>", nil, "11/20/26 23:11:38 Communicating with shadow <127.0.0.1:1>\n"},
		"stock's default":   {"D_PID", slog.LevelInfo, "hello", nil, "11/20/26 23:11:38 (pid:8053) hello\n"},
		"all headers":       {"D_PID D_CAT D_SUB_SECOND", slog.LevelInfo, "hello", nil, "11/20/26 23:11:38.194 (pid:8053) (D_ALWAYS) hello\n"},
		"time stamp":        {"D_TIMESTAMP", slog.LevelInfo, "hello", nil, fmt.Sprintf("%d hello\n", at.Unix())},
		"debug is off":      {"", slog.LevelDebug, "hello", nil, ""},
		"debug is on":       {"D_FULLDEBUG D_CAT", slog.LevelDebug, "hello", nil, "11/20/26 23:11:38 (D_ALWAYS:2) hello\n"},
		"debug again off":   {"D_FULLDEBUG -D_FULLDEBUG", slog.LevelDebug, "hello", nil, ""},
		"warning":           {"D_CAT", slog.LevelWarn, "hello", nil, "11/20/26 23:11:38 (D_ALWAYS) hello\n"},
		"error":             {"D_CAT", slog.LevelError, "hello", nil, "11/20/26 23:11:38 (D_ERROR) hello\n"},
		"category off":      {"", slog.LevelInfo, "hello", []any{In(Syscalls)}, ""},
		"category on":       {"D_SYSCALLS D_CAT", slog.LevelInfo, "hello", []any{In(Syscalls)}, "11/20/26 23:11:38 (D_SYSCALLS) hello\n"},
		"category in depth": {"D_COMMAND:2 D_CAT", slog.LevelDebug, "hello", []any{In(Command)}, "11/20/26 23:11:38 (D_COMMAND:2) hello\n"},
		"category flat":     {"D_COMMAND", slog.LevelDebug, "hello", []any{In(Command)}, ""},
		"category fails":    {"D_CAT", slog.LevelError, "hello", []any{In(Security)}, "11/20/26 23:11:38 (D_SECURITY|D_FAILURE) hello\n"},
		"attributes":        {"", slog.LevelInfo, "hello", []any{"a", 1, "b", "two words", "c", "", "d", errors.New("x=1"), "t", time.Second}, "11/20/26 23:11:38 hello a=1 b=\"two words\" c=\"\" d=\"x=1\" t=1s\n"},
		"group":             {"", slog.LevelInfo, "hello", []any{slog.Group("g", "a", 1)}, "11/20/26 23:11:38 hello g.a=1\n"},
		"forged line":       {"", slog.LevelInfo, "job said\n11/20/26 23:11:38 Process exited, pid=1", []any{"v", "x\ny"}, "11/20/26 23:11:38 job said\n\t11/20/26 23:11:38 Process exited, pid=1 v=\"x\\ny\"\n"},
		"control":           {"", slog.LevelInfo, "a\x1b[31m\x00b\xffc", nil, "11/20/26 23:11:38 a?[31m?b?c\n"},
		"trailing newline":  {"", slog.LevelInfo, "hello\n", nil, "11/20/26 23:11:38 hello\n"},
	} {
		t.Run(name, func(t *testing.T) {
			l, read := open(t, tt.flags, nil)
			record(l, tt.level, tt.msg, tt.args...)
			if diff := cmp.Diff(tt.want, read()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestLogger(t *testing.T) {
	l, read := open(t, "D_JOB", func(o *Options) { o.TimeFormat = "%F" })
	log := slog.New(l.Handler()).With("slot", "slot1_1").WithGroup("sub").With("n", 1)
	log.Info("one", "a", 2)
	log.With(In(Job)).Info("two")
	log.With(In(Machine)).Info("not shown")
	log.With(In(Machine)).Warn("three")
	day := time.Now().Format(time.DateOnly)
	want := day + " one slot=slot1_1 sub.n=1 sub.a=2\n" + day + " two slot=slot1_1 sub.n=1\n" + day + " three slot=slot1_1 sub.n=1\n"
	if diff := cmp.Diff(want, read()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestLongLine(t *testing.T) {
	l, read := open(t, "", nil)
	record(l, slog.LevelInfo, strings.Repeat("é", maxLine))
	got := read()
	if len(got) > maxLine+100 || !strings.HasSuffix(got, "é...\n") {
		t.Errorf("%d bytes, ends with %q", len(got), got[len(got)-10:])
	}
}

// TestBanner compares with what a stock starter wrote.
func TestBanner(t *testing.T) {
	b, err := os.ReadFile("../../testdata/condor/StarterLog.25.14.1")
	if err != nil {
		t.Fatal(err)
	}
	l, read := open(t, "D_PID D_CAT", nil)
	l.Start(Banner{
		Program: "/usr/sbin/condor_starter", LocalName: "slot_type_1",
		Version:  "$CondorVersion: 25.14.1 2026-10-16 PackageID: 25.14.1+dfsg-1 $",
		Platform: "$CondorPlatform: X86_64-Debian_ $", Sources: []string{"/tmp/cc2"},
	})
	// These two lines say something of the C++ program's insides.
	own := regexp.MustCompile(`(?m)^.*(config Macros|CLASSAD_CACHING).*\n`)
	uid := regexp.MustCompile(`RealUID = \d+`)
	same := func(s string) string { return uid.ReplaceAllString(own.ReplaceAllString(s, ""), "RealUID = N") }
	if diff := cmp.Diff(same(string(b)), same(read())); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestBannerOfAKnownFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	if err := os.WriteFile(path, []byte("before\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	fi, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	l, read := open(t, "", func(o *Options) { o.Path = path })
	l.Start(Banner{})
	l.CommandSocket("<127.0.0.1:9618?sock=slot1_1>")
	l.Exiting(2)
	m := fi.ModTime()
	for _, want := range []string{
		"before\n",
		fmt.Sprintf(" ** Log last touched %d/%d %02d:%02d:%02d\n", m.Month(), m.Day(), m.Hour(), m.Minute(), m.Second()),
		" ** Configuration: subsystem:STARTER local:<NONE> class:DAEMON\n",
		" DaemonCore: command socket at <127.0.0.1:9618?sock=slot1_1>\n",
		" **** condor_starter (condor_STARTER) pid 8053 EXITING WITH STATUS 2\n",
	} {
		if !strings.Contains(read(), want) {
			t.Errorf("no %q in\n%s", want, read())
		}
	}
}

func TestAttach(t *testing.T) {
	l, read := open(t, "", nil)
	second, err := os.Create(filepath.Join(t.TempDir(), ".starter.log"))
	if err != nil {
		t.Fatal(err)
	}
	l.Attach(second, Options{Path: second.Name(), Flags: ParseFlags("D_FULLDEBUG"), MaxSize: 200})
	record(l, slog.LevelDebug, "detail")
	record(l, slog.LevelInfo, "news")
	record(l, slog.LevelInfo, strings.Repeat("too much ", 30))
	if err := l.Detach(); err != nil {
		t.Error(err)
	}
	record(l, slog.LevelInfo, "later")
	b, err := os.ReadFile(second.Name())
	if err != nil {
		t.Fatal(err)
	}
	if got := [2]int{strings.Count(read(), "\n"), strings.Count(string(b), "\n")}; got != [2]int{3, 2} {
		t.Errorf("lines in the two logs: %v", got)
	}
	if err := l.Err(); err != nil {
		t.Error(err)
	}
}

func TestOptionsFor(t *testing.T) {
	base := map[string]string{"STARTER_LOG": "/log/StarterLog", "STARTER_DEBUG": "D_FULLDEBUG", "ALL_DEBUG": "D_PID", "MAX_STARTER_LOG": "25 Mb"}
	opt, err := OptionsFor(config.FromMap(base), "slot1_1")
	if err != nil {
		t.Fatal(err)
	}
	want := Options{Path: "/log/StarterLog.slot1_1", Flags: ParseFlags("D_PID D_FULLDEBUG"), TimeFormat: defaultTimeFormat, MaxSize: 25 << 20, Keep: 1}
	if diff := cmp.Diff(want, opt, cmp.AllowUnexported(Flags{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	more := map[string]string{"STARTER_LOG": "/log/StarterLog", "DEFAULT_DEBUG": "D_SECURITY", "MAX_DEFAULT_LOG": "2 Mb", "MAX_NUM_STARTER_LOG": "3",
		"TRUNC_STARTER_LOG_ON_OPEN": "true", "LOGS_USE_TIMESTAMP": "true", "DEBUG_TIME_FORMAT": "%Y"}
	if opt, err = OptionsFor(config.FromMap(more), ""); err != nil {
		t.Fatal(err)
	}
	want = Options{Path: "/log/StarterLog", Flags: ParseFlags("D_SECURITY"), TimeFormat: "%Y", MaxSize: 2 << 20, Keep: 3, Truncate: true}
	want.Flags.header |= withTimestamp
	if diff := cmp.Diff(want, opt, cmp.AllowUnexported(Flags{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	job := OptionsForJobLog(config.FromMap(map[string]string{"EXECUTE": "/exec"}), "D_JOB,D_CAT,$(EXECUTE)/dir_$(PID)/scratch/.starter.log", Options{PID: 7, Flags: ParseFlags("D_PID")})
	if job.Path != "/exec/dir_7/scratch/.starter.log" || !job.Flags.shows(slog.LevelInfo, Job) || job.Flags.header != withPID|withCategory {
		t.Errorf("job's log: %+v", job)
	}
	for name, knobs := range map[string]map[string]string{
		"no path": {}, "bad size": {"LOG": "/log", "MAX_STARTER_LOG": "big"}, "bad unit": {"LOG": "/log", "MAX_STARTER_LOG": "1 furlong"},
		"too large": {"LOG": "/log", "MAX_STARTER_LOG": "9999999999999999 Gb"},
	} {
		if _, err := OptionsFor(config.FromMap(knobs), ""); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if _, err := OptionsFor(config.FromMap(base), "../slot"); err == nil {
		t.Error("a suffix with a slash: no error")
	}
}

// TestLogOfSlotType: a starter with a local name writes the log of all starters only if the slot's id is a part of the file's name.
func TestLogOfSlotType(t *testing.T) {
	all := map[string]string{"LOG": "/log", "STARTER_LOG": "/log/StarterLog"}
	own := map[string]string{"LOG": "/log", "STARTER_LOG": "/own", "SLOT_TYPE_1.STARTER_LOG": "/own"}
	for name, tt := range map[string]struct {
		knobs         map[string]string
		local, suffix string
		want          string
	}{
		"slot":                 {all, "slot_type_1", "slot1_1", "/log/StarterLog.slot1_1"},
		"no slot":              {all, "slot_type_1", "", "/log/SlotType1Log"},
		"no slot, in capitals": {all, "GPU_starter", "", "/log/GpuStarterLog"},
		"own, slot":            {own, "slot_type_1", "slot1_1", "/own.slot1_1"},
		"own, no slot":         {own, "slot_type_1", "", "/own"},
		"no local name":        {all, "", "", "/log/StarterLog"},
	} {
		t.Run(name, func(t *testing.T) {
			opt, err := OptionsFor(config.FromMap(tt.knobs).WithLocalName(tt.local), tt.suffix)
			if err != nil || opt.Path != tt.want {
				t.Errorf("%s, %v, want %s", opt.Path, err, tt.want)
			}
		})
	}
	if opt, err := OptionsFor(config.FromMap(map[string]string{"STARTER_LOG": "/log/StarterLog"}).WithLocalName("slot_type_1"), ""); err == nil {
		t.Errorf("no directory for logs: %+v", opt)
	}
	if opt, err := OptionsFor(config.FromMap(all).WithLocalName("a/b"), ""); err == nil {
		t.Errorf("a slash in the name: %+v", opt)
	}
}

func TestParseLimit(t *testing.T) {
	for text, want := range map[string][2]int64{
		"0": {0, 0}, "1000": {1000, 0}, "10 Mb": {10 << 20, 0}, "10M": {10 << 20, 0}, "5 Gb": {5 << 30, 0}, "2kb": {2048, 0}, "3 MiB": {3 << 20, 0},
		"1 day": {86400, 1}, "2 h": {7200, 1}, "30 m": {1800, 1}, "30 min": {1800, 1}, "1 week": {604800, 1}, "90 s": {90, 1},
	} {
		n, age, err := parseLimit(text)
		got := [2]int64{n, 0}
		if age {
			got[1] = 1
		}
		if err != nil || got != want {
			t.Errorf("parseLimit(%q) = %v, %v, want %v", text, got, err, want)
		}
	}
}

func TestFlagsString(t *testing.T) {
	for flags, want := range map[string]string{
		"": "D_ALWAYS D_ERROR D_STATUS", "D_FULLDEBUG D_SYSCALLS D_COMMAND:2": "D_ALWAYS:2 D_ERROR D_STATUS D_COMMAND:2 D_SYSCALLS",
		"D_JOB | D_NONSENSE , - + :3": "D_ALWAYS D_ERROR D_STATUS D_JOB",
	} {
		if got := ParseFlags(flags).String(); got != want {
			t.Errorf("%q: %q, want %q", flags, got, want)
		}
	}
}
