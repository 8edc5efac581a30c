package lives_test

import (
	"os"
	"testing"
)

// fakeApptainer stands for Apptainer: it takes the options that it is given, and shows what became of the environment. Images
// that work have a name with "good"; binds with "bad" do not work.
const fakeApptainer = `[ "$1" = --version ] && { [ -e @/old ] && echo singularity-ce 4 || echo apptainer version 1.4.5; exit 0; }
echo "$@" >>@/calls
while :; do
	case $1 in
	exec | run | test) verb=$1 ;;
	-B) case $2 in *bad*) echo "WARNING: x"; echo "FATAL: cannot bind $2"; exit 255 ;; esac; shift ;;
	-S | -W | --home) shift ;;
	--pwd) shift; cd "$1" ;;
	-*) ;;
	*) break ;;
	esac
	shift
done
image=$1
shift
case $image in *good*) ;; *) echo "FATAL: no image $image" >&2; exit 255 ;; esac
case $verb in
test) [ -z "$APPTAINER_BIND$HOME" ] || exit 9; exit 0 ;;
run) echo "runs itself: $*"; exit 0 ;;
esac
[ "$1" != /exit_37 ] || exit 37
[ "$1" != /condor_container_launcher.sh ] || { [ ! -e @/stuck ] || exit 255; : >"$_CONDOR_SCRATCH_DIR/.condor_container_launched"; shift; }
exec "$@"
`

