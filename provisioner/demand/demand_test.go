package demand

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"podstarter/classads"
)

// The file is what condor_q of HTCondor 25.14.1 printed for a query of this
// package.
func TestReadSchedd(t *testing.T) {
	f, err := os.Open("testdata/groups.ads")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	rows, err := Read(f)
	if err != nil {
		t.Fatal(err)
	}
	type line struct {
		User string
		Jobs int
		IDs  string
	}
	var got []line
	for _, r := range rows {
		got = append(got, line{r.User, r.Jobs, r.IDs})
	}
	want := []line{
		{"alice@x", 1000, "1.0 ... 1.999"},
		{"bob@x", 20, "2.0 ... 3.9"},
		{"bob@x", 2, "7.0 7.1"},
		{"bob@x", 1, "8.0"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	// The schedd adds what Requirements refers to: MY.Bar, and Baz, to which Bar does.
	if v := rows[0].Ad.Eval("Bar", classads.Env{}); v.String() != "true" {
		t.Errorf("Bar is %s, want true", v)
	}
	groups := Merge([]Answer{{Source{Name: "ap1"}, rows}, {Source{Name: "ap2"}, rows[1:2]}})
	var idle []string
	for _, g := range groups {
		for _, p := range g.Parts {
			idle = append(idle, fmt.Sprintf("%d %s %s", p.Idle, p.User, p.Jobs))
		}
	}
	slices.Sort(idle)
	wantIdle := []string{
		"1 bob@x ap1: 8.0",
		"1000 alice@x ap1: 1.0 ... 1.999",
		"2 bob@x ap1: 7.0 7.1",
		"40 bob@x ap1: 2.0 ... 3.9; ap2: 2.0 ... 3.9",
	}
	if diff := cmp.Diff(wantIdle, idle); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	var clusters []string
	for _, g := range groups {
		for _, c := range g.Clusters {
			clusters = append(clusters, c.Schedd+"#"+c.Number)
		}
	}
	slices.Sort(clusters)
	if diff := cmp.Diff([]string{"ap1#1", "ap1#2", "ap1#3", "ap1#7", "ap1#8", "ap2#2", "ap2#3"}, clusters); diff != "" {
		t.Errorf("the clusters: -want +got\n%s", diff)
	}
}

func TestUsersOfOneGroup(t *testing.T) {
	rows, err := Read(strings.NewReader(`RequestCpus = 1
User = "alice@x"
JobCount = 3

RequestCpus = 1
User = "bob@x"
AccountingGroup = "physics.bob"
JobCount = 4
`))
	if err != nil {
		t.Fatal(err)
	}
	groups := Merge([]Answer{{Source{Name: "ap"}, rows}})
	if len(groups) != 1 || groups[0].Idle() != 7 {
		t.Fatalf("%d groups, want one with 7 jobs", len(groups))
	}
	if diff := cmp.Diff([]Part{{"alice@x", "alice@x", 3, "ap: "}, {"physics.bob@x", "bob@x", 4, "ap: "}}, groups[0].Parts); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	if diff := cmp.Diff([]string{"alice@x", "bob@x"}, groups[0].Owners); diff != "" {
		t.Errorf("the owners are not those who have submitted: -want +got\n%s", diff)
	}
}

// Where START refers to the owner, users are groups of their own.
func TestOwnersThatMatchDifferently(t *testing.T) {
	rows, err := Read(strings.NewReader("Owner = \"alice\"\nUser = \"alice@x\"\nJobCount = 3\n\nOwner = \"bob\"\nUser = \"bob@x\"\nJobCount = 4\n"))
	if err != nil {
		t.Fatal(err)
	}
	groups := Merge([]Answer{{Source{Name: "ap"}, rows}})
	if len(groups) != 2 || !groups[0].Ad.Has("User") {
		t.Errorf("%d groups, want two with their users", len(groups))
	}
}

func TestQuery(t *testing.T) {
	filter, err := classads.ParseExpr(`ProjectName isnt undefined && stringListMember("Here", DESIRED_Sites)`)
	if err != nil {
		t.Fatal(err)
	}
	q, err := NewQuery(filter, []string{"owner", "requestcpus"})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"-allusers", "-pool", "cm:9618", "-name", "ap",
		"-constraint", `(` + idle + `) && (ProjectName isnt undefined && stringListMember("Here",DESIRED_Sites))`,
		"-group-by", "-attributes",
		"AccountingGroup,ContainerImage,DESIRED_Sites,DockerImage,FlockTo,JobStatus,JobUniverse,MaxHosts,owner,ProjectName,Rank,RequestCpus,RequestDisk,RequestGPUs,RequestMemory,Requirements,Scheduler,User",
		"-limit", "20000", "-long",
	}
	if diff := cmp.Diff(want, q.Arguments(Target{Pool: "cm:9618", Name: "ap"})); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	if _, err := NewQuery(nil, []string{"a,b"}); err == nil {
		t.Error("a name with a comma is accepted")
	}
}

// What slots refer to is asked for, too, and changes no other query.
func TestQueryWithOthers(t *testing.T) {
	q, err := NewQuery(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	keys := func(q Query) string {
		args := q.Arguments(Target{})
		return args[slices.Index(args, "-attributes")+1]
	}
	before := keys(q)
	if got, want := keys(q.With([]string{"ProjectName", "requestcpus", "a b", ""})), strings.Replace(before, "Rank,", "ProjectName,Rank,", 1); got != want {
		t.Errorf("the keys are %s, want %s", got, want)
	}
	if keys(q) != before {
		t.Error("the query has changed")
	}
}

// One group that cannot be read costs nothing but itself.
func TestBadGroups(t *testing.T) {
	text := "JobCount = 1\nUser = \"a\"\n\nJobCount = )(\n\nJobCount = \"many\"\n\nUser = \"c\"\n\nJobCount = -5\n\nJobCount = 2000000000000\n\nX = \"" + strings.Repeat("x", maxText) + "\"\nJobCount = 3\n\nJobCount = 2\nUser = \"b\"\n"
	rows, err := Read(strings.NewReader(text))
	var users []string
	for _, r := range rows {
		users = append(users, r.User)
	}
	if diff := cmp.Diff([]string{"a", "b"}, users); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	if err == nil || strings.Count(err.Error(), "group of idle jobs") != 6 || errors.Is(err, ErrPartial) {
		t.Errorf("the error does not name the six that cannot be read: %v", err)
	}
	if !errors.Is(err, errHuge) {
		t.Errorf("the group that is too long was kept until it was parsed: %v", err)
	}
}

// A job of the parallel universe takes as many slots as it has nodes.
func TestNodesOfParallelJobs(t *testing.T) {
	for text, want := range map[string]int{
		"JobUniverse = 11\nMaxHosts = 8\nJobCount = 3":                         24,
		"JobUniverse = 11\nJobCount = 3":                                       3,
		"JobUniverse = 11\nMaxHosts = -1\nJobCount = 3":                        3,
		"JobUniverse = 5\nMaxHosts = 8\nJobCount = 3":                          3,
		"JobUniverse = 11\nMaxHosts = 9223372036854775807\nJobCount = 1000000": 65_536_000_000,
		"JobUniverse = 11\nMaxHosts = 99999999\nJobCount = 1099511627776":      maxJobs,
	} {
		rows, err := Read(strings.NewReader("Requirements = true\nUser = \"a@x\"\n" + text + "\n\n"))
		if err != nil || len(rows) != 1 || rows[0].Jobs != want {
			t.Errorf("%s: %+v, %v, want %d", text, rows, err, want)
		}
	}
}

// A job's text cannot end its group and begin another one.
func TestTextThatLooksLikeAnEnd(t *testing.T) {
	text := "X = \"" + strings.Repeat(" ", 3*4096) + "\"\nJobCount = 7\n"
	rows, err := Read(strings.NewReader(text))
	if err != nil || len(rows) != 1 || !rows[0].Ad.Has("X") || rows[0].Jobs != 7 {
		t.Errorf("%d groups are read from one: %v", len(rows), err)
	}
}

func TestTooManyGroups(t *testing.T) {
	rows, err := Read(strings.NewReader(strings.Repeat("JobCount = 1\n\n", MaxGroups+1)))
	if len(rows) != MaxGroups || !errors.Is(err, ErrTooMuch) {
		t.Errorf("%d groups are read, and the error is %v", len(rows), err)
	}
}

// It is said whose groups are too many, also if they are too long to be read.
func TestHeavyUsers(t *testing.T) {
	few := "JobCount = 1\nUser = \"alice@x\"\n\n"
	for name, text := range map[string]string{
		"many":  few + strings.Repeat("JobCount = 1\nUser = \"mallet@x\"\n\n", MaxGroups),
		"large": few + strings.Repeat("JobCount = 1\nRequirements = \""+strings.Repeat("x", 1<<20)+"\"\nUser = \"mallet@x\"\n\n", 65) + few,
	} {
		_, err := Read(strings.NewReader(text))
		var much *TooMuchError
		if !errors.As(err, &much) || !errors.Is(err, ErrPartial) {
			t.Errorf("%s: the error is %.300v", name, err)
			continue
		}
		if diff := cmp.Diff([]string{"mallet@x"}, much.Owners); diff != "" {
			t.Errorf("%s: -want +got\n%s", name, diff)
		}
	}
}

func FuzzRead(f *testing.F) {
	text, err := os.ReadFile("testdata/groups.ads")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(string(text))
	f.Add("JobCount = 1\n\nJobCount = 9223372036854775807\n\n")
	f.Fuzz(func(t *testing.T, text string) {
		rows, _ := Read(strings.NewReader(text))
		for _, r := range rows {
			if r.Jobs < 0 {
				t.Errorf("a group has %d jobs", r.Jobs)
			}
		}
		Merge([]Answer{{Source{Name: "ap"}, rows}})
	})
}

// One user may name as many accounting groups as there are rows, and all of them in
// one group of jobs: that costs no time that others would notice.
func TestManyAccountingGroups(t *testing.T) {
	ad, err := classads.ParseOld("RequestCpus = 1\n")
	if err != nil {
		t.Fatal(err)
	}
	const schedds = 5
	all := make([]Answer, schedds)
	for s := range schedds {
		all[s].Name = fmt.Sprint("ap", s)
		for i := range MaxGroups {
			all[s].Rows = append(all[s].Rows, Row{Ad: ad, User: fmt.Sprintf("group%d.%d.mallet@x", s, i), Owner: fmt.Sprint("owner", i, "@x"), Jobs: 1})
		}
		all[s].Rows = append(all[s].Rows, all[s].Rows[0])
	}
	begin := time.Now()
	groups := Merge(all)
	if took := time.Since(begin); took > 10*time.Second {
		t.Errorf("merging takes %s", took)
	}
	if len(groups) != 1 || len(groups[0].Parts) != schedds*MaxGroups || groups[0].Idle() != schedds*(MaxGroups+1) || len(groups[0].Owners) != MaxGroups {
		t.Errorf("%d groups", len(groups))
	}
}

// Names are kept for each group and each pod, so they are bounded.
func TestLongNames(t *testing.T) {
	long := strings.Repeat("x", maxName+1)
	rows, err := Read(strings.NewReader(fmt.Sprintf(`Requirements = true
User = "%[1]s"
JobCount = 1

Requirements = true
User = "alice@x"
AccountingGroup = "%[1]s"
JobCount = 1

Requirements = true
User = "%[2]s"
JobCount = 2
JobIds = "1.0 ... %[1]s"

`, long, long[1:])))
	if len(rows) != 1 || rows[0].Jobs != 2 || rows[0].Owner != long[1:] || len(rows[0].IDs) > maxName {
		t.Errorf("there are %+v", rows)
	}
	if err == nil || strings.Count(err.Error(), "has 513 bytes, and at most 512 are read") != 2 || len(err.Error()) > 1000 {
		t.Errorf("the error is %v", err)
	}
}

// The run time of jobs is learnt by the name of their schedd and their cluster. One of
// another pool that has the same name must not make this pool's clusters ambiguous.
func TestClustersOfASecondScheddOfTheName(t *testing.T) {
	mine := Row{Ad: classads.NewAd(), User: "a@x", Owner: "a@x", Jobs: 1, IDs: "12.0 ... 13.1"}
	other := Row{Ad: classads.NewAd(), User: "b@y", Owner: "b@y", Jobs: 1, IDs: "12.0"}
	other.Ad.SetInt("RequestCpus", 2)
	for name, c := range map[string]struct {
		guest string
		want  []Cluster
	}{
		"the same":     {"AP", nil},
		"another name": {"guest", []Cluster{{"guest", "12"}}},
	} {
		groups := Merge([]Answer{{Source{Name: c.guest, Pool: "cm.y"}, []Row{other}}, {Source{Name: "ap"}, []Row{mine}}})
		for _, g := range groups {
			want := c.want
			if g.Owners[0] == "a@x" {
				want = []Cluster{{"ap", "12"}, {"ap", "13"}}
			}
			if diff := cmp.Diff(want, g.Clusters); diff != "" {
				t.Errorf("%s: -want +got\n%s", name, diff)
			}
		}
	}
}

// Jobs of another pool's schedd are groups of their own, though they match the same.
func TestGroupsOfAnotherPool(t *testing.T) {
	ad := classads.NewAd()
	ad.SetInt("RequestCpus", 2)
	row := Row{Ad: ad, User: "a@x", Owner: "a@x", Jobs: 1}
	groups := Merge([]Answer{{Source{Name: "ap1"}, []Row{row}}, {Source{Name: "ap2"}, []Row{row}}, {Source{Name: "ap1", Pool: "cm.y"}, []Row{row}}, {Source{Name: "ap1", Pool: "cm.z"}, []Row{row}}})
	idle := map[bool][]int{}
	for _, g := range groups {
		idle[Flocked(g.ID)] = append(idle[Flocked(g.ID)], g.Idle())
	}
	if diff := cmp.Diff(map[bool][]int{false: {2}, true: {1, 1}}, idle); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	// A job is in the group that the round has.
	job, err := ReadJob(strings.NewReader("RequestCpus = 2\nUser = \"a@x\"\nJobCount = 1\nJobStatus = 1\n"), JobID{}, Source{Name: "ap1", Pool: "cm.y"})
	if err != nil || !slices.ContainsFunc(groups, func(g Group) bool { return g.ID == job.Group }) {
		t.Errorf("the job is %+v, %v", job, err)
	}
}
