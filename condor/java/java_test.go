package java

import (
	"errors"
	"strings"
	"syscall"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"podstarter/classads"
	"podstarter/condor/config"
	"podstarter/condor/job"
)

func mustAd(t testing.TB, text string) *classads.Ad {
	t.Helper()
	ad, err := classads.ParseOld(text)
	if err != nil {
		t.Fatal(err)
	}
	return ad
}

func TestCommandOf(t *testing.T) {
	usual := map[string]string{
		"JAVA": "/usr/bin/java", "JAVA_CLASSPATH_ARGUMENT": "-classpath", "JAVA_CLASSPATH_SEPARATOR": ":", "JAVA_CLASSPATH_DEFAULT": "/usr/lib/condor .",
	}
	tests := map[string]struct {
		ad     string
		knobs  map[string]string
		shared bool
		chirp  string
		want   []string // the program first
	}{
		"a class": {
			ad: `Arguments = "Main one 'two words'"`, knobs: usual, chirp: "/s/.chirp.config",
			want: []string{"/usr/bin/java", "-classpath", "/usr/lib/condor:.", "-Dchirp.config=/s/.chirp.config", "CondorJavaWrapper", "/s/jvm.start", "/s/jvm.end", "Main", "one", "two words"},
		},
		"jar files come to the sandbox": {
			ad: "Args = \"Main\"\nJarFiles = \"/home/u/a.jar, b.jar\"", knobs: usual,
			want: []string{"/usr/bin/java", "-classpath", "/usr/lib/condor:.:/s/a.jar:/s/b.jar", "-Dchirp.config=/s/chirp.config", "CondorJavaWrapper", "/s/jvm.start", "/s/jvm.end", "Main"},
		},
		"jar files stay where they are": {
			ad: `JarFiles = "/home/u/a.jar,b.jar"`, knobs: usual, shared: true,
			want: []string{"/usr/bin/java", "-classpath", "/usr/lib/condor:.:/home/u/a.jar:b.jar", "-Dchirp.config=/s/chirp.config", "CondorJavaWrapper", "/s/jvm.start", "/s/jvm.end"},
		},
		"options": {
			ad: "JavaVMArgs = \"-Xmx9m -Dx=y\"", knobs: usual,
			want: []string{"/usr/bin/java", "-classpath", "/usr/lib/condor:.", "-Dchirp.config=/s/chirp.config", "-Xmx9m", "-Dx=y", "CondorJavaWrapper", "/s/jvm.start", "/s/jvm.end"},
		},
		"the newer syntax of options wins": {
			ad: "JavaVMArgs = \"-Xmx9m\"\nJavaVMArguments = \"'-Dx=y z'\"", knobs: usual,
			want: []string{"/usr/bin/java", "-classpath", "/usr/lib/condor:.", "-Dchirp.config=/s/chirp.config", "-Dx=y z", "CondorJavaWrapper", "/s/jvm.start", "/s/jvm.end"},
		},
		"another Java": {
			ad: `JarFiles = "a.jar"`,
			knobs: map[string]string{
				"JAVA": "/opt/j", "JAVA_CLASSPATH_ARGUMENT": "-cp", "JAVA_CLASSPATH_SEPARATOR": ";x", "JAVA_CLASSPATH_DEFAULT": "one, two", "JAVA_EXTRA_ARGUMENTS": `"-Da='b c'"`,
			},
			want: []string{"/opt/j", "-cp", "one;two;/s/a.jar", "-Da=b c", "-Dchirp.config=/s/chirp.config", "CondorJavaWrapper", "/s/jvm.start", "/s/jvm.end"},
		},
		"defaults": {
			knobs: map[string]string{"JAVA": "j", "JAVA_EXTRA_ARGUMENTS": "-a -b"},
			want:  []string{"j", "-classpath", ".", "-a", "-b", "-Dchirp.config=/s/chirp.config", "CondorJavaWrapper", "/s/jvm.start", "/s/jvm.end"},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			cmd, err := CommandOf(mustAd(t, tt.ad), job.Place{FileTransfer: !tt.shared, Scratch: "/s", Iwd: "/s"}, config.FromMap(tt.knobs), tt.chirp)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, append([]string{cmd.Path}, cmd.Args...)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestMistakes: what the site must correct is told from what the job must.
func TestMistakes(t *testing.T) {
	tests := map[string]struct {
		ad    string
		knobs map[string]string
		site  bool
		words string
	}{
		"no program":     {site: true, words: "JAVA"},
		"extra options":  {knobs: map[string]string{"JAVA": "j", "JAVA_EXTRA_ARGUMENTS": `"-a`}, site: true, words: "JAVA_EXTRA_ARGUMENTS"},
		"the job's own":  {ad: `JavaVMArguments = "'-a"`, knobs: map[string]string{"JAVA": "j"}, words: "java_vm_args"},
		"its arguments":  {ad: `Arguments = "'-a"`, knobs: map[string]string{"JAVA": "j"}, words: "Arguments"},
		"far too many":   {ad: `JavaVMArgs = "` + strings.Repeat("a ", 700_000) + `"`, knobs: map[string]string{"JAVA": "j"}, words: "JavaVMArgs"},
		"program, empty": {knobs: map[string]string{"JAVA": ""}, site: true, words: "JAVA"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := CommandOf(mustAd(t, tt.ad), job.Place{Scratch: "/s"}, config.FromMap(tt.knobs), "")
			if err == nil || errors.Is(err, ErrNotConfigured) != tt.site || !strings.Contains(err.Error(), tt.words) {
				t.Errorf("the site's mistake %v, and %q in it, are wanted of %v", tt.site, tt.words, err)
			}
		})
	}
}

func TestEndingOf(t *testing.T) {
	const thrown = "java.lang.Object java.lang.Throwable java.lang.Exception java.lang.RuntimeException java.lang.IllegalStateException "
	exit := func(code int) syscall.WaitStatus { return syscall.WaitStatus(code << 8) }
	term := syscall.WaitStatus(syscall.SIGTERM)
	tests := map[string]struct {
		status  syscall.WaitStatus
		record  Record
		want    syscall.WaitStatus
		unfit   bool
		name    string
		kind    string
		without bool // an exception
	}{
		"main returned":             {status: exit(0), record: Record{true, []byte("normal\n")}, want: exit(0)},
		"System.exit":               {status: exit(3), record: Record{true, []byte{}}, want: exit(3)},
		"exit without a record":     {status: exit(3), record: Record{true, nil}, want: exit(3)},
		"an exception":              {status: exit(0), record: Record{true, []byte("abnormal\n" + thrown + "\njava.lang.IllegalStateException: x\n\tat Main.main\n")}, want: term, name: "java.lang.IllegalStateException", kind: "java.lang.RuntimeException"},
		"a checked exception":       {status: exit(0), record: Record{true, []byte("abnormal\njava.lang.Object java.lang.Throwable java.lang.Exception java.io.IOException \n")}, want: term, name: "java.io.IOException", kind: "java.lang.Exception"},
		"no main class":             {status: exit(0), record: Record{true, []byte("noexec\njava.lang.Object java.lang.Throwable java.lang.Exception java.lang.ReflectiveOperationException java.lang.ClassNotFoundException \n")}, want: term, name: "java.lang.ClassNotFoundException", kind: "java.lang.Exception"},
		"a class that needs others": {status: exit(0), record: Record{true, []byte("abnormal\njava.lang.Object java.lang.Throwable java.lang.Error java.lang.LinkageError java.lang.NoClassDefFoundError \n")}, want: term, name: "java.lang.NoClassDefFoundError", kind: "java.lang.LinkageError"},
		"not enough memory":         {status: exit(0), record: Record{true, []byte("abnormal\njava.lang.Object java.lang.Throwable java.lang.Error java.lang.VirtualMachineError java.lang.OutOfMemoryError \n")}, unfit: true, name: "java.lang.OutOfMemoryError", kind: "java.lang.Error"},
		"an error when it begins":   {status: exit(0), record: Record{true, []byte("noexec\njava.lang.Object java.lang.Throwable java.lang.Error java.lang.VirtualMachineError java.lang.OutOfMemoryError \n")}, want: term, name: "java.lang.OutOfMemoryError", kind: "java.lang.Error"},
		"no wrapper":                {status: exit(1), unfit: true},
		"killed":                    {status: syscall.WaitStatus(syscall.SIGKILL), record: Record{true, []byte{}}, unfit: true},
		"a word that nobody knows":  {status: exit(0), record: Record{true, []byte("fine\n")}, unfit: true},
		"an exception without name": {status: exit(0), record: Record{true, []byte("abnormal")}, want: term},
		"a long word":               {status: exit(0), record: Record{true, []byte(strings.Repeat("normal", 1000))}, unfit: true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			e := EndingOf(tt.status, tt.record)
			if e.Status != tt.want || (e.Unfit != "") != tt.unfit || e.Name != tt.name || e.Type != tt.kind || e.Said == "" {
				t.Errorf("%+v", e)
			}
			ad := classads.NewAd()
			e.Publish(ad)
			if got := ad.StringOr("ExceptionName", ""); got != tt.name || (ad.StringOr("ExceptionHierarchy", "") == "") != (tt.name == "") {
				t.Errorf("published: %s", ad)
			}
		})
	}
}

const printed = "JavaSpecificationVersion = \"17\"\nSunJnuEncoding = \"ANSI_X3.4-1968\"\nbroken line\nJavaVendor = \"Debian\"\nJavaVersion = \"17.0.15\"\nJavaVendorUrl = \"https://tracker.debian.org/openjdk-17\"\nJava = \n"

func TestPublish(t *testing.T) {
	ad := classads.NewAd()
	if err := Publish(ad, []byte(printed)); err != nil {
		t.Fatal(err)
	}
	want := mustAd(t, "JavaSpecificationVersion = \"17\"\nJavaVendor = \"Debian\"\nJavaVersion = \"17.0.15\"\nHasJava = true")
	if diff := cmp.Diff(want.String(), ad.String()); diff != "" {
		t.Error(diff)
	}
	for _, text := range []string{"", "Error: could not find or load main class", "JavaVersion = \"17\n", "JavaVersion = 17\n", strings.Repeat("x", MaxProperties) + "\n" + printed} {
		ad := classads.NewAd()
		if err := Publish(ad, []byte(text)); err == nil || ad.Len() != 0 {
			t.Errorf("of %.40q, this is published: %s, %v", text, ad, err)
		}
	}
}

func TestProbe(t *testing.T) {
	program, args, err := Probe(config.FromMap(map[string]string{"JAVA": "/j", "JAVA_CLASSPATH_DEFAULT": "/lib .", "JAVA_EXTRA_ARGUMENTS": "-Xmx9m"}))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"/j", "-classpath", "/lib:.", "-Xmx9m", "CondorJavaInfo", "old"}, append([]string{program}, args...)); diff != "" {
		t.Error(diff)
	}
	if _, args, err := Probe(config.FromMap(nil)); !errors.Is(err, ErrNotConfigured) {
		t.Errorf("without a program: %v, %v", args, err)
	}
}

