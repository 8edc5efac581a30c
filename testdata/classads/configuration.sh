#!/bin/sh
# Prints the values in HTCondor's default configuration, and in that of each policy
# and feature, which HTCondor can read as expressions and which are no mere names.
# Runs where HTCondor 25.14 and its Python bindings are installed:
#
#   pool ep --stock sh -s <configuration.sh >configuration.txt
export _CONDOR_FULL_HOSTNAME=machine.pool.invalid _CONDOR_HOSTNAME=machine _CONDOR_DETECTED_MEMORY=24105
made=$(mktemp -d)
dump() {
	CONDOR_CONFIG=$1 condor_config_val -dump -expand 2>/dev/null
}
{
	dump ONLY_ENV
	for category in policy feature; do
		CONDOR_CONFIG=ONLY_ENV condor_config_val use $category | sed 1d | while read -r template; do
			for argument in '' '(100)'; do
				echo "use $category : $template$argument" >"$made/config"
				dump "$made/config"
			done
		done
	done
} | sed -n 's/^[ \t]*[A-Za-z_.][A-Za-z_.0-9]* *= *//p' | grep -v "$(uname -n)" | sed 's/(180.0 + -*[0-9]*)/(180.0 + 7)/; s/\(3600 + \)-*[0-9]*/\17/' | grep -v -e "[.]so$" -e "[.]org$" | sort -u | python3 -c '
import classad2, htcondor2, sys

for line in map(str.strip, sys.stdin):
    try:
        classad2.ExprTree(line)
    except Exception:
        continue
    if line and "$(" not in line and not line.replace("_", "").replace("-", "").isalnum():
        print(line)'
rm -r "$made"
