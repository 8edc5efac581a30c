// Package nonetwork takes the network away from a program that is about to be executed, by a
// filter of system calls (seccomp(2)). A container of a pod cannot have a network namespace of
// its own: making one takes CAP_SYS_ADMIN, or user namespaces, which many nodes do not allow.
//
// A program under the filter can make sockets of the family AF_UNIX only. Every other family
// is refused with EAFNOSUPPORT, which is what a kernel says that was built without it: programs
// and libraries know this answer, while EPERM makes many of them give up. So there is no
// loopback either. io_uring, which makes sockets without socket(2), is refused with ENOSYS, as
// by a kernel without it, and so are the calls about keys: for some, a program of the machine,
// outside the filter, asks a name server. A system call of another architecture (32 bits, x32) kills the
// process with SIGSYS: its numbers mean other calls, and a program that is refused all of them
// could not even end.
//
// The filter holds for all that the program executes or forks, and nothing removes it. It
// does not take away files that are open already, and no filter can tell what is sent over
// a Unix socket: a process outside that works with the program can give it a connection
// (SCM_RIGHTS), or talk for it. The pod's containers share the names of abstract
// Unix sockets.
package nonetwork
