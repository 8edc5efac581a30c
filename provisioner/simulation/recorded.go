package simulation

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"podstarter/provisioner/resources"
)

// Bounds of a recorded queue.
const (
	maxRecordedBytes   = 64 << 20
	maxRecordedJobs    = 1_000_000
	maxRecordedClasses = 2000
	maxRecordedUsers   = 1000
	maxRecordedDays    = 31
)

// Columns is the first line of a recorded queue.
var Columns = []string{"submit_s", "run_s", "cpus", "memory_mib", "disk_kib", "gpus", "class", "user", "templates"}

// ReadQueue reads a queue from a file of comma-separated values. The first line has
// the names of the columns:
//
//	submit_s    when the job was submitted, in seconds since any moment
//	run_s       how long it ran, in seconds
//	cpus        RequestCpus
//	memory_mib  RequestMemory
//	disk_kib    RequestDisk
//	gpus        RequestGPUs
//	class       its autocluster: any text; jobs with one class have one request
//	user        who submitted it
//	templates   the names of the templates whose slots it matches, separated by
//	            spaces; empty if it matches none
func ReadQueue(from io.Reader) (Queue, error) {
	limited := &io.LimitedReader{R: from, N: maxRecordedBytes + 1}
	lines := csv.NewReader(limited)
	lines.FieldsPerRecord = len(Columns)
	lines.ReuseRecord = true
	head, err := lines.Read()
	if err != nil {
		return Queue{}, fmt.Errorf("reading the queue's first line: %w", err)
	}
	if !slices.Equal(head, Columns) {
		return Queue{}, fmt.Errorf("the queue's first line must be %q", strings.Join(Columns, ","))
	}
	r := recorded{classes: map[string]int{}, users: map[string]string{}}
	for {
		fields, err := lines.Read()
		if limited.N == 0 {
			return Queue{}, fmt.Errorf("the queue has more than %d bytes", maxRecordedBytes)
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return Queue{}, fmt.Errorf("reading the queue: %w", err)
		}
		if err := r.add(fields); err != nil {
			line, _ := lines.FieldPos(0)
			return Queue{}, fmt.Errorf("line %d of the queue: %w", line, err)
		}
	}
	if len(r.queue.Jobs) == 0 {
		return Queue{}, errors.New("the queue has no jobs")
	}
	return r.done()
}

// recorded is a queue while it is read.
type recorded struct {
	queue   Queue
	classes map[string]int
	users   map[string]string // one copy of each name
}

func (r *recorded) add(fields []string) error {
	var n [6]int64
	for i := range n {
		v, err := strconv.ParseInt(fields[i], 10, 64)
		if err != nil || v < 0 || v > math.MaxInt32 {
			return fmt.Errorf("%s is %.40q; a number from 0 to %d is expected", Columns[i], fields[i], math.MaxInt32)
		}
		n[i] = v
	}
	if len(r.queue.Jobs) >= maxRecordedJobs {
		return fmt.Errorf("there are more than %d jobs", maxRecordedJobs)
	}
	request := resources.Amount{CPUs: max(n[2], 1), Memory: n[3], Disk: n[4], GPUs: n[5]}
	templates := strings.Fields(fields[8])
	class, known := r.classes[fields[6]]
	if !known {
		if len(r.queue.Classes) >= maxRecordedClasses {
			return fmt.Errorf("there are more than %d classes", maxRecordedClasses)
		}
		name := strings.Clone(fields[6])
		for i := range templates {
			templates[i] = strings.Clone(templates[i])
		}
		class = r.queue.class(name, request, templates...)
		r.classes[name] = class
	}
	if c := r.queue.Classes[class]; c.Request != request || !slices.Equal(c.Templates, templates) {
		return fmt.Errorf("the class %.40q has another request or other templates than on an earlier line", fields[6])
	}
	user, known := r.users[fields[7]]
	if !known {
		if len(r.users) >= maxRecordedUsers {
			return fmt.Errorf("there are more than %d users", maxRecordedUsers)
		}
		user = strings.Clone(fields[7])
		r.users[user] = user
	}
	r.queue.Jobs = append(r.queue.Jobs, Job{
		Submit: time.Duration(n[0]) * time.Second, Run: time.Duration(max(n[1], 1)) * time.Second, Class: class, User: user,
	})
	return nil
}

// done puts the jobs into order, with the first at the beginning.
func (r *recorded) done() (Queue, error) {
	r.queue.sort()
	first := r.queue.Jobs[0].Submit
	for i := range r.queue.Jobs {
		r.queue.Jobs[i].Submit -= first
		if r.queue.Jobs[i].Submit > maxRecordedDays*day {
			return Queue{}, fmt.Errorf("the queue spans more than %d days", maxRecordedDays)
		}
	}
	return r.queue, nil
}

// Recorded makes a scenario of a queue: it meets the default world, with so many
// plain nodes.
func Recorded(name string, q Queue, nodes int, seed uint64) Scenario {
	length := q.Jobs[len(q.Jobs)-1].Submit + day/4
	w := World{Length: length, Lifetime: day}
	w.addSite("main", nodes, 2)
	return Scenario{Name: name, Queue: q, World: w, Seed: seed}
}
