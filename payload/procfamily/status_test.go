package procfamily

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

// statLine makes a line of /proc/PID/stat.
func statLine(p Process, command string) string {
	fields := make([]string, 52)
	for i := range fields {
		fields[i] = "0"
	}
	set := func(field int, value any) {
		switch v := value.(type) {
		case int:
			fields[field-1] = strconv.Itoa(v)
		case int64:
			fields[field-1] = strconv.FormatInt(v, 10)
		case uint64:
			fields[field-1] = strconv.FormatUint(v, 10)
		}
	}
	set(1, p.PID)
	fields[1], fields[2] = "("+command+")", string(p.State)
	set(4, p.PPID)
	set(14, p.UserTicks)
	set(15, p.SystemTicks)
	set(16, p.WaitedUserTicks)
	set(17, p.WaitedSystemTicks)
	set(20, p.Threads)
	set(22, p.Start)
	set(23, p.VirtualBytes)
	set(24, p.ResidentPages)
	set(42, p.BlockDelayTicks)
	return strings.Join(fields, " ") + "\n"
}

var sample = Process{
	PID: 17, PPID: 3, State: 'S', Threads: 4, Start: 12345, UserTicks: 1, SystemTicks: 2, WaitedUserTicks: 3, WaitedSystemTicks: 4,
	VirtualBytes: 1 << 40, ResidentPages: 99, BlockDelayTicks: 5,
}

func TestParseStat(t *testing.T) {
	for _, command := range []string{"sh", "", "a b", ") S 1 1", "((", "x)\n(y"} {
		got, err := parseStat([]byte(statLine(sample, command)))
		if diff := cmp.Diff(sample, got); err != nil || diff != "" {
			t.Errorf("command %q: %v %s", command, err, diff)
		}
	}
	for _, bad := range []string{"", "17", "17 (sh", "17 (sh) S", "x (sh) S" + strings.Repeat(" 1", 30), "17 (sh) SS" + strings.Repeat(" 1", 30), "17 (sh) S x" + strings.Repeat(" 1", 30), ")("} {
		if p, err := parseStat([]byte(bad)); err == nil {
			t.Errorf("%q gave %+v", bad, p)
		}
	}
}

func TestParseUIDs(t *testing.T) {
	got, err := parseUIDs([]byte("Name:\tUid: 1\nUmask:\t0022\nUid:\t1\t2\t3\t4\nGid:\t5\t6\t7\t8\n"))
	if err != nil || got != [4]int{1, 2, 3, 4} {
		t.Errorf("%v, %v", got, err)
	}
	for _, bad := range []string{"", "Uid:\t1\t2\t3\t4\n", "x\nUid:\t1\t2\t3\n", "x\nUid:\t1\t2\t3\t-4\n", "x\nUid:\t1\t2\t3\t4294967296\n"} {
		if got, err := parseUIDs([]byte(bad)); err == nil {
			t.Errorf("%q gave %v", bad, got)
		}
	}
}

