// Package payload is the contract between the starter and the wrapper
// (condor_pod_wrapper), and the starter's side of it.
//
// The wrapper is the main process of a payload container. It listens on a Unix stream
// socket in a control directory that only container-root can enter; the starter connects.
// One connection is one activation: the wrapper runs at most one job for it, and when the
// connection ends for any reason, it kills every process of the payload and waits for the
// next.
//
// It is also the contract between the starter and the backends that provide payload
// containers: [Backend], [Lease], [Container] and [Wrapper].
//
// docs/developer/protocol.md is the normative description of the socket protocol and of the
// control directory. This package imports the standard library and golang.org/x/sys only,
// since the wrapper, which must stay small, imports it.
package payload
