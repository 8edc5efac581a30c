// Package ccb reaches daemons that take no connections, through their connection broker
// (CCB): the broker, a collector, has the daemon connect to this process. What the daemon
// then sees is an ordinary connection of a client, so all security is that of the command
// that follows; the broker is trusted with nothing (ccb/ccb_client.cpp).
package ccb
