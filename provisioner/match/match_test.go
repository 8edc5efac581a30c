package match

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"podstarter/classads"
	"podstarter/provisioner/resources"
)

var start = time.Date(2026, 11, 2, 8, 0, 0, 0, time.UTC)

func ad(t testing.TB, text string) *classads.Ad {
	t.Helper()
	a, err := classads.ParseOld(text)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

const slot = `Cpus = 4
Memory = 8192
Disk = 4000000
GPUs = 0
Arch = "X86_64"
START = TARGET.Project isnt "banned"
Requirements = START
`

func TestMatch(t *testing.T) {
	expr, err := classads.ParseExpr("TARGET.RequestCpus * 2.0")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		job  string
		want Result
	}{
		{
			"an ordinary job",
			"Requirements = (TARGET.Memory >= RequestMemory) && (TARGET.Cpus >= RequestCpus)\nRequestCpus = 2\nRequestMemory = 1024\nRequestDisk = 10.5",
			Result{Matches: true, Request: resources.Amount{CPUs: 2, Memory: 1024, Disk: 11}, Rank: 4},
		},
		{
			"requests that are expressions, of the job and of the slot",
			"Requirements = true\nRequestCpus = TARGET.Cpus / 2\nRequestMemory = ifThenElse(MemoryUsage isnt undefined, 2 * MemoryUsage, 512)",
			Result{Matches: true, Request: resources.Amount{CPUs: 2, Memory: 512, Disk: 1}, Rank: 4},
		},
		{
			"requests that make no sense",
			"Requirements = true\nRequestCpus = -5\nRequestMemory = \"much\"\nRequestDisk = 1.0E300",
			Result{Matches: true, Request: resources.Amount{CPUs: 1, Memory: 1, Disk: largest}, Rank: -10},
		},
		{"too much memory", "Requirements = TARGET.Memory >= RequestMemory\nRequestMemory = 9000", Result{Why: whyMine}},
		{"no Requirements", "RequestCpus = 1", Result{Why: whyMine}},
		{"another site", "Requirements = TARGET.Site == \"x\"", Result{Why: whyMine}},
		{"START says no", "Requirements = true\nProject = \"banned\"", Result{Why: whyTheirs}},
		{"a parallel job, and no slots of its scheduler", "Requirements = true\nJobUniverse = 11\nScheduler = \"DedicatedScheduler@ap\"", Result{Why: whyNobody}},
	} {
		t.Run(c.name, func(t *testing.T) {
			rows := New(nil, nil).Update([]Job{{ID: "j", Ad: ad(t, c.job)}}, []Slot{{ID: "s", Ad: ad(t, slot), Rank: expr}})
			if diff := cmp.Diff(c.want, rows[0][0]); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
		})
	}
}

// Slots that are given to a dedicated scheduler are for its jobs of the parallel
// universe, and for others.
func TestDedicatedScheduler(t *testing.T) {
	given := ad(t, slot+"DedicatedScheduler = \"DedicatedScheduler@AP\"\n")
	for job, want := range map[string]bool{
		"JobUniverse = 11\nScheduler = \"DedicatedScheduler@ap\"": true,
		"JobUniverse = 11": true, // it is new in the queue
		"JobUniverse = 11\nScheduler = \"DedicatedScheduler@other\"": false,
		"JobUniverse = 5\nScheduler = \"DedicatedScheduler@other\"":  true,
	} {
		if got := New(nil, nil).Update([]Job{{ID: "j", Ad: ad(t, "Requirements = true\n"+job)}}, []Slot{{ID: "s", Ad: given}})[0][0]; got.Matches != want {
			t.Errorf("%s: %+v", job, got)
		}
	}
}

