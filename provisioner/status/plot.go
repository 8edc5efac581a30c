package status

import (
	"fmt"
	"html/template"
	"math"
	"strings"
)

// Size of a picture in its own units. The page stretches it to its own width; words
// are beside it, so that they stay readable.
const (
	plotWidth  = 1440
	plotHeight = 100
)

// line is one series of a picture.
type line struct {
	Name  string
	Class string // its colour, in the page's style
	value func(sample) int
	sums  bool // its values are sums of a minute, which are shown by the quarter of an hour
}

// picture is a diagram of a day.
type picture struct {
	Title, Unit string
	Lines       []line
	Most        string // what the top of the picture stands for
	SVG         template.HTML
}

// quarter is how many minutes are shown as one where sums are.
const quarter = 15

func draw(title, unit string, day []point, lines ...line) picture {
	values := make([][]float64, len(lines))
	most := 0.0
	for i, l := range lines {
		values[i] = seriesOf(day, l)
		for _, v := range values[i] {
			if v > most { // not a number is not
				most = v
			}
		}
	}
	scale := round125(most)
	var b strings.Builder
	fmt.Fprintf(&b, `<svg viewBox="0 0 %d %d" preserveAspectRatio="none" role="img" aria-label="%s">`, plotWidth, plotHeight, template.HTMLEscapeString(title))
	for hour := 0; hour <= 24; hour += 6 {
		fmt.Fprintf(&b, `<path class="grid" d="M%d 0V%d"/>`, hour*plotWidth/24, plotHeight)
	}
	fmt.Fprintf(&b, `<path class="grid" d="M0 %d.5H%d"/>`, plotHeight/2, plotWidth)
	for i, l := range lines {
		fmt.Fprintf(&b, `<path class="s %s" d="%s"/>`, l.Class, path(values[i], scale))
	}
	b.WriteString("</svg>")
	// All that is in it are numbers and names of this program.
	return picture{Title: title, Unit: unit, Lines: lines, Most: fmt.Sprintf("%g", scale), SVG: template.HTML(b.String())}
}

// seriesOf returns the values of a line, and what is not a number where nothing is
// known.
func seriesOf(day []point, l line) []float64 {
	if !l.sums {
		values := make([]float64, len(day))
		for i, p := range day {
			values[i] = math.NaN()
			if p.known {
				values[i] = float64(l.value(p.sample))
			}
		}
		return values
	}
	var values []float64
	for at := 0; at < len(day); at += quarter {
		sum := math.NaN()
		for _, p := range day[at:min(at+quarter, len(day))] {
			if p.known {
				if math.IsNaN(sum) {
					sum = 0
				}
				sum += float64(l.value(p.sample))
			}
		}
		values = append(values, sum)
	}
	return values
}

// path returns the steps of a line.
func path(values []float64, scale float64) string {
	var b strings.Builder
	width := float64(plotWidth) / float64(max(len(values), 1))
	pen := false
	last := math.NaN()
	for i, v := range values {
		if math.IsNaN(v) {
			if pen {
				fmt.Fprintf(&b, "H%.0f", float64(i)*width)
			}
			pen, last = false, v
			continue
		}
		y := plotHeight - v/scale*(plotHeight-4) - 2
		switch {
		case !pen:
			fmt.Fprintf(&b, "M%.0f %.1f", float64(i)*width, y)
		case v != last:
			fmt.Fprintf(&b, "H%.0fV%.1f", float64(i)*width, y)
		}
		pen, last = true, v
	}
	if pen {
		fmt.Fprintf(&b, "H%d", plotWidth)
	}
	return b.String()
}

// round125 returns a number that is not below v: 1, 2 or 5 times a power of ten.
func round125(v float64) float64 {
	if !(v > 1) {
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
