package advert

import (
	"strings"
	"testing"

	"podstarter/classads"
	"podstarter/provisioner/template"
)

// Whoever may advertise chooses the name of an ad. It becomes a line of what takes the
// ad back, which has one string in one line.
func TestHostileShapes(t *testing.T) {
	templates := []template.Template{{Name: "plain", Slots: 2}}
	for c := range 256 {
		for _, shape := range []string{string([]byte{byte(c)}), "a" + string([]byte{byte(c)}), "a" + string([]byte{byte(c), '"'}) + " || true", string([]byte{'\\', byte(c)}) + "\nRequirements = true\n\n"} {
			unit, _, _, err := ParseName("offline@site-plain-a."+shape, "site", templates)
			if harmless := strings.Trim(shape, "abcdefghijklmnopqrstuvwxyz0123456789-") == "" && strings.Trim(shape, "-") == shape; harmless != (err == nil) {
				t.Errorf("the shape %q: %v", shape, err)
			}
			if err != nil {
				continue
			}
			for _, ad := range Invalidations(unit, shape, 2) {
				text := ad.FormatOld()
				if back, err := (classads.Parser{}).Old(text); err != nil || strings.Count(text, "\n") != 5 || back.FormatOld() != text {
					t.Errorf("the shape %q: %v\n%s", shape, err, text)
				}
			}
		}
	}
}

// FuzzTakenBack reads what a collector sends, and takes each ad of it back.
func FuzzTakenBack(f *testing.F) {
	f.Add("Name = \"offline@site-plain-a.one\"\nMachineLastMatchTime = 5\n\n")
	f.Add("Name = \"offline_2@site-plain-a.\\\\\"\n\nName = \"offline@site-plain-b.\x01\xff\"\n")
	templates := []template.Template{{Name: "plain", Slots: 2}}
	f.Fuzz(func(t *testing.T, text string) {
		offers, _ := Read(strings.NewReader(text), "site", templates)
		for _, o := range offers {
			for _, ad := range Invalidations(o.Unit, o.Shape, 2) {
				if lines := ad.FormatOld(); strings.Count(lines, "\n") != 5 {
					t.Errorf("%q becomes\n%s", text, lines)
				}
			}
		}
	})
}

// A name that no pod can have would close its shape: the platform refuses it.
func TestLongMarks(t *testing.T) {
	prefix, templates := strings.Repeat("p", 20), []template.Template{{Name: strings.Repeat("t", 30), Slots: 1}}
	accepted := 0
	for n := range 30 {
		unit, _, _, err := ParseName("offline@"+prefix+"-"+templates[0].Name+"-"+strings.Repeat("a", n)+".one", prefix, templates)
		if err != nil {
			continue
		}
		if accepted++; len(unit) > 63 {
			t.Errorf("a unit is called %s, which has %d letters", unit, len(unit))
		}
	}
	if accepted != 8 {
		t.Errorf("marks of %d lengths are read, want 8", accepted)
	}
}
