package commonfiles_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"podstarter/sandbox/commonfiles"
	"podstarter/sandbox/sandboxtest"
)

// TestForged: what others may enter or own is no catalog of the starter's, and one whose files have become shorter is not whole.
func TestForged(t *testing.T) {
	root(t)
	for name, tt := range map[string]struct {
		change func(store, catalog string) error
		found  bool
	}{
		"others may enter":       {change: func(store, _ string) error { return os.Chmod(store, 0o711) }},
		"others may read":        {change: func(store, _ string) error { return os.Chmod(store, 0o744) }},
		"the store is a job's":   {change: func(store, _ string) error { return os.Chown(store, jobUID, jobUID) }},
		"the catalog is a job's": {change: func(_, catalog string) error { return os.Chown(catalog, jobUID, jobUID) }},
		"a file is shorter":      {change: func(_, catalog string) error { return os.Truncate(filepath.Join(catalog, "a"), 1) }, found: true},
		"nothing of all this":    {change: func(_, _ string) error { return nil }, found: true},
		"the catalog is elsewhere": {change: func(store, catalog string) error {
			return errors.Join(os.Rename(catalog, store+"/x"), os.Symlink("x", catalog))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			execute := sandboxtest.ExecuteDir(t)
			data, job := box(t, execute, 1, dataUID, true), box(t, execute, 2, jobUID, false)
			keep(t, data, key, map[string]string{"a": "text"})
			store := filepath.Join(data.Dir(), "catalogs")
			kept, err := filepath.Glob(filepath.Join(store, string(key)+".*"))
			if err != nil || len(kept) != 1 {
				t.Fatalf("%q, %v", kept, err)
			}
			if err := tt.change(store, kept[0]); err != nil {
				t.Fatal(err)
			}
			found, err := commonfiles.Find(execute, key, "")
			if !tt.found {
				if !errors.Is(err, commonfiles.ErrNone) {
					t.Errorf("%v", err)
				}
				return
			}
			if err != nil || len(found) != 1 {
				t.Fatalf("%d found, %v", len(found), err)
			}
			defer found[0].Close()
			if _, err := job.Share(t.Context(), found[0], "", copies, quiet); (err == nil) != (name == "nothing of all this") {
				t.Errorf("%v", err)
			}
		})
	}
}
