package procfamily

// Lookup describes one process.
func Lookup(proc string, pid int) (Process, error) {
	return readStat(proc, pid, make([]byte, statusSize))
}
