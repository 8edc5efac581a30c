package settings

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/google/go-cmp/cmp"

	"podstarter/condor/config"
)

func TestUnknownKnobs(t *testing.T) {
	tests := map[string]struct {
		name string
		want []Unknown
	}{
		"known":                       {"POD_STARTER_CONTAINERS", nil},
		"known, in small letters":     {"pod_starter_containers", nil},
		"known, for a subsystem":      {"STARTER.POD_STARTER_CONTAINERS", nil},
		"a macro of condor_config.d":  {"POD_STARTER_CONTAINER_COUNT", nil},
		"a letter is missing":         {"POD_STARTER_CONTANERS", []Unknown{{Name: "POD_STARTER_CONTANERS", Meant: "POD_STARTER_CONTAINERS"}}},
		"letters are swapped":         {"POD_STARTER_REEST", []Unknown{{Name: "POD_STARTER_REEST", Meant: "POD_STARTER_RESET"}}},
		"for a subsystem":             {"STARTER.POD_STARTER_BACKND", []Unknown{{Name: "STARTER.POD_STARTER_BACKND", Meant: "POD_STARTER_BACKEND"}}},
		"the plural":                  {"POD_STARTER_IMAGE_ALLOWED", []Unknown{{Name: "POD_STARTER_IMAGE_ALLOWED", Meant: "POD_STARTER_IMAGES_ALLOWED"}}},
		"nothing near":                {"POD_STARTER_FLAVOUR_OF_TEA", []Unknown{{Name: "POD_STARTER_FLAVOUR_OF_TEA"}}},
		"another prefix":              {"PODSTARTER_CONTAINERS", []Unknown{{Name: "PODSTARTER_CONTAINERS", Meant: "POD_STARTER_CONTAINERS"}}},
		"HTCondor's":                  {"STARTER_UPDATE_INTERVAL", nil},
		"a site's own":                {"PODSTARTER_KEEPER", nil},
		"a site's own, near to none":  {"POD_NAME", nil},
		"a site's own, far from ours": {"RESET", nil},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			cfg := config.FromMap(map[string]string{tt.name: "1"})
			if diff := cmp.Diff(tt.want, UnknownKnobs(cfg)); diff != "" {
				t.Errorf("UnknownKnobs (-want +got):\n%s", diff)
			}
		})
	}
}

func TestUnknownSentence(t *testing.T) {
	u := Unknown{Name: "POD_STARTER_BACKND", Where: "/etc/condor/config.d/60-site.conf, line 3", Meant: "POD_STARTER_BACKEND"}
	const want = "POD_STARTER_BACKND (set at /etc/condor/config.d/60-site.conf, line 3) is not a knob of podstarter and has no effect; did you mean POD_STARTER_BACKEND?"
	if u.String() != want {
		t.Errorf("got:\n%s\nwant:\n%s", u, want)
	}
}

func TestDistance(t *testing.T) {
	for _, tt := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"", "ab", 2}, {"ab", "", 2}, {"ab", "ab", 0}, {"ab", "ba", 1}, {"kitten", "sitting", 3}, {"abcd", "acbd", 1}, {"abc", "ac", 1}} {
		if got := distance(tt.a, tt.b, 9); got != tt.want {
			t.Errorf("distance(%q, %q) = %d, want %d", tt.a, tt.b, got, tt.want)
		}
		for most := range 4 {
			if got := distance(tt.a, tt.b, most); got != tt.want && (got <= most || tt.want <= most) {
				t.Errorf("distance(%q, %q, %d) = %d, want %d or any above %d", tt.a, tt.b, most, got, tt.want, most)
			}
		}
	}
}

// TestOwnFilesAreKnown: what the files that we hand out set is not warned of.
func TestOwnFilesAreKnown(t *testing.T) {
	assigned := regexp.MustCompile(`(?m)^\s*([A-Za-z_.]+)\s*=`)
	read := 0
	for _, dir := range []string{"../../condor_config.d", "../../deploy"} {
		err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
			if err != nil || filepath.Ext(path) != ".conf" {
				return err
			}
			read++
			text, err := os.ReadFile(path)
			knobs := map[string]string{}
			for _, m := range assigned.FindAllStringSubmatch(string(text), -1) {
				knobs[m[1]] = "1"
			}
			for _, u := range UnknownKnobs(config.FromMap(knobs)) {
				t.Errorf("%s: %s", path, u)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if read < 4 {
		t.Errorf("%d files of configuration were read, which is too few", read)
	}
}
