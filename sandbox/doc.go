// Package sandbox owns a job's scratch directory and what travels between it
// and the access point.
//
// A [Sandbox] is the directory tree of one activation, laid out, owned and
// removed as HTCondor's starter does. A [Transfer] moves files over CEDAR
// streams: [Transfer.Download] fetches input, [Transfer.Upload] returns
// output, both as the client of a shadow's FileTransfer object
// (src/condor_utils/file_transfer.cpp; names of functions in comments are of
// that file unless another is named).
//
// The payload owns the sandbox and may have put anything there, so every file
// is reached through package beneath: with the payload's filesystem identity,
// never leaving the sandbox, never blocking on a FIFO or a device.
//
// Errors of single files do not end a transfer. Both sides carry on, so that
// the stream stays in step and what can be saved is saved; the first error is
// told in the acknowledgement, in the words and with the codes that the shadow
// and its users know. A [TransferError] carries them.
package sandbox
