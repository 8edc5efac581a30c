package localjob

import (
	"log/slog"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"podstarter/condor/job"
	"podstarter/localexec"
)

var quiet = slog.New(slog.DiscardHandler)

func FuzzReadAd(f *testing.F) {
	f.Add("A = 1\n#\nB = [ x = {1, \"\\\"\"} ]\n\n=\n")
	f.Fuzz(func(t *testing.T, text string) {
		ad, err := job.ReadLines(strings.NewReader(text), quiet)
		if err != nil {
			return
		}
		_ = localize(ad)
		_, _ = infoOf(ad)
	})
}

func TestMappedAccount(t *testing.T) {
	tests := map[string]struct {
		text string
		want *localexec.Account
		bad  bool
	}{
		"there":                {text: "bob=1,2,3 alice=1000,100,27,44", want: &localexec.Account{UID: 1000, GID: 100, Groups: []int{100, 27, 44}}},
		"without groups":       {text: "alice=1000,100", want: &localexec.Account{UID: 1000, GID: 100, Groups: []int{100}}},
		"not there":            {text: "bob=1,2 malice=3,4"},
		"groups are not known": {text: "alice=1000,100,?"},
		"no number":            {text: "alice=x,100", bad: true},
		"below 0":              {text: "alice=-1,100", bad: true},
		"beyond 32 bits":       {text: "alice=4294967296,100", bad: true},
		"the user of nobody":   {text: "alice=1000,4294967295", bad: true},
		"no group":             {text: "alice=1000", bad: true},
		"nothing":              {text: ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := mapped("alice", tt.text)
			if (err != nil) != tt.bad {
				t.Fatalf("got %v", err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestLookedUpAccount(t *testing.T) {
	got, err := lookedUp(t.Context(), "nobody")
	if err != nil || got.UID != 65534 || len(got.Groups) == 0 || got.Groups[0] != got.GID {
		t.Errorf("nobody is %+v, %v", got, err)
	}
	for _, name := range []string{"no-such-user", "-u", "", "65534", "+65534", " 65534"} {
		if got, err := lookedUp(t.Context(), name); err == nil && name != "" {
			t.Errorf("%q is %+v", name, got)
		}
	}
	if name, dir := home(t.Context(), 0); name != "root" || dir == "" {
		t.Errorf("root is %q in %q", name, dir)
	}
	if name, dir := home(t.Context(), 1<<30+7); name != "" || dir != "" {
		t.Errorf("a user that nobody knows is %q in %q", name, dir)
	}
}

func FuzzMappedAccount(f *testing.F) {
	f.Add("alice=1000,100,27 bob=1,2,?")
	f.Fuzz(func(t *testing.T, text string) {
		if a, err := mapped("alice", text); err == nil && a != nil && (a.UID < 0 || a.GID < 0 || len(a.Groups) == 0) {
			t.Errorf("%q gives %+v", text, a)
		}
	})
}
