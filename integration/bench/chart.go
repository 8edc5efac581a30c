package main

import (
	"fmt"
	"image/color"
	"slices"
	"time"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"

	"podstarter/integration/panels"
)

// height is that of one diagram.
const height = 9 * vg.Centimeter

// curve is one series of durations in a chart.
type curve struct {
	name   string
	color  color.RGBA
	dashed bool
	values []time.Duration
}

// writeChart draws which part of the runs was done after what time.
func (r *results) writeChart(path string) error {
	between := make(map[*row]turns)
	for _, row := range []*row{&r.stock, &r.fresh, &r.reused} {
		values, err := row.between()
		if err != nil {
			return err
		}
		between[row] = values
	}
	bound := r.fresh.inTurns(bind)
	top, err := cumulative("From the patch until the container is ready", []curve{
		{"containerd alone", panels.Black, true, r.bare},
		{"containerd by a kubelet's calls", panels.Black, false, r.cri},
		{"container kept", panels.Green, false, r.kept.all()},
		{"quiet pod, same image", panels.Sky, false, r.quiet.same},
		{"quiet pod, another image", panels.Blue, false, r.quiet.other},
		{"jobs in a row, same image", panels.Orange, false, bound.same},
		{"jobs in a row, another image", panels.Purple, false, bound.other},
		{"quiet pod, polling the status", panels.Red, true, r.polling.all()},
		{"back to back, polling the status", panels.Red, false, r.pollingRow.all()},
	})
	if err != nil {
		return err
	}
	bottom, err := cumulative("From the end of one job to the start of the next", []curve{
		{"container kept", panels.Green, false, between[&r.reused].all()},
		{"fresh container, same image", panels.Orange, false, between[&r.fresh].same},
		{"fresh container, another image", panels.Purple, false, between[&r.fresh].other},
		{"stock starter, no container", panels.Black, true, between[&r.stock].all()},
	})
	if err != nil {
		return err
	}
	return panels.Write(path, height, top, bottom)
}

// cumulative draws the distribution of each curve: which part of the runs took no
// longer than so many seconds.
func cumulative(title string, curves []curve) (*plot.Plot, error) {
	p := panels.New(title)
	p.X.Label.Text, p.Y.Label.Text = "seconds", "part of the runs"
	for _, c := range curves {
		values := slices.Sorted(slices.Values(c.values))
		var points plotter.XYs
		for i, v := range values {
			if i == 0 {
				points = append(points, plotter.XY{X: v.Seconds(), Y: 0})
			}
			points = append(points, plotter.XY{X: v.Seconds(), Y: float64(i+1) / float64(len(values))})
		}
		if err := panels.Steps(p, fmt.Sprintf("%s (%d)", c.name, len(values)), c.color, c.dashed, points); err != nil {
			return nil, err
		}
	}
	const roomForLegend = 2.1
	p.X.Min, p.X.Max = 0, p.X.Max*roomForLegend
	p.Y.Min, p.Y.Max = 0, 1
	return p, nil
}
