package image

import (
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"

	"github.com/hashicorp/go-multierror"
)

// Map translates the names that jobs give to images into references. The first
// rule that matches wins.
type Map struct{ rules []mapRule }

// mapRule is one line of a map file.
type mapRule struct {
	source      string         // attribute that the name must come from, "*" for any
	literal     string         // the name itself; empty with an expression
	expr        *regexp.Regexp // matches any part of the name, unless anchored
	replacement string         // the reference, with \0 to \9
	at          string         // "file:line"
}

// Bounds on a map file.
const (
	maxMapBytes = 4 << 20
	maxMapRules = 20000
)

// ReadMap reads a map file. Errors list every wrong line.
func ReadMap(path string) (*Map, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxMapBytes+1))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	return ParseMap(path, string(text))
}

// ParseMap reads the text of a map file, which is in the syntax of HTCondor's
// own map files (condor_utils/MapFile.cpp:ParseField, ParseCanonicalization):
//
//	# three fields a line: where the name comes from, the name, the image
//	*                "/home/alice/tools.sif"                docker.io/alice/tools:3
//	*                /^\/cvmfs\/images\.example\.org\/(.+)$/ registry.example.org/\1
//	SingularityImage /\.sif$/i                              docker.io/library/debian:12
//
// The first field is the attribute that names the image, or * for any. The second
// is the name, in double quotes if it holds blanks or begins with a slash, or a
// regular expression between slashes, a slash inside it written \/; the option i
// ignores case, U swaps greedy and lazy matching. The expressions are those of Go
// (RE2). The third is what the whole name becomes; \1 stands for the first group.
//
// A line that HTCondor would skip with a message in its log is an error here: an
// admin must not believe in a rule that does nothing. There is no @include.
func ParseMap(name, text string) (*Map, error) {
	if len(text) > maxMapBytes {
		return nil, fmt.Errorf("%s is larger than %d bytes", name, maxMapBytes)
	}
	m := &Map{}
	var problems *multierror.Error
	number := 0
	for line := range strings.Lines(text) {
		number++
		rule, err := parseMapLine(strings.TrimRight(line, "\r\n"))
		at := fmt.Sprintf("%s:%d", name, number)
		switch {
		case err != nil:
			problems = multierror.Append(problems, fmt.Errorf("%s: %w", at, err))
		case rule == nil:
		case len(m.rules) == maxMapRules:
			return nil, fmt.Errorf("%s has more than %d rules", name, maxMapRules)
		default:
			rule.at = at
			m.rules = append(m.rules, *rule)
		}
	}
	if err := problems.ErrorOrNil(); err != nil {
		return nil, err
	}
	return m, nil
}

// parseMapLine returns no rule for a blank line or a comment.
func parseMapLine(line string) (*mapRule, error) {
	const blanks = " \t"
	line = strings.Trim(line, blanks)
	if line == "" || line[0] == '#' {
		return nil, nil
	}
	source, rest, err := mapField(line)
	if err != nil {
		return nil, err
	}
	if !isSource(source) {
		return nil, fmt.Errorf("%s is not a source of names; the first field is * or one of %s", excerpt(source), strings.Join(sources[:], ", "))
	}
	rule := &mapRule{source: source}
	rest = strings.TrimLeft(rest, blanks)
	if strings.HasPrefix(rest, "/") {
		rule.expr, rest, err = mapExpression(rest)
	} else {
		rule.literal, rest, err = mapField(rest)
	}
	if err != nil {
		return nil, err
	}
	if rule.expr == nil && rule.literal == "" {
		return nil, fmt.Errorf("the second field, the name to be translated, is missing")
	}
	rule.replacement, rest, err = mapField(strings.TrimLeft(rest, blanks))
	switch {
	case err != nil:
		return nil, err
	case rule.replacement == "":
		return nil, fmt.Errorf("the third field, the image, is missing")
	case strings.Trim(rest, blanks) != "":
		return nil, fmt.Errorf("something follows the third field: %s", excerpt(rest))
	}
	return rule, nil
}

