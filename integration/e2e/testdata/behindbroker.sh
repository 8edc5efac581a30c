# A personal pool whose access point is behind a connection broker: its daemons tell everybody an address at which nobody listens.
# Made under a user of its own. Arguments: path of the starter, ports of collector, access point and execution point, and "both" if the
# execution point is behind the broker too. Prints for each job, after a line "== NAME", what became of it.
set -eu
starter=$1 port=$2 apport=$3 epport=$4 behind=$5 user=broker$2
id $user >/dev/null 2>&1 || useradd -m -u $((21000 + port % 1000)) $user
top=/home/$user/pool
rm -rf $top
for dir in $top/cm $top/ap $top/ep; do mkdir -p $dir/log $dir/spool $dir/execute $dir/lock $dir/run; done

dir=$top/cm
configure >$dir/config
cat >>$dir/config <<C
DAEMON_LIST = MASTER, COLLECTOR, NEGOTIATOR
C
dir=$top/ap
configure >$dir/config
cat >>$dir/config <<C
DAEMON_LIST = MASTER, SCHEDD
SHARED_PORT_PORT = $apport
SHADOW_DEBUG = D_FULLDEBUG
JOB_DEFAULT_LEASE_DURATION = 300
C
dir=$top/ep
configure >$dir/config
cat >>$dir/config <<C
DAEMON_LIST = MASTER, STARTD
SHARED_PORT_PORT = $epport
NUM_CPUS = 4
NUM_SLOTS = 4
MEMORY = 2048
STARTER = $starter
POD_STARTER_BACKEND = local
STARTER_DEBUG = D_FULLDEBUG
STARTER_INITIAL_UPDATE_INTERVAL = 2
FILETRANSFER_PLUGINS = \$(FILETRANSFER_PLUGINS), $top/plugin
C
# Nothing listens at the address that they tell, and only daemons of the same network name know another. Readers need no authentication,
# as in HTCondor's recommended configuration.
behind() { printf 'CCB_ADDRESS = $(COLLECTOR_HOST)\nTCP_FORWARDING_HOST = %s\nPRIVATE_NETWORK_NAME = %s\nPRIVATE_NETWORK_INTERFACE = 127.0.0.1\nCCB_RECONNECT_TIME = 2\n' $1 $2; }
behind 127.0.0.99 ap >>$top/ap/config
[ $behind != both ] || behind 127.0.0.98 ep >>$top/ep/config
for name in cm ap ep; do
	cat >>$top/$name/config <<C
MASTER_NAME = $name
SCHEDD_NAME = $name
STARTD_NAME = $name
UPDATE_INTERVAL = 5
MASTER_BACKOFF_CONSTANT = 1
SEC_DEFAULT_ENCRYPTION = REQUIRED
SEC_DEFAULT_INTEGRITY = REQUIRED
SEC_READ_AUTHENTICATION = OPTIONAL
SEC_CLIENT_AUTHENTICATION = OPTIONAL
C
done
# word://TEXT is a file with that text.
cat >$top/plugin <<'P'
#!/usr/bin/python3
import re, sys
if "-classad" in sys.argv:
    print('MultipleFileSupport = true\nPluginType = "FileTransfer"\nSupportedMethods = "word"\nPluginVersion = "1"\nProtocolVersion = 2')
    sys.exit()
arg = dict(zip(sys.argv[1::2], sys.argv[2::2]))
with open(arg["-outfile"], "w") as out:
    for ad in re.findall(r"\[[^\]]*\]", open(arg["-infile"]).read()):
        name, url = re.search(r'LocalFileName = "([^"]*)"', ad)[1], re.search(r'Url = "([^"]*)"', ad)[1]
        text = url.partition("://")[2] + "\n"
        open(name, "w").write(text)
        out.write(f'[ TransferSuccess = true; TransferProtocol = "word"; TransferType = "download"; TransferFileName = "{name}"; TransferUrl = "{url}"; TransferFileBytes = {len(text)}; TransferTotalBytes = {len(text)} ]\n')
P
# The job waits for the file $1, if that is given.
# 23.9 makes keys only for readers who authenticate.
case $(condor_version) in *" 23."*)
	for name in cm ap ep; do printf 'SEC_READ_ENCRYPTION = OPTIONAL\nSEC_READ_INTEGRITY = OPTIONAL\n' >>$top/$name/config; done ;;
