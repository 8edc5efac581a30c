package sandbox

import (
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
	historicExec   = "condor_exec.exe" // what old shadows call the executable
	starterLogName = ".starter.log"
)

// AdaptJob changes the starter's copy of a job ad as a job whose files are
// transferred needs it: it runs in the scratch directory, and its standard
// output and error have names of their own there (src/condor_starter.V6.1/
// jic_shadow.cpp:initWithFileTransfer, beginFileTransfer). The originals stay
// in OrigIwd, OrigCmd, OriginalOut and OriginalErr. It changes nothing that it
// has changed before.
func AdaptJob(job *classads.Ad, scratch string) {
	keep := func(name, as string) {
		if e, ok := job.Lookup(name); ok && !job.Has(as) {
			job.Insert(as, e)
		}
	}
	if job.StringOr("Iwd", "") != scratch {
		keep("Iwd", "OrigIwd")
	}
	keep("Cmd", "OrigCmd")
	job.SetString("Iwd", scratch)
	job.Delete("SpooledOutputFiles")

	out, err := job.StringOr("Out", ""), job.StringOr("Err", "")
	// Without the Stream attribute, which condor_submit always sets, the
	// names stay.
	renames := func(stream, name string) bool {
		v, e := job.GetBool(stream)
		return e == nil && !v && name != nullFile
	}
	if renames("StreamOut", out) && !job.Has("OriginalOut") {
		job.SetString("Out", StdoutName)
		job.SetString("OriginalOut", out)
	}
	if renames("StreamErr", err) && !job.Has("OriginalErr") {
		job.SetString("Err", StderrName)
		if err == out {
			job.SetString("Err", StdoutName)
		}
		job.SetString("OriginalErr", err)
	}
}

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
	outputRemaps     string
	inputRemaps      string
	preserveRelative bool
	encrypt          []string
	dontEncrypt      []string
	proxy            string
	containerImage   string
	keepStarterLog   bool // the user wants .starter.log
	hasStarterLog    bool // there is one
}

func readJobFiles(job *classads.Ad) jobFiles {
	list := func(name string) []string { return splitList(job.StringOr(name, ""), ",") }
	j := jobFiles{
		executable:       baseName(job.StringOr("Cmd", "")),
		originalOut:      job.StringOr("OriginalOut", ""),
		originalErr:      job.StringOr("OriginalErr", ""),
		output:           list("TransferOutput"),
		intermediate:     list("TransferIntermediate"),
		failure:          list("FailureFiles"),
		checkpoint:       splitList(job.StringOr("TransferCheckpoint", ""), ", \t\r\n"),
		destination:      job.StringOr("OutputDestination", ""),
		outputRemaps:     job.StringOr("TransferOutputRemaps", ""),
		inputRemaps:      job.StringOr("TransferInputRemaps", ""),
		preserveRelative: job.BoolOr("PreserveRelativePaths", false),
		encrypt:          list("EncryptOutputFiles"),
		dontEncrypt:      list("DontEncryptOutputFiles"),
		proxy:            job.StringOr("x509userproxy", ""),
		containerImage:   job.StringOr("ContainerImage", ""),
		hasStarterLog:    job.Has("JobStarterDebug"),
	}
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

// splitList splits at any of the separators, trims blanks, and leaves empty
// items out (src/condor_utils/stl_string_utils.cpp:split).
func splitList(text, separators string) []string {
	var out []string
	for _, item := range strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(separators, r) }) {
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
