package panels

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
)

// Each diagram has its title and a line with its name.
func TestWrite(t *testing.T) {
	var all []*plot.Plot
	for _, name := range []string{"first", "second"} {
		p := New("The " + name)
		if err := Steps(p, "line of the "+name, Red, name == "second", plotter.XYs{{X: 0, Y: 1}, {X: 5, Y: 3}}); err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
	path := filepath.Join(t.TempDir(), "x.svg")
	if err := Write(path, 7*vg.Centimeter, all...); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"The first", "The second", "line of the first", "line of the second", "#D55E00", "stroke-dasharray"} {
		if !strings.Contains(string(text), want) {
			t.Errorf("%q is missing", want)
		}
	}
}

func TestErrors(t *testing.T) {
	p := New("x")
	if err := Steps(p, "the line", Blue, false, plotter.XYs{{X: 0, Y: math.NaN()}}); err == nil || !strings.Contains(err.Error(), `drawing "the line"`) {
		t.Errorf("a value that is no number: %v", err)
	}
	if err := Write(filepath.Join(t.TempDir(), "none", "x.svg"), 7*vg.Centimeter, p); err == nil {
		t.Error("a folder that is not there is no error")
	}
}
