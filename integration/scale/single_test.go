package main

import (
	"path/filepath"
	"strings"
	"testing"
)

func TestSingleIsKept(t *testing.T) {
	s := new(single)
	for i := range singles {
		job := []count{{pilots, "patch", "pods", 1}, {kubelets, "patch", "pods/status", 2}, {apiServer, "get", "leases", 3}}
		if i < 5 {
			job = append(job, count{kubelets, "create", "events", 4})
		}
		s.Jobs = append(s.Jobs, job)
	}
	path := filepath.Join(t.TempDir(), "single.json")
	if err := s.write(path); err != nil {
		t.Fatal(err)
	}
	again, err := readSingle(path)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	again.table(&b)
	for _, want := range []string{"| patch pods | pilot | 1.0 | 1.0 |", "| patch pods/status | kubelet | 2.0 | 2.0 |", "| create events | kubelet | 4.0 | 0.0 |"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("the table lacks %q:\n%s", want, b.String())
		}
	}
	if strings.Contains(b.String(), "leases") {
		t.Errorf("the table has what no job causes:\n%s", b.String())
	}
	s.Jobs = s.Jobs[:3]
	if err := s.write(path); err != nil {
		t.Fatal(err)
	}
	if _, err := readSingle(path); err == nil {
		t.Error("a part of the jobs was taken for all")
	}
}
