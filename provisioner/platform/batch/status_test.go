package batch

import (
	"strings"
	"testing"
	"time"

	"podstarter/provisioner/platform"
	"podstarter/provisioner/template"
)

func config(t testing.TB) *Config {
	t.Helper()
	c := &Config{fields: []string{"name", "id", "state", "note", "created", "began", "-", "reason"}, states: map[string]state{"Q": pending, "R": running, "X": gone}}
	return c
}

func TestStatus(t *testing.T) {
	text := "header\n\np-plain-1 1.0 Q note 5 0 x because  of\tthis\nother 2 what\np-plain-2 2 R note 2026-11-02T08:00:00Z 2026-11-02T08:00:00 x\np-plain-3 3 X note 0 0 x\n"
	jobs, err := config(t).readStatus([]byte(text), "p-")
	if err != nil || len(jobs) != 2 {
		t.Fatalf("%+v, %v", jobs, err)
	}
	if j := jobs[0]; j.name != "p-plain-1" || j.id != "1.0" || j.state != pending || j.note != "note" || j.created.Unix() != 5 || !j.began.IsZero() || j.reason != "because of this" {
		t.Errorf("%+v", j)
	}
	day := time.Date(2026, 11, 2, 8, 0, 0, 0, time.UTC)
	if j := jobs[1]; !j.created.Equal(day) || !j.began.Equal(time.Date(2026, 11, 2, 8, 0, 0, 0, time.Local)) || j.reason != "" {
		t.Errorf("%+v", j)
	}
}

func TestStatusThatIsWrong(t *testing.T) {
	for want, text := range map[string]string{
		"line 2 of the status: \"p-x 1 Q\" has 3 fields, and batch.fields has 7": "a\np-x 1 Q\n",
		"p-x has the identifier \"-rf\"":                                         "p-x -rf Q n 0 0 0\n",
		"p-x is in the state \"Z\"":                                              "p-x 1 Z n 0 0 0\n",
		"the field created of p-x: \"yesterday\" is no time":                     "p-x 1 Q n yesterday 0 0\n",
		"the field began of p-x: \"-5\" is no time":                              "p-x 1 Q n 0 -5 0\n",
		"the status has a line of more than":                                     strings.Repeat("x", maxLine+1),
	} {
		if _, err := config(t).readStatus([]byte(text), "p-"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the error is %v, want one with %q", err, want)
		}
	}
}

func FuzzStatus(f *testing.F) {
	f.Add([]byte("p-plain-1 1.0 Q " + note("p", spec1) + " 5 0 x because\nother\n"))
	f.Add([]byte("p-plain-1 1 R p,plain,small,1,2,3,4,%0A,%zz 9999999999999999999 N/A - \xff\n"))
	f.Add([]byte("p-a 12[3].host X - 2026-11-02T08:00:00 0 0\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		c := config(t)
		jobs, err := c.readStatus(text, "p-")
		if err != nil {
			if len(err.Error()) > 1000 {
				t.Errorf("an error of %d bytes", len(err.Error()))
			}
			return
		}
		s, err := New("p", c, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, j := range jobs {
			if !strings.HasPrefix(j.name, "p-") || !label.MatchString(j.name) || strings.HasPrefix(j.id, "-") || len(j.reason) > maxReason+4 {
				t.Errorf("%+v is a job", j)
			}
			s.show(j.name, []job{j}, time.Unix(1, 0))
			if u := s.units[j.name].unit; u.Size.CPUs < 0 || u.Name != j.name {
				t.Errorf("%+v is a unit", u)
			}
		}
	})
}

// Whatever a user is called, it is one word in what is submitted, and is read back.
func FuzzUser(f *testing.F) {
	f.Add("alice@example.org", "g")
	f.Add("-x\n'", "%2")
	f.Fuzz(func(t *testing.T, user, group string) {
		user, group = user[:min(len(user), maxUser)], group[:min(len(group), maxUser)]
		s := spec1
		s.User, s.Group = user, group
		for key, v := range values("p", template.Template{}, s) {
			if v == "" || v[0] == '-' || strings.ContainsAny(v, " \t\r\n\"'`$\\{}();&|<>*?!#=/\x00") {
				t.Errorf("{%s} is %q", key, v)
			}
		}
		owner, got, ok := readNote(note("p", s))
		got.Name = s.Name
		if !ok || owner != "p" || got != s {
			t.Errorf("%q is read as %+v", note("p", s), got)
		}
	})
}

// A text is filled in as it is written, or is an error.
func FuzzText(f *testing.F) {
	f.Add("a {name} {{b}} ${{HOME}}")
	f.Add("{name")
	f.Fuzz(func(t *testing.T, s string) {
		x, err := parseText(s, []string{"name"})
		if err != nil {
			return
		}
		// Written once more, it gives what was there.
		got := strings.ReplaceAll(x.fill(map[string]string{"name": "\x00"}), "{", "{{")
		got = strings.ReplaceAll(strings.ReplaceAll(got, "}", "}}"), "\x00", "{name}")
		if got != s {
			t.Errorf("%q is filled in as %q", s, got)
		}
	})
}

var _ platform.Platform = (*System)(nil)
