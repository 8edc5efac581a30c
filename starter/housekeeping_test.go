package main

import (
	"testing"

	"podstarter/internal/cedar"
)

// Orders of an administrator that change nothing here are taken all the same;
// what none but a daemon's own parent may order is refused to others.
func TestHousekeeping(t *testing.T) {
	a := &activation{}
	addr, claim := commandPort(t, a, a.housekeeping)
	parent, err := cedar.MintSession("condor@parent", cedar.Administrator, cedar.Daemon)
	if err != nil {
		t.Fatal(err)
	}
	if err := a.sessions.Add(parent); err != nil {
		t.Fatal(err)
	}
	// served tells whether the server ends the connection in order or tears it
	// down: DC_NOP behind the command on a connection of its own shows that the
	// server lives, and DC_SEC_QUERY whether the command is there for the peer.
	served := func(number int, session *cedar.Session) bool {
		client := cedar.Client{Version: testVersion}
		s, err := client.Start(t.Context(), cedar.Command{Addr: addr, Number: cedar.DCSecQuery, Auth: number, Session: session})
		if err != nil {
			return false
		}
		defer s.Close()
		if err := s.EndMessage(); err != nil {
			return false
		}
		ad, err := s.GetAd()
		return err == nil && ad.BoolOr("AuthorizationSucceeded", false)
	}
	for _, tt := range []struct {
		number  int
		session *cedar.Session
		want    bool
	}{
		{cedar.DCReconfig, parent, true},
		{cedar.DCReconfigFull, parent, true},
		{cedar.DCSetPeacefulShutdown, parent, true},
		{cedar.DCSetForceShutdown, parent, true},
		{cedar.DCNopDaemon, parent, true},
		{cedar.DCQueryInstance, parent, true},
		{cedar.DCReconfig, claim, false},
		{cedar.DCSetForceShutdown, claim, false},
		{cedar.DCFetchLog, parent, false},
		{cedar.DCConfigPersist, parent, false},
		{cedar.DCPurgeLog, parent, false},
	} {
		if got := served(tt.number, tt.session); got != tt.want {
			t.Errorf("command %d of %s: served is %t, want %t", tt.number, tt.session.User, got, tt.want)
		}
	}
	client := cedar.Client{Version: testVersion}
	for _, number := range []int{cedar.DCReconfig, cedar.DCSetPeacefulShutdown} {
		s, err := client.Command(t.Context(), addr, number, parent)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.EndMessage(); err != nil {
			t.Fatal(err)
		}
		s.Close()
	}
}
