package conformance

import (
	"flag"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"podstarter/classads"
	"podstarter/integration/harness"
	"podstarter/integration/turn"
)

var update = flag.Bool("update", false, "write the generated parts of docs/admin/differences.md and docs/developer/differences-by-attribute.md")

func TestDifferencesPages(t *testing.T) {
	rules, err := Rules()
	if err != nil {
		t.Fatal(err)
	}
	if err := Check(Subjects()); err != nil {
		t.Fatal(err)
	}
	for path, generated := range map[string]string{
		"../../docs/admin/differences.md":                  Summary(Reasons),
		"../../docs/developer/differences-by-attribute.md": Tables(Subjects(), rules),
	} {
		old, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		page, err := Replace(string(old), generated)
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		if *update {
			if err := os.WriteFile(path, []byte(page), 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if diff := cmp.Diff(string(old), page); diff != "" {
			t.Errorf("%s does not match the tables; write it with: go -C integration test ./conformance -run TestDifferencesPage -update\n%s", path, diff)
		}
	}
}

// An admin reads the page by reason from its beginning to its end.
func TestDifferencesPageIsShort(t *testing.T) {
	const most = 200 // lines
	page, err := os.ReadFile("../../docs/admin/differences.md")
	if err != nil {
		t.Fatal(err)
	}
	if lines := strings.Count(string(page), "\n"); lines >= most {
		t.Errorf("docs/admin/differences.md has %d lines, want fewer than %d: put reasons together", lines, most)
	}
}

// TestRulesSayWhatTheyExpect: none takes everything, or any two values.
func TestRulesSayWhatTheyExpect(t *testing.T) {
	cases := Cases()
	for name, tt := range map[string]struct {
		rule Rule
		ok   bool
	}{
		"exact":             {Rule{Name: "a", Stock: "1", Ours: "2"}, true},
		"one side":          {Rule{Name: "a", Stock: "*", Ours: Absent}, true},
		"patterns":          {Rule{Name: "a*", Stock: "x*", Ours: "y*"}, true},
		"any values":        {Rule{Name: "a", Stock: "*", Ours: "*"}, false},
		"a whole ad":        {Rule{Name: "*", Stock: "1", Ours: Absent}, false},
		"no value":          {Rule{Name: "a", Stock: "", Ours: "1"}, false},
		"nobody's":          {Rule{Name: "a", Stock: "1", Ours: "2", Cases: []string{"no-such-case"}}, false},
		"no place":          {Rule{Name: "a", Stock: "1", Ours: "2", In: "nowhere"}, false},
		"no such exception": {Rule{Name: "a", Stock: "1", Ours: "2", Except: []string{"no-such-case"}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			tt.rule.Reason = "r"
			if tt.rule.In == "" {
				tt.rule.In = InHistory
			}
			if err := tt.rule.check(cases); (err == nil) != tt.ok {
				t.Errorf("accepted %t, want %t: %v", err == nil, tt.ok, err)
			}
		})
	}
}

func TestReasonsAndRulesBelongTogether(t *testing.T) {
	whole := Reason{Name: "one", Notice: "n", Why: "w", Do: "d"}
	without := func(change func(*Reason)) []Reason {
		r := whole
		change(&r)
		return []Reason{r}
	}
	one := []Rule{{Name: "Attribute", Reason: "one"}}
	for name, tc := range map[string]struct {
		reasons []Reason
		rules   []Rule
		want    string
	}{
		"all is said":                {[]Reason{whole}, one, ""},
		"a rule without a reason":    {[]Reason{whole}, append([]Rule{{Name: "Other"}}, one...), `there is no reason ""`},
		"a rule of an unknown one":   {[]Reason{whole}, append([]Rule{{Name: "Other", Reason: "two"}}, one...), `there is no reason "two"`},
		"a reason without a rule":    {[]Reason{whole}, nil, "no rule has it"},
		"a reason twice":             {[]Reason{whole, whole}, one, "two reasons"},
		"nothing that users notice":  {without(func(r *Reason) { r.Notice = "" }), one, "must have"},
		"no why":                     {without(func(r *Reason) { r.Why = "" }), one, "must have"},
		"nothing to do":              {without(func(r *Reason) { r.Do = "" }), one, "must have"},
		"a name that is no anchor":   {without(func(r *Reason) { r.Name = "One of" }), one, "is an anchor"},
		"a weight that has no title": {without(func(r *Reason) { r.Weight = 99 }), one, "no weight"},
	} {
		err := checkReasons(tc.reasons, tc.rules)
		if (err != nil) != (tc.want != "") || err != nil && !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: error %v, want %q", name, err, tc.want)
		}
	}
}

func TestCasesOnRequestRunInTurn(t *testing.T) {
	subjects := []Subject{
		{Name: "one", Cases: []Case{{Name: "short"}, Case{Name: "long"}.onRequest()}},
		{Name: "two", Cases: []Case{{Name: "longer", OnRequest: true}, {Name: "old", Versions: []string{"23.9+*"}}, {Name: "docker-x", Reference: harness.StockDocker}}},
	}
	names := func(cases []Case) (all []string) {
		for _, c := range cases {
			all = append(all, c.Name)
		}
		return all
	}
	long, longer := turn.Of("long"), turn.Of("longer")
	if long == longer {
		t.Fatal("the cases of this test have the same turn; name one otherwise")
	}
	for _, tc := range []struct {
		pattern           string
		turn              turn.Turn
		ran, inTurn, left []string
		wrong             string
	}{
		{pattern: "", ran: []string{"short"}, left: []string{"long", "longer"}},
		{pattern: "", turn: turn.All, ran: []string{"short", "long", "longer"}, inTurn: []string{"long", "longer"}},
		{pattern: "", turn: long, ran: []string{"short", "long"}, inTurn: []string{"long"}, left: []string{"longer"}},
		{pattern: "one/", turn: longer, ran: []string{"short"}, left: []string{"long"}},
		{pattern: "two/", turn: long, left: []string{"longer"}, wrong: "run them with -all"},
		{pattern: "^longer$", turn: longer, ran: []string{"longer"}, inTurn: []string{"longer"}},
		{pattern: "^old$", turn: turn.All, wrong: "no case's name matches"},
		{pattern: "docker-", turn: turn.All, wrong: "--stock-docker"},
	} {
		p, err := Pick(subjects, Newest, func(s harness.Side) bool { return s == harness.Stock }, regexp.MustCompile(tc.pattern), tc.turn)
		if (err != nil) != (tc.wrong != "") || err != nil && !strings.Contains(err.Error(), tc.wrong) {
			t.Errorf("%q, turn %s: error %v, want %q", tc.pattern, tc.turn, err, tc.wrong)
		}
		for what, lists := range map[string][2][]string{
			"run": {tc.ran, names(p.Cases)}, "run in turn": {tc.inTurn, p.InTurn}, "left out": {tc.left, p.Left},
		} {
			if diff := cmp.Diff(lists[0], lists[1]); diff != "" {
				t.Errorf("%q, turn %s: %s:\n%s", tc.pattern, tc.turn, what, diff)
			}
		}
	}
}

// TestTurnsShareTheCases: each case on request has a turn, and no turn has many more
// than others.
func TestTurnsShareTheCases(t *testing.T) {
	count, all := map[turn.Turn]int{}, 0
	for _, c := range Cases() {
		if c.OnRequest {
			count[turn.Of(c.Name)]++
			all++
		}
	}
	for part := turn.Turn(1); part <= turn.Parts; part++ {
		if n := count[part]; n == 0 || n > 3*all/turn.Parts {
			t.Errorf("turn %s has %d of %d cases", part, n, all)
		}
	}
}

func TestNormalisedHistory(t *testing.T) {
	job := harness.Job{Cluster: 12, Proc: 0, Dir: "/home/bob/jobs/case-plain-stock-1-2", Side: harness.Stock, Owner: "bob"}
	ad, err := classads.ParseOld(`QDate = 1795210936
RemoteUserCpu = 0.0
ExitCode = 7
Iwd = "/home/bob/jobs/case-plain-stock-1-2"
User = "bob@pool.invalid"
Cmd = "/bin/bobbin"
LastRemoteHost = "slot1_1@ep.example.org"
Reason = "Error from slot1_1@ep.example.org: cannot open /var/lib/condor/execute/dir_649/scratch/x and /var/lib/podstarter/scratch/jobs/dir_649/scratch/y at <127.0.0.1:9618?addrs=127.0.0.1-9618&sock=a>"
RecentBlockReadKbytes = 0
InputPluginResultList = { [ DeveloperData = [ TransferLocalMachineName = "glidein-stock" ] ],[ TransferLocalMachineName = "glidein"; TransferFileName = "glidein" ],[ TransferLocalMachineName = "vm" ] }
Requirements = ((TARGET.HasPodStarter =!= true)) && (TARGET.Arch == "X86_64")
`)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"qdate":                 "<integer>",
		"remoteusercpu":         "<real>",
		"exitcode":              "7",
		"iwd":                   `"/home/<user>/jobs/<directory>"`,
		"user":                  `"<user>@pool.invalid"`,
		"cmd":                   `"/bin/bobbin"`,
		"lastremotehost":        "<string>",
		"reason":                `"Error from <slot>: cannot open /var/lib/condor/execute/dir_<pid>/scratch/x and /var/lib/condor/execute/jobs/dir_<pid>/scratch/y at <address>"`,
		"recentblockreadkbytes": "<integer>",
		"inputpluginresultlist": `{ [ DeveloperData = [ TransferLocalMachineName = "<host>" ] ],[ TransferLocalMachineName = "<host>"; TransferFileName = "glidein" ],[ TransferLocalMachineName = "vm" ] }`,
		"requirements":          `(<side>) && (TARGET.Arch == "X86_64")`,
	}
	if diff := cmp.Diff(want, History(ad, job)); diff != "" {
		t.Error(diff)
	}
}

