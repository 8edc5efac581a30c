package footprint_test

import (
	"cmp"
	"debug/elf"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write testdata/sizes.json")

// sizes is how large a program is.
type sizes struct {
	Program  int64            `json:"program"`  // bytes of the file
	Packages map[string]int64 `json:"packages"` // KiB of code and data, of packages with more than smallest
}

const (
	sizesFile = "testdata/sizes.json"
	// smallest is of how many KiB on a package is noted.
	smallest = 8
	// growth is by how many thousandths the starter may be larger than noted: no change of
	// code in one place makes as much of a difference, and no new release of Go may go unseen.
	growth = 20
)

// TestSize: the starter is not larger than noted. All of it becomes a part of the memory of each
// job's starter, and of each pilot's image. If it grew for a good reason, -update notes that.
func TestSize(t *testing.T) {
	got := measureSize(t)
	if *update {
		data, err := json.MarshalIndent(got, "", "\t")
		must(t, err)
		must(t, os.WriteFile(sizesFile, append(data, '\n'), 0o644))
		return
	}
	data, err := os.ReadFile(sizesFile)
	must(t, err)
	var noted sizes
	must(t, json.Unmarshal(data, &noted))
	if most := noted.Program + noted.Program*growth/1000; got.Program > most {
		t.Errorf("the starter has %d bytes, more than %d (%s and %d/1000); these packages grew:\n%s\ntake out what need not be, or run: go test ./starter/footprint -run TestSize -update",
			got.Program, most, sizesFile, growth, grown(noted.Packages, got.Packages))
	}
}

// TestGrown: the packages that grew most come first, and those that did not are left out.
func TestGrown(t *testing.T) {
	got := grown(map[string]int64{"a": 10, "b": 10, "c": 10}, map[string]int64{"a": 12, "b": 9, "c": 10, "new": 30})
	if want := "    +30 KiB new\n     +2 KiB a"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// grown lists packages that grew.
func grown(before, after map[string]int64) string {
	byGrowth := slices.SortedFunc(maps.Keys(after), func(a, b string) int {
		return cmp.Or(cmp.Compare(after[b]-before[b], after[a]-before[a]), cmp.Compare(a, b))
	})
	var lines []string
	for _, name := range byGrowth[:min(len(byGrowth), 20)] {
		if more := after[name] - before[name]; more > 0 {
			lines = append(lines, fmt.Sprintf("%7s KiB %s", fmt.Sprintf("%+d", more), name))
		}
	}
	return strings.Join(lines, "\n")
}

// measureSize builds the starter for one kind of machine, once as `make build` does, and once
// with the names of what is in it.
func measureSize(t *testing.T) sizes {
	t.Helper()
	dir := t.TempDir()
	build := func(name, flags string) string {
		program := filepath.Join(dir, name)
		c := exec.Command("go", "build", "-trimpath", "-ldflags", flags, "-o", program, "..")
		c.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH=amd64")
		if out, err := c.CombinedOutput(); err != nil {
			t.Fatalf("build the starter: %v\n%s", err, out)
		}
		return program
	}
	info, err := os.Stat(build("starter", "-s -w"))
	must(t, err)
	named, err := elf.Open(build("named", "-w"))
	must(t, err)
	defer named.Close()
	symbols, err := named.Symbols()
	must(t, err)
	all := map[string]int64{}
	for _, s := range symbols {
		if int(s.Section) < len(named.Sections) && named.Sections[s.Section].Type != elf.SHT_NOBITS {
			all[packageOf(s.Name)] += int64(s.Size)
		}
	}
	packages := map[string]int64{}
	for name, bytes := range all {
		if kib := bytes >> 10; kib >= smallest {
			packages[name] = kib
		}
	}
	if len(packages) < 50 || packages["podstarter/classads"] == 0 {
		t.Fatalf("the starter's packages are %v", packages)
	}
	return sizes{Program: info.Size(), Packages: packages}
}

// packageOf is the package of a symbol: path/to/package.(*Type).Method.
func packageOf(symbol string) string {
	if strings.HasPrefix(symbol, "type:") || strings.HasPrefix(symbol, "go:") {
		kind, _, _ := strings.Cut(symbol, ".")
		kind, _, _ = strings.Cut(kind, "*")
		if strings.HasPrefix(kind, "type:") {
			return "types"
		}
		return kind
	}
	name := symbol
	if at := strings.IndexAny(name, "(["); at >= 0 {
		name = name[:at] // arguments of types have paths of their own
	}
	path := name[:strings.LastIndex(name, "/")+1]
	last, _, _ := strings.Cut(name[len(path):], ".")
	return path + last
}