func FuzzEndingOf(f *testing.F) {
	f.Add(0, true, []byte("abnormal\njava.lang.Object java.lang.Error \n"))
	f.Add(3<<8, true, []byte(""))
	f.Add(0, true, []byte("abnormal\n"+strings.Repeat("java.lang.Object ", 3000)))
	f.Add(0, true, []byte("abnormal\na\x00b \xff\xfe \"\\c\n"))
	f.Fuzz(func(t *testing.T, status int, started bool, end []byte) {
		e := EndingOf(syscall.WaitStatus(status), Record{started, end})
		if len(e.Hierarchy) > maxHierarchy || strings.Contains(e.Hierarchy, "\x00") || !utf8.ValidString(e.Hierarchy) {
			t.Errorf("%d bytes of hierarchy: %.80q", len(e.Hierarchy), e.Hierarchy)
		}
		ad := classads.NewAd()
		e.Publish(ad)
		if _, err := classads.ParseOld(ad.FormatOld()); err != nil {
			t.Errorf("an update that cannot be read: %v", err)
		}
	})
}

func FuzzPublish(f *testing.F) {
	f.Add([]byte(printed))
	f.Fuzz(func(t *testing.T, text []byte) {
		ad := classads.NewAd()
		if err := Publish(ad, text); err != nil && ad.Len() != 0 {
			t.Errorf("an error, and %d attributes", ad.Len())
		}
	})
}