esac
cat >$top/job.sh <<'J'
#!/bin/sh
cat input
cat by-plugin
chirp=$(condor_config_val LIBEXEC)/condor_chirp
$chirp set_job_attr Chirped '"yes"' && $chirp get_job_attr Chirped
$chirp fetch "$2/input" fetched && cat fetched
while [ -n "$1" ] && [ ! -e "$1" ]; do sleep 0.2; done
head -c 3000000 /dev/zero >result
echo made >>result
exit 5
J
echo "input came" >$top/input
cat >$top/plain.sub <<J
executable = $top/job.sh
transfer_input_files = $top/input, word://by-plugin
should_transfer_files = YES
when_to_transfer_output = ON_EXIT
+WantIOProxy = True
initialdir = $top
request_memory = 64
J
chmod 755 $top/job.sh $top/plugin
chown -R $user:$user $top
# The script itself is the standard input, of which nothing may read.
as() { su $user -s /bin/sh -c "cd $top; export CONDOR_CONFIG=$top/$1/config; $2" </dev/null; }
trap 'for d in ap ep cm; do as $d "condor_off -master -fast" >/dev/null 2>&1; done' EXIT
# await WHAT COMMAND [TRIES]: until the command prints something.
await() {
	for try in $(seq ${3:-480}); do
		[ -n "$(eval "$2" 2>/dev/null)" ] && return 0
		sleep 0.25
	done
	echo "in vain: $1"
	return 1
}
here() { await "the access point at its broker" 'as ap "condor_status -schedd -af MyAddress" | grep CCBID' && await slots 'as ap "condor_status -af Name" | grep slot4'; }
as cm condor_master
as ap condor_master
as ep condor_master
here
echo "== address"
as ap "condor_status -schedd -af MyAddress"

submit() { # NAME, lines of the submit file
	name=$1
	shift
	mkdir -p $top/$name
	{
		cat $top/plain.sub
		printf '%s\n' "output = $top/$name/out" "error = $top/$name/err" "log = $top/$name/log" "transfer_output_remaps = \"result=$top/$name/result\"" "$@" queue
	} >$top/$name.sub
	chown -R $user $top/$name
	as ap "condor_submit -terse $name.sub" | cut -d' ' -f1 >$top/$name/id
}
waiting() { submit $1 "arguments = $top/$1/go $top" && running $1; }
running() { await "$1 to run" "grep '^001' $top/$1/log"; }
go() { as cm "touch $top/$1/go"; }
ended() { as ap "condor_wait -wait 90 $1/log" >/dev/null || echo "in vain: the end of $1"; shown $1; }
# shown NAME: what became of the job.
shown() {
	echo "== $1"
	echo $(grep -h '^[0-9][0-9][0-9] ' $top/$1/log | cut -c1-3 | grep -vE '006|028|040' | uniq)
	grep -o 'termination.*' $top/$1/log || true
	cat $top/$1/out $top/$1/err 2>/dev/null || true
	[ ! -e $top/$1/result ] || echo "result: $(tail -n 1 $top/$1/result | tr -d '\000') $(wc -c <$top/$1/result)"
}

submit files "arguments = \"'' $top\""
waiting visited
waiting reconnected
[ $behind = both ] || waiting restarted
ended files

# Tools of users wait at ports of their own, which nobody reaches if both sides are behind a broker.
[ $behind = both ] || {
cat >$top/visit <<V
timeout 30 condor_ssh_to_job -ssh "ssh -o LogLevel=ERROR" $(cat $top/visited/id) 'cat input; ls by-plugin'
echo "status \$?"
V
echo "== visit"
as ap "$(cat $top/visit)" 2>&1
echo "== tail"
as ap "timeout 30 condor_tail $(cat $top/visited/id)" 2>&1
}
as ap "condor_rm $(cat $top/visited/id)" >/dev/null
await "the job to be removed" "grep '^009' $top/visited/log" || true
shown visited

# The access point is killed, with its shadows; new ones take the jobs up again.
for daemon in schedd shadow; do
	for pid in $(pgrep -u $user condor_$daemon); do kill -9 $pid 2>/dev/null || true; done
done
await "shadows that are back" "grep '^023' $top/reconnected/log" || true
[ $behind = both ] || await "shadows that are back" "grep '^023' $top/restarted/log" || true
go reconnected
ended reconnected

finish() {
	echo "== ways"
	grep -h -o 'reached through its broker.*' $top/ep/log/StarterLog.slot1* | sed 's/daemon=.*//' | sort | uniq -c
	echo "== log"
	tail -n 100 $top/ep/log/StarterLog.slot1*
	exit 0
}
[ $behind != both ] || finish

# The broker starts again.
as cm "condor_restart -daemon collector" >/dev/null
sleep 1
here
go restarted
ended restarted

# The broker is away when a job has made its output, and comes back when the starter has missed it.
waiting away
as cm "condor_off -daemon collector" >/dev/null
await "the end of the broker" "pgrep -u $user condor_collector >/dev/null || echo gone"
go away
await "what becomes of the job" "grep -h 'out of reach' $top/ep/log/StarterLog.slot*; grep -E '^(004|022)' $top/away/log" 100 || true
as cm "condor_on -daemon collector" >/dev/null
ended away

# The broker answers nobody who reads.
waiting refused
cp $top/cm/config $top/cm/before
echo 'DENY_READ = *' >>$top/cm/config
as cm condor_reconfig >/dev/null
await "the broker to refuse" "as ap 'condor_status -schedd' >/dev/null 2>&1 || echo refused"
go refused
await "what becomes of the job" "grep '^004' $top/refused/log" || true
cp $top/cm/before $top/cm/config
as cm condor_reconfig >/dev/null
ended refused
echo "== why"
grep -A1 '^021' $top/refused/log | tail -n 1
finish
