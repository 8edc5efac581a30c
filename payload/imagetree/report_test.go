package imagetree

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestReportIsRead(t *testing.T) {
	worst := Report{Entries: 1, Reason: Malformed, Path: printable(strings.Repeat("<\xff", 5000)), Message: printable(strings.Repeat("&", 5000))}
	for range maxMounted {
		worst.Mounted = append(worst.Mounted, printable(strings.Repeat("é>", 5000)))
	}
	for name, r := range map[string]Report{"empty": {}, "full": {Entries: 3, Bytes: 5, Reason: DiskFull, Path: "a", Errno: 28, Message: "no space"}, "longest": worst} {
		t.Run(name, func(t *testing.T) {
			data, err := json.Marshal(r)
			must(t, err)
			got, err := Decode(data)
			if diff := cmp.Diff(r, got); err != nil || diff != "" {
				t.Errorf("%v (-want +got):\n%s", err, diff)
			}
		})
	}
}

func TestReportIsRefused(t *testing.T) {
	for name, text := range map[string]string{
		"no JSON":            "done",
		"too long":           `{"message": "` + strings.Repeat("x", maxReport) + `"}`,
		"long text":          `{"message": "` + strings.Repeat("x", maxText+1) + `"}`,
		"an unknown reason":  `{"reason": "because"}`,
		"less than nothing":  `{"bytes": -1}`,
		"control characters": `{"path": "a\u001bb"}`,
		"many mounts":        `{"mounted": ["", "", "", "", ""]}`,
	} {
		t.Run(name, func(t *testing.T) {
			if r, err := Decode([]byte(text)); err == nil {
				t.Errorf("read as %+v", r)
			}
		})
	}
}

func TestArgs(t *testing.T) {
	for _, want := range []Order{
		{Limits: Limits{Bytes: 1 << 40, Entries: 7}},
		{Account: Account{Name: "slot1", UID: 10001, GID: 10002, Home: "/scratch/a b"}},
		{Account: Account{Name: "slot1", UID: 10001, GID: 10002, Home: "/scratch"}, Again: true},
		{Layers: true},
		{Account: Account{Name: "again", UID: 10001, GID: 10002, Home: "layers"}, Again: true, Layers: true},
	} {
		if got, err := parseArgs(want.Args()); err != nil || got != want {
			t.Errorf("%+v, %v", got, err)
		}
	}
	for _, args := range [][]string{nil, {Program}, {Program, "1"}, {Program, "x", "1"}, {Program, "1", "-1"}, {Program, "1", "99999999999999999999"}, {Program, "1", "1", "1"}, {Program, "1", "1", "again", "1"},
		{Program, "1", "1", "u", "1", "1"}, {Program, "1", "1", "", "1", "1", "/"}, {Program, "1", "1", "u", "0", "1", "/"}, {Program, "1", "1", "u", "1", "-1", "/"},
		{Program, "1", "1", "u:x", "1", "1", "/"}, {Program, "1", "1", "u", "1", "1", "/a\nroot:x:0:0"}, {Program, "1", "1", "u", "1", "x", "/"}} {
		var out, errs bytes.Buffer
		if code := Main(&out, &out, &errs, args); code != 2 || out.Len() > 0 || errs.Len() == 0 {
			t.Errorf("%q: exit code %d, %q, %q", args, code, out.String(), errs.String())
		}
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte(`{"entries": 1, "reason": "failed", "mounted": ["a"]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := Decode(data)
		if err != nil {
			return
		}
		again, err := json.Marshal(r)
		must(t, err)
		if got, err := Decode(again); err != nil || !cmp.Equal(r, got, cmpopts.EquateEmpty()) {
			t.Errorf("%+v became %+v, %v", r, got, err)
		}
	})
}
