package explain

import (
	"fmt"
	"io"
	"text/tabwriter"

	"podstarter/provisioner/offline"
	"podstarter/provisioner/round"
)

// offlineRound writes a round in which units are made for matches of offline ads.
func offlineRound(w io.Writer, rep round.Report) error {
	out := rep.Offline
	roles := make([]map[offline.Role]int, len(rep.Shapes))
	for i := range roles {
		roles[i] = map[offline.Role]int{}
	}
	for _, k := range out.Keep {
		roles[k.Shape][k.Role]++
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "SHAPE\tCOMING\tSTUCK\tSPARE\tNEW\tNONE BECAUSE")
	for i, s := range rep.Shapes {
		fmt.Fprintf(t, "%s\t%d\t%d\t%d\t%d\t%s\n", s, roles[i][offline.Coming], roles[i][offline.Stuck], roles[i][offline.Spare], out.New[i], clean(out.Refused[i]))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	if err := smaller(w, rep); err != nil {
		return err
	}
	for _, o := range out.Create {
		if _, err := fmt.Fprintf(w, "make %s of %s for a match\n", clean(o.Unit), rep.Shapes[o.Shape]); err != nil {
			return err
		}
	}
	for _, k := range out.Take {
		if _, err := fmt.Fprintf(w, "take back the ads of %s: %s\n", clean(k.Unit), clean(k.Why)); err != nil {
			return err
		}
	}
	for _, d := range out.Withdraw {
		if _, err := fmt.Fprintf(w, "withdraw %s: %s\n", clean(rep.Input.Pods[d.Pod].ID), clean(d.Why)); err != nil {
			return err
		}
	}
	return silent(w, rep)
}
