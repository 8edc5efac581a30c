// Package cedar speaks CEDAR, the wire protocol of HTCondor's daemons: framed
// messages over TCP, AES-256-GCM streams, resumed security sessions, the
// shared port, sockets inherited from a parent daemon, and the DaemonCore
// command dialogue in both roles.
//
// The package holds what the peers of an execution point need and no more.
// There is no UDP, no legacy cipher, no authentication method: every session a
// starter meets was made by another daemon and is only resumed here.
//
// Layers, lowest first:
//
//	Stream     one connection: packets, messages, scalars, strings, ads, files
//	Session    a key that two daemons already share, and what it permits
//	Client     dials a daemon, hops through its shared port, resumes a session
//	Server     accepts connections, resumes sessions, dispatches commands
//
// Everything read from a connection, from the environment or from an address
// string is taken to be hostile: it is bounded, and a violation is an error.
// Memory grows with bytes that have arrived, never with a length that a peer
// merely claims. Keys and claim secrets are never part of an error, a String
// or a log value.
//
// References in comments, such as reli_sock.cpp:rcv_packet, name files and
// functions of the HTCondor 25.x source below src/condor_io unless another
// directory is given.
package cedar
