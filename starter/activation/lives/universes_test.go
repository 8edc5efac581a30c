package lives_test

import (
	"maps"
	"os"
	"syscall"
	"testing"

	"podstarter/condor/condortest"
	"podstarter/condor/startd"
	"podstarter/internal/cedar"
)

// fakeJava stands for a JVM with CondorJavaWrapper. The job's class is a shell script of the sandbox; the wrapper's records
// are its business. What comes before the wrapper's name is printed.
const fakeJava = `while [ "$1" != CondorJavaWrapper ]; do echo "$1" | sed "s|$_CONDOR_SCRATCH_DIR|SCRATCH|" >>@/options; shift; done
start=$2 end=$3 class=$4
shift 4
[ ! -e @/broken ] || { echo "Error: could not create the Java Virtual Machine." >&2; exit 1; }
[ ! -e $start ] || { echo "left: $start"; exit 99; }
echo started >$start; : >$end
. ./$class
`

// TestJava are jobs of the java universe, which a machine's own Java runs.
func TestJava(t *testing.T) {
	const universe = "JobUniverse = 10\nCmd = \"java\"\nTransferExecutable = false\nTransferInput = \"job.sh\"\nArguments = \"job.sh one\"\n"
	knobs := map[string]string{"JAVA": "@/site/java", "JAVA_CLASSPATH_DEFAULT": "/lib/condor .", "JAVA_EXTRA_ARGUMENTS": "-Dof=site"}
	programs := map[string]string{"java": fakeJava}
	thrown := func(word, classes string) string {
		return `echo "` + word + `" >$end; echo "java.lang.Object ` + classes + ` " >>$end; exit 0`
	}
	lives := []life{
		{
			name: "chirp may do nothing", script: "exit 0", knobs: map[string]string{"JAVA": "@/site/java", "ENABLE_CHIRP_DELAYED": "false"},
			want: want{last: "job_exit 0 100", check: func(w *world) {
				options, err := os.ReadFile(w.at("@/options"))
				w.must(err)
				w.same("-classpath\n.\n-Dchirp.config=SCRATCH/.chirp.config\n", string(options))
			}},
		},
		{
			name: "a pipe and a link in place of the records", script: `rm $start $end; mkfifo $start; ln -s /etc/passwd $end; exit 0`,
			want: want{last: "job_exit 0 107", log: []string{"did not leave its start record"}},
		},
		{
			name: "a long text in place of a record", script: `yes normal | head -c 3000000 >$end; exit 2`,
			want: want{last: "job_exit 512 100", log: []string{"Job returned from main()"}},
		},
		{
			name: "main returns", script: `echo "runs $1"; echo normal >$end; exit 0`,
			want: want{last: "job_exit 0 100", output: output("runs one\n"), log: []string{"Job returned from main()"}, check: func(w *world) {
				options, err := os.ReadFile(w.at("@/options"))
				w.must(err)
				w.same("-classpath\n/lib/condor:.:SCRATCH/a.jar\n-Dof=site\n-Dchirp.config=SCRATCH/.chirp.config\n-Dof=job\n", string(options))
			}},
			job: "JarFiles = \"/home/u/a.jar\"\nJavaVMArguments = \"-Dof=job\"\nTransferInput = \"job.sh,a.jar\"\n", files: map[string]string{"a.jar": "x"},
		},
		{name: "System.exit", script: "echo made >made; exit 3", want: want{last: "job_exit 768 100", output: map[string]string{"_condor_stdout": "", "_condor_stderr": "", "made": "made\n"}, log: []string{"Job called System.exit()"}}},
		{
			name: "an exception", script: thrown("abnormal", "java.lang.Throwable java.lang.Exception java.io.IOException"),
			want: want{last: "job_exit 15 100", check: updated("ExceptionName", "java.io.IOException")},
		},
		{
			name: "no class", script: thrown("noexec", "java.lang.Throwable java.lang.Exception java.lang.ClassNotFoundException"),
			want: want{last: "job_exit 15 100", check: updated("ExceptionType", "java.lang.Exception")},
		},
		{
			name: "no memory in the JVM", script: thrown("abnormal", "java.lang.Throwable java.lang.Error java.lang.OutOfMemoryError"),
			want: want{last: "job_exit 0 107", log: []string{"java.lang.OutOfMemoryError"}, check: updated("ExceptionHierarchy", "java.lang.Object java.lang.Throwable java.lang.Error java.lang.OutOfMemoryError ")},
		},
		{
			name: "a JVM that does not begin", plan: func(w *world) { w.must(os.WriteFile(w.at("@/broken"), nil, 0o644)) }, script: "exit 0",
			want: want{last: "job_exit 0 107", log: []string{"the wrapper did not leave its start record"}, check: updated("VacateReason", "Java failed: the wrapper did not leave its start record; Java may be misconfigured here, or java_vm_args has an option that it does not know")},
		},
		{name: "a JVM that is killed", script: "kill -9 $$", want: want{last: "job_exit 0 107", log: []string{"JVM exited abnormally with signal"}}},
		{
			name: "a checkpoint", job: "CheckpointExitCode = 85\nSuccessCheckpointExitCode = 85\nCheckpointExitBySignal = false\nWantFTOnCheckpoint = true\n",
			script: `[ -e state ] && { echo normal >$end; exit 0; }; echo x >state; exit 85`,
			want:   want{last: "job_exit 0 100"},
		},
		{name: "no Java", programs: map[string]string{}, want: want{last: "error 1021/0", says: "site/java, which cannot be executed"}},
		{name: "no Java is named", knobs: map[string]string{"JAVA": ""}, want: want{last: "error 1021/0", says: "the knob JAVA is empty"}},
		{name: "options that are not closed", job: "JavaVMArguments = \"'-D\"\n", want: want{last: "error 6/0", says: "java_vm_args"}},
		{
			name: "vacated", script: waits, live: func(w *world) { w.runs(); w.signal(int(syscall.SIGTERM)) },
			want: want{last: "job_exit 0 107"},
		},
	}
	for i := range lives {
		l := &lives[i]
		l.job = universe + l.job
		if l.knobs == nil {
			l.knobs = maps.Clone(knobs)
		}
		if l.programs == nil {
			l.programs = programs
		}
	}
	run(t, lives)
}

