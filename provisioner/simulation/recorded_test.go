package simulation

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"podstarter/provisioner/resources"
)

func amountOf(cpus, memory, disk int64) resources.Amount {
	return resources.Amount{CPUs: cpus, Memory: memory, Disk: disk}
}

const recordedHead = "submit_s,run_s,cpus,memory_mib,disk_kib,gpus,class,user,templates\n"

func TestReadQueue(t *testing.T) {
	got, err := ReadQueue(strings.NewReader(recordedHead +
		"1000060,30,4,8000,100,0,17,ben,plain\n1000000,600,1,2048,100,0,16,\"ann, of cms\",plain second-plain\n1000010,0,0,1,1,0,none,ann,\n"))
	if err != nil {
		t.Fatal(err)
	}
	want := Queue{
		Classes: []Class{
			{Name: "17", Request: amountOf(4, 8000, 100), Templates: []string{"plain"}},
			{Name: "16", Request: amountOf(1, 2048, 100), Templates: []string{"plain", "second-plain"}},
			{Name: "none", Request: amountOf(1, 1, 1)},
		},
		Jobs: []Job{
			{Run: 10 * time.Minute, Class: 1, User: "ann, of cms"},
			{Submit: 10 * time.Second, Run: time.Second, Class: 2, User: "ann"},
			{Submit: time.Minute, Run: 30 * time.Second, User: "ben"},
		},
	}
	if diff := cmp.Diff(want, got, cmp.Comparer(func(a, b []string) bool { return strings.Join(a, " ") == strings.Join(b, " ") })); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

func TestReadQueueRefuses(t *testing.T) {
	for name, c := range map[string]struct{ text, says string }{
		"nothing":         {"", "first line"},
		"other columns":   {"a,b\n", "first line"},
		"no jobs":         {recordedHead, "no jobs"},
		"a word":          {recordedHead + "1,x,1,1,1,0,a,b,\n", "line 2 of the queue: run_s"},
		"below zero":      {recordedHead + "1,1,-1,1,1,0,a,b,\n", "cpus"},
		"a missing field": {recordedHead + "1,1,1\n", "wrong number of fields"},
		"two requests":    {recordedHead + "1,1,1,1,1,0,a,b,\n1,1,2,1,1,0,a,b,\n", "line 3 of the queue: the class"},
		"years":           {recordedHead + "1,1,1,1,1,0,a,b,\n99999999,1,1,1,1,0,a,b,\n", "more than 31 days"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := ReadQueue(strings.NewReader(c.text)); err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("the error is %v, want one that says %q", err, c.says)
			}
		})
	}
}

func FuzzReadQueue(f *testing.F) {
	f.Add(recordedHead + "1,1,1,1,1,0,a,b,plain\n")
	f.Add(recordedHead + "1,1,1,1,1,0,\"a\nb\",b,\n2,3,4,5,6,7,c,d,plain gpu\n")
	f.Fuzz(func(t *testing.T, text string) {
		q, err := ReadQueue(strings.NewReader(text))
		if err != nil {
			return
		}
		last := time.Duration(0)
		for _, j := range q.Jobs {
			if j.Submit < last || j.Submit > maxRecordedDays*day || j.Run <= 0 || j.Class < 0 || j.Class >= len(q.Classes) {
				t.Fatalf("%+v after %s, with %d classes", j, last, len(q.Classes))
			}
			last = j.Submit
		}
	})
}
