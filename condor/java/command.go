package java

import (
	"errors"
	"fmt"
	"path"
	"strings"

	"podstarter/classads"
	"podstarter/condor/config"
	"podstarter/condor/job"
)

// Names of the files in the sandbox by which CondorJavaWrapper says what happened.
const (
	StartFile = "jvm.start"
	EndFile   = "jvm.end"
)

// Knobs of the site about its Java.
const (
	knobProgram   = "JAVA"
	knobArgument  = "JAVA_CLASSPATH_ARGUMENT"
	knobSeparator = "JAVA_CLASSPATH_SEPARATOR"
	knobClasspath = "JAVA_CLASSPATH_DEFAULT"
	knobExtra     = "JAVA_EXTRA_ARGUMENTS"
)

// Knobs reads the configuration.
type Knobs interface {
	Lookup(name string) (string, bool)
}

// ErrNotConfigured is in the chain of errors about the knobs, which are the site's.
var ErrNotConfigured = errors.New("Java is not configured") //nolint:staticcheck // a name

// vm is the command line of a JVM up to its own options: the program, and its classpath with these files behind the
// site's own (condor_utils/java_config.cpp:java_config).
func vm(k Knobs, jars []string) (program string, args []string, err error) {
	program, _ = k.Lookup(knobProgram)
	if program == "" {
		return "", nil, fmt.Errorf("%w: the knob %s is empty", ErrNotConfigured, knobProgram)
	}
	or := func(name, def string) string {
		if v, ok := k.Lookup(name); ok && v != "" {
			return v
		}
		return def
	}
	classpath := append(config.Split(or(knobClasspath, ".")), jars...)
	args = []string{or(knobArgument, "-classpath"), strings.Join(classpath, or(knobSeparator, ":")[:1])}
	text, _ := k.Lookup(knobExtra)
	extra, err := splitKnob(text)
	if err != nil {
		return "", nil, fmt.Errorf("%w: the knob %s: %w", ErrNotConfigured, knobExtra, err)
	}
	return program, append(args, extra...), nil
}

// splitKnob splits arguments in V2 syntax if they begin with a double quote, else V1.
func splitKnob(text string) ([]string, error) {
	if !job.IsV2Quoted(text) {
		return job.SplitV1(text)
	}
	raw, err := job.UnquoteV2(text)
	if err != nil {
		return nil, err
	}
	return job.SplitV2(raw)
}

// CommandOf is what runs a job of the java universe: the site's JVM, with the job's jar files and options, runs
// CondorJavaWrapper, which gets the names of two files, the job's main class and its arguments. chirp is the file that
// condor_chirp reads, empty if there is none (condor_starter.V6.1/java_proc.cpp:StartJob).
func CommandOf(ad *classads.Ad, p job.Place, k Knobs, chirp string) (job.Command, error) {
	program, args, err := vm(k, jarFiles(ad, p))
	if err != nil {
		return job.Command{}, err
	}
	if chirp == "" {
		chirp = path.Join(p.Scratch, "chirp.config") // stock's, which does not exist either
	}
	args = append(args, "-Dchirp.config="+chirp)
	options, err := optionsOf(ad)
	if err != nil {
		return job.Command{}, err
	}
	args = append(args, options...)
	args = append(args, "CondorJavaWrapper", path.Join(p.Scratch, StartFile), path.Join(p.Scratch, EndFile))
	own, err := job.Arguments(ad)
	if err != nil {
		return job.Command{}, err
	}
	return job.Command{Path: program, Args: append(args, own...)}, nil
}

// jarFiles are the job's jar files: those that were transferred are in the sandbox.
func jarFiles(ad *classads.Ad, p job.Place) []string {
	jars := config.Split(ad.StringOr("JarFiles", ""))
	if !p.FileTransfer {
		return jars
	}
	for i, name := range jars {
		jars[i] = p.Scratch + "/" + name[strings.LastIndexByte(name, '/')+1:]
	}
	return jars
}

// optionsOf are the job's own options of the JVM: java_vm_args in one of two syntaxes.
func optionsOf(ad *classads.Ad) ([]string, error) {
	if raw, err := ad.GetString("JavaVMArguments"); err == nil {
		options, err := job.SplitV2(raw)
		if err != nil {
			return nil, fmt.Errorf("attribute JavaVMArguments (java_vm_args): %w", err)
		}
		return options, nil
	}
	options, err := job.SplitV1(ad.StringOr("JavaVMArgs", ""))
	if err != nil {
		return nil, fmt.Errorf("attribute JavaVMArgs (java_vm_args): %w", err)
	}
	return options, nil
}