// TestNode are nodes of jobs of the parallel universe. To its starter a node is a job like others, except for how it ends.
func TestNode(t *testing.T) {
	const universe = "JobUniverse = 11\nNode = 1\nCurrentHosts = 2\nRemoteSpoolDir = \"/spool/7\"\n"
	numbered := func(w *world) { // each update of a job that has begun
		w.Helper()
		for _, h := range w.shadow.Heard() {
			if state := h.Ad.Text("JobState"); state != "" && h.Ad.Text("Node") != "1" {
				w.Errorf("%s of a job that is %s has no Node", h.Call, state)
			}
		}
	}
	away := func(w *world) { // the shadow, while the node ends
		w.Helper()
		w.runs()
		w.shadow.Disconnect()
		w.logged("Lost connection to shadow")
		w.tell("end")
		w.logged("the shadow is away")
		if reply, err := w.shadow.Reconnect(w.ctx); err != nil || reply.Text("Result") != "Success" {
			w.Errorf("%v, %v", reply, err)
		}
	}
	traps := "trap 'echo asked >asked; exit 4' TERM; echo runs >@/said; while :; do sleep 0.05; done"
	lives := []life{
		{
			name: "its place", script: `echo "$_CONDOR_PROCNO of $_CONDOR_NPROCS, $_CONDOR_REMOTE_SPOOL_DIR, $PATH, $CONDOR_CONFIG"; exit 3`, knobs: map[string]string{"BIN": "/condor/bin"},
			want: want{last: "job_exit 768 100", output: output("1 of 2, /spool/7, /condor/bin:/usr/local/bin:/usr/bin:/bin, \n"), check: func(w *world) {
				numbered(w)
				w.same([]string{"get_job_info"}, w.shadow.Story("get_job_info")) // its ad never says that files have arrived
			}},
		},
		{
			name: "the others have ended", script: traps, live: func(w *world) { w.runs(); w.vacate(condortest.DeactivatedFast) },
			want: want{last: "job_exit 1024 107", check: numbered},
		},
		{
			name: "SIGQUIT", script: traps, live: func(w *world) { w.runs(); w.signal(int(syscall.SIGQUIT)) },
			want: want{last: "job_exit 1024 107", check: numbered},
		},
		{
			name: "suspended", script: traps, live: func(w *world) { w.runs(); w.signal(cedar.DCSigSuspend) },
			want: want{last: "job_exit 1024 107", log: []string{"Suspending all jobs.", "is not suspended"}, check: numbered},
		},
		{
			name: "suspended, and does not end", knobs: map[string]string{"SHUTDOWN_GRACEFUL_TIMEOUT": "1"}, script: "trap '' TERM; " + waits, live: func(w *world) { w.runs(); w.signal(cedar.DCSigSuspend) },
			want: want{last: "job_exit 9 107", check: numbered},
		},
		{
			name: "a node that does not end", machine: func(so *condortest.StartdOptions) { so.Mortal = true }, script: "trap '' TERM; " + waits, live: func(w *world) {
				w.runs()
				w.vacate(startd.Vacate{Reason: "Claim preempted", Code: 1011})
				w.logged("Sending SIGTERM")
				w.startd.Die(w)
			},
			want: want{last: "job_exit 9 107", deaf: true, check: numbered},
		},
		{name: "node 0 ends while the shadow is away", job: "Node = 0\n", script: waits, live: away, want: want{last: "job_exit 0 100"}},
		{name: "one of which all must end", job: "ParallelShutdownPolicy = \"WAIT_FOR_ALL\"\n", script: waits, live: away, want: want{last: "job_exit 0 100", check: numbered}},
		{
			name: "another ends while the shadow is away", script: waits, live: func(w *world) {
				w.runs()
				w.shadow.Disconnect()
				w.logged("Lost connection to shadow")
				w.tell("end")
			},
			want: want{code: 1, says: "connection to the shadow is lost"},
		},
		{name: "of which nothing is said", without: []string{"RemoteSpoolDir"}, want: want{code: 1, last: "error 1007/0", says: "RemoteSpoolDir"}},
	}
	for i := range lives {
		lives[i].job = universe + lives[i].job
	}
	lives[len(lives)-1].job = "JobUniverse = 11\nNode = 1\nCurrentHosts = 2\n"
	run(t, lives)
}
