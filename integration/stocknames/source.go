package main

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"podstarter/integration/stocknames/cppnames"
)

// directories are those below src/ whose code is in the stock starter: its own, and what HTCondor's library is made of
// (CMakeLists.txt of condor_starter.V6.1 and condor_utils). Each has to be there, except those of one release only.
var directories = []string{
	"condor_starter.V6.1", "condor_utils", "condor_daemon_core.V6", "condor_io", "condor_procapi", "condor_sysapi", "condor_daemon_client", "condor_includes", "ccb", "safefile",
	"condor_procd",
}

// alsoFiles are single files of other directories that the starter is built from.
var alsoFiles = []string{"condor_startd.V6/VolumeManager.cpp", "condor_startd.V6/VolumeManager.h"}

// leftOut are the library's files for condor_submit. Most names in them are commands of submit files, and a starter reads none.
var leftOut = []string{"condor_utils/submit_utils.cpp", "condor_utils/submit_utils.h"}

// mostSource bounds one file, in bytes. The largest has 0.6 MB.
const mostSource = 8 << 20

// isSource says whether the file is C++ that goes into HTCondor's programs: no test, and no program of the library's own.
func isSource(name string) bool {
	base := filepath.Base(name)
	for _, end := range []string{"_t.cpp", ".t.cpp", "_main.cpp", ".t.unix.cpp", "_t.h"} {
		if strings.HasSuffix(base, end) && base != "daemon_core_main.cpp" && base != "starter_v61_main.cpp" {
			return false
		}
	}
	if strings.HasPrefix(base, "test") || strings.Contains(base, "_test.") {
		return false
	}
	return slices.Contains([]string{".cpp", ".h", ".c", ".cc", ".hpp"}, filepath.Ext(base))
}

// readsJob says whether the file looks at the job's attributes for the starter: its own code, file transfer, docker,
// arguments and environment.
func readsJob(name string) bool {
	return strings.HasPrefix(name, "condor_starter.V6.1/") || slices.ContainsFunc(jobFiles, func(start string) bool {
		return strings.HasPrefix(name, start+".")
	})
}

// jobFiles are helpers to which the starter hands the job's ad, without the ends of their names.
var jobFiles = []string{
	"condor_daemon_client/dc_shadow", "condor_daemon_core.V6/HookClientMgr", "condor_startd.V6/VolumeManager",
	"condor_utils/AWSv4-utils", "condor_utils/FileTransferControlBlock", "condor_utils/build_job_env", "condor_utils/classad_helpers",
	"condor_utils/condor_arglist", "condor_utils/condor_user_policy", "condor_utils/data_reuse", "condor_utils/docker-api", "condor_utils/env",
	"condor_utils/file_transfer", "condor_utils/guidance", "condor_utils/hook_utils", "condor_utils/set_user_priv_from_ad",
	"condor_utils/single_provider_syndicate", "condor_utils/spooled_job_files", "condor_utils/user_job_policy", "condor_utils/vm_univ_utils",
}

// sourcesIn reads HTCondor's source.
func sourcesIn(dir string) ([]cppnames.Source, error) {
	var sources []cppnames.Source
	add := func(path string) error {
		info, err := os.Stat(path)
		if err != nil {
			return fmt.Errorf("read HTCondor's source: %w", err)
		}
		if info.Size() > mostSource {
			return fmt.Errorf("read HTCondor's source: %s has more than %d bytes, which no file of it has", path, mostSource)
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return fmt.Errorf("read HTCondor's source: %w", err)
		}
		name, err := filepath.Rel(filepath.Join(dir, "src"), path)
		if err != nil {
			return fmt.Errorf("name %s: %w", path, err)
		}
		sources = append(sources, cppnames.Source{Name: filepath.ToSlash(name), Text: string(text)})
		return nil
	}
	for _, d := range directories {
		err := filepath.WalkDir(filepath.Join(dir, "src", d), func(path string, e fs.DirEntry, err error) error {
			if err != nil {
				return fmt.Errorf("read HTCondor's source: %w; -source is the directory above src/", err)
			}
			if e.IsDir() || !isSource(path) || slices.Contains(leftOut, d+"/"+e.Name()) {
				return nil
			}
			return add(path)
		})
		if err != nil {
			return nil, err
		}
	}
	for _, f := range alsoFiles {
		path := filepath.Join(dir, "src", filepath.FromSlash(f))
		if err := add(path); err != nil {
			return nil, err
		}
	}
	return sources, nil
}
