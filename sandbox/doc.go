// Package sandbox makes, measures and removes the directories of one run of a
// job, as HTCondor's starter does.
//
// The payload owns what is in them and may have put anything there, so every file
// is reached through package beneath: with the payload's filesystem identity,
// never leaving the sandbox, never blocking on a FIFO or a device.
//
// The packages below it say what travels between a sandbox and the access point:
// jobfiles which files, filetransfer how, manifest what was in a checkpoint.
package sandbox
