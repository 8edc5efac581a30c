package podfailures

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
)

// Measured is what a test run found of one row.
type Measured struct {
	// Told is what the user finds in the event log, without what differs between any two runs.
	Told string `json:"told"`
	// Took is how long it took to the verdict, roughly.
	Took string `json:"took"`
}

// recordName is the file that a test run with -record writes.
const recordName = "record.json"

//go:embed record.json
var recordText []byte

// Record has the last measurements, by the names of the rows.
func Record() (map[string]Measured, error) {
	var record map[string]Measured
	if err := json.Unmarshal(recordText, &record); err != nil {
		return nil, fmt.Errorf("reading %s: %w", recordName, err)
	}
	return record, nil
}

var particulars = []struct {
	pattern *regexp.Regexp
	by      string
}{
	{regexp.MustCompile(`(?m)^.*Code -?\d+ Subcode -?\d+\s*$`), ""},
	{regexp.MustCompile(`(?s)^.*?Error from (starter on )?slot\S+:\s*`), ""},
	{regexp.MustCompile(`\d+\.\d+\.\d+\.\d+:\d+(->\S+)?`), "REGISTRY"},
	{regexp.MustCompile(`faults-\d+`), "POD"},
	{regexp.MustCompile(`-[0-9a-z]{8}:`), ":"},
	{regexp.MustCompile(`\(after \d+s;`), "(after N s;"},
	{regexp.MustCompile(`no success in \d+s`), "no success in N s"},
	{regexp.MustCompile(`[^\s"]*/integration/\.state\b`), "STATE"},
	{regexp.MustCompile(`/run/podstarter-[0-9a-f]+`), "RUN"},
	{regexp.MustCompile(`containerd-mount\d+`), "containerd-mount"},
	{regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`), "UID"},
	{regexp.MustCompile(`[0-9a-f]{64}`), "ID"},
	{regexp.MustCompile(`\s+`), " "},
}

// plain is what the user is told, without what differs between two runs.
func plain(o Outcome) string {
	if o.Kind == "exit" {
		return ""
	}
	text := o.Words
	if _, reason, ok := strings.Cut(text, "Reason: "); ok && o.Kind == "evicted" {
		text, _, _ = strings.Cut(reason, "\n")
	}
	for _, p := range particulars {
		text = p.pattern.ReplaceAllString(text, p.by)
	}
	return strings.TrimSpace(text)
}

// The generated part of docs/operator/failures.md lies between these lines.
const (
	pageBegin = "<!-- generated from integration/podfailures; do not edit -->"
	pageEnd   = "<!-- end of the generated part -->"
)

// Table is the generated part of the page.
func Table(rows []Row, record map[string]Measured) string {
	var b strings.Builder
	b.WriteString("| failure | made by | class | the job | within | what its user is told |\n| --- | --- | --- | --- | --- | --- |\n")
	for _, r := range rows {
		cause := r.Cause
		if r.Injected {
			cause += " (injected)"
		}
		told := record[r.Name].Told
		if told == "" {
			told = "nothing"
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s |\n", cell(r.Name), cell(cause), r.Class, r.Ending, record[r.Name].Took, cell(told))
	}
	return b.String()
}

// cell escapes text that would end a table's cell or row, or count as markup.
func cell(text string) string {
	return strings.NewReplacer("|", `\|`, "\n", " ", "<", "&lt;", "*", `\*`).Replace(text)
}

// Replace puts the table between the marks of the page.
func Replace(page, table string) (string, error) {
	before, rest, ok := strings.Cut(page, pageBegin)
	_, after, closed := strings.Cut(rest, pageEnd)
	if !ok || !closed {
		return "", fmt.Errorf("the page lacks the line %q or %q", pageBegin, pageEnd)
	}
	return before + pageBegin + "\n" + table + pageEnd + after, nil
}
