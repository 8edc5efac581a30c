package visitors

import (
	"context"
	"fmt"
	"sync"

	"podstarter/classads"
	"podstarter/condor/owner"
	"podstarter/condor/version"
	"podstarter/internal/cedar"
)

// maxSessions bounds how many sessions the job's owner can have at once. Each
// use of a tool makes one, and stock keeps them all; here the oldest one is
// removed, which only a tool that comes back to it notices.
const maxSessions = 1000

// owners are the sessions that the job's owner commands this starter on. They
// end with this starter.
type owners struct {
	mu    sync.Mutex
	claim string   // the secret that a schedd must know; "" while no job is known
	owner string   // user@domain
	own   string   // version of the startd
	ids   []string // oldest first
}

// know takes from the job's ad who may have sessions, and who may ask for them.
func (o *owners) know(job *classads.Ad, version string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.claim, o.owner, o.own = job.StringOr("ClaimId", ""), owner.Identity(job), version
}

func (o *owners) secrets() (claim, user, own string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.claim, o.owner, o.own
}

// open makes a session for the owner and puts it into the table.
func (o *owners) open(table *cedar.Sessions, info string) (*cedar.Session, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	session, err := cedar.MintSessionAs(info, o.owner, cedar.Read)
	if err != nil {
		return nil, err
	}
	if err := table.Add(session); err != nil {
		return nil, err
	}
	o.ids = append(o.ids, session.ID)
	if len(o.ids) > maxSessions {
		table.Remove(o.ids[0])
		o.ids = o.ids[1:]
	}
	return session, nil
}

// openSession is CREATE_JOB_OWNER_SEC_SESSION. A peer that does not know
// the secret of the job's claim gets no answer
// (starter.cpp:createJobOwnerSecSession).
func (d *Desk) openSession(_ context.Context, c *cedar.Call) error {
	request, err := owner.ReadSessionRequest(c.Stream)
	if err != nil {
		return err
	}
	claim, user, own := d.owner.secrets()
	if !request.Proves(claim) {
		return fmt.Errorf("make a session for the job's owner: the claim id that %s gives is not that of this job", c.Stream.Peer())
	}
	session, err := d.owner.open(d.Sessions, request.Info)
	if err != nil {
		d.Log.Warn("createJobOwnerSecSession failed", "error", err)
		return owner.RefuseSession(c.Stream, own, "Failed to create security session.")
	}
	release := ""
	if v, err := version.Parse(own); err == nil {
		release = v.String()
	}
	d.Log.Debug("Created security session for job owner (" + user + ").")
	return owner.AnswerSession(c.Stream, session, own, release, d.Address.String())
}

// ownerOnly serves a command only for the job's owner. The level of such
// commands is Read, which many hold (starter.cpp:startSSHD, peek).
func (d *Desk) ownerOnly(serve cedar.Handler) cedar.Handler {
	return func(ctx context.Context, c *cedar.Call) error {
		if _, user, _ := d.owner.secrets(); user == "" || c.User != user {
			return fmt.Errorf("command %d: %q is not the owner of the job", c.Command, c.User)
		}
		return serve(ctx, c)
	}
}
