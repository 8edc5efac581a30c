// Package sshtojob gives the owner of a running job access to it: it is the ssh server
// at the other end of condor_ssh_to_job's connection.
//
// The server is a process of its own (an errand of the starter, with a user ID that owns
// nothing), because it parses input from outside and copies bytes for hours; if it dies,
// the job does not notice. It opens no port and accepts one key, which was made for this
// visit. It asks the starter, over a socket, to run commands, and passes the ends of
// pipes along; the starter runs them beside the payload, in its container and as its
// user.
//
//	ssh ── condor_ssh_to_job ══ TCP ══ errand ── socket ── starter ── socket ── wrapper
//	                                     ╚═══════ pipes or terminal ══════════ session
//
// The container need not contain anything for this: the sftp server and a small shell,
// for images without one, are this same program, passed to the container as an open
// file.
package sshtojob
