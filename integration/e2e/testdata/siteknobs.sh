# A personal pool whose site looks into sandboxes, and has maps for ClassAds. Arguments: path of the starter, port.
# Prints, each after a line "== NAME", what jobs printed, the last of which has an input that is remapped into a directory
# that is not there; the sandboxes that were kept; the tickets of jobs from an access point that is trusted, or not; how often a
# job was vacated that got no common file, and its output; how large slots say that the file is; what becomes of a job whose claim has no secret of a session; and what
# the log says where sandboxes must be encrypted.
set -eu
starter=$1 port=$2
dir=/var/tmp/siteknobs.$port
rm -rf $dir
mkdir -p $dir/log $dir/spool $dir/execute $dir/lock $dir/run $dir/kept $dir/jobs
configure >$dir/config
cat >$dir/map <<'M'
# method, name, niceness
*     alice               never
nice  /^(.)lice@.*\.org$/i  "3, \1"
*     /^A/                first,7
M
cat >>$dir/config <<C
NUM_CPUS = 1
NUM_SLOTS = 1
NUM_SLOTS_TYPE_1 = 1
SLOT_TYPE_1_PARTITIONABLE = True
STARTER_SET_SLOT_SPLIT_CLAIM_IN_JOB_ENV = SITE_SPLIT_CLAIM
STARTER = $starter
POD_STARTER_BACKEND = local
POD_STARTER_PAYLOAD_UID = 20301
STARTER_DEBUG = D_FULLDEBUG
STARTER_MOVE_WORKING_DIR_ON_EXIT = $dir/kept/\$(PID)
STARTER_REMOVE_EXECUTE_DIR_DELAY_TIME = 1
ALLOW_TRANSFER_REMAP_TO_MKDIR = False
STARTER_CLASSAD_USER_MAP_NAMES = people
CLASSAD_USER_MAPFILE_people = $dir/map
# Numbers are what both starters make of the job's own attribute, and of the site's map in it.
JOB_RENICE_INCREMENT = int(userMap(MapName, Name, "7", "11")) + size(userHome("root"))
C
cat >$dir/jobs/job.sh <<'J'
#!/bin/sh
nice
echo "split claims: $(env | grep -c '^SITE_SPLIT_CLAIM="<.*>#.*"$')"
echo made >result
J
cat >$dir/jobs/job.sub <<J
executable = $dir/jobs/job.sh
should_transfer_files = YES
when_to_transfer_output = ON_EXIT
transfer_input_files = $dir/map
output = job.\$(Process)
error = err.\$(Process)
log = job.log
initialdir = $dir/jobs
My.Name = "Alice@site.org"
My.MapName = "\$(Map)"
My.TransferInputRemaps = "map=\$(NewName)"
queue Map, NewName from (
	people, other
	people.nice, other
	nobody, other
	people, new/map
)
J
chmod 755 $dir/jobs/job.sh
id personal >/dev/null 2>&1 || useradd -m -u 20007 personal
chown -R personal: $dir/jobs
chown condor: $dir/spool $dir/log $dir/lock $dir/execute $dir/run $dir/kept
export CONDOR_CONFIG=$dir/config
condor_master
trap 'condor_off -master -fast >/dev/null 2>&1' EXIT
wait_for() { # what is printed by a command
	for try in $(seq 150); do
		"$@" && return
		sleep 0.2
	done
	return 1
}
offered() { condor_status -af HasFileTransfer 2>/dev/null | grep -q true; }
ended() { [ "$(condor_q -allusers -constraint 'JobStatus != 5' -af ClusterId 2>/dev/null | wc -l)" = 0 ]; }
wait_for offered
su personal -s /bin/sh -c "CONDOR_CONFIG=$dir/config condor_submit $dir/jobs/job.sub" >/dev/null
wait_for ended || true
for job in 0 1 2 3; do
	echo "== job $job"
	cat $dir/jobs/job.$job $dir/jobs/err.$job
