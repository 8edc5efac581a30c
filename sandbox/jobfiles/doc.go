// Package jobfiles says which files of a job travel between its sandbox and the
// access point: what the job's ad lists ([Files]), whether anything is returned at
// the end of a run ([Choose]), and which files of a sandbox those are, in the order
// in which they are sent ([Plan]).
//
// It follows HTCondor's FileTransfer object: functions that comments name are of
// src/condor_utils/file_transfer.cpp, unless another file is named.
package jobfiles
