package conformance

import (
	"context"
	"fmt"
	"strings"

	"podstarter/integration/harness"
)

// attributesCases are about attributes of jobs and of slots that the other subjects do not show.
var attributesCases = sinceThen([]Case{
	{Name: "advertised-knobs", Shows: "knobs that change what starters say of common files and of plugins",
		Submit: briefly,
		Steps: []Step{
			Ready(),
			starterSays("", "HasCommonFilesTransfer|MappingMethod"),
			noVM(),
			starterSays("FORBID_HARDLINK_MAPPING=true", "HasCommonFilesTransfer|MappingMethod"),
			starterSays("FORBID_COPY_MAPPING=true", "HasCommonFilesTransfer|MappingMethod"),
			prints(`HasFileTransferPluginMethods = "slow"`, starterSays(slowPlugin+" FILETRANSFER_PLUGIN_CLASSAD_TIMEOUT=30", "HasFileTransferPluginMethods")),
			prints("", starterSays(slowPlugin+" FILETRANSFER_PLUGIN_CLASSAD_TIMEOUT=1", "HasFileTransferPluginMethods")),
		}},
	{Name: "job-ad-originals", Shows: "the names that standard output and error had, and the job's own name, in the ad in the sandbox",
		Files: []harness.File{Script("job", `grep -E '^(OriginalOut|OriginalErr|Out|Err) = ' "$_CONDOR_JOB_AD" | LC_ALL=C sort
sed -n 's/^GlobalJobId = "[^#]*#\([0-9]*\.[0-9]*\)#[0-9]*"$/\1/p' "$_CONDOR_JOB_AD"
echo complaint >&2
`)}, Submit: "executable = job\noutput = words\nerror = complaints"},
	{Name: "intermediate", Shows: "a file that an earlier run has changed comes back, although this run does not change it",
		Files:  []harness.File{Script("job", "cat kept\n"), {Name: "in", Content: []byte("kept\n")}},
		Submit: "executable = job\noutput = out\ntransfer_input_files = in\n+TransferInputRemaps = \"in=kept\"\n+TransferIntermediate = \"kept\""},
	{Name: "manifest-default", Shows: "manifest = True: lists of files in a directory that the starter names",
		Files: []harness.File{Script("job", "ls -d *manifest | sed 's/^[0-9]*_/N_/'; rm *manifest/environment\n")}, Submit: "executable = job\noutput = out\nmanifest = True\ntransfer_output_remaps = \"$(Cluster)_0_manifest=manifest\"",
		Fleeting: byChance("they name the cluster", "transferoutputremaps", "spooledoutputfiles", "manifest/*")},
})

// slowPlugin makes a plugin the only one of the site that takes three seconds to say what it can do.
const slowPlugin = "FILETRANSFER_PLUGINS=" + programs + "/names/slow_plugin.sh"

var slowProgram = Script("names/slow_plugin.sh", `sleep 3
echo 'MultipleFileSupport = true'; echo 'PluginVersion = "1.0"'; echo 'PluginType = "FileTransfer"'; echo 'SupportedMethods = "slow"'
`)

// noVM fails the case if our starter offers the vm universe.
func noVM() Step {
	return Do("our starter does not advertise HasVM", func(ctx context.Context, r *Run) error {
		if r.Side.IsStock() {
			return nil
		}
		result, err := r.Pool.TryPilot(ctx, r.Side, "sh", "-c", `"$(condor_config_val STARTER)" -classad 2>/dev/null | grep -i "^HasVM "`)
		if err == nil && strings.TrimSpace(result.Stdout) != "" {
			err = fmt.Errorf("it says %s", result.Stdout)
		}
		return err
	})
}
