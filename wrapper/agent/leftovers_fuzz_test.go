package agent

import (
	"bufio"
	"strings"
	"testing"
)

// FuzzObjectsOf reads tables of /proc/sysvipc; the objects found in them would be removed.
func FuzzObjectsOf(f *testing.F) {
	f.Add("       key      shmid perms                  size  cpid  lpid nattch   uid   gid  cuid  cgid      atime      dtime      ctime                   rss                  swap\n"+
		"         0     131072  1600                  4096  1234  1234      0 10001 10001 10001 10001          0          0 1795250000                  4096                     0\n", 10001)
	f.Add("key uid\nx 1\n", 1)
	f.Add("uid\n1\n", 1)
	f.Fuzz(func(t *testing.T, table string, uid int) {
		ids, err := objectsOf(bufio.NewScanner(strings.NewReader(table)), uid)
		if err == nil && len(ids) > strings.Count(table, "\n") {
			t.Errorf("%d objects in %q", len(ids), table)
		}
	})
}
