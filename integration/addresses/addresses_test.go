//go:build pool

package addresses

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
)

// Addresses of the central manager, by which the other daemons know it.
const (
	manager4 = "192.0.2.1:9618"
	manager6 = "[2001:db8::1]:9618"
)

// Access points, by what addresses their shadows tell.
var accessPoints = map[string]string{
	// A public address of IPv4, then one of IPv6, and one of a private network.
	"both": "PRIVATE_NETWORK_NAME = inside\nPRIVATE_NETWORK_INTERFACE = 10.77.0.1\n",
	// That of IPv6 comes first.
	"sixfirst": "ADVERTISE_IPV4_FIRST = False\n",
	// Only a private one of IPv4, and a public one of IPv6.
	"mixed": "NETWORK_INTERFACE = 10.77.0.1, 2001:db8::1\n",
	"six":   "ENABLE_IPV4 = False\nCOLLECTOR_HOST = " + manager6 + "\n",
	// An address at which nobody is, and a broker.
	"broker": "CCB_ADDRESS = $(COLLECTOR_HOST)\nTCP_FORWARDING_HOST = 192.0.2.99\nPRIVATE_NETWORK_NAME = broker\nPRIVATE_NETWORK_INTERFACE = 10.77.0.1\n",
}

// A row is an execution point with settings, and a job there.
type row struct {
	name string
	at   string // the access point
	has  string // addresses that the execution point has: 4, 6, and p for that of a private network
	// knobs are lines of its configuration.
	knobs string
	// from is the address, 4, 6 or p, from which the starter calls the shadow for files.
	from string
	// told is the address that the starter tells, without what differs each time.
	told string
	// visited is the address by which a tool reaches the starter; visit are the tool's settings, "-" for no visit.
	visited, visit string
	// lost is for starters that do not reach the shadow, so that the job gets no files and does not begin.
	lost bool
	// ours is what differs under our starter on purpose.
	ours difference
}

type difference struct{ from, told, visited string }

// TestAddresses: the stock starter and ours take the same address of several that a shadow has, from the same address of their own, and
// tell the same address of theirs, at which tools reach them.
func TestAddresses(t *testing.T) {
	w := newPool(t, accessPoints)
	turns := make(chan struct{}, 4)
	for i, r := range rows {
		for _, side := range []string{"stock", "ours"} {
			t.Run(r.name+"/"+side, func(t *testing.T) {
				t.Parallel()
				turns <- struct{}{}
				defer func() { <-turns }()
				ours := side == "ours"
				got := w.run(t, fmt.Sprintf("ep%d%s", i, side), r, ours)
				if diff := gocmp.Diff(r.want(ours), got); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
			})
		}
	}
}

// newPool makes a world with a central manager and access points.
func newPool(t *testing.T, accessPoints map[string]string) *world {
	t.Helper()
	w := newWorld(t)
	w.daemons(t, "manager", "", "DAEMON_LIST = MASTER, COLLECTOR, NEGOTIATOR\nCCB_OUTBOUND_PROXY = True\nSHARED_PORT_PORT = 9618\nCOLLECTOR_HOST = "+manager4)
	for name, config := range accessPoints {
		w.daemons(t, name, "", "DAEMON_LIST = MASTER, SCHEDD\nCOLLECTOR_HOST = "+manager4+"\nSCHEDD_NAME = "+name+"@\nSHADOW_DEBUG = D_COMMAND\n"+config)
	}
	await(t, "the access points", func() bool {
		out, _ := w.as(t.Context(), "manager", "", "condor_status", "-schedd", "-af", "Name", "MyAddress")
		return strings.Count(out, "@ <") == len(accessPoints) && (accessPoints["broker"] == "" || strings.Contains(out, "CCBID"))
	})
	return w
}

// A result is what is seen of a row under a starter.
type result struct{ From, Told, Visited string }

func (r row) want(ours bool) result {
	if r.lost {
		return result{}
	}
	want := result{From: r.from, Told: cmp.Or(r.told, sharedBoth), Visited: cmp.Or(r.visited, "4")}
	if r.visit == "-" {
		want.Told, want.Visited = "", ""
	}
	if !ours {
		return want
	}
	for _, of := range []struct{ to, by *string }{{&want.From, &r.ours.from}, {&want.Told, &r.ours.told}, {&want.Visited, &r.ours.visited}} {
		if *of.by != "" {
			*of.to = *of.by
		}
	}
	return want
}