done
echo "== kept"
wait_for sh -c "[ \$(ls $dir/kept | wc -l) = 4 ]" || true
for kept in $dir/kept/*; do
	find $kept -name result | sed "s|$kept/||"
done
echo "== rights"
stat -c '%a %U' $dir/kept/*
echo "== left"
ls $dir/execute
echo "== slept"
cat $dir/log/StarterLog.slot1* | grep -c "Sleeping for 1 seconds before removing execute directory" || true
# Tickets have the name of the account that a job would have. The access point's name is not in the domain.
mkdir -m 755 $dir/tickets
for account in personal games; do (umask 077 && echo ticket >$dir/tickets/$account.cc); done
printf '#!/bin/sh\necho "${KRB5CCNAME##*/}"\n' >$dir/jobs/account.sh
chmod 755 $dir/jobs/account.sh
cat >>$dir/config <<C
STARTER_MOVE_WORKING_DIR_ON_EXIT =
STARTER.SEC_CREDENTIAL_DIRECTORY_KRB = $dir/tickets
NOBODY_SLOT_USER = games
C
account() { # NAME, and a line of configuration, which a starter reads anew for each job
	echo "$2" >>$dir/config
	printf '%s\n' "executable = $dir/jobs/account.sh" "should_transfer_files = YES" "output = account.$1" "log = job.log" \
		"initialdir = $dir/jobs" "My.SendCredential = True" queue >$dir/jobs/account.sub
	su personal -s /bin/sh -c "CONDOR_CONFIG=$dir/config condor_submit -terse $dir/jobs/account.sub" >/dev/null
	wait_for ended || true
	echo "== account $1"
	cat $dir/jobs/account.$1
}
account local "TRUST_UID_DOMAIN = False"
account stranger "TRUST_LOCAL_UID_DOMAIN = False"
account trusted "TRUST_UID_DOMAIN = True"
# A common file, of which the starter says the first time that it could not give it to the job.
printf '%s\n' "executable = /bin/cat" "transfer_executable = False" "arguments = map" "should_transfer_files = YES" "output = mapped" "log = job.log" \
	"initialdir = $dir/jobs" "My.CommonInputFiles = \"$dir/map\"" "My.ReportMappingFailure = NumVacates is undefined" queue >$dir/jobs/mapped.sub
su personal -s /bin/sh -c "CONDOR_CONFIG=$dir/config condor_submit -terse $dir/jobs/mapped.sub" >/dev/null
wait_for ended || true
echo "== mapped"
condor_history -limit 1 -af:t NumVacates NumShadowStarts
head -n 1 $dir/jobs/mapped
# The starter told the shadow, which told the startd.
wait_for sh -c "condor_status -af catalog_1.CatalogSize | grep -qv undefined" || true
echo "== common size"
condor_status -af catalog_1.CatalogSize | grep -v undefined | sort -u
# Claims without the secret of a session.
echo "SEC_ENABLE_MATCH_PASSWORD_AUTHENTICATION = False" >>$dir/config
condor_reconfig >/dev/null
condor_restart -startd >/dev/null
sed -i 's/account.trusted/account.sessionless/; s/^log = .*/log = sessionless.log/' $dir/jobs/account.sub
su personal -s /bin/sh -c "CONDOR_CONFIG=$dir/config condor_submit -terse $dir/jobs/account.sub" >/dev/null
wait_for grep -qE '^(004|005)' $dir/jobs/sessionless.log || true
echo "== sessionless"
grep -ohE 'Normal termination.*|Reason: .*' $dir/jobs/sessionless.log | head -n 1
condor_rm -all >/dev/null 2>&1 || true
wait_for ended || true
# The same, where nobody has to authenticate.
echo "SEC_DEFAULT_AUTHENTICATION = OPTIONAL" >>$dir/config
condor_reconfig >/dev/null
sed -i 's/sessionless/openly/' $dir/jobs/account.sub
su personal -s /bin/sh -c "CONDOR_CONFIG=$dir/config condor_submit -terse $dir/jobs/account.sub" >/dev/null
wait_for grep -qE '^(004|005)' $dir/jobs/openly.log || true
echo "== openly"
grep -ohE 'Normal termination.*|Reason: .*' $dir/jobs/openly.log | head -n 1
condor_rm -all >/dev/null 2>&1 || true
wait_for ended || true
[ $starter != /usr/sbin/condor_starter ] || exit 0
echo "== encrypted"
echo "ENCRYPT_EXECUTE_DIRECTORY = True" >>$dir/config
condor_restart -startd >/dev/null
wait_for grep -q "ENCRYPT_EXECUTE_DIRECTORY" $dir/log/StarterLog.testing || true
grep -h "ENCRYPT_EXECUTE_DIRECTORY" $dir/log/StarterLog.testing | tail -n 1
echo "== log"
tail -n 60 $dir/log/StarterLog.slot1*
cat $dir/log/StarterLog.testing
