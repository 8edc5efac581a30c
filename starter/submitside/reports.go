package submitside

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"podstarter/classads"
	"podstarter/condor/job"
	"podstarter/condor/shadow"
)

// Shadow is told how the job fares.
type Shadow interface {
	RegisterJobInfo(ctx context.Context, ad *classads.Ad) error
	ReportError(ctx context.Context, e shadow.RemoteError) error
	EventNotification(ctx context.Context, ad *classads.Ad) (int, error)
	LogGeneric(ctx context.Context, text string) error
}

// Startd is told the same.
type Startd interface {
	Update(ctx context.Context, ad *classads.Ad) error
	FinalUpdate(ctx context.Context, ad *classads.Ad) error
}

// Reports tells shadow and startd how the job fares. Nothing that they are told is
// cut short: half a message would cost the connection. There is a time limit for each.
// All methods may be called by any goroutine; updates go out one at a time.
type Reports struct {
	to ReportsTo

	mu       sync.Mutex
	promised time.Duration // the longest time until the next update; 0: none is planned
	scratch  string        // where the sandbox is; empty until it is made
	held     bool          // the shadow was told to hold the job, and has hung up
	finished bool          // the startd has had the final update
}

// ReportsTo says who is told, and what is added.
type ReportsTo struct {
	Shadow  Shadow
	Startd  Startd
	Half    *Half
	Address fmt.Stringer // of this starter's command endpoint; may change
	// GiveBack takes an update that the shadow did not hear, for the next one.
	GiveBack func(ad *classads.Ad)
	// StartdOnly adds what only the startd is told.
	StartdOnly func(ad *classads.Ad)
	Log        *slog.Logger
}

// NewReports returns reports of a job of which nothing was said yet.
func NewReports(to ReportsTo) *Reports { return &Reports{to: to} }

// Place says where the sandbox is.
func (r *Reports) Place(scratch string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.scratch = scratch
}

// Promise says how long the next update may take to come; 0: none is planned. A
// shadow takes the starter for gone after three times that.
func (r *Reports) Promise(longest time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.promised = longest
}

// Update sends an ad to shadow and startd. err is set only if the shadow is lost: a
// shadow never refuses an update.
func (r *Reports) Update(ctx context.Context, ad *classads.Ad) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	job.PublishInterval(ad, r.promised)
	err := r.to.Shadow.RegisterJobInfo(context.WithoutCancel(ctx), ad)
	if err != nil {
		r.to.GiveBack(ad)
		ad.SetBool("STARTER_DISCONNECTED_FROM_SUBMIT_NODE", true)
	}
	// From the first update on: shadows that come back ask the startd, and tools
	// would hear for seconds that the job has no starter.
	ad.SetString("StarterIpAddr", r.to.Address.String())
	r.toStartd(ctx, ad)
	return IgnoreUnlessLost(err)
}

// Tell is Update without a second try: a shadow that comes back is told the state of
// the job at that time.
func (r *Reports) Tell(ctx context.Context, ad *classads.Ad) {
	if err := r.Update(ctx, ad); err != nil {
		r.to.Log.Warn("The shadow did not hear of an update", "error", err)
	}
}

// TellStartd sends an update that the shadow does not get any more.
func (r *Reports) TellStartd(ctx context.Context, ad *classads.Ad) {
	r.mu.Lock()
	defer r.mu.Unlock()
	job.PublishInterval(ad, 0)
	ad.SetBool("STARTER_DISCONNECTED_FROM_SUBMIT_NODE", true)
	r.toStartd(ctx, ad)
}

// InformStartd sends an update that does not concern the shadow.
func (r *Reports) InformStartd(ctx context.Context, ad *classads.Ad) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.toStartd(ctx, ad)
}

func (r *Reports) toStartd(ctx context.Context, ad *classads.Ad) {
	if r.scratch != "" {
		ad.SetString("CondorScratchDir", r.scratch)
	}
	r.to.StartdOnly(ad)
	if err := r.to.Startd.Update(context.WithoutCancel(ctx), ad); err != nil {
		r.to.Log.Warn("Failed to send an update to the startd", "error", err)
	}
}

// Final sends the startd its last update, once: from then on the startd regards the
// slot as being cleaned up.
func (r *Reports) Final(ctx context.Context, ad *classads.Ad) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.finished {
		return
	}
	r.finished = true
	if err := r.to.Startd.FinalUpdate(context.WithoutCancel(ctx), ad); err != nil {
		r.to.Log.Warn("Failed to send the final update to the startd", "error", err)
	}
}

// Hold tells the shadow to hold the job. The shadow hangs up then, and hears nothing
// any more (jic_shadow.cpp:holdJob). A second call does nothing.
func (r *Reports) Hold(ctx context.Context, why shadow.RemoteError) error {
	if r.Held() {
		return nil
	}
	if err := r.Error(ctx, why); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.held = true
	return nil
}

// Held says whether the shadow was told to hold the job.
func (r *Reports) Held() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.held
}

// Error tells the shadow of an error when it has noted the end of its last transfer.
func (r *Reports) Error(ctx context.Context, e shadow.RemoteError) error {
	r.to.Half.Await(ctx)
	return r.to.Shadow.ReportError(ctx, e)
}

// Event tells the shadow of an event. The shadow may refuse it.
func (r *Reports) Event(ctx context.Context, ad *classads.Ad) error {
	_, err := r.to.Shadow.EventNotification(ctx, ad)
	return err
}

// Note writes a line into the job's event log, behind the end of the last transfer. The
// generic event (008) is one that tools show and do not act upon.
func (r *Reports) Note(ctx context.Context, line string) {
	ctx = context.WithoutCancel(ctx)
	r.to.Half.Await(ctx)
	if err := r.to.Shadow.LogGeneric(ctx, line); err != nil {
		r.to.Log.Warn("The shadow did not write a line into the job's event log", "line", line, "error", err)
	}
}

// IgnoreUnlessLost returns err if the shadow is lost. It ignores refusals of what the
// shadow only had to be told.
func IgnoreUnlessLost(err error) error {
	if errors.Is(err, shadow.ErrLost) {
		return err
	}
	return nil
}
