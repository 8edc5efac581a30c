package conformance

import "podstarter/integration/harness"

var environmentSetup = Setup{
	Execute: "JOB_INHERITS_STARTER_ENVIRONMENT = CONFORMANCE_NOT_THERE, TZ\n",
}

// environmentCases are about what a job finds: variables, arguments, limits,
// its working directory, files.
var environmentCases = []Case{
	{Name: "environment-v1", Shows: "the old syntax of environment and arguments, and variables of the submitter",
		Submit: `environment = PLAIN=1;SPACES=a b  c;QUOTE='it';EMPTY=;EQUAL=a=b
getenv = SHELL, LANG, CONFORMANCE_*
arguments = facts -- one 'two words' back\slash \"quoted\"
output = out`, Facts: true},
	{Name: "environment-overrides", Shows: "variables that the starter overrides, and those that it leaves to the job",
		Submit: `environment = "BATCH_SYSTEM=mine _CONDOR_SLOT=mine _CONDOR_SCRATCH_DIR=/mine TMPDIR=/mine TEMP=/mine _CONDOR_JOB_AD=mine HOME=/mine OMP_NUM_THREADS=7 MAGIC=#CoNdOrScRaTcHdIr#/x,#CoNdOrScRaTcHdIr#"
arguments = facts
output = out`, Facts: true},
	{Name: "expansions", Shows: "$$() of the slot, attributes of the machine in the job's ad",
		Submit: `environment = "CPUS=$$(Cpus) TWICE=$$([TARGET.Cpus*2]) NONE=$$(ConformanceNone:default)"
arguments = out=$$(Cpus) out=$$(OpSys)
job_machine_attrs = Cpus, OpSys
output = out`},
	{Name: "directories", Shows: "an initial directory below the sandbox",
		Files: []harness.File{{Name: "inner/leaf", Content: []byte("leaf\n")}},
		Submit: `transfer_input_files = inner
remote_initialdir = inner
arguments = facts
output = out`, Facts: true},
	{Name: "null-files", Shows: "no input, no output, no error",
		Submit: `input = /dev/null
output = /dev/null
error = /dev/null
executable = look
transfer_output_files = seen`,
		Files: []harness.File{Script("look", `for n in 0 1 2; do to=$(readlink /proc/$$/fd/$n); echo "$to" >>seen; done`)}},
	{Name: "without-transfer", Shows: "a job without file transfer: directory, sandbox, files about job and slot",
		Submit: withoutTransfer + `arguments = "-c '[ ""$PWD"" = /tmp ] || exit 11; [ ""$_CONDOR_JOB_IWD"" = /tmp ] || exit 12; [ -s ""$_CONDOR_JOB_AD"" ] || exit 13; [ -s ""$_CONDOR_MACHINE_AD"" ] || exit 14; [ ""$TMPDIR"" = ""$_CONDOR_SCRATCH_DIR"" ] || exit 15; cd $_CONDOR_SCRATCH_DIR && touch x || exit 16; exit 10'"`},
}
