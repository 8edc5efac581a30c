// Package chart draws lines over time as SVG. The text and the colours follow the
// reader's light or dark theme.
package chart

import (
	"fmt"
	"html"
	"io"
	"math"
	"strings"
)

// Line is one series of values at equal distances.
type Line struct {
	Name string
	// Style is the number of its colour, from 0 to Styles-1.
	Style  int
	Values []float64
}

// Styles is how many colours there are. They are those which most colour-blind
// people can tell apart (Okabe and Ito, "Color Universal Design", 2008).
const Styles = 4

// Panel is one diagram. Its lines have the same number of values.
type Panel struct {
	Title string
	Lines []Line
}

// Sizes of a panel, in pixels.
const (
	width, height         = 900, 220
	left, right           = 60, 15
	top, bottom           = 40, 28
	plotWidth, plotHeight = width - left - right, height - top - bottom
)

const style = `<style>
text { font: 12px sans-serif; fill: #222; }
.title { font-weight: bold; }
.paper { fill: #fff; }
.grid { stroke: #ddd; }
.s { fill: none; stroke-width: 1.3; }
.s0 { stroke: #d55e00; } .s1 { stroke: #0072b2; } .s2 { stroke: #e69f00; } .s3 { stroke: #56b4e9; }
@media (prefers-color-scheme: dark) {
text { fill: #ddd; }
.paper { fill: #161b22; }
.grid { stroke: #383e47; }
.s1 { stroke: #3fa7e0; }
}
</style>
`

// Write draws panels below each other. The x axis has so many days.
func Write(to io.Writer, days int, panels ...Panel) error {
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d">`+"\n", width, height*len(panels), width, height*len(panels))
	b.WriteString(style)
	fmt.Fprintf(&b, `<rect class="paper" width="%d" height="%d"/>`+"\n", width, height*len(panels))
	for i, p := range panels {
		fmt.Fprintf(&b, `<g transform="translate(0 %d)">`+"\n", i*height)
		p.draw(&b, days)
		b.WriteString("</g>\n")
	}
	b.WriteString("</svg>\n")
	_, err := io.WriteString(to, b.String())
	return err
}

func (p Panel) draw(b *strings.Builder, days int) {
	fmt.Fprintf(b, `<text class="title" x="%d" y="20">%s</text>`+"\n", left, html.EscapeString(p.Title))
	most := 0.0
	for _, l := range p.Lines {
		for _, v := range l.Values {
			most = max(most, v)
		}
	}
	step := round(most / 4)
	scale := math.Max(step*math.Ceil(most/step), step)
	for v := 0.0; v <= scale; v += step {
		y := top + plotHeight - v/scale*plotHeight
		fmt.Fprintf(b, `<path class="grid" d="M%d %.1fH%d"/><text x="%d" y="%.1f" text-anchor="end">%g</text>`+"\n", left, y, width-right, left-6, y+4, v)
	}
	for day := range days {
		x := left + float64(day)/float64(days)*plotWidth
		fmt.Fprintf(b, `<path class="grid" d="M%.1f %dV%d"/><text x="%.1f" y="%d">day %d</text>`+"\n", x, top, top+plotHeight, x, height-bottom+16, day+1)
	}
	x := width - right
	for i := len(p.Lines) - 1; i >= 0; i-- {
		l := p.Lines[i]
		fmt.Fprintf(b, `<text x="%d" y="20" text-anchor="end">%s</text>`+"\n", x, html.EscapeString(l.Name))
		x -= 7*len(l.Name) + 10
		fmt.Fprintf(b, `<path class="s s%d" style="stroke-width:3" d="M%d 16h20"/>`+"\n", l.Style%Styles, x-20)
		x -= 40
	}
	for _, l := range p.Lines {
		fmt.Fprintf(b, `<path class="s s%d" d="`, l.Style%Styles)
		for i, v := range l.Values {
			command := "L"
			if i == 0 {
				command = "M"
			}
			fmt.Fprintf(b, "%s%.1f %.1f", command, left+float64(i)/float64(max(len(l.Values)-1, 1))*plotWidth, top+plotHeight-v/scale*plotHeight)
		}
		b.WriteString(`"/>` + "\n")
	}
}

// round returns a step for an axis that is not below v: 1, 2 or 5 times a power of
// ten.
func round(v float64) float64 {
	if v <= 0 {
		return 1
	}
	power := math.Pow(10, math.Floor(math.Log10(v)))
	for _, m := range []float64{1, 2, 5} {
		if m*power >= v {
			return m * power
		}
	}
	return 10 * power
}
