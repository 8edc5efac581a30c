package conformance

import (
	"context"
	_ "embed"
	"fmt"
	"os"
	"slices"

	"podstarter/integration/harness"
)

// kept notes what the plugin of keep:// has stored for the job, and removes it.
var kept = Note("what was stored", func(_ context.Context, r *Run) (string, error) {
	web, err := r.Pool.Web()
	if err != nil {
		return "", err
	}
	root := web.UploadedTo(fmt.Sprintf("kept/%d", r.Job().Cluster))
	text, err := filesBelow(root, r.Job())
	if err != nil {
		return "", err
	}
	return text, os.RemoveAll(root)
})

// storing is a job whose output goes to URLs.
func storing(name, shows, script, submit string, steps ...Step) Case {
	return Case{Name: name, Shows: shows, Files: []harness.File{Script("job.sh", script)},
		Submit: "executable = job.sh\noutput = out\n" + submit + shortLease,
		Steps:  append(append([]Step{Ends()}, steps...), transferHistory, kept)}
}

// tree is a job that makes some files in directories.
const tree = "mkdir -p d/sub d/empty; echo one >a; echo two >d/b; echo three >d/sub/c; echo hello; "

// saving is a job that saves checkpoints at a URL, ends at the third, and is killed
// once after the second. At its end it prints what was restored.
func saving(name, shows, url, more string) Case {
	c := Case{Name: name, Shows: shows, Files: []harness.File{Script("job.sh", savingScript)},
		Submit: "executable = job.sh\noutput = out\ncheckpoint_exit_code = 85\ntransfer_checkpoint_files = state, d\ntransfer_output_files = state\n" +
			"checkpoint_destination = " + url + "\n" + more,
		Steps: append(slices.Clone(killed), Ends(), transferHistory, kept),
		Fleeting: slices.Concat(napping, byChance("received URLs contain the job's number, whose length may differ",
			"bytesrecvd", "004   *Bytes Received By Job", "005   *Bytes Received By Job"))}
	return twice(c)
}

// refused is a job whose first checkpoint cannot be stored.
func refused(name, shows, destination string) Case {
	return Case{Name: name, Shows: shows, Files: []harness.File{Script("job.sh", "echo 1 >state; mkdir -p d; echo in >d/f; [ -e again ] && exit; touch again; exit 85")},
		Submit: "executable = job.sh\noutput = out\ncheckpoint_exit_code = 85\ntransfer_checkpoint_files = state, d, again\ntransfer_output_files = state\n" + destination + shortLease,
		Steps:  []Step{Ends(), transferHistory, kept}, Versions: withCheckpointFailures}
}

// withCheckpointFailures are the versions whose events report a failed checkpoint as
// the rules for these cases expect it.
var withCheckpointFailures = []string{"25.14+25.14"}

// firstDestination is where a job's output goes in its first run; later runs use one
// that works.
func firstDestination(url string) string {
	return "MY.OutputDestination = ifThenElse(NumShadowStarts =?= 1, \"" + url + "\", \"keep://out\")"
}

const savingScript = later + `n=$(cat state 2>/dev/null || echo 0)
n=$((n + 1))
echo "run $n"
echo $n >state
mkdir -p d
echo "in $n" >d/f
[ $n -lt 3 ] && exit 85
printf probe-stays >/proc/$$/comm
` + rest

// killed ends the first run of such a job.
var killed = []Step{Runs("probe-stays"), Tool("condor_vacate_job", "-fast", "<job>"), Executes(2)}