// Results are kept until the ad of the slot changes, or they are old.
func TestResultsAreKept(t *testing.T) {
	now := start
	m := New(func() time.Time { return now }, nil)
	job := Job{ID: "j", Ad: ad(t, "Requirements = TARGET.Cpus > 1")}
	s := Slot{ID: "1", Ad: ad(t, slot)}
	matches := func() bool { return m.Update([]Job{job}, []Slot{s})[0][0].Matches }
	if !matches() {
		t.Fatal("the job does not match")
	}
	s.Ad = ad(t, "Cpus = 1\nRequirements = true")
	if !matches() {
		t.Error("a slot with a known ID was evaluated again")
	}
	s.ID = "2"
	if matches() {
		t.Error("a slot with another ID was not evaluated")
	}
	s.ID = "1"
	if matches() {
		t.Error("the result of a slot that was gone is still there")
	}
	s.Ad = ad(t, slot)
	now = now.Add(MaxAge + time.Second)
	if !matches() {
		t.Error("an old result was used")
	}
	s.Ad = ad(t, "Cpus = 1\nRequirements = true")
	now = now.Add(-time.Hour)
	if matches() {
		t.Error("a result from a clock that was set back was used")
	}
	if m.Update(nil, []Slot{s}); len(m.jobs) != 0 {
		t.Error("a job that is gone is remembered")
	}
}

// Jobs with slow expressions wait, are evaluated piece by piece, and keep nobody
// else from being matched.
func TestSlowJobs(t *testing.T) {
	m := New(nil, nil)
	clock := start
	m.spent = func() time.Time { clock = clock.Add(time.Millisecond); return clock }
	var slots []Slot
	for i := range 100 {
		slots = append(slots, Slot{ID: fmt.Sprint(i), Ad: ad(t, slot)})
	}
	jobs := []Job{{ID: "slow", Ad: ad(t, "Requirements = true")}}
	known := 0
	for range 20 {
		known = 0
		for _, r := range m.Update(jobs, slots)[0] {
			if r.Why != whyPend {
				known++
			}
		}
		if known == 100 {
			break
		}
	}
	if known != 100 {
		t.Errorf("after 20 updates %d of 100 slots are evaluated", known)
	}
	// Many such jobs use up the time of an update. One that is cheap comes first.
	for i := range 500 {
		id := fmt.Sprint("slow", i)
		jobs = append(jobs, Job{ID: id, Ad: ad(t, "Requirements = true")})
		m.jobs[id] = &memory{results: map[string]Result{}, since: m.now(), cost: time.Second}
	}
	jobs = append(jobs, Job{ID: "cheap", Ad: ad(t, "Requirements = true")})
	rows := m.Update(jobs, slots)
	if !rows[len(rows)-1][0].Matches {
		t.Error("a cheap job was not matched")
	}
	if rows[len(rows)-2][0].Why != whyPend {
		t.Error("the time of an update has no bound")
	}
}

// Thousands of slow expressions of one user, which are all new, do not keep another
// user's from being evaluated in the same update, whatever their order.
func TestSlowUser(t *testing.T) {
	m := New(nil, nil)
	clock := start
	m.spent = func() time.Time { clock = clock.Add(10 * time.Millisecond); return clock }
	slots := []Slot{{ID: "s", Ad: ad(t, slot)}}
	var jobs []Job
	for i := range 3000 {
		jobs = append(jobs, Job{ID: fmt.Sprint(i), Ad: ad(t, "Requirements = true"), Users: []string{"mallet"}})
	}
	jobs = append(jobs, Job{ID: "alice's", Ad: ad(t, "Requirements = true"), Users: []string{"alice"}},
		// Whoever submits the same as another user does not slow that one down.
		Job{ID: "both", Ad: ad(t, "Requirements = true"), Users: []string{"bob", "mallet"}})
	rows := m.Update(jobs, slots)
	for _, row := range rows[3000:] {
		if !row[0].Matches {
			t.Errorf("the job of another user is not matched: %+v", row[0])
		}
	}
	if rows[2999][0].Why != whyPend {
		t.Error("the time of an update has no bound")
	}
}

