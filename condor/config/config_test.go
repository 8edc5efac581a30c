package config

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"podstarter/classads"
)

const recorded = "../../testdata/condor/"

func read(t testing.TB, version string) string {
	t.Helper()
	b, err := os.ReadFile(recorded + "config_val." + version + ".txt")
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestRecordedDumps(t *testing.T) {
	want := map[string]string{
		"FOO":                       "slotfoo",    // slot_type_1.FOO wins over STARTER.FOO
		"baz":                       "starterbaz", // STARTER.BAZ wins over BAZ
		"BAR":                       "bar",
		"ONLY_SUBSYSTEM":            "1 4711 STARTER slot_type_1", // $(PID) is ours
		"ONLY_LOCAL":                "2",
		"EXECUTE":                   "/exec", // from the environment
		"NEWKNOB":                   "hi",
		"POD_STARTER_POD_NAME":      "pod-1",
		"POD_STARTER_X":             "dflt  def $$(TARGET) $HOME",
		"POD_STARTER_DEFAULT_IMAGE": "UNDEFINED",
		"MULTI":                     "line one\nNAME = x\nlast line @end no",
		"MULTI_ODD":                 "@end\nx",
		"CONTINUED":                 "a b c",
		"XREF":                      "pre line one\nNAME = x\nlast line @end no post",
		"LASTLY":                    "pre line one\nNAME = x\nlast line @end no post",
		"EMPTY":                     "",
		"USER_JOB_WRAPPER":          "",
		"NO_SUCH_KNOB":              "",
		"QUOTED":                    `"quoted = yes"`,
		"HASH":                      "a # b",
		"TRAIL":                     "a",
		"UNI":                       "é\ttab",
		"LOG":                       "/var/log/condor",
		"STARTER_LOG":               "/var/log/condor/StarterLog",
		"PID":                       "4711",
		"NAME":                      "", // only a line of another value
	}
	for _, version := range []string{"25.14.1", "23.9.6"} {
		t.Run(version, func(t *testing.T) {
			c, err := parse(read(t, version), "slot_type_1", 4711)
			if err != nil {
				t.Fatal(err)
			}
			got := map[string]string{}
			for name := range want {
				got[name], _ = c.Lookup(name)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("values (-want +got):\n%s", diff)
			}
			for name, where := range map[string]string{
				"FOO": "/tmp/c.conf, line 11", "EXECUTE": "<Environment>", "STARTER": "<Default>", "NO_SUCH_KNOB": "",
			} {
				if got := c.Where(name); got != where {
					t.Errorf("Where(%s) = %q, want %q", name, got, where)
				}
			}
			if diff := cmp.Diff([]string{"/tmp/c.conf"}, c.Sources()); diff != "" {
				t.Errorf("Sources (-want +got):\n%s", diff)
			}
		})
	}
}

func TestBadDumps(t *testing.T) {
	for name, text := range map[string]string{
		"nothing":           "",
		"comments alone":    "# Configuration from machine: h\n",
		"no equals sign":    "FOO bar\n # at: x\n",
		"bad name":          "F OO = bar\n # at: x\n",
		"cut after value":   "FOO = bar\n",
		"cut in here value": "FOO @=end\n   a\n",
		"cut after here":    "FOO @=end\n   a\n@end\n",
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := parse(text, "", 1); err == nil {
				t.Error("no error")
			}
		})
	}
}

