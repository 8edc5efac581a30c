package classads

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// realAd reads an ad of a test pool.
func realAd(tb testing.TB, name string) string {
	tb.Helper()
	text, err := os.ReadFile(filepath.Join("..", "testdata", "classads", name+".ad"))
	if err != nil {
		tb.Fatal(err)
	}
	return string(text)
}

// largeAd is an ad of about 400 attributes.
func largeAd(tb testing.TB) string {
	a, err := ParseOld(realAd(tb, "machine") + realAd(tb, "scheduler") + realAd(tb, "job") + realAd(tb, "negotiator"))
	if err != nil {
		tb.Fatal(err)
	}
	tb.Logf("%d attributes", a.Len())
	return a.FormatOld()
}

func BenchmarkParseOld(b *testing.B) {
	text := largeAd(b)
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := ParseOld(text); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkParseOldLines reads an ad as it comes from the wire.
func BenchmarkParseOldLines(b *testing.B) {
	lines := strings.Split(strings.TrimSpace(largeAd(b)), "\n")
	b.ReportAllocs()
	for b.Loop() {
		ad := NewAd()
		for _, line := range lines {
			name, e, err := ParseOldLine(line)
			if err != nil {
				b.Fatal(err)
			}
			ad.Insert(name, e)
		}
	}
}

func BenchmarkFormatOld(b *testing.B) {
	ad, err := ParseOld(largeAd(b))
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		ad.FormatOld()
	}
}

func BenchmarkGetInt(b *testing.B) {
	ad, err := ParseOld(realAd(b, "machine"))
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := ad.GetInt("Memory"); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkRequirements evaluates the Requirements of a real job against a
// real machine.
func BenchmarkRequirements(b *testing.B) {
	job, err := ParseOld(realAd(b, "job"))
	if err != nil {
		b.Fatal(err)
	}
	machine, err := ParseOld(realAd(b, "machine"))
	if err != nil {
		b.Fatal(err)
	}
	e, _ := job.Lookup("Requirements")
	env := Env{My: job, Target: machine}
	if v := e.Eval(env); v.Kind() != Bool {
		b.Fatal(v)
	}
	b.ReportAllocs()
	for b.Loop() {
		e.Eval(env)
	}
}

func BenchmarkMachineStart(b *testing.B) {
	machine, err := ParseOld(realAd(b, "machine") + "Start = (KeyboardIdle > 15 * 60) && (LoadAvg <= 0.3 || State == \"Claimed\") && TARGET.RequestMemory <= Memory\n")
	if err != nil {
		b.Fatal(err)
	}
	job, err := ParseOld(realAd(b, "job"))
	if err != nil {
		b.Fatal(err)
	}
	e, _ := machine.Lookup("Start")
	env := Env{My: machine, Target: job}
	b.ReportAllocs()
	for b.Loop() {
		e.Eval(env)
	}
}
