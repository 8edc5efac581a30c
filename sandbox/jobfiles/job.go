package jobfiles

import (
	"fmt"
	"slices"
	"strings"

	"podstarter/classads"
)

// Names that standard output and error have in the sandbox when they are not
// streamed; the shadow knows their real names (src/condor_utils/
// condor_attributes.h: StdoutRemapName, StderrRemapName).
const (
	StdoutName = "_condor_stdout"
	StderrName = "_condor_stderr"
)

const (
	nullFile       = "/dev/null"
	starterLogName = ".starter.log"
)

// Files is what a job ad says about files (src/condor_utils/
// FileTransferControlBlock.cpp).
type Files struct {
	Executable     string // the name it has in the sandbox
	Stdout, Stderr string // what to return of them; empty: nothing
	OriginalOut    string
	OriginalErr    string

	Output        []string // TransferOutput
	HasOutput     bool     // the attribute exists, even if empty: no search for changed files
	Intermediate  []string // TransferIntermediate
	Failure       []string
	Checkpoint    []string
	HasCheckpoint bool

	Destination           string // OutputDestination
	CheckpointDestination string // CheckpointDestination
	GlobalID              string
	OutputRemaps          string
	InputRemaps           string
	PreserveRelative      bool
	Encrypt               []string
	DontEncrypt           []string
	Proxy                 string
	ContainerImage        string
	KeepStarterLog        bool // the user wants .starter.log
	HasStarterLog         bool // there is one

	TooMany string // the attribute that lists more than MaxListed; empty if none does
}

// MaxListed is how many entries a list in the job's ad may have: an entry of two bytes
// in the ad takes more in memory.
const MaxListed = 200_000

// Read reads what a job's ad says about files. It leaves out a list that is too long,
// and names it in TooMany.
func Read(job *classads.Ad) Files {
	tooMany := ""
	text := func(name, separators string) string {
		text, n := job.StringOr(name, ""), 0
		for i := range len(text) {
			if strings.IndexByte(separators, text[i]) >= 0 {
				n++
			}
		}
		if n >= MaxListed {
			tooMany = name
			return ""
		}
		return text
	}
	list := func(name string) []string { return splitList(text(name, ","), ",") }
	j := Files{
		Executable:            BaseName(job.StringOr("Cmd", "")),
		OriginalOut:           job.StringOr("OriginalOut", ""),
		OriginalErr:           job.StringOr("OriginalErr", ""),
		Output:                list("TransferOutput"),
		Intermediate:          list("TransferIntermediate"),
		Failure:               list("FailureFiles"),
		Checkpoint:            splitList(text("TransferCheckpoint", ", \t\r\n"), ", \t\r\n"),
		Destination:           job.StringOr("OutputDestination", ""),
		CheckpointDestination: job.StringOr("CheckpointDestination", ""),
		GlobalID:              job.StringOr("GlobalJobId", ""),
		OutputRemaps:          text("TransferOutputRemaps", ";"),
		InputRemaps:           text("TransferInputRemaps", ";"),
		PreserveRelative:      job.BoolOr("PreserveRelativePaths", false),
		Encrypt:               list("EncryptOutputFiles"),
		DontEncrypt:           list("DontEncryptOutputFiles"),
		Proxy:                 job.StringOr("x509userproxy", ""),
		ContainerImage:        job.StringOr("ContainerImage", ""),
		HasStarterLog:         job.Has("JobStarterDebug"),
	}
	j.TooMany = tooMany
	j.KeepStarterLog = j.HasStarterLog && job.Has("JobStarterLog")
	_, err := job.GetString("TransferOutput")
	j.HasOutput = err == nil
	_, err = job.GetString("TransferCheckpoint")
	j.HasCheckpoint = err == nil
	if name := job.StringOr("Out", nullFile); name != nullFile && !job.BoolOr("StreamOut", false) {
		j.Stdout = name
	}
	if name := job.StringOr("Err", nullFile); name != nullFile && !job.BoolOr("StreamErr", false) {
		j.Stderr = name
	}
	return j
}

// splitList splits at any of the separators, trims blanks, and leaves empty
// items out (src/condor_utils/stl_string_utils.cpp:split).
func splitList(text, separators string) []string {
	var out []string
	for item := range strings.FieldsFuncSeq(text, func(r rune) bool { return strings.ContainsRune(separators, r) }) {
		if item = strings.Trim(item, " \t\r\n"); item != "" {
			out = append(out, item)
		}
	}
	return out
}

// WithStdio appends standard output and error if they are missing.
func (j *Files) WithStdio(names []string) []string {
	for _, name := range []string{j.Stdout, j.Stderr} {
		if name != "" && !slices.Contains(names, name) {
			names = append(slices.Clip(names), name)
		}
	}
	return names
}

// CheckpointBase is the URL below which the files of a checkpoint go; the shadow
// looks for them there (src/condor_shadow.V6.1/remoteresource.cpp:
// modifyFileTransferObject).
func (j *Files) CheckpointBase(number int64) string {
	return fmt.Sprintf("%s/%s/%04d", strings.TrimSuffix(j.CheckpointDestination, "/"), strings.ReplaceAll(j.GlobalID, "#", "_"), number)
}
