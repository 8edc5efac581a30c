package submitside

import (
	"log/slog"

	"podstarter/condor/ccb"
	"podstarter/condor/startd"
	"podstarter/internal/cedar"
)

// Calls starts commands at the daemons around this starter, whose logs then show its name.
type Calls struct {
	Address *startd.Address // own command address, StarterIpAddr
	Network cedar.Network   // which addresses of others can be used
	Relay   bool            // CCB_CLIENT_STREAMING
	Desk    *ccb.Desk       // where the shadow arrives if it takes no connections
	Log     *slog.Logger
}

// NewCalls returns calls as the configuration wants them.
func NewCalls(address *startd.Address, k startd.Knobs, log *slog.Logger) Calls {
	relay, err := k.Bool("CCB_CLIENT_STREAMING", true)
	return Calls{Address: address, Network: startd.Network(k), Relay: relay || err != nil, Desk: &ccb.Desk{Log: log}, Log: log}
}

// Startd returns a client for calls to the startd, which is in the same pod.
func (c *Calls) Startd(version string) *cedar.Client {
	return &cedar.Client{Version: version, Own: c.Address.String(), Name: "STARTER", Network: c.Network}
}

// Shadow returns a client for calls to the shadow, whose access point may be behind a broker (CCB).
func (c *Calls) Shadow(version string) *cedar.Client {
	client := c.Startd(version)
	caller := ccb.Caller{Desk: c.Desk, Broker: *client, Relay: c.Relay, Log: c.Log}
	client.Reverse = caller.Reverse
	return client
}
