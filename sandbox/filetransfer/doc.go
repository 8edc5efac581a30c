// Package filetransfer moves the files of a job over CEDAR streams, as the client of
// a shadow's FileTransfer object: [Transfer.Download] fetches input,
// [Transfer.Upload] returns output (src/condor_utils/file_transfer.cpp; functions
// that comments name are of that file, unless another is named).
//
// Errors of single files do not end a transfer. Both sides carry on, so that
// the stream stays in step and what can be saved is saved; the first error is
// told in the acknowledgement, in the words and with the codes that the shadow
// and its users know. An [Error] carries them.
package filetransfer
