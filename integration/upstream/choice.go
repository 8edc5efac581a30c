package main

import (
	"path"
	"slices"
	"strings"
)

// A choice is a reason why tests are not run, and their names, or patterns of path.Match.
type choice struct {
	why   string
	names []string
}

// left are the tests that are not run. All others of HTCondor's source are, if they are in Python; of those in Perl, those in perl.
var left = []choice{
	{"They ask about DAGMan: its files, its throttles, its recovery. Their jobs only sleep or exit, which other tests ask about.", []string{
		"test_dag_*", "test_dagman_check_q_and_exit", "test_dagman_cool_down", "test_dagman_futile_nodes", "test_dagman_futile_nodes_efficiency", "test_dagman_ignores_transfer_shadow_events",
		"test_dagman_inherit_attrs", "test_dagman_inline_*", "test_dagman_job_list_failure_tolerance", "test_dagman_killed_during_recovery", "test_dagman_no_submit_retry",
		"test_dagman_node_status_recovery", "test_dagman_options_mutual_exclusion", "test_dagman_produce_creds", "test_dagman_proper_env", "test_dagman_save_files", "test_dagman_script_*",
		"test_dagman_service_nodes*", "test_dagman_spawned_with_sec_session", "test_dagman_specify_rescue", "test_dagman_submit_description", "test_dagman_survives_*",
		"test_dagman_throttles", "test_dagman_utils_parse_crash", "test_python_bindings_dagman", "test_condor_dag_checker", "*dagman*.run", "test_htcondor_dags.run",
	}},
	{"They ask only about the submit side: condor_submit, the schedd's queue, late materialization, job sets, history and its tools.", []string{
		"test_archive_librarian*", "test_condor_history", "test_concurrency_limits", "test_condor_rm_held", "test_hpc_annex_require_job", "test_htcondor_submit_constructor",
		"test_job_spec_*", "test_job_submit_method_recording", "test_jobsets", "test_late_materialization*", "test_lm_more", "test_queue_from_table", "test_schedd_submit",
		"test_scheduler_priority", "test_submit_*", "test_snake_submit", "test_wait_duration", "test_input_file_check",
	}},
	{"They ask only about collector, negotiator, master, or tools for these.", []string{
		"test_admin_capability", "test_bogus_collector", "test_ceiling_lease", "test_negotiator_*", "test_offline_ads", "test_python_bindings_collector", "test_rooster_basic",
		"test_htcondor_cli_sys_status", "test_htcondor_annex_create_constraints", "test_shared_port_http_forwarding", "test_auth_protocol_token", "test_condor_token_fetch_key",
		"test_python_bindings_token", "test_pcre",
	}},
	{"They are about a library or a program and start no job.", []string{
		"test_awaitable_deadline_*", "test_classad*", "test_dc_std_function*", "test_filter", "test_htcondor2_param", "test_python_bindings_classad",
		"test_python_bindings_jobeventlog", "test_python_bindings_version", "test_starter_guidance", "test_std_pipe_handler", "test_debug_plugin", "test_condor_manifest", "test_ft_plugin_testing",
		"test_htcondor_971", "test_ccb_proxy_bench",
	}},
	{"They ask only about the startd: its slots, its resources, its cron jobs, its disk accounting without a job.", []string{
		"test_backfill_gpus", "test_reserve_disk", "test_startd_cron", "test_lvm_classad_attributes", "test_lvm_non_condor_usage", "test_lvm_status_reporting",
	}},
	{"They need device mapper and loop devices for LVM, which this project's machines for tests lack.", []string{"test_lvm_*"}},
	{"They need a Docker daemon, or an installer from the network.", []string{"test_docker", "test_get_htcondor"}},
	{"They need Pelican's programs, which Debian does not have.", []string{"test_pelican_credmon"}},
	{"Their jobs are of Java universe, and the root file system of these runs has no Java; TestJavaWithoutPod of integration/e2e compares such jobs.", []string{"*_java.run"}},
	{"Their jobs are of scheduler or local universe: the schedd starts these, with STARTER_LOCAL or no starter.", []string{"*_sched.run", "*_local.run"}},
	{"Their jobs are of parallel universe, which TestNodesWithoutPod of integration/e2e compares.", []string{"*_par.run"}},
	{otherPerl, []string{"*.run"}},
}