func TestNormalisedEvents(t *testing.T) {
	job := harness.Job{Cluster: 12, Proc: 0, Dir: "/home/jobs/case-plain-stock-1-2"}
	events, err := harness.ParseEvents(`001 (012.000.000) 2026-10-16 12:00:00 Job executing on host: <127.0.0.1:9618?addrs=127.0.0.1-9618>
	SlotName: slot1_1@ep
	CondorScratchDir = "/var/lib/condor/execute/dir_649/scratch"
	Cpus = 1
...
006 (012.000.000) 2026-10-16 12:00:08 Image size of job updated: 1234
	5  -  MemoryUsage of job (MB)
...
006 (012.000.000) 2026-10-16 12:00:18 Image size of job updated: 2345
	6  -  MemoryUsage of job (MB)
...
005 (012.000.000) 2026-10-16 12:00:20 Job terminated.
	(1) Normal termination (return value 7)
		Usr 0 00:00:00, Sys 0 00:00:01  -  Run Remote Usage
	Partitionable Resources :    Usage  Request Allocated
	   Cpus                 :     0.01        1         1
	   Disk (KB)            :       24        1     10240
	   Payloads             :                 1         1
...
`)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"006 Image size of job updated: <n>",
		"006   <n>  -  MemoryUsage of job (MB)",
		"001 Job executing on host: <address>",
		"001   SlotName: <slot>",
		`001   CondorScratchDir = "/var/lib/condor/execute/dir_<pid>/scratch"`,
		"001   Cpus = 1",
		"005 Job terminated.",
		"005   (1) Normal termination (return value 7)",
		"005   \tUsr <duration>, Sys <duration>  -  Run Remote Usage",
		"005   Partitionable Resources : Usage Request Allocated",
		"005   Cpus : <fleeting>",
		"005   Disk (KB)            : <n> <n> <n>",
		"005   Payloads : 1 1",
	}
	if diff := cmp.Diff(want, Events(events, job)); diff != "" {
		t.Error(diff)
	}
}

