// Package cedar speaks CEDAR, the wire protocol of HTCondor's daemons: framed
// messages over TCP, AES-256-GCM streams, resumed security sessions, the
// shared port, sockets inherited from a parent daemon, and the DaemonCore
// command dialogue in both roles.
//
// The package has only what the peers of an execution point need: no UDP, no
// legacy ciphers, no authentication methods. Every session that a starter uses
// was made by another daemon and is only resumed here.
//
// Layers, lowest first:
//
//	Stream     one connection: packets, messages, scalars, strings, ads, files
//	Session    a key that two daemons already share, and what it permits
//	Client     dials a daemon, hops through its shared port, resumes a session
//	Server     accepts connections, resumes sessions, dispatches commands
//
// All input from a connection, the environment or an address string may be
// hostile. Its size is limited, and a violation is an error. Memory grows with
// the bytes that have arrived, never with a length that a peer announces. Keys
// and claim secrets are never part of an error, a String or a log value.
//
// References in comments, such as reli_sock.cpp:rcv_packet, name files and
// functions of the HTCondor 25.x source below src/condor_io unless another
// directory is given.
package cedar
