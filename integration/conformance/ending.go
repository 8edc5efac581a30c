package conformance

import (
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Ending is what became of a case's jobs, in the words of endings/: a line with
// the course of each job, and lines with the files that came back.
type Ending []string

// course says of each kind of event what became of the job. The shadow writes events
// of file transfer beside the others, and those of sizes when it measures: neither
// decides what becomes of a job.
var course = map[string]string{
	"000": "submitted",
	"001": "executing",
	"003": "checkpointed",
	"004": "evicted",
	"005": "terminated",
	"006": "",
	"007": "shadow exception",
	"008": "noted",
	"009": "aborted",
	"010": "suspended",
	"011": "unsuspended",
	"012": "held",
	"013": "released",
	"021": "error",
	"022": "disconnected",
	"023": "reconnected",
	"024": "not reconnected",
	"028": "", // job ad information, which a user asks for
	"033": "attribute changed",
	"040": "",
}

// Where events tell how a job ended.
var (
	exitPattern   = regexp.MustCompile(`^\(1\) Normal termination \(return value (-?\d+)\)`)
	signalPattern = regexp.MustCompile(`^\(0\) Abnormal termination \(signal (\d+)\)`)
	holdPattern   = regexp.MustCompile(`^Code (\d+) Subcode (-?\d+)`)
)

// Ending tells what became of the jobs.
func (o Observation) Ending() Ending {
	var found Ending
	for i, job := range o.Jobs {
		line := job.course()
		if last := len(found) - 1; last >= 0 && strings.HasSuffix(found[last], ": "+line) {
			first, _, _ := strings.Cut(strings.TrimPrefix(found[last], "job "), ":")
			first, _, _ = strings.Cut(first, "-")
			found[last] = fmt.Sprintf("job %s-%d: %s", first, i, line)
			continue
		}
		found = append(found, fmt.Sprintf("job %d: %s", i, line))
	}
	if len(o.Jobs) == 1 {
		found[0] = strings.TrimPrefix(found[0], "job 0: ")
	}
	return append(found, o.back()...)
}

// few is how many new files of a directory an ending names.
const few = 12

// back are the files that came back, or have changed, in order. Of a directory with
// many it is their number, and of one with some the directory is not named.
func (o Observation) back() []string {
	var names []string
	in := map[string]int{}
	for _, name := range slices.Sorted(maps.Keys(o.Files)) {
		_, content, _ := strings.Cut(o.Files[name], " ")
		if sent, ok := o.Sent[name]; ok && sent == content {
			continue
		}
		names = append(names, name)
		in[path.Dir(name)]++
	}
	var lines []string
	told := map[string]bool{}
	for _, name := range names {
		dir := path.Dir(name)
		switch {
		case strings.HasPrefix(o.Files[name], "d") && o.holds(name):
		case in[dir] <= few:
			lines = append(lines, "back: "+back(name, o.Files[name]))
		case !told[dir]:
			told[dir] = true
			lines = append(lines, fmt.Sprintf("back: %s/ with %d files", dir, in[dir]))
		}
	}
	return lines
}

// holds reports whether something is in the directory.
func (o Observation) holds(dir string) bool {
	for name := range o.Files {
		if strings.HasPrefix(name, dir+"/") {
			return true
		}
	}
	return false
}

// course is the job's events in order, as one line.
func (r Record) course() string {
	var steps []string
	for _, line := range r.Events {
		number, text, _ := strings.Cut(line, " ")
		text, inside := strings.CutPrefix(text, "  ")
		if !inside {
			word, known := course[number]
			if !known {
				word = "event " + number
			}
			if word != "" {
				steps = append(steps, word)
			}
			continue
		}
		text = strings.TrimSpace(text)
		for _, end := range []struct {
			of      string
			pattern *regexp.Regexp
			words   string
		}{
			{"005", exitPattern, "exit code %s"},
			{"005", signalPattern, "signal %s"},
			{"012", holdPattern, "held %s/%s"},
		} {
			m := end.pattern.FindStringSubmatch(text)
			if number != end.of || m == nil || len(steps) == 0 {
				continue
			}
			values := make([]any, len(m)-1)
			for i := range values {
				values[i] = m[i+1]
			}
			steps[len(steps)-1] = fmt.Sprintf(end.words, values...)
		}
	}
	return strings.Join(steps, ", ")
}

// short is the length of quoted content up to which an ending has it.
const short = 60

// back is a file that came back: its name, and what is in it if that is short. The
// value is that of [files].
func back(name, value string) string {
	mode, content, _ := strings.Cut(value, " ")
	if strings.ContainsFunc(name, func(c rune) bool { return c == utf8.RuneError || !unicode.IsPrint(c) }) || strings.TrimSpace(name) != name {
		name = strconv.Quote(name)
	}
	switch {
	case strings.HasPrefix(mode, "d"):
		return name + "/"
	case strings.HasPrefix(mode, "L"):
		return name + " -> " + strings.TrimPrefix(content, "to ")
	case strings.HasPrefix(content, `"`) && len(content) <= short:
		return name + " " + content
	}
	return name
}