func TestDifferencesAreFoundAndJudged(t *testing.T) {
	found := append(
		Values("plain", InHistory, map[string]string{"a": "1", "b": "2", "c": "3"}, map[string]string{"a": "1", "b": "4", "d": "5"}),
		Lines("plain", []string{"x", "y", "y"}, []string{"x", "y", "z"})...)
	want := []Difference{
		{Case: "plain", In: InHistory, Name: "b", Stock: "2", Ours: "4"},
		{Case: "plain", In: InHistory, Name: "c", Stock: "3", Ours: Absent},
		{Case: "plain", In: InHistory, Name: "d", Stock: Absent, Ours: "5"},
		{Case: "plain", In: InEvents, Name: "y", Stock: "once", Ours: Absent},
		{Case: "plain", In: InEvents, Name: "z", Stock: Absent, Ours: "once"},
	}
	if diff := cmp.Diff(want, found); diff != "" {
		t.Fatal(diff)
	}
	for name, tc := range map[string]struct {
		stock, ours []string
		want        []string
	}{
		"another order":                {[]string{"x", "y"}, []string{"y", "x"}, []string{"order"}},
		"and a difference":             {[]string{"x", "y", "z"}, []string{"y", "x"}, []string{"z", "order"}},
		"transfers in another order":   {[]string{"040 a", "x", "040 b"}, []string{"040 b", "x", "040 a"}, []string{"order of transfers"}},
		"transfers later":              {[]string{"040 a", "x"}, []string{"x", "040 a"}, nil},
		"a line twice, once elsewhere": {[]string{"x", "y", "x"}, []string{"y", "x"}, []string{"x"}},
	} {
		var got []string
		for _, d := range Lines("plain", tc.stock, tc.ours) {
			got = append(got, d.Name)
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("lines, %s:\n%s", name, diff)
		}
	}
	for _, tc := range []struct {
		pattern, value string
		want           bool
	}{
		{"*", "x", true}, {"*", Absent, false}, {Absent, Absent, true}, {Absent, "x", false}, {"x", Absent, false},
		{"cannot*: gone", "cannot open: gone", true}, {"cannot*: gone", "cannot open", false}, {"a*a", "a", false}, {"-*", Absent, false},
	} {
		if got := valued(tc.pattern, tc.value); got != tc.want {
			t.Errorf("valued(%q, %q) = %t", tc.pattern, tc.value, got)
		}
	}

	rules := []Rule{
		{In: InHistory, Name: "B", Stock: "2", Ours: "*"},
		{In: InHistory + "," + InStartd, Name: "c", Stock: "*", Ours: Absent, Cases: []string{"pl*"}, file: "f"},
		{In: InHistory, Name: "c", Stock: "*", Ours: Absent, Cases: []string{"signal"}},
		{In: InHistory, Name: "no", Stock: "*", Ours: Absent, Except: []string{"plain"}},
		{In: InEvents, Name: "y", Stock: "once", Ours: Absent},
		{In: InEvents, Name: "q", Stock: "*", Ours: "*", file: "f"},
		{In: InSeen, Name: "s", Stock: "*", Ours: "*", file: "f"},
		{In: InEvents, Name: "not always", Stock: "*", Ours: "*", Loose: true},
	}
	unlisted, stale := Judge(rules, Case{Name: "plain"}, found)
	if diff := cmp.Diff([]Difference{want[2], want[4]}, unlisted); diff != "" {
		t.Errorf("unlisted:\n%s", diff)
	}
	if diff := cmp.Diff([]string{"startd, c, in differences/f", "events, q, in differences/f"}, stale); diff != "" {
		t.Errorf("stale:\n%s", diff)
	}
}

