package main

import (
	"fmt"
	"image/color"
	"os"
	"slices"
	"time"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// curve is one series of durations in a chart.
type curve struct {
	name   string
	color  color.RGBA
	dashed bool
	values []time.Duration
}

// Colours that most colour-blind people can tell apart (Okabe and Ito, "Color
// Universal Design", 2008).
var (
	black  = color.RGBA{A: 255}
	orange = color.RGBA{R: 230, G: 159, A: 255}
	sky    = color.RGBA{R: 86, G: 180, B: 233, A: 255}
	green  = color.RGBA{G: 158, B: 115, A: 255}
	blue   = color.RGBA{G: 114, B: 178, A: 255}
	purple = color.RGBA{R: 204, G: 121, B: 167, A: 255}
	red    = color.RGBA{R: 213, G: 94, A: 255}
)

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
		{"containerd alone", black, true, r.bare},
		{"containerd by a kubelet's calls", black, false, r.cri},
		{"container kept", green, false, r.kept.all()},
		{"quiet pod, same image", sky, false, r.quiet.same},
		{"quiet pod, another image", blue, false, r.quiet.other},
		{"jobs in a row, same image", orange, false, bound.same},
		{"jobs in a row, another image", purple, false, bound.other},
		{"quiet pod, polling the status", red, true, r.polling.all()},
		{"back to back, polling the status", red, false, r.pollingRow.all()},
	})
	if err != nil {
		return err
	}
	bottom, err := cumulative("From the end of one job to the start of the next", []curve{
		{"container kept", green, false, between[&r.reused].all()},
		{"fresh container, same image", orange, false, between[&r.fresh].same},
		{"fresh container, another image", purple, false, between[&r.fresh].other},
		{"stock starter, no container", black, true, between[&r.stock].all()},
	})
	if err != nil {
		return err
	}
	return writePanels(path, top, bottom)
}

// writePanels draws charts below each other.
func writePanels(path string, panels ...*plot.Plot) error {
	const width, height = 16 * vg.Centimeter, 9 * vg.Centimeter
	svg := vgsvg.New(width, height*vg.Length(len(panels)))
	var rows [][]*plot.Plot
	for _, p := range panels {
		rows = append(rows, []*plot.Plot{p})
	}
	tiles := draw.Tiles{Rows: len(panels), Cols: 1, PadTop: vg.Points(6), PadY: vg.Centimeter}
	for i, canvas := range plot.Align(rows, tiles, draw.New(svg)) {
		panels[i].Draw(canvas[0])
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

// cumulative draws the distribution of each curve: which part of the runs took no
// longer than so many seconds.
func cumulative(title string, curves []curve) (*plot.Plot, error) {
	p := newPlot(title)
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
		l, err := plotter.NewLine(points)
		if err != nil {
			return nil, fmt.Errorf("drawing %q: %w", c.name, err)
		}
		l.StepStyle = plotter.PostStep
		l.Color, l.Width = c.color, vg.Points(1.8)
		if c.dashed {
			l.Dashes = []vg.Length{vg.Points(5), vg.Points(3)}
		}
		p.Add(l)
		p.Legend.Add(fmt.Sprintf("%s (%d)", c.name, len(values)), l)
	}
	const roomForLegend = 2.1
	p.X.Min, p.X.Max = 0, p.X.Max*roomForLegend
	p.Y.Min, p.Y.Max = 0, 1
	return p, nil
}

// newPlot is an empty chart with a title.
func newPlot(title string) *plot.Plot {
	p := plot.New()
	for _, style := range []*font.Font{&p.Title.TextStyle.Font, &p.X.Label.TextStyle.Font, &p.Y.Label.TextStyle.Font,
		&p.X.Tick.Label.Font, &p.Y.Tick.Label.Font, &p.Legend.TextStyle.Font} {
		style.Variant = "Sans"
	}
	p.Title.Text = title
	p.Title.Padding = vg.Points(6)
	p.Add(plotter.NewGrid())
	return p
}