// TestContained are jobs in images on an execution point without a pod.
func TestContained(t *testing.T) {
	const sif = "WantContainer = true\nWantSIF = true\nContainerImage = "
	with := func(more ...string) map[string]string {
		knobs := map[string]string{"SINGULARITY": "@/site/runtime", "SINGULARITY_TEST_SANDBOX": "@/good"}
		for i := 0; i < len(more); i += 2 {
			knobs[more[i]] = more[i+1]
		}
		return knobs
	}
	sandbox := func(w *world) {
		w.must(os.Mkdir(w.at("@/good"), 0o755))
		w.must(os.WriteFile(w.at("@/good/exit_37"), nil, 0o755))
	}
	programs := map[string]string{"runtime": fakeApptainer}
	lives := []life{
		{
			name: "in a file", job: sif + `"good.sif"` + "\nEnvironment = \"A=b APPTAINER_BIND=/\"\nArguments = \"one\"", knobs: with(), script: `echo "$1 $A $APPTAINERENV_A"; exit 3`,
			want: want{last: "job_exit 768 100", output: output("one b b\n"), log: []string{"Running job via singularity.", "[singularity version] apptainer version 1.4.5", "runs image good.sif"}},
		},
		{
			name: "its own program", job: sif + `"good.sif"` + "\nCmd = \"\"\nArguments = \"one\"\nTransferExecutable = false", knobs: with(),
			want: want{last: "job_exit 0 100", output: output("runs itself: one\n")},
		},
		{
			name: "by an older runtime", job: sif + `"good.sif"` + "\nEnvironment = \"A=b\"", knobs: with(), script: `echo "$SINGULARITYENV_A$APPTAINERENV_A"`,
			plan: func(w *world) { w.must(os.WriteFile(w.at("@/old"), nil, 0o644)) },
			want: want{last: "job_exit 0 100", output: output("b\n")},
		},
		{
			name: "under a job wrapper", job: sif + `"good.sif"`, knobs: with("USER_JOB_WRAPPER", "@/site/wrap"), script: "echo job",
			programs: map[string]string{"runtime": fakeApptainer, "wrap": `case $1 in */runtime) echo outside;; esac; exec "$@"`},
			want:     want{last: "job_exit 0 100", output: output("outside\njob\n")},
		},
		{
			name: "a bad file", job: sif + `"bad.sif"`, knobs: with(), files: map[string]string{"bad.sif": "x"},
			want: want{last: "error 45/0", says: "Singularity test failed:FATAL: no image bad.sif (container_image is", check: (*world).neverBegan},
		},
		{
			name: "a bad file of the site", knobs: with("SINGULARITY_JOB", "true", "SINGULARITY_IMAGE_EXPR", `"/dev"`),
			want: want{last: "error 1021/0", says: "SINGULARITY_IMAGE_EXPR", check: (*world).neverBegan},
		},
		{
			name: "a file that this machine lacks", job: sif + `"/cvmfs/x.sif"`, knobs: with(),
			want: want{last: "error 45/-1000", says: "Singularity test failed:FATAL: no image", check: (*world).neverBegan},
		},
		{
			name: "an image that cannot be fetched", job: "WantContainer = true\nWantDockerImage = true\nContainerImage = \"docker://x\"", knobs: with(),
			want: want{last: "error 45/-1000", says: "Singularity test failed:FATAL: no image docker://x", check: (*world).neverBegan},
		},
		{
			name: "no test before", job: sif + `"bad.sif"`, knobs: with("SINGULARITY_RUN_TEST_BEFORE_JOB", "false"),
			want: want{last: "job_exit 65280 100"},
		},
		{
			name: "an option as image", job: sif + `"--bind=/"`, knobs: with(),
			want: want{last: "error 6/0", says: "container_image is", check: (*world).neverBegan},
		},
		{
			name: "a second bind by the name of the sandbox", job: sif + `"good.sif"` + "\nContainerTargetDir = \"/srv,/etc:/x\"", knobs: with(),
			want: want{last: "error 6/0", says: "container_target_dir is", check: (*world).neverBegan},
		},
		{
			name: "binds that do not work", job: sif + `"good.sif"`, knobs: with("SINGULARITY_BIND_EXPR", `"@/site:/bad"`),
			want: want{last: "error 1021/0", says: "SINGULARITY_BIND_EXPR", check: (*world).neverBegan},
		},
		{
			name: "binds that are no expression", job: sif + `"good.sif"`, knobs: with("SINGULARITY_BIND_EXPR", "/a:/b,"),
			want: want{last: "error 1021/0", says: "SINGULARITY_BIND_EXPR", check: (*world).neverBegan},
		},
		{
			name: "arguments that are none", job: sif + `"good.sif"`, knobs: with("SINGULARITY_EXTRA_ARGUMENTS", `"it's"x`),
			want: want{last: "error 1021/0", says: "SINGULARITY_EXTRA_ARGUMENTS", check: (*world).neverBegan},
		},
		{
			name: "no runtime", job: sif + `"good.sif"`, knobs: with("SINGULARITY", "/no/such/apptainer"),
			want: want{last: "error 1021/0", says: "/no/such/apptainer", check: (*world).neverBegan},
		},
		{
			name: "a runtime that is named wrongly", job: sif + `"good.sif"`, knobs: with("SINGULARITY", "apptainer"),
			want: want{last: "error 1021/0", says: "absolute path", check: (*world).neverBegan},
		},
		{
			name: "a job of docker", job: "WantDocker = true\nDockerImage = \"busybox\"", knobs: with(),
			want: want{last: "error 1021/0", says: "universe = container", check: (*world).neverBegan},
		},
		{
			name: "the site's image for jobs without one", knobs: with("USE_DEFAULT_CONTAINER", "true", "DEFAULT_CONTAINER_IMAGE", `"/good.sif"`), script: `echo "$APPTAINERENV_PS1"`,
			want: want{last: "job_exit 0 100", log: []string{"Running job via singularity."}},
		},
		{
			name: "a launcher", job: sif + `"good.sif"`, knobs: with("SINGULARITY_USE_LAUNCHER", "true"), script: "echo job",
			want: want{last: "job_exit 0 100", output: output("job\n")},
		},
		{
			name: "a launcher that is not reached", job: sif + `"good.sif"`, knobs: with("SINGULARITY_USE_LAUNCHER", "true"),
			plan: func(w *world) { w.must(os.WriteFile(w.at("@/stuck"), nil, 0o644)) },
			want: want{last: "error 1021/0", says: "failed to start"},
		},
		{
			name: "the options of the site, the slot and the job", job: sif + `"good.sif"` + "\nMountUnderScratch = \"/opt\"\nBinds = \"@/site:/x\"",
			knobs:  with("SINGULARITY_BIND_EXPR", "TARGET.Binds", "MOUNT_UNDER_SCRATCH", `"/tmp"`, "SINGULARITY_EXTRA_ARGUMENTS", "--nvccli", "SINGULARITY_USE_PID_NAMESPACES", "True", "SINGULARITY_VERBOSITY", "-v"),
			script: `grep -c -- "-v exec -S /tmp -S /opt -W $PWD --pwd $PWD -B .* -B @/site:/x --home $PWD -C --nvccli good.sif" @/calls`,
			want:   want{last: "job_exit 0 100", output: output("1\n")},
		},
	}
	for i := range lives {
		if lives[i].programs == nil {
			lives[i].programs = programs
		}
		plan := lives[i].plan
		lives[i].plan = func(w *world) {
			sandbox(w)
			if plan != nil {
				plan(w)
			}
		}
	}
	run(t, lives)
}
