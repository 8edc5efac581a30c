package main

import (
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
)

// A sample is one value of a metric.
type sample struct {
	name   string
	labels map[string]string
	value  float64
}

// metrics are what a program publishes, in the text format of Prometheus.
type metrics []sample

// parseMetrics reads the lines that it understands.
func parseMetrics(text string) metrics {
	var all metrics
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		if s, ok := parseSample(line); ok {
			all = append(all, s)
		}
	}
	return all
}

func parseSample(line string) (sample, bool) {
	head, number, ok := cutLast(line, " ")
	if !ok {
		return sample{}, false
	}
	value, err := strconv.ParseFloat(number, 64)
	if err != nil {
		return sample{}, false
	}
	name, rest, labelled := strings.Cut(head, "{")
	s := sample{name: strings.TrimSpace(name), labels: map[string]string{}, value: value}
	if labelled {
		parseLabels(strings.TrimSuffix(strings.TrimSpace(rest), "}"), s.labels)
	}
	return s, true
}

// parseLabels reads NAME="VALUE",…; a value is quoted as in Go.
func parseLabels(text string, into map[string]string) {
	for text != "" {
		name, rest, ok := strings.Cut(text, "=")
		if !ok {
			return
		}
		quoted, err := strconv.QuotedPrefix(rest)
		if err != nil {
			return
		}
		if value, err := strconv.Unquote(quoted); err == nil {
			into[strings.Trim(name, ", ")] = value
		}
		text = rest[len(quoted):]
	}
}

func cutLast(s, sep string) (before, after string, ok bool) {
	i := strings.LastIndex(s, sep)
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+len(sep):], true
}

// has reports whether the sample has these labels, given as NAME=VALUE; NAME!=VALUE for one that it must not have.
func (s sample) has(labels []string) bool {
	for _, l := range labels {
		name, value, _ := strings.Cut(l, "=")
		if other, not := strings.CutSuffix(name, "!"); not {
			if s.labels[other] == value {
				return false
			}
		} else if s.labels[name] != value {
			return false
		}
	}
	return true
}

// sum adds up the values of a metric with these labels.
func (m metrics) sum(name string, labels ...string) float64 {
	total := 0.0
	for _, s := range m {
		if s.name == name && s.has(labels) {
			total += s.value
		}
	}
	return total
}

// by adds them up for each value of a label.
func (m metrics) by(label, name string, labels ...string) map[string]float64 {
	totals := map[string]float64{}
	for _, s := range m {
		if s.name == name && s.has(labels) {
			totals[s.labels[label]] += s.value
		}
	}
	return totals
}

// since is what was added after the metrics before. It is right for counters only.
func (m metrics) since(before metrics) metrics {
	key := func(s sample) string {
		var b strings.Builder
		b.WriteString(s.name)
		for _, name := range slices.Sorted(maps.Keys(s.labels)) {
			b.WriteString("|" + name + "=" + s.labels[name])
		}
		return b.String()
	}
	was := map[string]float64{}
	for _, s := range before {
		was[key(s)] = s.value
	}
	grown := slices.Clone(m)
	for i, s := range grown {
		grown[i].value = s.value - was[key(s)]
	}
	return grown
}

// quantile is the upper bound of the histogram's bucket that has the value below which the part q of all lies.
func (m metrics) quantile(q float64, name string, labels ...string) float64 {
	counts := map[float64]float64{}
	for _, s := range m {
		if s.name != name+"_bucket" || !s.has(labels) {
			continue
		}
		if bound, err := strconv.ParseFloat(s.labels["le"], 64); err == nil { // +Inf is one, too
			counts[bound] += s.value
		}
	}
	total := counts[math.Inf(1)]
	for _, bound := range slices.Sorted(maps.Keys(counts)) {
		if total > 0 && counts[bound] >= q*total {
			return bound
		}
	}
	return 0
}
