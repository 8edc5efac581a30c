package job

import (
	"fmt"
	"path/filepath"
	"strings"

	"podstarter/classads"
)

// ManifestDir names the directory of the sandbox in which a job wants to find lists of
// its files and its environment; empty if it wants none
// (condor_starter.V6.1/starter.cpp:OpenManifestFile).
func ManifestDir(ad *classads.Ad, i Info) string {
	if dir, err := ad.GetString("ManifestDir"); err == nil {
		return strings.TrimRight(dir, "/")
	}
	if !ad.BoolOr("ManifestDesired", false) {
		return ""
	}
	return fmt.Sprintf("%d_%d_manifest", i.Cluster, i.Proc)
}

// manifestOutside says whether the directory that the job names is none below the
// sandbox, or has a name that none can have.
func manifestOutside(ad *classads.Ad, _ Info) bool {
	const longest = 4096 // PATH_MAX
	dir, err := ad.GetString("ManifestDir")
	return err == nil && dir != "" && (!filepath.IsLocal(dir) || filepath.Clean(dir) == "." || len(dir) >= longest || strings.ContainsRune(dir, 0))
}
