// Package panels draws diagrams below each other, as SVG.
package panels

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
	Black  = color.RGBA{A: 255}
	Orange = color.RGBA{R: 230, G: 159, A: 255}
	Sky    = color.RGBA{R: 86, G: 180, B: 233, A: 255}
	Green  = color.RGBA{G: 158, B: 115, A: 255}
	Blue   = color.RGBA{G: 114, B: 178, A: 255}
	Purple = color.RGBA{R: 204, G: 121, B: 167, A: 255}
	Red    = color.RGBA{R: 213, G: 94, A: 255}
)

// New is an empty diagram with a title.
func New(title string) *plot.Plot {
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

// Steps adds a line to a diagram and its legend, which stays at a value until the next point.
func Steps(p *plot.Plot, name string, c color.RGBA, dashed bool, points plotter.XYs) error {
	l, err := plotter.NewLine(points)
	if err != nil {
		return fmt.Errorf("drawing %q: %w", name, err)
	}
	l.StepStyle = plotter.PostStep
	l.Color, l.Width = c, vg.Points(1.8)
	if dashed {
		l.Dashes = []vg.Length{vg.Points(5), vg.Points(3)}
	}
	p.Add(l)
	p.Legend.Add(name, l)
	return nil
}

// Write draws diagrams below each other. height is that of one of them.
func Write(path string, height vg.Length, panels ...*plot.Plot) error {
	width, whole := 16*vg.Centimeter, height*vg.Length(len(panels))
	svg := vgsvg.New(width, whole)
	canvas := draw.New(svg)
	canvas.FillPolygon(color.White, []vg.Point{{}, {X: width}, {X: width, Y: whole}, {Y: whole}}) // else a dark viewer shows through
	rows := make([][]*plot.Plot, len(panels))
	for i, p := range panels {
		rows[i] = []*plot.Plot{p}
	}
	const edge = 10
	tiles := draw.Tiles{Rows: len(panels), Cols: 1, PadTop: edge, PadLeft: edge, PadRight: edge, PadBottom: edge, PadY: vg.Centimeter}
	for i, part := range plot.Align(rows, tiles, canvas) {
		panels[i].Draw(part[0])
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