func TestGetters(t *testing.T) {
	c := FromMap(map[string]string{
		"TRUE": "True", "ONE": "1", "ZERO": " 0 ", "FALSE": "false", "EXPRTRUE": "1 < 2", "WORD": "yes", "JUNK": "((",
		"INT": "15", "PRODUCT": "10 * 60", "NEGATIVE": "-1", "REAL": "2.5", "HUGE": "99999999999999999999", "EMPTY": "",
		"JOB": `ifThenElse(TARGET.Owner == "alice", MY.Memory, 0)`, "STRING": `strcat("a", "b")`, "LIST": "a, b\tc,,d",
		"TOOLONG": "99999999999",
	})
	job, machine := classads.NewAd(), classads.NewAd()
	job.SetString("Owner", "alice")
	machine.SetInt("Memory", 2048)

	boolean := func(name string, def bool) func() (any, error) {
		return func() (any, error) { return c.Bool(name, def) }
	}
	integer := func(name string, def int64) func() (any, error) {
		return func() (any, error) { return c.Int(name, def) }
	}
	for name, tt := range map[string]struct {
		get  func() (any, error)
		want any
		err  string
	}{
		"true":              {boolean("TRUE", false), true, ""},
		"one":               {boolean("ONE", false), true, ""},
		"zero":              {boolean("ZERO", true), false, ""},
		"false":             {boolean("FALSE", true), false, ""},
		"expression":        {boolean("EXPRTRUE", false), true, ""},
		"number":            {boolean("INT", false), true, ""},
		"unset":             {boolean("NONE", true), true, ""},
		"set to nothing":    {boolean("EMPTY", true), true, ""},
		"word":              {boolean("WORD", false), false, `knob WORD = "yes" is not True or False`},
		"junk":              {boolean("JUNK", true), true, "knob JUNK"},
		"int":               {integer("INT", 0), int64(15), ""},
		"int product":       {integer("PRODUCT", 0), int64(600), ""},
		"int negative":      {integer("NEGATIVE", 0), int64(-1), ""},
		"int cut":           {integer("REAL", 0), int64(2), ""},
		"int too large":     {integer("HUGE", 7), int64(7), "value out of range"},
		"int default":       {integer("EMPTY", 7), int64(7), ""},
		"seconds":           {func() (any, error) { return c.Seconds("PRODUCT", 0) }, 10 * time.Minute, ""},
		"seconds word":      {func() (any, error) { return c.Seconds("WORD", time.Second) }, time.Second, "number of seconds"},
		"seconds too large": {func() (any, error) { return c.Seconds("TOOLONG", time.Second) }, time.Second, "below"},
		"real":              {func() (any, error) { return c.Real("REAL", 0) }, 2.5, ""},
		"real of a product": {func() (any, error) { return c.Real("PRODUCT", 0) }, 600.0, ""},
		"over both ads":     {func() (any, error) { return c.EvalInt("JOB", 0, machine, job) }, int64(2048), ""},
		"string":            {func() (any, error) { return c.EvalString("STRING", "", nil, nil) }, "ab", ""},
		"string undefined":  {func() (any, error) { return c.EvalString("WORD", "x", nil, nil) }, "x", ""},
		"string of an int":  {func() (any, error) { return c.EvalString("INT", "x", nil, nil) }, "x", "it evaluates to 15"},
		"list":              {func() (any, error) { return c.List("LIST"), nil }, []string{"a", "b", "c", "d"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := tt.get()
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("value (-want +got):\n%s", diff)
			}
			if tt.err == "" && err != nil {
				t.Errorf("error %v", err)
			}
			if tt.err != "" && (err == nil || !strings.Contains(err.Error(), tt.err)) {
				t.Errorf("error %v, want one with %q", err, tt.err)
			}
			var knob *Error
			if err != nil && !errors.As(err, &knob) {
				t.Errorf("%T is not *Error", err)
			}
		})
	}
	if e, err := c.Expr("NONE"); e != nil || err != nil {
		t.Errorf("Expr of an unset knob: %v, %v", e, err)
	}
	if _, err := c.Expr("JUNK"); err == nil {
		t.Error("Expr of junk: no error")
	}
}

func TestExpand(t *testing.T) {
	c := FromMap(map[string]string{"EXECUTE": "/exec", "PID": "1", "A": "$(B)"})
	for text, want := range map[string]string{
		"$(EXECUTE)/dir_$(PID)/x": "/exec/dir_42/x",
		"$(execute)":              "/exec",
		"$(NONE:a$(PID)b)c":       "a42bc",
		"$(NONE)":                 "",
		"$(DOLLAR)(PID)":          "$(PID)",
		"$$(PID) $(PID)":          "$$(PID) 42",
		"$(A)":                    "$(B)", // values are expanded already
		"$(unclosed":              "$(unclosed",
		"$ENV(X) plain":           "$ENV(X) plain",
		strings.Repeat("$(NONE:", 100) + strings.Repeat(")", 100): strings.Repeat("$(NONE:", 67) + strings.Repeat(")", 67),
	} {
		if got := c.Expand(text, map[string]string{"PID": "42"}); got != want {
			t.Errorf("Expand(%q) = %q, want %q", text, got, want)
		}
	}
}