func TestWaitsAreCompared(t *testing.T) {
	const grace = 10 * time.Second
	for name, tc := range map[string]struct {
		stock, ours Waited
		want        string // of both; nothing if there is no difference
	}{
		"both at once":             {Waited{time.Second, 0}, Waited{2 * time.Second, 0}, ""},
		"within the ratio":         {Waited{grace, 0}, Waited{3 * grace, 0}, ""},
		"late":                     {Waited{time.Second, 0}, Waited{grace + 4*time.Second, 0}, "in time, late"},
		"stock is late":            {Waited{3 * grace, 0}, Waited{time.Second, 0}, ""},
		"both late, on a busy one": {Waited{5 * grace, 0}, Waited{6 * grace, 0}, ""},
		"as long as expected":      {Waited{5 * time.Second, 5 * time.Second}, Waited{4 * time.Second, 5 * time.Second}, ""},
		"beyond what is expected":  {Waited{5 * time.Second, 5 * time.Second}, Waited{6*time.Second + grace, 5 * time.Second}, "in time, late"},
		"too soon":                 {Waited{5 * time.Second, 5 * time.Second}, Waited{3 * time.Second, 5 * time.Second}, "in time, too soon: before 5s have passed"},
		"both too soon":            {Waited{time.Second, 5 * time.Second}, Waited{time.Second, 5 * time.Second}, "too soon: before 5s have passed, too soon: before 5s have passed"},
	} {
		got := ""
		for _, d := range Waits("plain", map[string]Waited{"step": tc.stock}, map[string]Waited{"step": tc.ours}, grace) {
			got += d.Stock + ", " + d.Ours
		}
		if got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}

// TestWhatIsNotComparedIsExplained: a list of names without a reason would hide
// differences for good.
func TestWhatIsNotComparedIsExplained(t *testing.T) {
	for _, c := range append(Cases(), Case{Name: "every case", Fleeting: fleeting}) {
		for _, chance := range c.Fleeting {
			if chance.Why == "" || len(chance.Names) == 0 {
				t.Errorf("%s leaves out %q without a reason", c.Name, chance.Names)
			}
		}
	}
	// Names without a letter would be everything.
	for _, c := range Cases() {
		if leftToChance(c.Fleeting, "x") {
			t.Errorf("%s leaves out everything", c.Name)
		}
	}
}

// TestEndsOfTransfersAreCompared: no case leaves out the shadow's events about the
// end of a transfer, except cases in which timing decides how much arrives. No rule
// accepts that ours lacks such an event where both sides transfer.
func TestEndsOfTransfersAreCompared(t *testing.T) {
	ends := []string{"TransferInFinished", "TransferOutFinished", "040 Finished transferring input files", "040 Finished transferring output files"}
	byTiming := []string{"removed-going", "vacated-going", "output-breaks", "output-breaks-late"}
	for _, c := range Cases() {
		for _, name := range ends {
			if leftToChance(c.Fleeting, name) && !slices.Contains(byTiming, c.Name) {
				t.Errorf("%s leaves out %q", c.Name, name)
			}
		}
	}
	rules, err := Rules()
	if err != nil {
		t.Fatal(err)
	}
	rules = slices.DeleteFunc(rules, func(r Rule) bool { return !r.For(Newest) })
	for _, tt := range []struct {
		in, name, stock, ours string
		listed                bool
	}{
		{InEvents, "040 Finished transferring output files", "once", Absent, false},
		{InEvents, "040 Finished transferring output files", Absent, "once", true},
		{InHistory, "transferoutfinished", "<integer>", Absent, false},
		{InHistory, "transferoutfinished", Absent, "<integer>", true},
		{InHistory, "transferoutputstats", "[ CedarFilesCountTotal = 1; CedarFilesCountLastRun = 1 ]", "[  ]", false},
		{InHistory, "transferoutputstats", "[  ]", "[ CedarFilesCountTotal = 1; CedarFilesCountLastRun = 1 ]", true},
	} {
		d := Difference{Case: "output-remaps", In: tt.in, Name: tt.name, Stock: tt.stock, Ours: tt.ours}
		unlisted, _ := Judge(rules, Case{Name: d.Case}, []Difference{d})
		if tt.listed != (len(unlisted) == 0) {
			t.Errorf("listed %t: %s", tt.listed, d)
		}
	}
}

// TestReferences: cases with an image are compared with a reference that can run them, under both ways to name one.
func TestReferences(t *testing.T) {
	for _, s := range Subjects() {
		for _, c := range s.Cases {
			want := map[string]harness.Side{"docker": harness.StockDocker, "apptainer": harness.StockApptainer, "image-files": harness.StockApptainer}[s.Name]
			if c.Reference != want {
				t.Errorf("%s is compared with %q, want %q", c.Name, c.Reference, want)
			}
		}
	}
	wrong := []Subject{{Name: "x", Cases: []Case{{Name: "a", Shows: "b", Reference: harness.Ours}}}}
	if err := Check(wrong); err == nil || !strings.Contains(err.Error(), "no reference") {
		t.Errorf("ours is a reference for ours: %v", err)
	}
}