// sources are the attributes and knobs that name images.
var sources = [...]string{attrSingularity, attrContainer, attrDocker, KnobDefault, knobStockDefault}

func isSource(field string) bool {
	if field == "*" {
		return true
	}
	for _, s := range sources {
		if strings.EqualFold(field, s) {
			return true
		}
	}
	return false
}

// mapField reads a word or a text in double quotes, in which \" and \\ are the
// only escapes.
func mapField(line string) (field, rest string, err error) {
	if !strings.HasPrefix(line, `"`) {
		if i := strings.IndexAny(line, " \t"); i >= 0 {
			return line[:i], line[i:], nil
		}
		return line, "", nil
	}
	field, rest, ok := mapDelimited(line, '"')
	if !ok {
		return "", "", fmt.Errorf("a double quote is not closed: %s", excerpt(line))
	}
	return field, rest, nil
}

// mapDelimited reads up to the delimiter that line begins with. A backslash
// escapes a delimiter or another backslash; before any other character it stays.
func mapDelimited(line string, end byte) (field, rest string, ok bool) {
	var b strings.Builder
	for i := 1; i < len(line); i++ {
		switch c := line[i]; {
		case c == end:
			return b.String(), line[i+1:], true
		case c == '\\' && i+1 < len(line):
			i++
			if line[i] != end && line[i] != '\\' {
				b.WriteByte('\\')
			}
			b.WriteByte(line[i])
		default:
			b.WriteByte(c)
		}
	}
	return "", "", false
}

// mapExpression reads /expression/ and its options.
func mapExpression(line string) (*regexp.Regexp, string, error) {
	text, rest, ok := mapDelimited(line, '/')
	options, after := "", ""
	if ok {
		end := strings.IndexAny(rest, " \t")
		if end < 0 {
			end = len(rest)
		}
		options, after = rest[:end], rest[end:]
	}
	if !ok || strings.Trim(options, "iU") != "" {
		return nil, "", fmt.Errorf(`%s begins with a slash but is not /expression/; put a path in double quotes, and write \/ for a slash inside an expression`, excerpt(line))
	}
	if text == "" {
		return nil, "", fmt.Errorf("an empty expression would match everything")
	}
	if options != "" {
		text = "(?" + uniqueLetters(options) + ")" + text
	}
	expr, err := regexp.Compile(text)
	if err != nil {
		return nil, "", fmt.Errorf("the expression is not valid in Go's syntax (RE2): %w", err)
	}
	return expr, after, nil
}

func uniqueLetters(options string) string {
	letters := ""
	for _, o := range []string{"i", "U"} {
		if strings.Contains(options, o) {
			letters += o
		}
	}
	return letters
}

// lookup returns what a name from a source becomes, and the rule that matched.
func (m *Map) lookup(source, name string) (image, rule string, ok bool) {
	if m == nil {
		return "", "", false
	}
	for _, r := range m.rules {
		if r.source != "*" && !strings.EqualFold(r.source, source) {
			continue
		}
		if r.expr == nil {
			if r.literal == name {
				return r.replacement, r.at, true
			}
			continue
		}
		if groups := r.expr.FindStringSubmatch(name); groups != nil {
			return substitute(r.replacement, groups), r.at, true
		}
	}
	return "", "", false
}

// substitute fills in \0 to \9. One without a group is left as it is
// (MapFile.cpp:PerformSubstitution).
func substitute(replacement string, groups []string) string {
	var b strings.Builder
	for i := 0; i < len(replacement) && b.Len() <= maxName; i++ {
		c := replacement[i]
		if c == '\\' && i+1 < len(replacement) {
			i++
			if n := int(replacement[i]) - '0'; n >= 0 && n <= 9 && n < len(groups) {
				b.WriteString(groups[n])
				continue
			}
			b.WriteByte('\\')
		}
		b.WriteByte(replacement[i])
	}
	return b.String()
}
