package lives_test

import (
	"syscall"
	"testing"

	"podstarter/condor/condortest"
	"podstarter/internal/cedar"
)

// TestLogInStocksWords: what the stock starter's log says at D_ALWAYS of these subjects, for
// which tools and people look, is in ours word for word; more may follow. The source of
// each line is HTCondor's file that its comment names.
func TestLogInStocksWords(t *testing.T) {
	const site = `if [ "$1" = -classad ]; then
	echo 'PluginType = "FileTransfer"'; echo 'SupportedMethods = "far"'; echo 'MultipleFileSupport = true'; echo 'PluginVersion = "1"'; echo 'ProtocolVersion = 2'
	exit
fi
exit 9
`
	environment := func(text string) func(*world) {
		return func(w *world) { w.shadow.On("request_guidance", 2, condortest.AnswerText(text)) }
	}
	ordered := func(give func(*world)) func(*world) {
		return func(w *world) {
			w.runs()
			give(w)
		}
	}
	lives := []life{
		{
			name: "a job", script: "exit 3", // os_proc.cpp, starter.cpp, starter_guidance.cpp, file_transfer.cpp
			want: want{last: "job_exit 768 100", log: []string{
				"Submitting machine is ", "Communicating with shadow <", "Initialized IO Proxy.", "Chirp config summary: IO ",
				"Requesting guidance from the shadow about JobSetup...",
				"File transfer completed successfully.",
				"Requesting guidance from the shadow about JobEnvironment...", "Received the following guidance: 'StartJob'", "Starting job as guided...",
				"Job 1.0 set to execute immediately", "Starting a VANILLA universe job with ID: 1.0",
				"IWD: @/execute/dir_", "Output file: @/execute/dir_", "Error file: @/execute/dir_", "Running job as user ",
				"About to exec @/execute/dir_", "Create_Process succeeded, pid=", "Process exited, pid=", ", status=3",
				"Removing @/execute/dir_", "All jobs have exited... starter exiting",
			}},
		},
		{
			name: "no such interpreter", files: map[string]string{"job.sh": "#!/no/sh\n"}, // os_proc.cpp, daemon_core.cpp
			want: want{last: "error 6/2", says: "': invalid interpreter (/no/sh) specified on first line of script (errno=2: 'No such file or directory'): ", log: []string{
				"Create_Process(@/execute/dir_", "job.sh,, ...) failed: invalid interpreter (/no/sh) specified on first line of script (errno=2: 'No such file or directory')",
			}},
		},
		{
			name: "a missing file", job: `TransferInput = "nothing"`, // file_transfer.cpp, starter.cpp, starter_guidance.cpp
			want: want{last: "error 13/2", log: []string{
				"DoDownload: ", "File transfer failed (status=0).", "Received the following guidance: 'RunDiagnostic'", "Running diagnostic 'send_ep_logs' as guided...",
				"... diagnostic 'send_ep_logs' not registered in param table (STARTER_DIAGNOSTIC_send_ep_logs).",
				"Carrying on according to guidance...", "Skipping execution of Job 1.0 because of setup failure.",
			}},
		},
		{
			name: "the transfer again", script: "exit 0", plan: environment(`Command = "RetryTransfer"`), // starter_guidance.cpp
			want: want{last: "job_exit 0 100", log: []string{"Received the following guidance: 'RetryTransfer'", "Retrying transfer as guided..."}},
		},
		{
			name: "abort", plan: environment(`Command = "Abort"`),
			want: want{code: 1, last: "error 1007/0", log: []string{"Received the following guidance: 'Abort'", "Aborting job as guided..."}},
		},
		{
			name: "unknown guidance", script: "exit 0", plan: environment(`Command = "MakeCoffee"`),
			want: want{last: "job_exit 0 100", log: []string{"Guidance 'MakeCoffee' unknown, carrying on."}},
		},
		{
			name: "no guidance", script: "exit 0", plan: func(w *world) { w.shadow.On("request_guidance", 0, condortest.Refuse(syscall.EINVAL)) },
			want: want{last: "job_exit 0 100", log: []string{"Problem requesting guidance from AP (", "); carrying on."}},
		},
		{
			name: "a plugin", job: `TransferInput = "far://host/bad"`, knobs: map[string]string{"FILETRANSFER_PLUGINS": "@/site/far"}, programs: map[string]string{"far": site}, // file_transfer.cpp
			want: want{last: "error 12/-1004", log: []string{
				"FILETRANSFER: invoking: @/site/far -infile @/execute/dir_", "FILETRANSFER: plugin @/site/far: exit_code 9 exit_by_signal: 0 exit_signal: 0",
			}},
		},
		{
			name: "vacated", script: waits, live: ordered(func(w *world) { w.vacate(condortest.Preempted) }), // starter.cpp
			want: want{last: "job_exit 15 107", log: []string{"Got vacate code=1011 subcode=0 reason=", "ShutdownGraceful all jobs."}},
		},
		{
			name: "vacated fast", script: waits, live: ordered(func(w *world) { w.vacate(condortest.DeactivatedFast) }),
			want: want{last: "job_exit 9 107", log: []string{"Got vacate code=1009 subcode=0 reason=", "ShutdownFast all jobs."}},
		},
		{
			name: "removed", script: waits, live: ordered(func(w *world) { w.signal(cedar.DCSigRemove) }),
			want: want{last: "job_exit 15 102", log: []string{"Remove all jobs"}},
		},
		{
			name: "SIGTERM", script: waits, live: ordered(func(w *world) { w.signal(int(syscall.SIGTERM)) }), // daemon_core_main.cpp
			want: want{last: "job_exit 15 107", log: []string{"Got SIGTERM. Performing graceful shutdown.", "ShutdownGraceful all jobs."}},
		},
		{
			name: "SIGQUIT", script: waits, live: ordered(func(w *world) { w.signal(int(syscall.SIGQUIT)) }),
			want: want{last: "job_exit 9 107", log: []string{"Got SIGQUIT.  Performing fast shutdown.", "ShutdownFast all jobs."}},
		},
		{
			name: "tickets", job: "SendCredential = true\nUidDomain = \"here.invalid\"", knobs: map[string]string{"SEC_CREDENTIAL_DIRECTORY_KRB": "@/site"}, // jic_shadow.cpp
			programs: map[string]string{"alice.cc": "tickets\n"}, script: "exit 0",
			want: want{last: "job_exit 0 100", log: []string{
				"Job has SendCredential=true; Attempting to fetch Kerberos credentials", "CREDS: configuring job to use KRB5CCNAME @/execute/dir_", "CREDS: will check credential again in 300 seconds",
			}},
		},
	}
	run(t, lives)
}