// destinationsCases are about output that does not go to the access point.
var destinationsCases = []Case{
	storing("dest-tree", "output_destination with directories; standard output comes back", tree,
		"transfer_output_files = a, d\noutput_destination = keep://out/base").only(withNewStarter...),
	storing("dest-contents", "output_destination with a slash at its end, and the contents of a directory", tree,
		"transfer_output_files = d/\noutput_destination = keep://out/base/").only(withNewStarter...),
	storing("dest-changed", "output_destination without a list of outputs", tree+"ln -s a link; ln -s d dirlink",
		"output_destination = keep://out"),
	storing("dest-remaps", "output_destination with remaps, which then have no effect", tree,
		"transfer_output_files = a, d/b\noutput_destination = keep://out\ntransfer_output_remaps = \"a=there; d/b=keep://other/b\""),
	storing("dest-stdout", "standard output that goes to a URL of its own", tree+"echo words >&2",
		"output = keep://std/out\nerror = err\ntransfer_output_files = a\noutput_destination = keep://out"),
	storing("dest-relative", "output_destination and relative paths", tree,
		"preserve_relative_paths = true\ntransfer_output_files = d/sub/c, a\noutput_destination = keep://out").only(withNewStarter...),
	storing("dest-mixture", "remaps to URLs, and to names at the access point", tree+"echo four >'odd;name'",
		"transfer_output_files = a, d, odd;name\ntransfer_output_remaps = \"a=keep://one/x\\;y?k=v; d/b = keep://two/b; odd\\;name=here; d/sub=keep://three/sub\"").only(withNewStarter...),
	storing("dest-remap-chain", "a remap that leads to a URL through another, and one that leads in a circle", tree,
		"transfer_output_files = a, d/b\ntransfer_output_remaps = \"a=x; x=keep://chain/a; y=z; z=y\""),
	storing("dest-exit", "a plugin that fails and says why", tree,
		"transfer_output_files = a, d\noutput_destination = keep://exit3").only(withNewStarter...),
	storing("dest-lies", "a plugin that exits with 0 and reports failure", tree,
		"transfer_output_files = a\noutput_destination = keep://lies").only(withNewStarter...),
	storing("dest-says-half", "a plugin whose reports lack required attributes", tree,
		"transfer_output_files = a\noutput_destination = keep://bare").only(withNewStarter...),
	storing("dest-missing", "a missing file for a URL", tree,
		"transfer_output_files = a, nowhere\noutput_destination = keep://out").only(withNewStarter...),
	storing("dest-cedar-missing", "a missing file for the access point, and others for a URL", tree,
		"transfer_output_files = a, nowhere\ntransfer_output_remaps = \"a=keep://out/a\"").only(withNewStarter...),
	storing("dest-on-success", "output on success, of a job that succeeds, to a URL", tree,
		"transfer_output_files = a\nwhen_to_transfer_output = ON_SUCCESS\noutput_destination = keep://out"),
	storing("dest-on-success-failed", "output on success, of a job that fails, with failure files, to a URL", tree+"echo why >why; exit 1",
		"transfer_output_files = a\n+FailureFiles = \"why\"\nwhen_to_transfer_output = ON_SUCCESS\noutput_destination = keep://out"),
	twice(Case{Name: "dest-evicted", Shows: "what a job with output_destination saves when it is evicted",
		Files:    []harness.File{Script("job.sh", later+tree+traps("TERM")+ready+untilCaught)},
		Submit:   "executable = job.sh\noutput = out\noutput_destination = keep://out\n" + onEvict,
		Steps:    []Step{Ready(), Tool("condor_vacate_job"), Executes(2), Ends(), kept},
		Fleeting: napping}),

	storing("dest-signal", "a plugin that is killed", tree,
		"transfer_output_files = a, d\noutput_destination = keep://signal").only(withNewStarter...),
	storing("dest-exit-silent", "a plugin that fails and says nothing", tree,
		"transfer_output_files = a\n"+firstDestination("keep://silent5")).only(withNewStarter...).onRequest(), // the stock starter takes half a minute
	storing("dest-silent", "a plugin that exits with 0 and reports nothing", tree,
		"transfer_output_files = a\n"+firstDestination("keep://silent")).only(withNewStarter...).onRequest(), // the stock starter takes half a minute
	storing("dest-few", "a plugin that exits with 0 and does not report some files", tree,
		"transfer_output_files = a, d\n"+firstDestination("keep://few")).onRequest(),
	storing("dest-nobodys", "a URL whose method no plugin has", tree,
		"transfer_output_files = a, d\n"+firstDestination("nobodys://out")).only(withNewStarter...).onRequest(),

	saving("checkpoint-kept", "checkpoints at a URL, and a job that continues from one", "keep://ckpt/base", ""),
	saving("checkpoint-kept-slash", "the same with a slash at the URL's end, and with output_destination", "keep://ckpt/base/", "output_destination = keep://out").onRequest(),
	saving("checkpoint-flaky", "a plugin that says it has not stored a checkpoint, and then stores the next", "keep://flaky", "").onRequest(),
	refused("checkpoint-refused", "a plugin that fails to store a checkpoint", "checkpoint_destination = keep://exit3"),
	refused("checkpoint-plugin-signal", "a plugin that is killed when it stores a checkpoint", "checkpoint_destination = keep://signal").onRequest(),
	refused("checkpoint-nobodys", "checkpoints for a URL whose method no plugin has", "checkpoint_destination = nobodys://ckpt").onRequest(),
	saving("checkpoint-corrupt", "a file of a checkpoint that comes back changed", "keep://corrupt", "MY.TransferOutput = \"\"").only(withCheckpointFailures...),
}

//go:embed programs/keep_plugin
var keepPlugin []byte

// destinationsSetup has a plugin that stores files in the pool's web server, in a directory
// for each job, or fails as its URL says. In a pilot without root, it could not store them
// in the pilot.
var destinationsSetup = Setup{
	Execute:  "FILETRANSFER_PLUGINS = $(FILETRANSFER_PLUGINS), " + programs + "/keep_plugin\n",
	Programs: []harness.File{{Name: "keep_plugin", Content: keepPlugin}},
}
