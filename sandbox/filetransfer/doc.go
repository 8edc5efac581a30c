// Package filetransfer moves the files of a job over CEDAR streams, as the client of
// a shadow's FileTransfer object: [Transfer.Download] fetches input,
// [Transfer.Upload] returns output (src/condor_utils/file_transfer.cpp; functions
// that comments name are of that file, unless another is named).
//
// An error of a single file does not end a transfer. Both sides carry on, so the stream
// stays in step and the other files are saved. The acknowledgement reports the first
// error, with the text and the codes that the shadow and its users know. An [Error]
// carries them.
package filetransfer
