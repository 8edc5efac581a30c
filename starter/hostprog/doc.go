// Package hostprog runs programs for a job in the pilot container: hooks and
// diagnostics of the site, and the plugins that move URLs.
//
// These programs meet what a job chooses: its files, its ad, links in its sandbox.
// They run as the payload's user, in a group that no payload is in; plugins run with
// less than that. A pilot without root has only its own user, who may read the tokens
// of the pod and of the pool: there the kernel confines the programs to the sandbox
// (Landlock), or they do not run.
//
//	Host     which user runs programs, and the site's plugins that tell about themselves
//	Job      programs that run for one job
//	Program  one run of a program, to its end and that of its process group
package hostprog