// run runs a job at an execution point of its own.
func (w *world) run(t *testing.T, name string, r row, ours bool) result {
	t.Helper()
	number := w.executionPoint(t, name, r.has, r.knobs, ours)
	defer func() { _, _ = w.as(t.Context(), name, name, "condor_off", "-master", "-fast") }()
	job := w.submit(t, r.at, name, at(name))
	if r.lost {
		w.lost(t, r.at, name, job)
		return result{}
	}
	w.running(t, r.at, name)
	var got result
	if r.visit != "-" {
		got.Told, got.Visited = w.visit(t, r, job, number)
	}
	w.goOn(t, r.at, name)
	w.ended(t, r.at, name)
	got.From = w.from(t, r.at, name, job, number)
	if t.Failed() {
		t.Logf("the starter's log:\n%s", w.starterLog(name))
	}
	return got
}

// executionPoint starts one, in a network namespace of its own, and returns its number.
func (w *world) executionPoint(t *testing.T, name, has, knobs string, ours bool) int {
	t.Helper()
	number := w.network(t, name, has)
	manager, starter := manager4, stockStarter
	if !strings.Contains(has, "4") || strings.Contains(knobs, "ENABLE_IPV4 = False") {
		manager = manager6
	}
	if ours {
		starter = ourStarter
	}
	w.daemons(t, name, name, strings.Join([]string{
		"DAEMON_LIST = MASTER, STARTD", "COLLECTOR_HOST = " + manager, "STARTD_NAME = " + name, "NETWORK_HOSTNAME = " + name + ".example.net", "PRIVATE_NETWORK_NAME = " + name,
		"NUM_CPUS = 1", "STARTER_INITIAL_UPDATE_INTERVAL = 1", "STARTER = " + starter, "POD_STARTER_BACKEND = local", knobs,
	}, "\n"))
	return number
}

var sub = `executable = $JOB/job.sh
transfer_input_files = $JOB/input
should_transfer_files = YES
when_to_transfer_output = ON_EXIT
initialdir = $JOB
output = out
error = err
log = log
request_memory = 16
queue
`

// at is a submit command for jobs at an execution point.
func at(ep string) string { return `requirements = regexp("@` + ep + `@", TARGET.Name)` }

