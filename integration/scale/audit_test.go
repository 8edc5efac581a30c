package main

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const auditLines = `{"stage":"ResponseComplete","verb":"patch","user":{"username":"system:serviceaccount:podstarter:glidein"},"userAgent":"podstarter","objectRef":{"resource":"pods"},"responseStatus":{"code":200},"requestReceivedTimestamp":"2026-01-01T00:00:01Z","stageTimestamp":"2026-01-01T00:00:01.5Z"}
{"stage":"ResponseComplete","verb":"patch","user":{"username":"system:serviceaccount:podstarter:glidein"},"objectRef":{"resource":"pods"},"responseStatus":{"code":409},"requestReceivedTimestamp":"2026-01-01T00:00:02Z","stageTimestamp":"2026-01-01T00:00:02Z"}
{"stage":"ResponseStarted","verb":"watch","user":{"username":"system:serviceaccount:podstarter:glidein"},"objectRef":{"resource":"pods"},"responseStatus":{"code":200},"requestReceivedTimestamp":"2026-01-01T00:00:03Z","stageTimestamp":"2026-01-01T00:00:03Z"}
{"stage":"ResponseComplete","verb":"watch","user":{"username":"system:serviceaccount:podstarter:glidein"},"objectRef":{"resource":"pods"},"responseStatus":{"code":200},"requestReceivedTimestamp":"2026-01-01T00:00:03Z","stageTimestamp":"2026-01-01T00:00:04Z"}
{"stage":"ResponseComplete","verb":"patch","user":{"username":"system:node:a"},"objectRef":{"resource":"pods","subresource":"status"},"responseStatus":{"code":200},"requestReceivedTimestamp":"2026-01-01T00:00:04Z","stageTimestamp":"2026-01-01T00:00:04Z"}
{"stage":"ResponseComplete","verb":"create","user":{"username":"admin"},"userAgent":"kwok/v0.8.0","objectRef":{"resource":"events"},"responseStatus":{"code":201},"requestReceivedTimestamp":"2026-01-01T00:00:05Z","stageTimestamp":"2026-01-01T00:00:05Z"}
{"stage":"ResponseComplete","verb":"get","user":{"username":"system:serviceaccount:podstarter:kubelets"},"objectRef":{"resource":"pods"},"responseStatus":{"code":200},"requestReceivedTimestamp":"2026-01-01T00:00:06Z","stageTimestamp":"2026-01-01T00:00:06Z"}
{"stage":"ResponseComplete","verb":"get","user":{"username":"admin"},"responseStatus":{"code":200},"requestReceivedTimestamp":"2026-01-01T00:01:00Z","stageTimestamp":"2026-01-01T00:01:00Z"}
{"stage":"Respon`

func TestReadAudit(t *testing.T) {
	from := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	all, err := readAudit(strings.NewReader(auditLines), from, from.Add(30*time.Second))
	if err != nil {
		t.Fatal(err)
	}
	got := map[request][2]int{}
	for kind, c := range all {
		got[kind] = [2]int{c.n, c.failed}
	}
	want := map[request][2]int{
		{pilots, "patch", "pods"}:          {2, 1},
		{pilots, "watch", "pods"}:          {1, 0},
		{kubelets, "patch", "pods/status"}: {1, 0},
		{kubelets, "create", "events"}:     {1, 0},
		{kubelets, "get", "pods"}:          {1, 0},
	}
	if diff := cmp.Diff(want, got, cmp.Comparer(func(a, b request) bool { return a == b })); diff != "" {
		t.Error(diff)
	}
	if took := all[request{pilots, "patch", "pods"}].took[0]; took != 500*time.Millisecond {
		t.Errorf("the patch took %s", took)
	}
	if _, err := readAudit(strings.NewReader("{\n"), from, from); err == nil {
		t.Error("half an object was read")
	}
}
