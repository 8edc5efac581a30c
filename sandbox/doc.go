// Package sandbox makes, measures and removes the directories of one run of a
// job, as HTCondor's starter does.
//
// The payload owns what is in them and may have put anything there, so this package
// reaches every file through package beneath: with the payload's filesystem identity,
// never outside of the sandbox, and never blocked by a FIFO or a device.
//
// The packages below it say what travels between a sandbox and the access point:
// jobfiles which files, filetransfer how, manifest what was in a checkpoint.
package sandbox
