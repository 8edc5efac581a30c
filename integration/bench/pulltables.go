package main

import (
	"fmt"
	"strings"
	"time"
)

// tables is the whole result as text, in Markdown.
func (r *pullResults) tables() string {
	var b strings.Builder
	fmt.Fprintf(&b, "Measured on %s, %s: from the start of the starter to the start of the job's process, for jobs whose image is on the node, in a pod with %d pullers and %d spares.\n",
		r.when.UTC().Format("2006-01-02"), r.machine, pullers, r.spares)
	type row struct {
		name   string
		values []time.Duration
	}
	table := func(title string, rows []row) {
		fmt.Fprintf(&b, "\n| %s, s | jobs | least | median | 9 of 10 | most | median / first row |\n|---|---|---|---|---|---|---|\n", title)
		for _, row := range rows {
			line(&b, row.name, row.values, spreadOf(rows[0].values))
		}
	}
	table("two slots", []row{
		{"beside a job that runs", r.beside},
		{"beside a job whose registry hangs", r.besideHung},
	})
	table(fmt.Sprintf("%d slots, jobs in %d images at random of %d MB each, from a registry that sends %d MB a second", *pullSlots, *pullImages, *pullSize, *pullRate), []row{
		{"one job alone", r.alone},
		{"all slots busy, all images on the node", r.there},
		{fmt.Sprintf("all slots busy, pullers fetch %d images", r.fetched[0]), r.withPullers},
		{fmt.Sprintf("all slots busy, no pullers: payload containers fetch %d images", r.fetched[1]), r.without},
	})
	return b.String()
}
