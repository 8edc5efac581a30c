package job

import (
	"path"

	"podstarter/classads"
)

// Names under which the standard output and error of a job with file transfer
// are kept in the sandbox; the shadow gives them their own names back
// (condor_utils/condor_attributes.h: StdoutRemapName).
const (
	StdoutFile = "_condor_stdout"
	StderrFile = "_condor_stderr"
)

const nullFile = "/dev/null"

// renameOutputs gives the standard output and error their names in the sandbox,
// but only if StreamOut or StreamErr is set to false.
func renameOutputs(ad *classads.Ad) {
	out, err := ad.StringOr(attrOut, ""), ad.StringOr(attrErr, "")
	kept := func(attr string) bool {
		stream, e := ad.GetBool(attr)
		return e == nil && !stream
	}
	if kept("StreamOut") && out != nullFile {
		ad.SetString(attrOut, StdoutFile)
		ad.SetString("OriginalOut", out)
	}
	if kept("StreamErr") && err != nullFile {
		name := StderrFile
		if out == err {
			name = StdoutFile
		}
		ad.SetString(attrErr, name)
		ad.SetString("OriginalErr", err)
	}
}

// File is one standard file of a job.
type File struct {
	// Path is what to open; /dev/null if the job has no such file.
	Path string
	// Stream: the bytes go through the shadow, which opens Path on the submit
	// side.
	Stream bool
}

// Stdio is the standard files of a job.
type Stdio struct {
	In, Out, Err File
	// Append: output is added to an existing file instead of replacing it, for
	// jobs that checkpoint themselves and are started again.
	Append bool
}

// StdioOf finds the standard files in an ad after Localize
// (condor_starter.V6.1/jic_shadow.cpp:JICShadow::getJobStdFile,
// vanilla_proc.cpp:VanillaProc::outputOpenFlags).
func StdioOf(ad *classads.Ad, p Place) Stdio {
	return Stdio{
		In:  stdFile(ad, attrIn, "StreamIn", p),
		Out: stdFile(ad, attrOut, "StreamOut", p),
		Err: stdFile(ad, attrErr, "StreamErr", p),
		Append: ad.BoolOr("WantCheckpointSignal", false) || ad.BoolOr("WantFTOnCheckpoint", false) ||
			!ad.BoolOr("EraseOutputAndErrorOnRestart", true),
	}
}

func stdFile(ad *classads.Ad, attr, stream string, p Place) File {
	name := ad.StringOr(attr, "")
	if name == "" || name == nullFile {
		return File{Path: nullFile}
	}
	if ad.BoolOr(stream, false) {
		return File{Path: name, Stream: true}
	}
	dir := ad.StringOr(attrIwd, p.Iwd)
	if p.FileTransfer {
		name, dir = basename(name), p.Scratch
	}
	if name == "" || name == "." || name == ".." {
		return File{Path: nullFile}
	}
	if !path.IsAbs(name) {
		name = dir + "/" + name
	}
	return File{Path: name}
}
