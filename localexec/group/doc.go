// Package group makes the control group of a payload on a machine with version 2 of control groups (Linux,
// Documentation/admin-guide/cgroup-v2.rst), as the stock starter does (proc_family_direct_cgroup_v2.cpp): NAME.slice has the limits,
// and NAME.scope in it has the processes. The payload's user may divide the slice further; limits, kill and freeze stay root's.
//
// All files are opened below the top of the hierarchy ([os.Root]).
package group
