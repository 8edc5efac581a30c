package enter

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestFindUser(t *testing.T) {
	passwd := "root:x:0:0:root:/root:/bin/bash\nalice:x:1000:1001::/home/alice:/bin/sh\nbroken:x\nbad:x:no:1::/:/bin/sh\n"
	got, err := findUser(passwd, "alice")
	want := user{name: "alice", home: "/home/alice", shell: "/bin/sh", uid: 1000, gid: 1001}
	if err != nil || got != want {
		t.Errorf("findUser = %+v, %v", got, err)
	}
	for _, name := range []string{"nobody", "broken", "bad", "alic"} {
		if _, err := findUser(passwd, name); err == nil {
			t.Errorf("no error for %s", name)
		}
	}
}

// bundle makes what containerd leaves for a container of a pod.
func TestParseCredential(t *testing.T) {
	got, err := parseCredential("Name:\tcondor_master\nUid:\t1000\t1001\t1001\t1001\nGid:\t1002\t1002\t1002\t1002\nGroups:\t1000 10000 \n")
	want := &syscall.Credential{Uid: 1000, Gid: 1002, Groups: []uint32{1000, 10000}}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v\n%s", err, diff)
	}
	for _, status := range []string{"", "Uid:\t1\n", "Uid:\tx\nGid:\t1\n"} {
		if _, err := parseCredential(status); err == nil {
			t.Errorf("%q: want an error", status)
		}
	}
}

func bundle(t *testing.T, root, id, kind, pod, name string, pid int, age time.Duration) {
	t.Helper()
	dir := filepath.Join(root, "io.containerd.runtime.v2.task", "k8s.io", id)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	config := fmt.Sprintf(`{"process":{"env":["A=1"]},"annotations":{%q:%q,%q:%q,%q:%q,%q:"ns"}}`,
		kindAnnotation, kind, podAnnotation, pod, nameAnnotation, name, namespaceAnnotation)
	path := filepath.Join(dir, "config.json")
	if err := os.WriteFile(path, []byte(config), 0o644); err != nil {
		t.Fatal(err)
	}
	when := time.Now().Add(-age)
	if err := os.Chtimes(path, when, when); err != nil {
		t.Fatal(err)
	}
	if pid == 0 {
		return
	}
	if err := os.WriteFile(filepath.Join(dir, "init.pid"), []byte(strconv.Itoa(pid)), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestFind(t *testing.T) {
	root := t.TempDir()
	self := os.Getpid()
	bundle(t, root, "old", "container", "pod", "c", self, time.Hour)
	bundle(t, root, "new", "container", "pod", "c", self, time.Minute)
	bundle(t, root, "starting", "container", "pod", "c", 0, 0)
	bundle(t, root, "gone", "container", "pod", "c", 1<<30, 0)
	bundle(t, root, "pause", "sandbox", "pod", "", self, 0)
	bundle(t, root, "neighbour", "container", "pod2", "c", self, 0)
	c, err := Find(root, "ns", "pod", "c")
	if err != nil {
		t.Fatal(err)
	}
	if c.ID != "new" || c.PID != self || !cmp.Equal(c.Env, []string{"A=1"}) {
		t.Errorf("found %+v", c)
	}
	for _, absent := range [][3]string{{"ns", "pod", "d"}, {"other", "pod", "c"}} {
		if _, err := Find(root, absent[0], absent[1], absent[2]); err == nil {
			t.Errorf("%v is found", absent)
		}
	}
}
