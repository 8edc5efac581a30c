package userlog

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"podstarter/classads"
	"podstarter/condor/config"
)

// Identity runs what opens and writes files as somebody.
type Identity func(func() error) error

// Options say where the events of a job go.
type Options struct {
	Job   *classads.Ad
	Knobs *config.Config
	User  Identity // the job's owner, to whom the logs belong
	Site  Identity // HTCondor's own account, to which the schedd's event log belongs
	Now   func() time.Time
	// NoDirs says that directories which are not there are not made: somebody may have removed them.
	NoDirs bool
}

// Log is the event log of one job: the user's, DAGMan's, and the one for all jobs of a schedd, of those that there
// are. It is not safe for concurrent use.
type Log struct {
	opt   Options
	id    ID
	files []file
}

// file is one of the logs.
type file struct {
	path   string
	as     Identity
	format Format
	only   []Number // empty: all events
	attrs  []string // of the job, told after each event that comes with the job's ad
	site   bool     // the site's own log
	sync   bool
	noDirs bool // see [Options]
}

// Open finds the logs of a job and makes those that do not exist yet. The logs that cannot be written are in the
// error; the others are written (write_user_log.cpp:WriteUserLog::initialize).
func Open(o Options) (*Log, error) {
	l := &Log{opt: o, id: ID{int(o.Job.IntOr("ClusterId", -1)), int(o.Job.IntOr("ProcId", -1)), 0}}
	if l.opt.Now == nil {
		l.opt.Now = time.Now
	}
	form := ParseFormat(o.Knobs.String("DEFAULT_USERLOG_FORMAT_OPTIONS", ""), DefaultFormat)
	plain := form &^ (XML | JSON)
	form = plain
	if kind := o.Job.IntOr("UserLogUseXML", 0); kind != 0 || o.Job.BoolOr("UserLogUseXML", false) {
		form |= XML // true counts as 1
		if kind&2 != 0 {
			form = form&^XML | JSON
		}
	}
	syncs, _ := o.Knobs.Bool("ENABLE_USERLOG_FSYNC", false)
	if path := l.path("UserLog"); path != "" {
		l.files = append(l.files, file{path: path, as: o.User, format: form, sync: syncs, noDirs: o.NoDirs, attrs: config.Split(o.Job.StringOr("JobAdInformationAttrs", ""))})
	}
	if path := l.path("DAGManNodesLog"); path != "" {
		l.files = append(l.files, file{path: path, as: o.User, format: form &^ XML, sync: true, only: mask(o.Job.StringOr("DAGManNodesMask", ""))})
	}
	if path := o.Knobs.String("EVENT_LOG", ""); path != "" {
		l.files = append(l.files, l.eventLog(path))
	}
	var problems []error
	l.files = slices.DeleteFunc(l.files, func(f file) bool {
		err := f.append("")
		problems = append(problems, err)
		return err != nil
	})
	return l, errors.Join(problems...)
}

func (l *Log) eventLog(path string) file {
	knobs := l.opt.Knobs
	f := file{path: path, as: l.opt.Site, site: true, format: ParseFormat(knobs.String("EVENT_LOG_FORMAT_OPTIONS", ""), 0)}
	if xml, _ := knobs.Bool("EVENT_LOG_USE_XML", false); xml {
		f.format = f.format&^JSON | XML
	}
	f.sync, _ = knobs.Bool("EVENT_LOG_FSYNC", false)
	f.attrs = knobs.List("EVENT_LOG_JOB_AD_INFORMATION_ATTRS")
	return f
}

// path is the log that an attribute names; empty for none.
func (l *Log) path(attr string) string {
	path := l.opt.Job.StringOr(attr, "")
	if path == "" || path == os.DevNull {
		return ""
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(l.opt.Job.StringOr("Iwd", "/"), path)
	}
	return path
}

func mask(text string) []Number {
	var all []Number
	for _, word := range config.Split(text) {
		if n, err := strconv.Atoi(word); err == nil {
			all = append(all, Number(n))
		}
	}
	return all
}

// Write writes an event to each log. about is the job's ad, from which attributes are told; nil for none. The site's log has the
// event for attributes even then (write_user_log.cpp:WriteUserLog::writeGlobalEvent, writeEvent).
func (l *Log) Write(e Event, about *classads.Ad) error {
	now := l.opt.Now()
	var problems []error
	for _, f := range l.files {
		if len(f.only) > 0 && !slices.Contains(f.only, e.number()) {
			continue
		}
		text := f.format.format(l.id, e, now)
		if len(f.attrs) > 0 && (about != nil || f.site) {
			text += f.format.format(l.id, l.inform(f, e, about, now), now)
		}
		problems = append(problems, f.append(text))
	}
	return errors.Join(problems...)
}

// inform makes the event that tells attributes of the job (write_user_log.cpp:writeJobAdInfoEvent).
func (l *Log) inform(f file, e Event, about *classads.Ad, now time.Time) Event {
	ad := f.format.ad(l.id, e, now)
	if about == nil {
		about = classads.NewAd()
	}
	for _, name := range f.attrs {
		v := about.Eval(name, classads.Env{})
		if i, ok := v.Int(); ok {
			ad.SetInt(name, i)
		} else if r, ok := v.Real(); ok {
			ad.SetReal(name, r)
		} else if b, ok := v.Bool(); ok {
			ad.SetBool(name, b)
		} else if s, ok := v.Str(); ok {
			ad.SetString(name, s)
		}
	}
	ad.SetInt("TriggerEventTypeNumber", int64(e.number()))
	ad.SetString("TriggerEventTypeName", names[e.number()][0])
	ad.SetInt("EventTypeNumber", int64(numberInformation))
	return information{ad}
}

// logMode is the mode of a log that is made, less the umask.
const logMode = 0o664

// append adds text with one write, so that writers do not mix. It opens the file each time: somebody may
// have renamed it, as a schedd does with its event log.
func (f file) append(text string) error {
	err := f.as(func() error {
		flags := unix.O_WRONLY | unix.O_APPEND | unix.O_CREAT | unix.O_CLOEXEC | unix.O_NONBLOCK
		//nolint:forbidigo // as its owner, who named it
		out, err := os.OpenFile(f.path, flags, logMode)
		if errors.Is(err, os.ErrNotExist) && !f.noDirs {
			//nolint:forbidigo // the same
			if err = os.MkdirAll(filepath.Dir(f.path), 0o755); err == nil {
				//nolint:forbidigo // the same
				out, err = os.OpenFile(f.path, flags, logMode)
			}
		}
		if err != nil {
			return err
		}
		defer out.Close()
		// A FIFO without a reader would stop the starter.
		if info, err := out.Stat(); err != nil {
			return err
		} else if !info.Mode().IsRegular() {
			return errors.New("not a regular file")
		}
		if text == "" {
			return nil
		}
		if _, err := out.WriteString(text); err != nil {
			return err
		}
		if f.sync {
			return out.Sync()
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("write the event log %s: %w", strings.TrimSpace(f.path), err)
	}
	return nil
}
