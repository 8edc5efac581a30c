package settings

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"podstarter/condor/config"
)

// configuration returns the files of HTCondor's configuration, and the directories with
// such files: the first file, those that it leads to, and all that set a knob. Programs
// of HTCondor read every one, also those that set nothing that holds.
func configuration(cfg *config.Config) []string {
	paths := append([]string{os.Getenv("CONDOR_CONFIG")}, cfg.Sources()...)
	for _, name := range []string{"LOCAL_CONFIG_DIR", "LOCAL_CONFIG_FILE"} {
		value := cfg.String(name, "")
		if strings.HasSuffix(strings.TrimSpace(value), "|") { // a command that prints configuration
			continue
		}
		paths = append(paths, strings.FieldsFunc(value, func(c rune) bool { return c == ',' || c == ' ' || c == '\t' })...)
	}
	paths = slices.DeleteFunc(paths, func(path string) bool { return !filepath.IsAbs(path) })
	slices.Sort(paths)
	return slices.Compact(paths)
}
