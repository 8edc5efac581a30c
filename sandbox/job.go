package sandbox

import (
	"fmt"
	"slices"
	"strings"
	"syscall"

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
	historicExec   = "condor_exec.exe" // what old shadows call the executable
	starterLogName = ".starter.log"
)

// jobFiles is what a job ad says about files (src/condor_utils/
// FileTransferControlBlock.cpp).
type jobFiles struct {
	executable     string // the name it has in the sandbox
	stdout, stderr string // what to return of them; empty: nothing
	originalOut    string
	originalErr    string

	output        []string // TransferOutput
	hasOutput     bool     // it exists, if only empty: no search for changed files
	intermediate  []string // TransferIntermediate
	failure       []string
	checkpoint    []string
	hasCheckpoint bool

	destination      string // OutputDestination
	checkpointTo     string // CheckpointDestination
	globalID         string
	outputRemaps     string
	inputRemaps      string
	preserveRelative bool
	encrypt          []string
	dontEncrypt      []string
	proxy            string
	containerImage   string
	keepStarterLog   bool // the user wants .starter.log
	hasStarterLog    bool // there is one

	tooMany string // the attribute that lists more than mostListed; empty if none does
}

// mostListed is how many entries a list of the job's may have: each takes more
// memory than the two bytes that it may take in the job's ad.
const mostListed = 200_000

func readJobFiles(job *classads.Ad) jobFiles {
	tooMany := ""
	text := func(name, separators string) string {
		text, n := job.StringOr(name, ""), 0
		for i := range len(text) {
			if strings.IndexByte(separators, text[i]) >= 0 {
				n++
			}
		}
		if n >= mostListed {
			tooMany = name
			return ""
		}
		return text
	}
	list := func(name string) []string { return splitList(text(name, ","), ",") }
	j := jobFiles{
		executable:       baseName(job.StringOr("Cmd", "")),
		originalOut:      job.StringOr("OriginalOut", ""),
		originalErr:      job.StringOr("OriginalErr", ""),
		output:           list("TransferOutput"),
		intermediate:     list("TransferIntermediate"),
		failure:          list("FailureFiles"),
		checkpoint:       splitList(text("TransferCheckpoint", ", \t\r\n"), ", \t\r\n"),
		destination:      job.StringOr("OutputDestination", ""),
		checkpointTo:     job.StringOr("CheckpointDestination", ""),
		globalID:         job.StringOr("GlobalJobId", ""),
		outputRemaps:     text("TransferOutputRemaps", ";"),
		inputRemaps:      text("TransferInputRemaps", ";"),
		preserveRelative: job.BoolOr("PreserveRelativePaths", false),
		encrypt:          list("EncryptOutputFiles"),
		dontEncrypt:      list("DontEncryptOutputFiles"),
		proxy:            job.StringOr("x509userproxy", ""),
		containerImage:   job.StringOr("ContainerImage", ""),
		hasStarterLog:    job.Has("JobStarterDebug"),
	}
	j.tooMany = tooMany
	j.keepStarterLog = j.hasStarterLog && job.Has("JobStarterLog")
	_, err := job.GetString("TransferOutput")
	j.hasOutput = err == nil
	_, err = job.GetString("TransferCheckpoint")
	j.hasCheckpoint = err == nil
	if name := job.StringOr("Out", nullFile); name != nullFile && !job.BoolOr("StreamOut", false) {
		j.stdout = name
	}
	if name := job.StringOr("Err", nullFile); name != nullFile && !job.BoolOr("StreamErr", false) {
		j.stderr = name
	}
	return j
}

// listError refuses a job with a list that is too long.
func (j *jobFiles) listError(code int) *TransferError {
	return &TransferError{Code: code, Subcode: int(syscall.E2BIG), Text: fmt.Sprintf("the job's attribute %s has more than %d entries, which is what this execution point allows; "+
		"name directories in the place of files", j.tooMany, mostListed)}
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

// withStdio appends what is missing of standard output and error.
func (j *jobFiles) withStdio(names []string) []string {
	for _, name := range []string{j.stdout, j.stderr} {
		if name != "" && !slices.Contains(names, name) {
			names = append(slices.Clip(names), name)
		}
	}
	return names
}

// checkpointBase is the URL below which the files of a checkpoint go; the shadow
// looks for them there (src/condor_shadow.V6.1/remoteresource.cpp:
// modifyFileTransferObject).
func (j *jobFiles) checkpointBase(number int64) string {
	return fmt.Sprintf("%s/%s/%04d", strings.TrimSuffix(j.checkpointTo, "/"), strings.ReplaceAll(j.globalID, "#", "_"), number)
}

// check says why nothing of the job can be sent, such as a checkpoint whose
// destination is none.
func (j *jobFiles) check(kind Kind) error {
	switch {
	case j.tooMany != "":
		return j.listError(CodeUpload)
	case kind != Checkpoint || j.checkpointTo == "":
		return nil
	case urlScheme(j.checkpointTo) == "":
		return &TransferError{Code: CodeUpload, Text: "checkpoint_destination is no URL: " + oneLine(j.checkpointTo)}
	case j.globalID == "":
		return &TransferError{Code: CodeUpload, Text: "the job has no GlobalJobId, by which its checkpoints are found again"}
	}
	return nil
}
