// Package settingstest compares the page for admins with what the provisioner reads.
package settingstest

import (
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Check checks that the table below a heading of the page, which is a file, has each
// key of a file's form once, and no other.
func Check(t *testing.T, page, heading string, form any) {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	want := keys(reflect.TypeOf(form), "")
	slices.Sort(want)
	got := rows(string(text), heading)
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s, %s: -keys that are read +keys of the table\n%s", page, heading, diff)
	}
}

// keys returns the keys of a form; those of parts of it have a point.
func keys(form reflect.Type, prefix string) []string {
	var all []string
	for i := range form.NumField() {
		field := form.Field(i)
		key := prefix + field.Tag.Get("json")
		inner := field.Type
		list := inner.Kind() == reflect.Slice && inner.Elem().Kind() == reflect.Struct
		if list {
			inner = inner.Elem()
			all = append(all, key)
		}
		if inner.Kind() == reflect.Struct {
			all = append(all, keys(inner, key+".")...)
		} else if !list {
			all = append(all, key)
		}
	}
	return all
}

// rows returns what the rows of the table below a heading begin with.
func rows(text, heading string) []string {
	_, text, _ = strings.Cut(text, "\n"+heading+"\n")
	text, _, _ = strings.Cut(text, "\n## ")
	var all []string
	for line := range strings.Lines(text) {
		if key, ok := strings.CutPrefix(line, "| `"); ok {
			key, _, _ = strings.Cut(key, "`")
			all = append(all, key)
		}
	}
	return all
}
