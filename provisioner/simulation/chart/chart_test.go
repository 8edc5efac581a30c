package chart

import (
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"
)

// What is written is XML, has each line's points inside the panel, and escapes what
// it was given.
func TestWrite(t *testing.T) {
	var b strings.Builder
	err := Write(&b, 2,
		Panel{Title: "jobs <idle>", Lines: []Line{{Name: "ours", Values: []float64{0, 37, 12}}, {Name: "a & b", Style: 1, Values: []float64{1, 2, 3}}}},
		Panel{Title: "nothing", Lines: []Line{{Name: "zero", Values: []float64{0, 0}}}},
	)
	if err != nil {
		t.Fatal(err)
	}
	text := b.String()
	for d := xml.NewDecoder(strings.NewReader(text)); ; {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatalf("%v in\n%s", err, text)
		}
	}
	for _, want := range []string{
		"jobs &lt;idle&gt;", "a &amp; b", `>40</text>`, "day 2", "prefers-color-scheme: dark",
		`d="M60.0 192.0L472.5 51.4L885.0 146.4"`,
		`d="M60.0 192.0L885.0 192.0"`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in\n%s", want, text)
		}
	}
}

func TestRound(t *testing.T) {
	for v, want := range map[float64]float64{0: 1, 0.3: 0.5, 1: 1, 3: 5, 9.25: 10, 12: 20, 60: 100} {
		if got := round(v); got != want {
			t.Errorf("round(%v) = %v, want %v", v, got, want)
		}
	}
}
