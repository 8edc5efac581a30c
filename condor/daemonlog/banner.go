package daemonlog

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// name is the name that the startd gives the program in argv[0], whatever its
// file is called. condor_who looks for lines with it.
const name = "condor_starter"

// Banner has the first lines of a starter in its log. condor_who reads a log
// backwards up to the line "STARTING UP" and takes the process id from the lines
// between it and "Log last touched" (condor_who/who.cpp:scan_a_log_for_info).
type Banner struct {
	Program   string // path of the program
	Version   string // $CondorVersion: ... $
	Platform  string // $CondorPlatform: ... $
	LocalName string // "" if none
	Sources   []string
}

// Start writes the banner, with the lines of a stock starter in their order
// (condor_daemon_core.V6/daemon_core_main.cpp:dc_main).
func (l *Log) Start(b Banner) {
	local := b.LocalName
	if local == "" {
		local = "<NONE>"
	}
	const rule = "******************************************************"
	lines := []string{
		rule,
		"** " + name + " (CONDOR_STARTER) STARTING UP",
		"** " + b.Program,
		"** SubsystemInfo: name=STARTER type=STARTER(7) class=DAEMON(1)",
		"** Configuration: subsystem:STARTER local:" + local + " class:DAEMON",
		"** " + b.Version,
		"** " + b.Platform,
		fmt.Sprintf("** PID = %d RealUID = %d", l.pid, os.Getuid()),
		"** Log last touched " + l.lastTouched(),
		rule,
	}
	for _, source := range b.Sources {
		lines = append(lines, "Using config source: "+source)
	}
	l.mu.Lock()
	if len(l.files) > 0 {
		lines = append(lines, "Daemon Log is logging: "+l.files[0].flags.String())
	}
	l.mu.Unlock()
	l.lines(lines)
}

// lastTouched returns when the log was last written before this process opened
// it.
func (l *Log) lastTouched() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.files) == 0 {
		return "time unavailable (the log is closed)"
	}
	f := l.files[0]
	if f.beforeErr != nil {
		reason := f.beforeErr.Error()
		if errors.Is(f.beforeErr, unix.ENOENT) {
			reason = "No such file or directory"
		}
		return "time unavailable (" + reason + ")"
	}
	t := f.before
	return fmt.Sprintf("%d/%d %02d:%02d:%02d", int(t.Month()), t.Day(), t.Hour(), t.Minute(), t.Second())
}

// CommandSocket writes where the starter listens, for condor_who.
func (l *Log) CommandSocket(sinful string) {
	l.lines([]string{"DaemonCore: command socket at " + sinful})
}

// Exiting writes the last line of a starter. From it condor_who knows that the
// starters of the lines before have ended.
func (l *Log) Exiting(status int) {
	l.lines([]string{fmt.Sprintf("**** %s (condor_STARTER) pid %d EXITING WITH STATUS %d", name, l.pid, status)})
}

func (l *Log) lines(lines []string) {
	now := time.Time{}
	for _, text := range lines {
		l.write(now, slog.LevelInfo, Always, text)
	}
}
