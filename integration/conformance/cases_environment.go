package conformance

import "podstarter/integration/harness"

// environmentSetup reads attributes of the job, so that it is for the cases of
// this file alone.
var environmentSetup = Setup{
	Execute: `STARTER_JOB_ENVIRONMENT = "SITE_ALONE='of the site' SITE_AND_JOB=site"
JOB_INHERITS_STARTER_ENVIRONMENT = CONFORMANCE_NOT_THERE, TZ
JOB_RENICE_INCREMENT = ifThenElse(ConformanceNice isnt undefined, ConformanceNice, 0)
`,
}

// environmentCases are what a job finds: variables, arguments, limits, the
// directory it starts in, files.
var environmentCases = []Case{
	{Name: "environment-v1", Shows: "the old syntax of environment and arguments",
		Submit: `environment = PLAIN=1;SPACES=a b  c;QUOTE='it';EMPTY=;EQUAL=a=b
arguments = facts -- one 'two words' back\slash \"quoted\"
output = out`, Facts: true},
	{Name: "environment-overrides", Shows: "variables that the starter sets over the job's, those of the site, and those that it leaves to the job",
		Submit: `environment = "BATCH_SYSTEM=mine _CONDOR_SLOT=mine _CONDOR_SCRATCH_DIR=/mine TMPDIR=/mine TEMP=/mine _CONDOR_JOB_AD=mine HOME=/mine OMP_NUM_THREADS=7 SITE_AND_JOB=job MAGIC=#CoNdOrScRaTcHdIr#/x,#CoNdOrScRaTcHdIr# PATH=/mine:/usr/bin:/bin HOSTNAME=mine"
arguments = facts
output = out`, Facts: true},
	{Name: "environment-threads", Shows: "numbers of threads of which the job says some, and variables of its submitter",
		Submit: `environment = "OMP_THREAD_LIMIT= JULIA_NUM_THREADS=1"
getenv = SHELL, LANG, CONFORMANCE_*
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
		Files: []harness.File{Script("look", `exec 3>seen; for n in 0 1 2; do readlink /proc/$$/fd/$n >&3; done`)}},
	{Name: "limits", Shows: "size of core files and stack, nice value",
		Submit: `coresize = 4096
stack_size = 1048576
MY.ConformanceNice = 7
arguments = facts
output = out`, Facts: true},
	{Name: "without-transfer", Shows: "a job without file transfer: directory, sandbox, files about job and slot",
		Submit: withoutTransfer + `arguments = "-c '[ ""$PWD"" = /tmp ] || exit 11; [ ""$_CONDOR_JOB_IWD"" = /tmp ] || exit 12; [ -s ""$_CONDOR_JOB_AD"" ] || exit 13; [ -s ""$_CONDOR_MACHINE_AD"" ] || exit 14; [ ""$TMPDIR"" = ""$_CONDOR_SCRATCH_DIR"" ] || exit 15; cd $_CONDOR_SCRATCH_DIR && touch x || exit 16; exit 10'"`},
	{Name: "job-ad", Shows: "the job's ad as the job finds it: which attributes, and what of them is the starter's",
		Files: []harness.File{Script("look", `
sed 's/ = .*//' "$_CONDOR_JOB_AD" | sort
echo
grep -E '^(Cmd|Orig[A-Z][a-z]*|Iwd|Out|Err|In|TransferExecutable|OriginalOut|OriginalErr) = ' "$_CONDOR_JOB_AD" |
	sed "s#$_CONDOR_SCRATCH_DIR#SANDBOX#; s#/case-job-ad-[^/\"]*#/DIRECTORY#" | sort
grep -icE '^(ClaimId|Capability|TransferKey|ClaimIds|_condor_priv.*) = ' "$_CONDOR_JOB_AD" "$_CONDOR_MACHINE_AD" | sed 's,.*/,,'
`)},
		Submit: "executable = look\noutput = out\nerror = err"},
}
