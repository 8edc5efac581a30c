// Package daemonlog writes the starter's log in the format of HTCondor's daemons,
// which people and tools (condor_who, condor_fetchlog) know how to read.
//
// It is a handler for log/slog. A line is written with one write to a file
// opened for appending, so lines of several starters never mix. Text from
// elsewhere cannot forge a line: a tab follows each line feed in a message, and
// values are quoted where necessary.
package daemonlog

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"podstarter/classads/strftime"
)

// maxLine is the length of the longest line; the rest is cut off, since the text
// may come from a job.
const maxLine = 64 << 10

// Log is a set of files to which lines are written.
type Log struct {
	pid int
	now func() time.Time

	mu    sync.Mutex
	files []*file
	err   error // first failure to write, kept for the curious
}

// Handler returns the slog handler that writes to the log.
func (l *Log) Handler() slog.Handler { return &handler{log: l} }

// Err returns the first error in writing a line. Such errors have no other
// effect: a full disk must not end a job.
func (l *Log) Err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err
}

// Close closes all files.
func (l *Log) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	var errs []error
	for _, f := range l.files {
		errs = append(errs, f.close())
	}
	l.files = nil
	return errors.Join(errs...)
}

// Attach adds a second log, such as the one that the -a2 argument asks for
// inside the sandbox, where only the caller can open it safely. The log owns the
// file from now on. The file is not rotated: when it is too large, no more lines
// are added.
func (l *Log) Attach(to *os.File, opt Options) {
	f := &file{Options: opt, flags: opt.Flags, timeFormat: opt.TimeFormat, fd: -1, given: to}
	if f.timeFormat == "" {
		f.timeFormat = defaultTimeFormat
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.files = append(l.files, f)
}

// Detach closes the logs that were attached.
func (l *Log) Detach() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	var errs []error
	l.files = slices.DeleteFunc(l.files, func(f *file) bool {
		if f.given != nil {
			errs = append(errs, f.close())
		}
		return f.given != nil
	})
	return errors.Join(errs...)
}

// shows tells whether the line appears in any file.
func (l *Log) shows(level slog.Level, c Category) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, f := range l.files {
		if f.flags.shows(level, c) {
			return true
		}
	}
	return false
}

func (l *Log) write(at time.Time, level slog.Level, c Category, text string) {
	if at.IsZero() {
		at = l.now()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, f := range l.files {
		if !f.flags.shows(level, c) {
			continue
		}
		line := appendHeader(nil, f.flags, f.timeFormat, at, l.pid, level, c)
		line = append(append(line, text...), '\n')
		if err := f.write(line, at); err != nil && l.err == nil {
			l.err = err
		}
	}
}

// defaultTimeFormat is the header of a line unless DEBUG_TIME_FORMAT says
// otherwise.
const defaultTimeFormat = "%m/%d/%y %H:%M:%S"

// appendHeader writes what precedes the message
// (condor_utils/dprintf.cpp:_format_global_header).
func appendHeader(b []byte, f Flags, format string, at time.Time, pid int, level slog.Level, c Category) []byte {
	sub := f.header&withSubSecond != 0
	if sub {
		at = at.Round(time.Millisecond)
	}
	if f.header&withTimestamp != 0 {
		b = strconv.AppendInt(b, at.Unix(), 10)
	} else {
		b = strftime.Of(at).Append(b, format)
	}
	if sub {
		b = fmt.Appendf(b, ".%03d", at.Nanosecond()/int(time.Millisecond))
	}
	b = append(b, ' ')
	if f.header&withPID != 0 {
		b = fmt.Appendf(b, "(pid:%d) ", pid)
	}
	if f.header&withCategory != 0 {
		b = fmt.Appendf(b, "(%s) ", label(level, c))
	}
	return b
}

type handler struct {
	log      *Log
	category Category
	attrs    string // " key=value" of With, formatted
	group    string // "outer.inner." of WithGroup
}

func (h *handler) Enabled(_ context.Context, level slog.Level) bool {
	if h.category == Always && level < slog.LevelWarn {
		// The line itself may name a category, which only Handle knows.
		return true
	}
	return h.log.shows(level, h.category)
}

func (h *handler) Handle(_ context.Context, r slog.Record) error {
	category := h.category
	r.Attrs(func(a slog.Attr) bool {
		if c, ok := categoryOf(a); ok {
			category = c
		}
		return true
	})
	if !h.log.shows(r.Level, category) {
		return nil
	}
	var b strings.Builder
	appendMessage(&b, r.Message)
	b.WriteString(h.attrs)
	r.Attrs(func(a slog.Attr) bool {
		appendAttr(&b, h.group, a)
		return b.Len() < maxLine
	})
	text := b.String()
	if len(text) > maxLine {
		text = strings.ToValidUTF8(text[:maxLine], "") + "..."
	}
	h.log.write(r.Time, r.Level, category, text)
	return nil
}

func (h *handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	c := *h
	var b strings.Builder
	b.WriteString(h.attrs)
	for _, a := range attrs {
		if category, ok := categoryOf(a); ok {
			c.category = category
			continue
		}
		appendAttr(&b, h.group, a)
	}
	c.attrs = b.String()
	return &c
}

func (h *handler) WithGroup(name string) slog.Handler {
	if name == "" {
		return h
	}
	c := *h
	c.group += name + "."
	return &c
}

func categoryOf(a slog.Attr) (Category, bool) {
	if a.Key != categoryKey || a.Value.Kind() != slog.KindAny {
		return 0, false
	}
	c, ok := a.Value.Any().(Category)
	return c, ok && int(c) < len(categoryNames)
}

// appendMessage writes a message such that no part of it looks like a line.
func appendMessage(b *strings.Builder, msg string) {
	msg = strings.TrimRight(msg, "\n")
	for _, r := range msg {
		switch {
		case r == '\n':
			b.WriteString("\n\t")
		case r == utf8.RuneError || r < ' ' && r != '\t' || r == 0x7f || 0x80 <= r && r < 0xa0:
			b.WriteByte('?') // an escape sequence would reach somebody's terminal
		default:
			b.WriteRune(r)
		}
	}
}

func appendAttr(b *strings.Builder, group string, a slog.Attr) {
	if _, ok := categoryOf(a); ok {
		return
	}
	v := a.Value.Resolve()
	if v.Kind() == slog.KindGroup {
		if a.Key != "" {
			group += a.Key + "."
		}
		for _, inner := range v.Group() {
			appendAttr(b, group, inner)
		}
		return
	}
	if a.Key == "" {
		return
	}
	b.WriteByte(' ')
	b.WriteString(group)
	appendMessage(b, strings.ReplaceAll(a.Key, "\n", " "))
	b.WriteByte('=')
	b.WriteString(quoted(v))
}

func quoted(v slog.Value) string {
	s := v.String()
	if v.Kind() == slog.KindTime {
		s = v.Time().Format(time.RFC3339)
	}
	if s == "" {
		return `""`
	}
	for _, r := range s {
		if r <= ' ' || r == '"' || r == '\\' || r == '=' || r == utf8.RuneError || !strconv.IsPrint(r) {
			return strconv.Quote(s)
		}
	}
	return s
}