// submit submits a job, which is called after its execution point, with more commands; it ends when a file tells it to.
func (w *world) submit(t *testing.T, at, ep string, more ...string) string {
	t.Helper()
	dir := filepath.Join(w.site, at, ep)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	inside := "/site/" + at + "/" + ep
	for file, text := range map[string]string{
		"input":  "input came\n",
		"job.sh": "#!/bin/sh\ncat input\n>" + inside + "/began\nwhile [ ! -e " + inside + "/go ]; do sleep 0.1; done\necho made >result\nexit 5\n",
		"sub":    strings.Join(append(more, strings.NewReplacer("$JOB", inside).Replace(sub)), "\n"),
	} {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := w.inRoot(t.Context(), "", "chown", "-R", "tester:", inside); err != nil {
		t.Fatal(err)
	}
	out, err := w.as(t.Context(), at, "", "condor_submit", "-terse", inside+"/sub")
	cluster, _, found := strings.Cut(out, ".")
	if err != nil || !found {
		t.Fatalf("submit a job: %v\n%s", err, out)
	}
	return strings.TrimSpace(cluster)
}

// goesBack reports whether a job there may go back to the queue and begin again: on a machine with too much to do, connections of the stock
// starter time out after 20 s, and it calls a shadow once.
func goesBack(ep string) bool { return strings.HasSuffix(ep, "stock") }

func (w *world) running(t *testing.T, at, ep string) {
	t.Helper()
	await(t, "the job to run", func() bool {
		log := w.read(at, ep, "log")
		if !goesBack(ep) && strings.Contains(log, "\n004 ") || strings.Contains(log, "\n012 ") || strings.Contains(log, "\n007 ") {
			t.Fatalf("the job does not run:\n%s\n%s", log, w.starterLog(ep))
		}
		_, err := os.Stat(filepath.Join(w.site, at, ep, "began"))
		return strings.Contains(log, "\n001 ") && err == nil
	})
}

// lost waits until a starter has found out that it does not reach the shadow. The stock starter ends then; ours says so and tries on.
func (w *world) lost(t *testing.T, at, ep, job string) {
	t.Helper()
	await(t, "a starter that does not reach the shadow", func() bool {
		return strings.Contains(w.read(at, ep, "log"), "Could not initiate file transfer") || strings.Contains(w.starterLog(ep), "out of reach")
	})
	if log := w.read(at, ep, "log"); strings.Contains(log, "\n001 ") {
		t.Errorf("the job has begun:\n%s", log)
	}
	if out, err := w.as(t.Context(), at, "", "condor_rm", job); err != nil {
		t.Errorf("remove the job: %v\n%s", err, out)
	}
}

func (w *world) goOn(t *testing.T, at, ep string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(w.site, at, ep, "go"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
}

func (w *world) ended(t *testing.T, at, ep string) {
	t.Helper()
	ends := regexp.MustCompile(`\n(004|005|007|012|022) `)
	if goesBack(ep) {
		ends = regexp.MustCompile(`\n(005|012) `)
	}
	await(t, "the end of the job", func() bool { return ends.MatchString(w.read(at, ep, "log")) })
	if log := w.read(at, ep, "log"); !strings.Contains(log, "return value 5") || w.read(at, ep, "result") == "" || w.read(at, ep, "out") != "input came\n" {
		t.Errorf("the job did not end as it should:\n%s\n%s", log, w.starterLog(ep))
	}
}

// starterLog is the log of the starter of a job that ran there.
func (w *world) starterLog(ep string) string { return w.read(ep, "log", "StarterLog.slot1_1") }

// transfer is a line of a shadow's log when it is called for files.
var transfer = regexp.MustCompile(`(?m)\((\d+)\.0\).*\(FILETRANS_(?:UPLOAD|DOWNLOAD)\) from \S+ <(\S+):\d+>`)

// from names the addresses from which the shadow of a job was called for files.
func (w *world) from(t *testing.T, at, ep, job string, number int) string {
	t.Helper()
	var found []string
	calls := 0
	for _, m := range transfer.FindAllStringSubmatch(w.read(at, "log", "ShadowLog"), -1) {
		if m[1] != job {
			continue
		}
		calls++
		if is := named(m[2], number); !slices.Contains(found, is) {
			found = append(found, is)
		}
	}
	if calls < 2 || calls > 2 && !strings.Contains(w.read(at, ep, "log"), "\n004 ") {
		t.Errorf("the shadow of job %s was called %d times for files, want 2", job, calls)
	}
	return strings.Join(found, ", ")
}

// named names the address of an execution point, or of the broker.
func named(address string, number int) string {
	switch address {
	case fmt.Sprintf("192.0.2.%d", number):
		return "4"
	case fmt.Sprintf("10.77.0.%d", number):
		return "p"
	case fmt.Sprintf("[2001:db8::%d]", number):
		return "6"
	case "192.0.2.1", "[2001:db8::1]":
		return "broker"
	}
	return address
}

// What a tool says of the starter that it visits.
var (
	starterTold = regexp.MustCompile(`Daemon client \(starter\) address determined: .* addr: "(<[^"]*>)"`)
	starterPeer = regexp.MustCompile(`CONNECT bound to \S+ fd=\d+ peer=<(\S+):\d+>`)
)

// visit has a tool look at the job's output: which address the starter has told, and by which the tool reached it.
func (w *world) visit(t *testing.T, r row, job string, number int) (told, by string) {
	t.Helper()
	// The schedd knows the starter's address when the shadow has told it.
	args := []string{"env", "_CONDOR_TOOL_DEBUG=D_HOSTNAME D_NETWORK D_COMMAND"}
	args = append(append(args, strings.Fields(r.visit)...), "timeout", "60", "condor_tail", "-debug", job)
	out, err := w.as(t.Context(), r.at, "", args...)
	if m := starterTold.FindStringSubmatch(out); m != nil {
		told = shape(m[1], number)
	}
	if err != nil || !strings.Contains(out, "\ninput came\n") {
		return told, fmt.Sprintf("failed: %v", err)
	}
	_, peer, _ := strings.Cut(out, "DCStarter::peek")
	if m := starterPeer.FindStringSubmatch(peer); m != nil {
		return told, named(m[1], number)
	}
	return told, "nobody"
}

// shape is what of an address does not differ from run to run.
func shape(address string, number int) string {
	for _, part := range []struct{ of, by string }{
		{`CCBID=[^&>]*`, "CCBID"}, {`sock=(slot1_1_\w+|starter_\w+)`, "sock"}, {`alias=ep\w+\.example\.net`, "alias"}, {`PrivNet=ep\w+`, "PrivNet"},
		{fmt.Sprintf(`192\.0\.2\.%d\b`, number), "4"}, {fmt.Sprintf(`10\.77\.0\.%d\b`, number), "p"}, {fmt.Sprintf(`\[2001[:-]db8[:-][:-]%d\]`, number), "6"}, {`192\.0\.2\.98\b`, "other"}, {`(other|[46p])[:-]\d+`, "$1"},
		{`&noUDP|noUDP&`, ""}, {`%3c`, "("}, {`%3e`, ")"},
	} {
		address = regexp.MustCompile(part.of).ReplaceAllString(address, part.by)
	}
	return strings.Trim(address, "<>")
}
