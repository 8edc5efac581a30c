package job

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"podstarter/classads"
)

// TestWordsMemory: arguments and environments that are too long for any program
// are not parsed, shorter ones are.
func TestWordsMemory(t *testing.T) {
	many := func(word string, bytes int) string { return strings.Repeat(word+" ", bytes/(len(word)+1)) }
	numbered := func() string {
		var b strings.Builder
		for i := range 900_000 {
			fmt.Fprintf(&b, "%x=; ", i)
		}
		return b.String()
	}()
	env := func(ad *classads.Ad) error { return NewEnv().MergeAd(ad) }
	args := func(ad *classads.Ad) error { _, err := Arguments(ad); return err }
	for name, tt := range map[string]struct {
		take             func(*classads.Ad) error
		attribute, value string
		fits             bool
	}{
		"arguments":               {args, "Arguments", many("a", 7<<20), false},
		"arguments of old":        {args, "Args", many("a", 7<<20), false},
		"one argument":            {args, "Arguments", strings.Repeat("a", 5<<20), true},
		"arguments as usual":      {args, "Arguments", many("results/sample-0001.root", 2<<20), true},
		"environment":             {env, "Environment", strings.ReplaceAll(numbered, ";", ""), false},
		"environment of old":      {env, "Env", numbered, false},
		"environment as is usual": {env, "Environment", many("VARIABLE=of-some-length", 2<<20), true},
	} {
		ad := classads.NewAd()
		ad.SetString(tt.attribute, tt.value)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		err := tt.take(ad)
		runtime.ReadMemStats(&after)
		if tt.fits != (err == nil) || !tt.fits && !errors.Is(err, errTooLong) {
			t.Errorf("%s: %v", name, err)
		}
		if took := int64(after.TotalAlloc - before.TotalAlloc); took > 128<<20 {
			t.Errorf("%s: %d KiB are taken", name, took>>10)
		}
	}
	lines := strings.Repeat("a={"+strings.Repeat("1,", 50_000)+"1}\n", 40)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := parseHookOutput([]byte(lines))
	runtime.ReadMemStats(&after)
	if took := int64(after.TotalAlloc - before.TotalAlloc); err == nil || took > 24<<20 {
		t.Errorf("a hook's output: %v, %d KiB are taken", err, took>>10)
	}
}