// script writes a program that stands in for condor_config_val.
func script(t *testing.T, body string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "tool")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+body), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestLoadWithLateOutput: on a machine with too much to do, the last of the output is read
// seconds after the tool has ended. A process that it left behind stands in for that.
func TestLoadWithLateOutput(t *testing.T) {
	tool := script(t, "(sleep 1.5; printf 'LATE = yes\\n # at: x\\n') &\nprintf 'EARLY = yes\\n # at: x\\n'\n")
	c, err := Load(t.Context(), Options{Tool: tool, Env: os.Environ()})
	if err != nil {
		t.Fatal(err)
	}
	if late := c.String("LATE", ""); late != "yes" {
		t.Errorf("LATE = %q", late)
	}
}

func TestLoad(t *testing.T) {
	// It shows its arguments and environment as knobs.
	tool := script(t, `printf 'ARGS = %s\n # at: x\nSECRET = %s\n # at: x\nCOOKIE = %s\n # at: x\nEXECUTE = %s\n # at: <Environment>\n' \
		"$*" "$CONDOR_INHERIT" "$CONDOR_PRIVATE_SHARED_PORT_COOKIE" "$_CONDOR_EXECUTE"`)
	c, err := Load(context.Background(), Options{Tool: tool, LocalName: "slot_type_1", Env: []string{
		"CONDOR_INHERIT=secret", "CONDOR_PRIVATE_SHARED_PORT_COOKIE=secret", "_CONDOR_EXECUTE=/exec", "PATH=" + os.Getenv("PATH"),
	}})
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, name := range []string{"ARGS", "SECRET", "COOKIE", "EXECUTE"} {
		got[name], _ = c.Lookup(name)
	}
	want := map[string]string{
		"ARGS":   "-subsystem STARTER -local-name slot_type_1 -dump -expanded -verbose",
		"SECRET": "", "COOKIE": "", "EXECUTE": "/exec",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestLoadFailures(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	for name, tt := range map[string]struct {
		ctx  context.Context
		tool string
		want string
	}{
		"complaint": {context.Background(), script(t, "echo 'no such file' >&2; exit 1"), "it says: no such file"},
		"too much":  {context.Background(), script(t, "exec cat /dev/zero"), "printed more than"},
		"garbage":   {context.Background(), script(t, "echo hello"), "is not NAME = value"},
		"cancelled": {ctx, script(t, "exec sleep 60"), "context canceled"},
		"no tool":   {context.Background(), "/no/such/tool", "cannot run /no/such/tool"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Load(tt.ctx, Options{Tool: tt.tool})
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want one with %q", err, tt.want)
			}
		})
	}
}

// TestRealTool runs where HTCondor is installed.
func TestRealTool(t *testing.T) {
	if _, err := exec.LookPath(DefaultTool); err != nil {
		t.Skip("no " + DefaultTool)
	}
	c, err := Load(context.Background(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	if v, ok := c.Lookup("STARTER_LOG"); !ok {
		t.Errorf("STARTER_LOG = %q", v)
	}
}

func FuzzParse(f *testing.F) {
	f.Add(read(f, "25.14.1"))
	f.Add(read(f, "23.9.6"))
	f.Add("A @=end\n   b\n@end\n # at: x\n # raw: $(PID)\n #     $(A:$(PID)\n")
	f.Fuzz(func(t *testing.T, text string) {
		c, err := parse(text, "local", 1)
		if err != nil {
			return
		}
		for _, name := range c.Names() {
			c.Lookup(name)
			c.Bool(name, true)
			c.Int(name, 0)
		}
		c.Sources()
	})
}

func BenchmarkParse(b *testing.B) {
	text := read(b, "25.14.1")
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		if _, err := parse(text, "", 1); err != nil {
			b.Fatal(err)
		}
	}
}
