// Package sshtojob lets the owner of a running job into it: it is the ssh server
// that condor_ssh_to_job finds at the other end of its connection.
//
// The server is a process of its own (an errand of the starter, with a user ID
// that owns nothing) since it reads what comes from outside and copies bytes for
// hours; if it dies, the job does not notice. It opens no port and knows one
// key, which was made for this visit. Whatever it is asked to run it asks the
// starter for, over a socket, and passes the ends of pipes along; the starter
// has it run beside the payload, in its container and as its user.
//
//	ssh ── condor_ssh_to_job ══ TCP ══ errand ── socket ── starter ── socket ── wrapper
//	                                     ╚═══════ pipes or terminal ══════════ session
//
// A container need not have anything that a visitor needs: sftp and, where there
// is no shell, a small one are this same program, passed to the container as an
// open file.
package sshtojob
