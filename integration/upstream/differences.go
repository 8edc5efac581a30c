package main

import "strings"

// A reason says why cases of one file of tests end as they do.
type reason struct {
	test string
	// cases are what the names of cases contain; none are all of the file.
	cases []string
	// user is whose daemons it is about; "" is all.
	user string
	why  string
}

// differ are the reasons of cases that end in one way under the stock starter, and in another under ours.
var differ = []reason{
	{test: "test_hook_status_msg", user: asSudo, why: "The hooks' files may be run only by the user of the tests. " + usersOfTheirOwn},
	{test: "test_job_env", user: asSudo, cases: []string{"test_job_env"}, why: "The job's output, without file transfer, belongs where only its user may write. " + usersOfTheirOwn},
	{test: "starter_breaks_resource.run", why: "TEST_JOB_CAN_BREAK_SLOT, a knob only for this test, has no effect (docs/developer/stock-names.md)."},
	{test: "test_cif_prepare_job_hook", user: asSudo, why: "The hook writes into a directory of the user of the tests. " + usersOfTheirOwn},
	{test: "lib_procapi_pidtracking-byenv.run", why: leftBehind},
	{test: "lib_procapi_pidtracking-snapshot.run", why: leftBehind},
	{test: "test_hung_plugin", why: "The job ends as it should, and the test then looks for a debug line of the stock starter that names a function of its code."},
	{test: "test_plugin_classad_transfer", cases: []string{"v2"}, why: "A plugin is asked once which protocol it speaks, without a job's environment, by which this test changes the answer (docs/admin/transfer.md, *Asked once*)."},
	{test: "test_plugin_classad_transfer", cases: []string{"v4"}, why: "The test reads the plugin's output in the starter's log, which ours indents, so that nobody can forge a line. The plugin gets the same ads."},
	{test: "test_cif_catalogs", cases: []string{"test_condor_submit"}, why: flat},
	{test: "test_cif_fallback", cases: []string{"test_many_cif_jobs"}, why: noGlump + " Ours gives jobs users of their own."},
	{test: "test_cif_failures", why: "It wants an event of an output transfer after input that failed; ours makes none (docs/admin/differences.md#no-output-after-failed-input)."},
	{test: "test_command_data_slot", why: noRoot},
	{test: "test_unblocking_jobs", why: noRoot},
	{test: "test_cif_disk_usage", why: "The jobs end as they should. The test then looks for debug lines of the stock starter about the size of common files."},
	{test: "test_slot_coloring", why: "TESTING_COLOR_FROM_JOB_AD, a knob only for this test, has no effect (docs/developer/stock-names.md)."},
	{test: "test_ssh_sftp", why: "Debian's HTCondor names no program for sftp in the configuration that it makes for sshd. Ours has its own sshd, which needs none."},
	{test: "test_plugins_dont_see_directories", why: "The job ends as it should. The test then looks for the plugin's input in the starter's log; ours does not write it, since URLs may be signed."},
}

const (
	flat            = "The pool has STARTER_NESTED_SCRATCH = False, with which ours offers no common files (docs/admin/transfer.md); the files come with each job."
	leftBehind      = "Without root, the stock starter leaves some of the job's processes behind. Ours leaves none."
	noGlump         = "With root, the pool's jobs are to run as a user of that machine (glump) whom the root file system lacks."
	noRoot          = "It asks about common files in a pool of an ordinary user, and works in no other; ours offers common files only with root (docs/admin/transfer.md)."
	usersOfTheirOwn = "Under a startd that is root, jobs and their hooks run as users of their own (docs/admin/plain.md)."
)

// alike are the reasons of cases that fail under both.
var alike = []reason{
	{test: "job_core_bigenv_van.run", why: needsProgram},
	{test: "job_mem_checker.run", why: needsProgram},
	{test: "test_cif", user: asRoot, cases: []string{"test_many_cif_jobs"}, why: noGlump + " Ours offers no common files there, because of STARTER_NESTED_SCRATCH = False."},
	{test: "test_common_transfer_savings", why: "Its jobs name the catalog of their image as another version of condor_submit does, so that the image never comes; one case compares the words of a tool. HTCondor's build leaves this test out."},
	{test: "test_epoch_attrs", why: "It compares the attributes of records that the access point writes with a list, which is not that of Debian's release."},
	{test: "test_curl_plugin", why: "Its job asks for a second slot, and its pool has one, which is partitionable."},
	{test: "test_fto_pipe_read_full", why: "It looks for a debug line of the shadow that HTCondor writes only with D_TEST."},
	{test: "test_htcondor_credential", why: needsIssuer},
	{test: "test_issue_credentials", why: needsIssuer},
	{test: "test_parallel_uni", why: "condor_submit refuses its submit file, which has two queue lines."},
}

const (
	needsProgram = "It needs a program that HTCondor's build makes and Debian's packages lack."
	needsIssuer  = "Debian's packages lack the part of the credential monitor that issues tokens itself."
)

// find returns the first reason that fits, and its index, or -1.
func find(reasons []reason, test, user, name string) (int, string) {
	for i, r := range reasons {
		if r.test != test || r.user != "" && r.user != user {
			continue
		}
		if len(r.cases) == 0 {
			return i, r.why
		}
		for _, c := range r.cases {
			if strings.Contains(name, c) {
				return i, r.why
			}
		}
	}
	return -1, ""
}
