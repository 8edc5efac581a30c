package version

import "testing"

func TestParse(t *testing.T) {
	for s, want := range map[string]Version{
		"$CondorVersion: 25.14.1 2026-10-16 PackageID: 25.14.1+dfsg-1 $": {25, 14, 1},
		"$CondorVersion:_25.14.1_2026-10-16_PackageID:_25.14.1+dfsg-1_$": {25, 14, 1},
		"$CondorVersion: 23.9.6 2026-07-12 PackageID: 23.9.6+dfsg-2.1 $": {23, 9, 6},
		"$CondorVersion: 25.14.1 ExportedSessionInfo $":                  {25, 14, 1},
		"$CondorVersion: 10.0.0 Nov 10 2022 BuildID: 1 RC $":             {10, 0, 0},
		"25.14.1":    {25, 14, 1},
		"25.14.1-rc": {25, 14, 1},
	} {
		if got, err := Parse(s); err != nil || got != want {
			t.Errorf("Parse(%q) = %v, %v; want %v", s, got, err, want)
		}
	}
	for _, s := range []string{"", "$CondorVersion: $", "25.14", "25.14.1.2", "a.b.c", "25.14.1x", "25..1", "-1.2.3", "99999999999.0.0"} {
		if got, err := Parse(s); err == nil || got.Known() {
			t.Errorf("Parse(%q) = %v, %v; want an error and no version", s, got, err)
		}
	}
}

func TestOrder(t *testing.T) {
	for _, tt := range []struct {
		v    Version
		gate [3]int
		want bool
	}{
		{Version{24, 5, 0}, [3]int{24, 5, 0}, true},
		{Version{24, 4, 99}, [3]int{24, 5, 0}, false},
		{Version{25, 0, 0}, [3]int{24, 5, 0}, true},
		{Version{24, 9, 1}, [3]int{24, 9, 2}, false},
		{Version{}, [3]int{7, 1, 3}, false},
	} {
		if got := tt.v.AtLeast(tt.gate[0], tt.gate[1], tt.gate[2]); got != tt.want {
			t.Errorf("%v at least %v: %v", tt.v, tt.gate, got)
		}
	}
	if s := (Version{}).String(); s != "unknown" {
		t.Errorf("zero version is %q", s)
	}
}

func FuzzParse(f *testing.F) {
	f.Add("$CondorVersion: 25.14.1 2026-10-16 $")
	f.Fuzz(func(t *testing.T, s string) {
		v, err := Parse(s)
		if err != nil {
			return
		}
		if w, err := Parse(v.String()); v.Known() && (err != nil || w != v) {
			t.Errorf("%q -> %v -> %v, %v", s, v, w, err)
		}
	})
}