const otherPerl = "Tests in Perl that ask about something else than a starter does: tools, the schedd, authentication, event logs, libraries."

// perl are the tests in Perl that a starter can influence.
var perl = []string{
	"cmd_ssh_to_job_van.run", "cmd_drain*.run", "cmd_condor_off-master.run", "cmd_condor_submit_dashspool.run", "claim_reuse.run", "docker_simulator_test.run", "extended_submit_cmds.run",
	"fetch_work_*.run", "file_transfer_submit.run", "job_ad_epoch_recording.run", "job_basic_*.run", "job_check_exitcode_in_classad.run", "job_core_*_van.run", "job_core_crontab.run",
	"job_core_lease_duration.run", "job_core_time-deferral*.run", "job_cpu_affinity_check.run", "job_filexfer_*_van.run", "job_local_resources.run", "job_mem_checker.run",
	"job_partitionable_basic_van.run", "job_schedd_restart-*.run", "job_slash_transfer.run", "job_startd_rank_preempt.run", "job_starter_script-A.run", "lib_chirp*.run", "lib_ccb_startd.run",
	"lib_procapi_pidtracking-*.run", "lib_shared_port_van.run", "startd_xfer_bytes.run", "starter_breaks_resource.run",
}

// excluded says why a test is not run, or "".
func excluded(name string) string {
	if strings.HasSuffix(name, ".run") && matches(perl, name) {
		return ""
	}
	for _, c := range left {
		if matches(c.names, name) {
			return c.why
		}
	}
	return ""
}

func matches(patterns []string, name string) bool {
	for _, p := range patterns {
		if ok, err := path.Match(p, name); err == nil && ok {
			return true
		}
	}
	return false
}

// commonFiles are the tests of common files that run with daemons of root: files then belong to several users.
var commonFiles = map[string]string{
	"test_cif": asRoot, "test_cif_catalogs": asRoot, "test_cif_catalogs_fallback": asRoot, "test_cif_failures": asSudo, "test_cif_fallback": asRoot, "test_shadow_exit_codes": asSudo,
	"test_catalog_scopes": asSudo, "test_cif_disk_size": asSudo, "test_cif_disk_usage": asSudo, "test_cif_knob": asSudo, "test_cif_preen": asSudo, "test_cif_prepare_job_hook": asSudo,
	"test_cif_rm": asSudo, "test_cif_shadow_recycle": asSudo, "test_common_transfer_savings": asSudo, "test_container_image_common_regex": asSudo,
	"test_dagman_multiple_common_containers": asSudo,
}

// alsoAsUser are those of commonFiles that run with daemons of an ordinary user, too, where all jobs have one user.
var alsoAsUser = []string{
	"test_catalog_scopes", "test_cif", "test_cif_catalogs", "test_cif_disk_size", "test_cif_failures", "test_cif_fallback", "test_cif_knob", "test_cif_preen", "test_cif_prepare_job_hook",
	"test_cif_rm", "test_cif_shadow_recycle", "test_shadow_exit_codes",
}

// alsoWithSudo are others that run with daemons of root, too: some of what a starter does as another user.
var alsoWithSudo = []string{
	"test_fallback_override", "test_ft_plugin_stuff", "test_hold_and_release", "test_hook_status_msg", "test_job_env", "test_manifest", "test_singularity_sif", "test_ssh_sftp",
	"test_tom_directory_creation", "test_unspecified_checkpoint", "test_x509_delegation",
}

// daemonsOf says with whose daemons a test runs.
func daemonsOf(name string) []string {
	if as, ok := commonFiles[name]; ok {
		if slices.Contains(alsoAsUser, name) {
			return []string{asUser, as}
		}
		return []string{as}
	}
	if slices.Contains(alsoWithSudo, name) {
		return []string{asUser, asSudo}
	}
	return []string{asUser}
}
