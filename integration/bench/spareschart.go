package main

import (
	"fmt"
	"image/color"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"podstarter/integration/harness"
	"podstarter/integration/panels"
)

// trend is a curve in a chart over few places.
type trend struct {
	name   string
	color  color.RGBA
	dashed bool
	points plotter.XYs
}

var lengthColors = []color.RGBA{panels.Red, panels.Orange, panels.Green, panels.Blue, panels.Purple, panels.Sky}

// writeCharts draws what there is.
func (r *spareResults) writeCharts(dir string) error {
	if r.bursts != nil {
		var both []*plot.Plot
		for _, other := range []bool{false, true} {
			p, err := r.bursts.panel(other)
			if err != nil {
				return err
			}
			both = append(both, p)
		}
		if err := panels.Write(filepath.Join(dir, "spares.svg"), height, both...); err != nil {
			return err
		}
	}
	if len(r.crowds) > 0 {
		p, err := crowdPanel(r.crowds)
		if err != nil {
			return err
		}
		return panels.Write(filepath.Join(dir, "slots.svg"), height, p)
	}
	return nil
}

// panel draws the gaps over the number of spares.
func (r *burstResults) panel(other bool) (*plot.Plot, error) {
	var trends []trend
	for i, length := range slices.Sorted(slices.Values(r.lengths)) {
		c := lengthColors[i%len(lengthColors)]
		var medians, ninths plotter.XYs
		for _, k := range r.spares {
			s := spreadOf(gapsOf(r.ours[burst{length, k, other}]))
			if s.n == 0 || s.median <= 0 || s.ninth <= 0 {
				continue // a logarithm needs more than nothing
			}
			medians = append(medians, plotter.XY{X: float64(k), Y: s.median.Seconds()})
			ninths = append(ninths, plotter.XY{X: float64(k), Y: s.ninth.Seconds()})
		}
		trends = append(trends,
			trend{fmt.Sprintf("after jobs of %g s, median", length.Seconds()), c, false, medians},
			trend{"— 9 of 10", c, true, ninths})
	}
	var stock []time.Duration
	for _, all := range r.stock {
		stock = append(stock, gapsOf(all)...)
	}
	most := slices.Max(r.spares)
	if s := spreadOf(stock); s.median > 0 {
		trends = append(trends, level("stock starter, no container, median", panels.Black, s.median.Seconds(), most))
	}
	p, err := trendChart("From the end of one job to the start of the next, "+imagesOf(other), trends)
	if err != nil {
		return nil, err
	}
	p.X.Label.Text, p.Y.Label.Text = "spares", "seconds"
	p.X.Tick.Marker = places(r.spares)
	p.X.Min, p.X.Max = 0, float64(most)*roomBeside
	p.Y.Scale, p.Y.Tick.Marker = plot.LogScale{}, seconds125{}
	return p, nil
}

// crowdPanel draws jobs a minute over the number of slots.
func crowdPanel(all []crowd) (*plot.Plot, error) {
	series := []trend{
		{name: "no time between jobs", color: panels.Black, dashed: true},
		{name: "stock starter, no container", color: panels.Black},
		{name: "spares: half as many as slots", color: panels.Blue},
		{name: "no spares", color: panels.Orange},
	}
	var slots []int
	for _, c := range all {
		at := 3
		switch {
		case c.side == harness.Stock:
			at = 1
		case c.spares > 0:
			at = 2
		}
		x := float64(c.slots)
		series[at].points = append(series[at].points, plotter.XY{X: x, Y: c.jobsAMinute()})
		if !slices.Contains(slots, c.slots) {
			slots = append(slots, c.slots)
			series[0].points = append(series[0].points, plotter.XY{X: x, Y: x * time.Minute.Seconds() / crowdLength.Seconds()})
		}
	}
	p, err := trendChart(fmt.Sprintf("Jobs of %g s in the slots of one pod", crowdLength.Seconds()), series)
	if err != nil {
		return nil, err
	}
	p.X.Label.Text, p.Y.Label.Text = "slots", "jobs a minute"
	p.X.Tick.Marker = places(slots)
	p.X.Min, p.X.Max = 0, float64(slices.Max(slots))*roomBeside
	p.Y.Min = 0
	return p, nil
}

// roomBeside leaves a place for the legend.
const roomBeside = 2.1

// level is a line at one height.
func level(name string, c color.RGBA, y float64, most int) trend {
	return trend{name, c, true, plotter.XYs{{X: 0, Y: y}, {X: float64(most), Y: y}}}
}

func trendChart(title string, trends []trend) (*plot.Plot, error) {
	p := panels.New(title)
	for _, t := range trends {
		if len(t.points) == 0 {
			continue
		}
		l, dots, err := plotter.NewLinePoints(t.points)
		if err != nil {
			return nil, fmt.Errorf("drawing %q: %w", t.name, err)
		}
		l.Color, l.Width = t.color, vg.Points(1.8)
		dots.Color, dots.Shape, dots.Radius = t.color, draw.CircleGlyph{}, vg.Points(2.2)
		if t.dashed {
			l.Width, l.Dashes = vg.Points(1), []vg.Length{vg.Points(5), vg.Points(3)}
			dots.Radius = vg.Points(1.2)
		}
		p.Add(l, dots)
		p.Legend.Add(t.name, l)
	}
	p.Legend.Top = true
	return p, nil
}

// places marks the values that were measured.
func places(values []int) plot.ConstantTicks {
	var marks plot.ConstantTicks
	for _, v := range values {
		marks = append(marks, plot.Tick{Value: float64(v), Label: strconv.Itoa(v)})
	}
	return marks
}

// seconds125 marks 1, 2 and 5 of each power of ten.
type seconds125 struct{}

// Ticks implements plot.Ticker.
func (seconds125) Ticks(least, most float64) []plot.Tick {
	var marks []plot.Tick
	for power := math.Floor(math.Log10(least)); power <= math.Ceil(math.Log10(most)); power++ {
		for _, n := range []float64{1, 2, 5} {
			if v := n * math.Pow(10, power); v >= least && v <= most {
				marks = append(marks, plot.Tick{Value: v, Label: strconv.FormatFloat(v, 'g', 3, 64)})
			}
		}
	}
	return marks
}