// fakeProc makes a /proc.
func fakeProc(t *testing.T, processes ...Process) string {
	t.Helper()
	root := t.TempDir()
	for _, p := range processes {
		dir := filepath.Join(root, strconv.Itoa(p.PID))
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		var status strings.Builder
		status.WriteString("Name:\tx\nUid:")
		for _, uid := range p.UIDs {
			status.WriteString("\t" + strconv.Itoa(uid))
		}
		status.WriteString("\n")
		for name, text := range map[string]string{"stat": statLine(p, "x"), "status": status.String()} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	// Other directories of /proc, and a process that has just ended.
	for _, dir := range []string{"self", "sys", "99999"} {
		if err := os.Mkdir(filepath.Join(root, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func pids(list []Process) []int {
	var out []int
	for _, p := range list {
		out = append(out, p.PID)
	}
	return out
}

func TestMembers(t *testing.T) {
	user := func(pid, ppid int, state byte, threads int, uids ...int) Process {
		p := Process{PID: pid, PPID: ppid, State: state, Threads: threads}
		copy(p.UIDs[:], uids)
		return p
	}
	proc := fakeProc(t,
		user(1, 0, 'S', 1, 0, 0, 0, 0),
		user(2, 1, 'S', 1, 0, 0, 0, 0),
		user(10, 2, 'S', 1, 7, 7, 7, 7),
		user(11, 10, 'Z', 1, 7, 7, 7, 7), // dead
		user(12, 10, 'Z', 2, 7, 7, 7, 7), // its first thread has ended
		user(13, 1, 'R', 1, 7, 7, 7, 7),  // escaped from process 2
		user(14, 2, 'R', 1, 0, 7, 0, 7),  // root with another effective user for a moment
		user(15, 2, 'R', 1, 0, 0, 7, 0),  // can come back to 7
		user(16, 1, 'R', 1, 8, 8, 8, 8),
		user(20, 21, 'R', 1, 9, 9, 9, 9), // a cycle, from a race
		user(21, 20, 'R', 1, 9, 9, 9, 9),
		user(60, 16, 'R', 1, firstGuard, 0, firstGuard-1, 0),
	)
	tests := map[string]struct {
		family       Family
		members, all []int
	}{
		"of user":          {OfUser(proc, 7), []int{10, 12, 13, 15}, []int{10, 11, 12, 13, 15}},
		"of nobody":        {OfUser(proc, 77), nil, nil},
		"descendants":      {OfDescendants(proc, 2), []int{10, 12, 14, 15}, []int{10, 11, 12, 14, 15}},
		"in a cycle":       {OfDescendants(proc, 20), []int{21}, []int{21}},
		"of no one living": {OfDescendants(proc, 4), nil, nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			members, err := test.family.Members()
			if diff := cmp.Diff(test.members, pids(members)); err != nil || diff != "" {
				t.Errorf("%v %s", err, diff)
			}
			all, err := test.family.All()
			if diff := cmp.Diff(test.all, pids(all)); err != nil || diff != "" {
				t.Errorf("%v %s", err, diff)
			}
		})
	}
	list, err := processIDs(t.Context(), proc)
	if err != nil {
		t.Fatal(err)
	}
	if _, unused, err := OfUser(proc, 7).ofUserAndUnused(t.Context(), list); err != nil || unused != firstGuard-2 {
		t.Errorf("unused user ID %d, %v", unused, err)
	}
}

func TestKillerRefuses(t *testing.T) {
	var none *Killer
	if err := none.signalAll(7, firstGuard, 0); err == nil {
		t.Error("SignalOne worked without root")
	}
	if os.Geteuid() != 0 {
		if _, err := NewKiller(); err == nil {
			t.Error("NewKiller worked without root")
		}
		return
	}
	k, err := NewKiller()
	if err != nil {
		t.Fatal(err)
	}
	defer k.Close()
	if err := k.SignalOne(7, -1, 0); err == nil {
		t.Error("process -1 was signalled")
	}
	for _, uid := range []int{-1, 0, firstGuard} {
		if err := k.signalAll(uid, firstGuard, 0); err == nil {
			t.Errorf("signalled all of user %d", uid)
		}
	}
}

// TestKillerTakesOnPayloadsOnly: a request for another user, or for an invalid process ID,
// never reaches a system call.
func TestKillerTakesOnPayloadsOnly(t *testing.T) {
	k := &Killer{requests: make(chan killRequest)}
	reached := make(chan killRequest, 10)
	go func() {
		for r := range k.requests {
			reached <- r
			r.result <- nil
		}
	}()
	defer k.Close()
	for _, uid := range []int{-1, 0, os.Getuid(), firstGuard} {
		if err := k.signalAll(uid, firstGuard, 0); err == nil {
			t.Errorf("signalled all of user %d", uid)
		}
		if err := k.SignalOne(uid, 100, 0); err == nil {
			t.Errorf("signalled one of user %d", uid)
		}
	}
	const user = 1_990_000_000
	for _, pid := range []int{-100, -1, 0} {
		if err := k.SignalOne(user, pid, 0); err == nil {
			t.Errorf("signalled process %d", pid)
		}
	}
	if len(reached) > 0 {
		t.Errorf("a request reached the system call: %+v", <-reached)
	}
	if err := k.SignalOne(user, 100, 0); err != nil {
		t.Error(err)
	}
	if r := <-reached; r.uid != user || r.pid != 100 || r.guard == user {
		t.Errorf("%+v", r)
	}
}

// TestSignalIsNotForTheNext: a process that has reused the process ID is not signalled,
// whether its start time is later or (after the machine's clock was set) earlier.
func TestSignalIsNotForTheNext(t *testing.T) {
	p, err := readStat("/proc", os.Getpid(), make([]byte, statusSize))
	if err != nil {
		t.Fatal(err)
	}
	if err := SignalProcess("/proc", p, 0); err != nil {
		t.Error(err)
	}
	start := p.Start
	for _, p.Start = range []uint64{start - 1, start + 1} {
		if err := SignalProcess("/proc", p, 0); !errors.Is(err, unix.ESRCH) {
			t.Errorf("%d ticks off: %v", int64(p.Start-start), err)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(statLine(sample, "sh")))
	f.Add([]byte("Name:\tx\nUid:\t1\t2\t3\t4\n"))
	for _, name := range []string{"stat", "status"} {
		if data, err := os.ReadFile("/proc/self/" + name); err == nil {
			f.Add(data)
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if p, err := parseStat(data); err == nil {
			if again, err := parseStat([]byte(statLine(p, "x"))); err != nil || again != p {
				t.Errorf("%+v became %+v, %v", p, again, err)
			}
		}
		if uids, err := parseUIDs(data); err == nil && min(uids[0], uids[1], uids[2], uids[3]) < 0 {
			t.Errorf("%v", uids)
		}
	})
}
