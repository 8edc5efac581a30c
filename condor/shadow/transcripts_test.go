package shadow

const (
	begins = `register_starter_info slot1@glidein@127-0-0-1.pool.invalid
get_sec_session_info 127-0-0-1.pool.invalid
register_job_info Starting
`
	runs = `request_guidance JobSetup: CarryOn
request_guidance JobEnvironment: StartJob
begin_execution done
register_job_info Running
`
	// ended is how shadows of 25.14 answer, although they recorded the event.
	ended = "event_notification ActivationExecutionExit: -3\nregister_job_info Exited\n"
)

// transcripts are the calls of a case and their results. Shadows of 23.9 are not
// asked for guidance.
var transcripts = map[[2]string]string{
	{"23.9", "plain"}: `get_job_info alice job.sh out "one two' 'words"
` + begins + `begin_execution done
register_job_info Running
event_notification ActivationExecutionExit: 0
register_job_info Exited
register_job_info Exited
job_exit 0x0 100`,
	{"23.9", "held"}: `get_job_info alice probe out "ready forever"
` + begins + `begin_execution done
register_job_info Running
register_job_info Running
event_notification ActivationExecutionExit: 0
register_job_info Exited
job_exit 0xf 107`,
	{"25.14", "plain"}: `get_job_info alice job.sh out "one two' 'words"
` + begins + runs + ended + `register_job_info Exited
job_exit 0x0 100`,
	{"25.14", "suspended"}: `get_job_info alice probe out "trap=kept:3 ready forever"
` + begins + runs + `register_job_info Suspended
register_job_info Running
register_job_info Running
` + ended + `register_job_info Exited
job_exit 0x300 100`,
	{"25.14", "checkpointed"}: `get_job_info alice probe out "resume=kept:0 file=kept:state exit=85"
` + begins + runs + ended + `event_notification SuccessfulCheckpoint: 0
begin_execution done
register_job_info Running
` + ended + `register_job_info Exited
job_exit 0x0 100`,
	{"25.14", "no-input"}: `get_job_info alice probe out "out=hello"
` + begins + `request_guidance JobSetup: CarryOn
request_guidance JobEnvironment: RunDiagnostic
event_notification DiagnosticResult: 0
request_guidance JobEnvironment: Abort
ulog RemoteErrorEvent Failed to transfer files: SHADOW at 127.0.0.1 failed to send file(s) to <127.0.0.1:PORT>: |Error: 1 total failures: first failure: reading from file HERE/never: (errno 2) No such file or directory; STARTER failed to receive file(s) from <127.0.0.1:PORT> 13`,
	{"25.14", "no-program"}: `get_job_info alice never out ""
` + begins + `request_guidance JobSetup: CarryOn
request_guidance JobEnvironment: StartJob
begin_execution done
ulog RemoteErrorEvent Failed to execute '/never': there is no such file in the container (errno=2: 'No such file or directory') 6`,
	{"25.14", "refused-output"}: `get_job_info alice probe out "file=new:1"
` + begins + runs + ended + `job_termination 0
ulog RemoteErrorEvent STARTER at 127.0.0.1 failed to send file(s) to <127.0.0.1:PORT>; SHADOW at 127.0.0.1 - |Error: writing to file /never/there: (errno 2) No such file or directory 12`,
	{"25.14", "chirp"}: `get_job_info alice probe out "copy chirp=requests exit=3"
` + begins + `request_guidance JobSetup: CarryOn
request_guidance JobEnvironment: StartJob
open 0 438 "data": 4
open 769 438 "out": 5
begin_execution done
lseek 4 0 0: 0
read 4 65536: 19 "on the submit side\n"
lseek 4 19 0: 19
read 4 65536: 0
close 4: 0
get_job_attr JobUniverse: 5
lseek 5 0 0: 0
get_job_attr NoSuchAttribute: UNDEFINED
write 5 37: 37
set_job_attr MyNumber: 41
lseek 5 37 0: 37
ulog GenericEvent a word 0
write 5 72: 72
get_file_info_new "data": 0 "remote:HERE/data"
lseek 5 109 0: 109
getfile "data": 19 "on the submit side\n"
getfile "none": refused: no such file or directory
write 5 84: 84
open 769 420 "sent": 4
lseek 5 193 0: 193
write 4 5: 5
write 5 75: 75
close 4: 0
lseek 5 268 0: 268
write 5 22: 22
get_file_info_new "data": 0 "remote:HERE/data"
open 0 0 "HERE/data": 4
fstat 4: 0 and 13 numbers
fstat 4: 0 and 13 numbers
read 4 5: 5 "on th"
lseek 4 2 0: 2
lseek 5 290 0: 290
pread 4 3 1: 3 "n t"
fstat 4: 0 and 13 numbers
write 5 84: 84
sread 4 4 0 2 4: 4 "onhe"
lseek 5 374 0: 374
write 5 38: 38
lseek 5 412 0: 412
close 4: 0
write 5 26: 26
stat "none": refused: no such file or directory
lseek 5 438 0: 438
write 5 13: 13
lseek 5 451 0: 451
statfs ".": 0 and 7 numbers
write 5 14: 14
lseek 5 465 0: 465
write 5 24: 24
mkdir "made" 448: 0
lseek 5 489 0: 489
write 5 18: 18
rename "sent" "made/sent": 0
symlink "sent" "made/link": 0
lseek 5 507 0: 507
write 5 25: 25
readlink "made/link" 10: 4 "sent"
lseek 5 532 0: 532
getdir "made": 11 "sent\nlink\n\n"
write 5 26: 26
lseek 5 558 0: 558
write 5 58: 58
access "made/sent" 4: 0
access "none" 0: refused: no such file or directory
lseek 5 616 0: 616
rmdir "made": refused: directory not empty
write 5 22: 22
rmall "made": refused: directory not empty
lseek 5 638 0: 638
unlink "none": refused: no such file or directory
write 5 34: 34
whoami 20: 6 "CONDOR"
lseek 5 672 0: 672
whoareyou "host" 20: 7 "UNKNOWN"
write 5 52: 52
lseek 5 724 0: 724
write 5 29: 29
fsync 5: 0
close 5: 0
register_job_info Running
` + ended + `register_job_info Exited
job_exit 0x300 100`,
}
