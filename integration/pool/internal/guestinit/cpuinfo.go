package guestinit

import "strings"

// speed is a line of proc_cpuinfo(5). Its value is an invention.
const speed = "cpu MHz\t\t: 2000.000\n"

// withSpeed is the text of /proc/cpuinfo with a clock speed for every processor that has none. Processors are separated
// by empty lines.
func withSpeed(text string) string {
	var all []string
	for block := range strings.SplitSeq(strings.TrimRight(text, "\n"), "\n\n") {
		if !strings.Contains(block, "cpu MHz") {
			block += "\n" + strings.TrimRight(speed, "\n")
		}
		all = append(all, block)
	}
	return strings.Join(all, "\n\n") + "\n\n"
}
