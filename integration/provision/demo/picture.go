package main

import (
	"image/color"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"

	"podstarter/integration/panels"
)

// draw draws jobs and pods over time.
func (s *show) draw(path string) error {
	jobs, err := s.chart("Jobs", "idle", panels.Orange, func(n sample) int { return n.idle }, func(n sample) int { return n.running })
	if err != nil {
		return err
	}
	pods, err := s.chart("Pods", "coming", panels.Sky, func(n sample) int { return n.coming }, func(n sample) int { return n.pods })
	if err != nil {
		return err
	}
	return panels.Write(path, 7*vg.Centimeter, jobs, pods)
}

// chart has a line for what waits, and one for what runs.
func (s *show) chart(title, name string, its color.RGBA, waiting, running func(sample) int) (*plot.Plot, error) {
	p := panels.New(title)
	p.X.Label.Text = "seconds"
	// Above the lines.
	p.Title.Padding = vg.Points(18)
	p.Legend.Top, p.Legend.YOffs, p.Legend.Padding = true, vg.Points(30), vg.Points(3)
	for _, l := range []struct {
		name  string
		color color.RGBA
		value func(sample) int
	}{{name, its, waiting}, {"running", panels.Blue, running}} {
		points := make(plotter.XYs, 0, len(s.samples))
		for _, n := range s.samples {
			points = append(points, plotter.XY{X: n.at.Seconds(), Y: float64(l.value(n))})
		}
		if err := panels.Steps(p, l.name, l.color, false, points); err != nil {
			return nil, err
		}
	}
	p.X.Min, p.Y.Min = 0, 0
	return p, nil
}