// An expression that runs for ever is an error after so many steps.
func TestBounds(t *testing.T) {
	deep := "x" + strings.Repeat(" + x", 50)
	text := "Requirements = y1 > 0\nx = 1\n"
	for i := 1; i < 12; i++ {
		text += fmt.Sprintf("y%d = %s\n", i, strings.ReplaceAll(deep, "x", fmt.Sprint("y", i+1)))
	}
	text += "y12 = 1\n"
	job := Job{ID: "j", Ad: ad(t, text)}
	begin := time.Now()
	r := New(nil, nil).Update([]Job{job}, []Slot{{ID: "s", Ad: ad(t, slot)}})[0][0]
	if r.Matches || time.Since(begin) > 5*time.Second {
		t.Errorf("50^11 additions: %+v after %s", r, time.Since(begin))
	}
}

func BenchmarkUpdate(b *testing.B) {
	var jobs []Job
	for i := range 500 {
		jobs = append(jobs, Job{ID: fmt.Sprint(i), Ad: ad(b, fmt.Sprintf("Requirements = (TARGET.Arch == \"X86_64\") && (TARGET.Memory >= RequestMemory) && (TARGET.Cpus >= RequestCpus) && ((TARGET.FileSystemDomain == MY.FileSystemDomain) || (TARGET.HasFileTransfer))\nRequestCpus = 1\nRequestMemory = %d\nRequestDisk = 1000\nFileSystemDomain = \"x\"", 100*i))})
	}
	var slots []Slot
	for i := range 100 {
		slots = append(slots, Slot{ID: fmt.Sprint(i), Ad: ad(b, slot+"HasFileTransfer = true\n")})
	}
	b.ReportAllocs()
	for b.Loop() {
		New(nil, nil).Update(jobs, slots)
	}
}

// Groups of jobs and shapes of pods are matched up to a number of pairs, since what is
// known of each pair takes memory. The others wait, and keep nothing.
func TestMostPairs(t *testing.T) {
	m := New(nil, nil)
	clock := time.Now()
	m.spent = func() time.Time { clock = clock.Add(time.Millisecond); return clock } // so that few are evaluated
	slots := make([]Slot, 1000)
	for i := range slots {
		slots[i] = Slot{ID: strconv.Itoa(i), Ad: ad(t, "Cpus = 1")}
	}
	jobs := make([]Job, maxPairs/len(slots)+500)
	for i := range jobs {
		jobs[i] = Job{ID: strconv.Itoa(i), Ad: slots[0].Ad}
	}
	rows := m.Update(jobs, slots)
	var left [][]Result
	for i, row := range rows {
		if len(row) != len(slots) {
			t.Fatalf("row %d has %d results", i, len(row))
		}
		if row[999].Why == whyMany {
			left = append(left, row)
			if n := len(m.jobs[jobs[i].ID].results); n > 0 {
				t.Errorf("%d results of a job that is left out are kept", n)
			}
		}
	}
	if len(left) != 500 {
		t.Fatalf("%d jobs are left out, want 500", len(left))
	}
	if &left[0][0] != &left[499][0] {
		t.Error("each job that is left out has a row of its own")
	}
}

// A user with more groups than there is memory for keeps those of others from
// being matched in no update.
func TestMostPairsOfOneUser(t *testing.T) {
	m := New(nil, nil)
	slots := make([]Slot, 1000)
	known := map[string]Result{}
	for i := range slots {
		slots[i] = Slot{ID: strconv.Itoa(i), Ad: ad(t, "Cpus = 1")}
		known[slots[i].ID] = Result{Matches: true}
	}
	jobs := make([]Job, maxPairs/len(slots)+500)
	for i := range jobs {
		jobs[i] = Job{ID: strconv.Itoa(i), Ad: slots[0].Ad, Users: []string{"mallet"}}
		m.jobs[jobs[i].ID] = &memory{results: known, since: time.Now()}
	}
	jobs = append(jobs, Job{ID: "new", Ad: slots[0].Ad, Users: []string{"zoe"}})
	rows := m.Update(jobs, slots)
	if why := rows[len(jobs)-1][0].Why; why == whyMany {
		t.Errorf("the other user's jobs: %s", why)
	}
	left := 0
	for _, row := range rows {
		if row[0].Why == whyMany {
			left++
		}
	}
	if left != 501 {
		t.Errorf("%d jobs are left out, want 501", left)
	}
}
