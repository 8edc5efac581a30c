package main

import (
	"fmt"
	"image/color"
	"os"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// Colours that most colour-blind people can tell apart (Okabe and Ito, "Color
// Universal Design", 2008).
var (
	orange = color.RGBA{R: 230, G: 159, A: 255}
	sky    = color.RGBA{R: 86, G: 180, B: 233, A: 255}
	blue   = color.RGBA{G: 114, B: 178, A: 255}
)

// draw draws jobs and pods over time.
func (s *show) draw(path string) error {
	jobs, err := s.chart("Jobs", "idle", orange, func(n sample) int { return n.idle }, func(n sample) int { return n.running })
	if err != nil {
		return err
	}
	pods, err := s.chart("Pods", "coming", sky, func(n sample) int { return n.coming }, func(n sample) int { return n.pods })
	if err != nil {
		return err
	}
	const width, height = 16 * vg.Centimeter, 7 * vg.Centimeter
	svg := vgsvg.New(width, 2*height)
	whole := draw.New(svg)
	whole.FillPolygon(color.White, []vg.Point{{}, {X: width}, {X: width, Y: 2 * height}, {Y: 2 * height}}) // else a dark viewer shows through
	panels := [][]*plot.Plot{{jobs}, {pods}}
	edge := vg.Points(10)
	for i, canvas := range plot.Align(panels, draw.Tiles{Rows: 2, Cols: 1, PadTop: edge, PadLeft: edge, PadRight: edge, PadBottom: edge, PadY: vg.Centimeter}, whole) {
		panels[i][0].Draw(canvas[0])
	}
	out, err := os.Create(path)
	if err != nil {
		return err
	}
	if _, err := svg.WriteTo(out); err != nil {
		out.Close()
		return fmt.Errorf("drawing %s: %w", path, err)
	}
	return out.Close()
}

// chart has a line for what waits, and one for what runs.
func (s *show) chart(title, name string, its color.RGBA, waiting, running func(sample) int) (*plot.Plot, error) {
	p := plot.New()
	for _, style := range []*font.Font{&p.Title.TextStyle.Font, &p.X.Label.TextStyle.Font, &p.Y.Label.TextStyle.Font,
		&p.X.Tick.Label.Font, &p.Y.Tick.Label.Font, &p.Legend.TextStyle.Font} {
		style.Variant = "Sans"
	}
	p.Title.Text, p.Title.Padding, p.X.Label.Text = title, vg.Points(18), "seconds"
	// Above the lines.
	p.Legend.Top, p.Legend.YOffs, p.Legend.Padding = true, vg.Points(30), vg.Points(3)
	p.Add(plotter.NewGrid())
	for _, l := range []struct {
		name  string
		color color.RGBA
		value func(sample) int
	}{{name, its, waiting}, {"running", blue, running}} {
		points := make(plotter.XYs, 0, len(s.samples))
		for _, n := range s.samples {
			points = append(points, plotter.XY{X: n.at.Seconds(), Y: float64(l.value(n))})
		}
		line, err := plotter.NewLine(points)
		if err != nil {
			return nil, fmt.Errorf("drawing %q: %w", l.name, err)
		}
		line.StepStyle, line.Color, line.Width = plotter.PostStep, l.color, vg.Points(1.8)
		p.Add(line)
		p.Legend.Add(l.name, line)
	}
	p.X.Min, p.Y.Min = 0, 0
	return p, nil
}
