# awaited repeats a command until it succeeds, for so many seconds at most.
awaited() {
	tries=$(($1 * 5))
	shift
	for try in $(seq $tries); do
		"$@" && return
		sleep 0.2
	done
	echo "waited in vain: $*"
	return 1
}
