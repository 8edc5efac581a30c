//go:build pool

package e2e

import (
	"archive/zip"
	"bytes"
	_ "embed"
	"encoding/base64"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"podstarter/integration/harness"
)

//go:embed testdata/java.sh
var javaPool string

// Compiled of the sources beside them.
var (
	//go:embed testdata/java/Job.class
	jobClass []byte
	//go:embed testdata/java/Helper.class
	helperClass []byte
)

// TestJavaWithoutPod: on an execution point without a pod, jobs of the java universe run as under the stock starter, by the same Java and
// under the same startd: what is advertised, output, exit codes, exceptions, final ads and events. A JVM that fails gives its job back
// under both; only ours says why.
func TestJavaWithoutPod(t *testing.T) {
	oursOnly(t)
	if !pool.Has(harness.StockApptainer) {
		t.Skip("the pool has no machine with Java, which is the one with Apptainer; start it with: pool up --stock-apptainer")
	}
	installed := installStarter(t, harness.StockApptainer)
	files := shellFile("class", jobClass) + shellFile("jar", jarOf(t, "Helper.class", helperClass))
	run := func(starter, daemons string) map[string]string {
		t.Helper()
		port, err := harness.FreePort()
		if err != nil {
			t.Fatal(err)
		}
		script := strings.NewReader(personalConfiguration + files + javaPool)
		out, err := pool.EPInput(t.Context(), harness.StockApptainer, script, "sh", "-s", starter, strconv.Itoa(port), daemons)
		if err != nil {
			t.Fatalf("%s: %v\n%s", starter, err, out)
		}
		return sections(out)
	}
	stock := run("/usr/sbin/condor_starter", "personal")
	for title, daemons := range map[string]string{"without root": "personal", "with root": "root"} {
		t.Run(title, func(t *testing.T) { compareJava(t, stock, run(installed, daemons)) })
	}
}

// reasons of an eviction: stock gives none.
var evictionReason = regexp.MustCompile(`(?m)^\tReason: .*\n|^\tCode .*\n`)

func compareJava(t *testing.T, stock, ours map[string]string) {
	// That neither compared nothing.
	for section, words := range map[string]string{
		"classad": "HasJava = true", "files": "input: input came", "quoted": "option: two words, of the site: of the site", "jar": "the helper's word",
		"nojar": "ExceptionType = java.lang.LinkageError", "exit": "return value 3", "throw": "Abnormal termination (signal 15)", "noclass": "java.lang.ClassNotFoundException",
		"onexit": "JobStatus = 5", "removed": "ExitCode = 143",
		"memory": "Reason: Java failed: the job threw a java.lang.OutOfMemoryError", "kill": "Reason: Java failed: the JVM exited abnormally with signal", "badoption": "java_vm_args",
	} {
		if !strings.Contains(ours[section], words) {
			t.Errorf("%s lacks %q:\n%s\n%s", section, words, ours[section], ours["log"])
		}
	}
	for section := range stock {
		if section == "log" {
			continue
		}
		plain := func(text string) string { return evictionReason.ReplaceAllString(text, "") }
		if diff := cmp.Diff(plain(stock[section]), plain(ours[section])); diff != "" {
			t.Errorf("%s (-stock +ours):\n%s\n%s", section, diff, ours["log"])
		}
	}
}

// shellFile is a function for the shell that prints a file.
func shellFile(name string, data []byte) string {
	return fmt.Sprintf("%s() {\n\tbase64 -d <<'END'\n%s\nEND\n}\n", name, base64.StdEncoding.EncodeToString(data))
}

func jarOf(t *testing.T, name string, data []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	w, err := z.Create(name)
	if err == nil {
		_, err = w.Write(data)
	}
	if err == nil {
		err = z.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}
