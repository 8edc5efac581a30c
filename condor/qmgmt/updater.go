package qmgmt

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"podstarter/classads"
)

// JobID names a job of a schedd.
type JobID struct{ Cluster, Proc int }

// Moment is when the queue hears of a job; each has attributes of its own.
type Moment int

// The moments (qmgr_job_updater.h: update_t).
const (
	Periodic Moment = iota
	Terminated
	Requeued
	Removed
	Held
)

// common are the attributes that go to the queue at every moment
// (qmgr_job_updater.cpp:QmgrJobUpdater::initJobQueueAttrLists), of those that a starter without a shadow
// can know.
var common = []string{
	"JobStatus", "ImageSize", "ResidentSetSize", "ProportionalSetSizeKb", "MemoryUsage", "DiskUsage", "ScratchDirFileCount",
	"ExecuteDirWasEncrypted", "RemoteSysCpu", "RemoteUserCpu", "TotalSuspensions", "CumulativeSuspensionTime", "CommittedSuspensionTime",
	"LastSuspensionTime", "BlockWriteKbytes", "BlockReadKbytes", "BlockWriteBytes", "BlockReadBytes", "BlockWrites", "BlockReads",
	"NetworkInputMb", "NetworkOutputMb", "CPUInstructions",
	"RecentBlockReadKbytes", "RecentBlockWriteKbytes", "RecentBlockReadBytes", "RecentBlockWriteBytes", "RecentBlockReads", "RecentBlockWrites",
	"StatsLastUpdateTimeStarter", "StatsLifetimeStarter", "RecentStatsLifetimeStarter", "RecentWindowMaxStarter", "RecentStatsTickTimeStarter",
	"IOWait", "NumJobCompletions",
	"PreExitCode", "PreExitSignal", "PreExitBySignal", "PostExitCode", "PostExitSignal", "PostExitBySignal",
}

// own are those of each moment.
var own = map[Moment][]string{
	Held: {
		"HoldReason", "HoldReasonCode", "HoldReasonSubCode", "LastVacateTime", "VacateReason", "VacateReasonCode", "VacateReasonSubCode",
	},
	Removed:  {"RemoveReason"},
	Requeued: {"RequeueReason"},
	Terminated: {
		"ExitReason", "ExitStatus", "JobCoreDumped", "ExitBySignal", "ExitSignal", "ExitCode", "TerminationPending", "JobCoreFileName",
	},
}

// pulled is what the queue tells the starter at each update, since a user may change it while the job runs.
const pulled = "TimerRemove"

const statusHeld = 5

// Updater keeps the queue's ad of a job as the starter's is. It is not safe for concurrent use.
type Updater struct {
	Queue Queue
	ID    JobID

	said map[string]string // what the queue has, by name in lower case
}

// NewUpdater takes ad for what the queue has now.
func NewUpdater(q Queue, id JobID, ad *classads.Ad) *Updater {
	u := &Updater{Queue: q, ID: id, said: make(map[string]string)}
	for name, expr := range ad.All() {
		u.said[strings.ToLower(name)] = asLine.Replace(expr.OldString())
	}
	return u
}

// SetInt sets one attribute at once, in a transaction of its own.
func (u *Updater) SetInt(ctx context.Context, name string, value int64) error {
	c, err := u.Queue.connect(ctx)
	if err != nil {
		return fmt.Errorf("set %s of job %d.%d: %w", name, u.ID.Cluster, u.ID.Proc, err)
	}
	defer c.close()
	if err := c.setAtOnce(u.ID, name, strconv.FormatInt(value, 10)); err != nil {
		return err
	}
	// Stock does the same; the queue accepts a commit when the connection ends in order.
	return c.commit()
}

// Update tells the queue which attributes of ad have changed, as far as they are for this moment, and
// reads into ad what a user may have changed there. All is told, or nothing
// (qmgr_job_updater.cpp:QmgrJobUpdater::updateJob).
func (u *Updater) Update(ctx context.Context, m Moment, ad *classads.Ad) error {
	changes := u.changes(m, ad)
	_, pull := ad.Lookup(pulled)
	if len(changes) == 0 && !pull && m != Held {
		return nil
	}
	fail := func(err error) error {
		return fmt.Errorf("update job %d.%d in the queue: %w", u.ID.Cluster, u.ID.Proc, err)
	}
	c, err := u.Queue.connect(ctx)
	if err != nil {
		return fail(err)
	}
	defer c.close()
	if m == Held {
		// Who holds a job by hand gives a reason, which stays.
		if status, err := c.integer(u.ID, "JobStatus"); err != nil {
			if !isRefused(err) {
				return fail(err)
			}
		} else if status == statusHeld {
			changes = slices.DeleteFunc(changes, func(ch change) bool { return in(own[Held], ch.name) })
		}
	}
	for _, ch := range changes {
		if err := c.set(u.ID, ch.name, ch.expr); err != nil {
			return fail(err)
		}
	}
	var fresh string
	if pull {
		switch fresh, err = c.expression(u.ID, pulled); {
		case isRefused(err) && !Gone(err): // it is not there any more; the rest must be told all the same
			pull = false
		case err != nil:
			return fail(err)
		}
	}
	if err := c.commit(); err != nil {
		return fail(err)
	}
	for _, ch := range changes {
		u.said[strings.ToLower(ch.name)] = ch.expr
	}
	if pull {
		// What makes no sense changes nothing here: the queue has heard of the job, and that counts.
		_ = ad.SetExpr(pulled, fresh)
		u.said[strings.ToLower(pulled)] = fresh
	}
	return nil
}

func isRefused(err error) bool { return errors.As(err, new(*RefusedError)) }

// Gone says whether the error means that the queue does not have the job any more.
func Gone(err error) bool { return errors.Is(err, syscall.ENOENT) }

type change struct{ name, expr string }

// asLine makes a value one that a queue takes: one with line feeds it refuses, and with it the whole update
// (condor_utils/compat_classad.cpp:IsValidAttrValue).
var asLine = strings.NewReplacer("\r\n", " ", "\n", " ", "\r", " ", "\x00", " ")

// changes are what of ad the queue does not have.
func (u *Updater) changes(m Moment, ad *classads.Ad) []change {
	var all []change
	for name, expr := range ad.All() {
		if !in(common, name) && !in(own[m], name) {
			continue
		}
		if text := asLine.Replace(expr.OldString()); u.said[strings.ToLower(name)] != text {
			all = append(all, change{name, text})
		}
	}
	return all
}

func in(names []string, name string) bool {
	return slices.ContainsFunc(names, func(n string) bool { return strings.EqualFold(n, name) })
}
