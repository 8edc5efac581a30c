package java

import (
	"bytes"
	"strings"
	"syscall"

	"podstarter/classads"
)

// MaxRecord bounds what is read of a record, of which only the first two lines count. The job can write there too.
const MaxRecord = 64 << 10

// Record is what CondorJavaWrapper left of its run.
type Record struct {
	Started bool   // the file jvm.start is there
	End     []byte // content of jvm.end, nil if it is not there
}

// Ending is how a job of the java universe ended.
type Ending struct {
	// Status is the job's wait status. An exception that the program did not catch counts as SIGTERM.
	Status syscall.WaitStatus
	// Unfit says why the JVM and not the program failed; such a job goes back to the queue. Empty otherwise.
	Unfit string
	// Hierarchy, Name and Type are of the exception; empty without one.
	Hierarchy, Name, Type string
	// Said is what the log says of it, as the stock starter does.
	Said string
}

// kinds are the classes by which exceptions are told apart.
var kinds = map[string]bool{
	"java.lang.Error": true, "java.lang.LinkageError": true, "java.lang.Exception": true, "java.lang.RuntimeException": true,
}

// EndingOf reads how a JVM ended, from its wait status and the records (condor_starter.V6.1/java_proc.cpp:ClassifyExit,
// JobReaper). As in stock, an Error that is no LinkageError, such as OutOfMemoryError, is the machine's fault.
func EndingOf(status syscall.WaitStatus, r Record) Ending {
	e := Ending{Status: status}
	switch {
	case status.Signaled():
		return e.unfit("the JVM exited abnormally with signal " + status.Signal().String())
	case !r.Started:
		return e.unfit("the wrapper did not leave its start record; Java may be misconfigured here, or java_vm_args has an option that it does not know")
	}
	switch word := firstWord(r.End); word {
	case "": // the program ended the JVM, before CondorJavaWrapper could write
		e.Said = "Job called System.exit()"
		return e
	case "normal":
		e.Said = "Job returned from main()"
		return e
	case "abnormal", "noexec":
		e.exception(secondLine(r.End))
		if word == "abnormal" && e.Type == "java.lang.Error" {
			return e.unfit("the job threw a " + e.Name + " (" + e.Type + ")")
		}
		e.Status, e.Said = syscall.WaitStatus(syscall.SIGTERM), "Job threw a "+e.Name+" ("+e.Type+"), will return it to the user"
		if word == "noexec" {
			e.Said = "Job could not be executed: " + e.Name
		}
		return e
	default:
		return e.unfit("CondorJavaWrapper left a result that is not known")
	}
}

func (e Ending) unfit(why string) Ending {
	e.Status, e.Unfit = 0, "Java failed: "+why
	e.Said = e.Unfit
	return e
}

// exception reads the classes from the most general to the exception's own.
func (e *Ending) exception(line string) {
	e.Hierarchy = line
	for _, class := range strings.FieldsFunc(line, isSpace) {
		if kinds[class] {
			e.Type = class
		}
		e.Name = class
	}
}

// Publish adds the exception to an update.
func (e Ending) Publish(ad *classads.Ad) {
	for name, text := range map[string]string{"ExceptionHierarchy": e.Hierarchy, "ExceptionName": e.Name, "ExceptionType": e.Type} {
		if text != "" {
			ad.SetString(name, text)
		}
	}
}

// maxWord is the most that the stock starter reads of the first word.
const maxWord = 10

func firstWord(text []byte) string {
	word := strings.TrimLeft(string(text[:min(len(text), 4096)]), " \t\n\v\f\r")
	if i := strings.IndexAny(word, " \t\n\v\f\r"); i >= 0 {
		word = word[:i]
	}
	return word[:min(len(word), maxWord)]
}

// maxHierarchy bounds what an update has of it.
const maxHierarchy = 4096

func secondLine(text []byte) string {
	_, rest, _ := bytes.Cut(text, []byte("\n"))
	line, _, _ := bytes.Cut(rest, []byte("\n"))
	line = line[:min(len(line), maxHierarchy)]
	return strings.ToValidUTF8(strings.ReplaceAll(string(line), "\x00", ""), "?")
}

func isSpace(r rune) bool { return r == ' ' || r == '\t' }
