// Package explain writes what a round saw and decided, for people.
package explain

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"

	"podstarter/provisioner/decision"
	"podstarter/provisioner/demand"
	"podstarter/provisioner/round"
)

// Round writes a round: its templates, its groups with the reasons of those that
// wait, and what was decided.
func Round(w io.Writer, rep round.Report) error {
	if rep.Offline != nil {
		return offlineRound(w, rep)
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "GROUP\tIDLE\tFREE\tSOON\tCOMING\tNEW\tWAITING\tUSERS")
	for i, o := range rep.Output.Groups {
		g := rep.Groups[i]
		var users []string
		for _, p := range g.Parts {
			users = append(users, p.User)
		}
		fmt.Fprintf(t, "%s\t%d\t%d\t%d\t%d\t%d\t%d\t%s\n", g.ID, o.Idle, o.Free, o.Soon, o.Coming, o.New, waiting(o), clean(strings.Join(users, " ")))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	if err := smaller(w, rep); err != nil {
		return err
	}
	for i, o := range rep.Output.Groups {
		for _, r := range o.Waiting {
			if _, err := fmt.Fprintf(w, "%s: %d jobs wait: %s\n", rep.Groups[i].ID, r.Jobs, clean(r.Why)); err != nil {
				return err
			}
		}
	}
	if err := guests(w, rep); err != nil {
		return err
	}
	for _, c := range rep.Output.Create {
		if _, err := fmt.Fprintf(w, "make %d of %s for %s\n", c.Count, rep.Shapes[c.Shape], clean(c.User)); err != nil {
			return err
		}
	}
	for _, d := range rep.Output.Withdraw {
		if _, err := fmt.Fprintf(w, "withdraw %s: %s\n", clean(rep.Input.Pods[d.Pod].ID), clean(d.Why)); err != nil {
			return err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(rep.Output.Memory.Surplus)) {
		if _, err := fmt.Fprintf(w, "withdraw %s once no idle job has needed it for %s\n", clean(name), rep.Input.Policy.Settle); err != nil {
			return err
		}
	}
	return silent(w, rep)
}

// silent writes which units are ended because they have never reported.
func silent(w io.Writer, rep round.Report) error {
	for _, s := range rep.Silent {
		text := fmt.Sprintf("end %s: it has run since %s and has never reported to the collector", clean(s.Unit), s.Began.UTC().Format(time.RFC3339))
		if !s.Ends {
			text = fmt.Sprintf("end %s once the collector has not known it for %s: it has run since %s; a provisioner that did not follow it keeps it unless it is certain that no job has begun there", clean(s.Unit), s.Missed, s.Began.UTC().Format(time.RFC3339))
		}
		if _, err := fmt.Fprintln(w, text); err != nil {
			return err
		}
	}
	return nil
}

// smaller writes which pods offer less than their template says.
func smaller(w io.Writer, rep round.Report) error {
	for _, s := range rep.Smaller {
		if _, err := fmt.Fprintf(w, "the slots of %s have %s, and the template says %s\n", rep.Shapes[s.Shape], s.Offers, s.Says); err != nil {
			return err
		}
	}
	return nil
}

// guests writes how many jobs count of schedds of other pools.
func guests(w io.Writer, rep round.Report) error {
	idle := map[demand.Source]int{}
	for _, g := range rep.Groups {
		for _, s := range g.Schedds {
			if s.Schedd.Flocks() {
				idle[s.Schedd] += s.Idle
			}
		}
	}
	from := slices.SortedFunc(maps.Keys(idle), func(a, b demand.Source) int { return strings.Compare(a.String(), b.String()) })
	for _, s := range from {
		if _, err := fmt.Fprintf(w, "%d of the idle jobs flock here from the schedd %s\n", idle[s], clean(s.String())); err != nil {
			return err
		}
	}
	return nil
}

// Group writes why the jobs of one group get what they get: what each template
// says of them, and what became of them. It reports whether there is such a group.
func Group(w io.Writer, rep round.Report, id string) (bool, error) {
	i := slices.IndexFunc(rep.Groups, func(g demand.Group) bool { return g.ID == id })
	if i < 0 || i >= len(rep.Output.Groups) {
		return false, nil
	}
	g := rep.Groups[i]
	for _, p := range g.Parts {
		if _, err := fmt.Fprintf(w, "%d idle jobs of %s (%s)\n", p.Idle, clean(p.User), clean(p.Jobs)); err != nil {
			return true, err
		}
	}
	for s, m := range rep.Matches[i] {
		verdict := clean(m.Why)
		if m.Matches {
			verdict = "matches; a job requests " + m.Request.String()
		}
		if _, err := fmt.Fprintf(w, "%s: %s\n", rep.Shapes[s], verdict); err != nil {
			return true, err
		}
	}
	for _, r := range rep.Output.Groups[i].Waiting {
		if _, err := fmt.Fprintf(w, "%d jobs get no pod: %s\n", r.Jobs, clean(r.Why)); err != nil {
			return true, err
		}
	}
	return true, nil
}

func waiting(o decision.Outcome) int {
	n := 0
	for _, r := range o.Waiting {
		n += r.Jobs
	}
	return n
}

// Clean keeps what users, tools and the cluster write from changing the terminal,
// or the order in which its line is read. Line ends and tabs stay.
func Clean(text string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' || unicode.IsPrint(r) {
			return r
		}
		return '?'
	}, text)
}

// clean does so for a part of a line.
func clean(text string) string {
	return strings.NewReplacer("\n", "?", "\t", "?").Replace(Clean(text))
}
