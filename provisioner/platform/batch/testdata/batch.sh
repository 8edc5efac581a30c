#!/bin/sh
# A batch system in a directory, with a file for each job: NAME ID STATE NOTE CREATED BEGAN ENDED REASON.
# The files deny, lose, hang, fail and begin in the directory make it refuse or misbehave.
dir=$1 verb=$2
shift 2
case $verb in
submit)
	name=$1 note=$2 file=${3:-/dev/stdin}
	cat "$file" >"$dir/text"
	if [ -e "$dir/deny" ]; then
		echo "error: the quota is used up" >&2
		exit 1
	fi
	[ ! -e "$dir/hang" ] || exec sleep 1000
	echo "$name" >>"$dir/submitted"
	id=$(wc -l <"$dir/submitted")
	echo "$name $id.0 Q $note $(date +%s) 0 0 -" >"$dir/new"
	mv "$dir/new" "$dir/$name.$id.job"
	[ ! -e "$dir/lose" ] || exec sleep 1000
	echo "1 job is in the queue: $id.0."
	;;
status)
	echo "NAME ID STATE"
	echo "another's job 17 X"
	cat "$dir"/*.job 2>/dev/null
	[ ! -e "$dir/fail" ] || exit 3
	exit 0
	;;
cancel)
	file=$(ls "$dir"/*."${1%.0}".job 2>/dev/null) || exit 1
	# It begins a moment before.
	[ ! -e "$dir/begin" ] || sed -i 's/ Q / R /' "$file"
	if grep -q ' R ' "$file"; then
		echo "it runs" >&2
		exit 1
	fi
	rm "$file"
	;;
esac
