package config

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// subsystem is the name under which the starter's own knobs may be written,
// STARTER.KNOB.
const subsystem = "STARTER"

// entry is one knob as condor_config_val prints it.
type entry struct {
	value string // macros expanded
	at    string // "/etc/condor/condor_config, line 9", "<Environment>", "<Default>"
}

// The tool prints, per knob (condor_tools/config_val.cpp:main),
//
//	NAME = value                  or   NAME @=end
//	                                      first line
//	                                      second line
//	                                   @end
//	 # at: /etc/condor/condor_config, line 9
//	 # raw: $(OTHER)
//	 # default: 5
//
// A value of the left form holds line feeds when a macro in it did, so only
// the "at" line ends it. Several lines of raw or default begin with " #" too.
const (
	atMark      = " # at: "
	rawMark     = " # raw: "
	noteMark    = " #"
	hereMark    = " @=end"
	hereEnd     = "@end"
	hereIndent  = "   "
	assignMark  = " = "
	emptyAssign = " ="
)

// parse reads the output of condor_config_val -dump -expanded -verbose.
func parse(text, localName string, pid int) (*Config, error) {
	all := make(map[string]entry, 1500)
	c := &Config{local: localName}
	specials := map[string]string{"PID": strconv.Itoa(pid)}
	late := map[string]string{} // raw values that name the tool's process
	lines := lineReader{text: text}
	for {
		line, ok := lines.next()
		if !ok {
			break
		}
		if line == "" || line[0] == '#' || strings.HasPrefix(line, noteMark) {
			continue
		}
		name, e, err := lines.knob(line)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", lines.number, err)
		}
		key := strings.ToUpper(name)
		all[key] = e
		if raw := lines.raw(); pidMacro.MatchString(raw) {
			late[key] = raw
		}
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("no knob is set; is CONDOR_CONFIG right?")
	}
	all["PID"] = entry{value: specials["PID"], at: "<Detected>"}
	c.knobs = newTable(all)
	for key, raw := range late {
		e := all[key]
		e.value = c.Expand(raw, specials)
		c.knobs.set(key, e)
	}
	return c, nil
}

// pidMacro finds values that contain the process id of the program that expands
// them, which is the tool.
var pidMacro = regexp.MustCompile(`(?i)\$\(PID[:)]`)

// lineReader walks over the lines of a dump.
type lineReader struct {
	text   string
	number int
}

func (r *lineReader) next() (string, bool) {
	if r.text == "" {
		return "", false
	}
	r.number++
	line, rest, _ := strings.Cut(r.text, "\n")
	r.text = rest
	return line, true
}

func (r *lineReader) peek() string {
	line, _, _ := strings.Cut(r.text, "\n")
	return line
}

// knob reads one value up to and including its "at" line.
func (r *lineReader) knob(first string) (string, entry, error) {
	if name, ok := strings.CutSuffix(first, hereMark); ok && isName(name) {
		var value []string
		for {
			line, ok := r.next()
			if !ok {
				return "", entry{}, fmt.Errorf("the value of %s does not end with %s", name, hereEnd)
			}
			if line == hereEnd && strings.HasPrefix(r.peek(), atMark) {
				break
			}
			value = append(value, strings.TrimPrefix(line, hereIndent))
		}
		at, err := r.location(name)
		return name, entry{strings.Join(value, "\n"), at}, err
	}
	name, value, ok := strings.Cut(first, assignMark)
	if !ok {
		name, ok = strings.CutSuffix(first, emptyAssign)
	}
	if !ok || !isName(name) {
		return "", entry{}, fmt.Errorf("%q is not NAME = value", cut(first))
	}
	for !strings.HasPrefix(r.peek(), atMark) {
		line, ok := r.next()
		if !ok {
			return "", entry{}, fmt.Errorf("what is known about %s ends early", name)
		}
		value += "\n" + line
	}
	at, err := r.location(name)
	return name, entry{strings.TrimSpace(value), at}, err
}

func (r *lineReader) location(name string) (string, error) {
	line, _ := r.next()
	at, ok := strings.CutPrefix(line, atMark)
	if !ok {
		return "", fmt.Errorf("%s has no %q line", name, strings.TrimSpace(atMark))
	}
	return at, nil
}

// raw reads the "raw" note that follows, "" if there is none.
func (r *lineReader) raw() string {
	raw, ok := strings.CutPrefix(r.peek(), rawMark)
	if !ok {
		return ""
	}
	r.next()
	for {
		more, ok := strings.CutPrefix(r.peek(), noteMark+"     ")
		if !ok {
			return raw
		}
		r.next()
		raw += "\n" + more
	}
}

// isName tells whether s can be the name of a knob: it has no blanks and no
// characters that mean something in the macro language.
func isName(s string) bool {
	return s != "" && !strings.ContainsAny(s, " \t=()$\"'")
}

// cut shortens a text that came from outside for an error message.
func cut(s string) string {
	const most = 120
	if len(s) <= most {
		return s
	}
	return s[:most] + "..."
}
