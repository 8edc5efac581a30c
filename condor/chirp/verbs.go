package chirp

import (
	"context"
	"errors"
	"strings"

	"podstarter/condor/shadow"
)

// permission is a kind of request.
type permission int

const (
	files permission = iota
	updates
	delayed
)

// verb is one request.
type verb struct {
	needs permission
	// args lists the kinds of the words: s for text, i for a number that must fit
	// into 32 bits at the shadow (a larger one kills it), l for one of 64.
	args string
	run  func(x *session, a []arg) (reply, error)
}

// arg is one word of a request.
type arg struct {
	text string
	n    int64
}

// verbs are all requests (io_proxy_handler.cpp:handle_standard_request). Unlike
// there, a verb is a whole word, so get_job_attr_delayed is not taken for
// get_job_attr.
var verbs map[string]verb

func init() { // here, since the functions refer to the table's types
	verbs = map[string]verb{
		"open":       {files, "ssi", (*session).open},
		"close":      {files, "i", (*session).closeFile},
		"lseek":      {files, "ili", (*session).seek},
		"unlink":     direct(shadow.FileUnlink, "s"),
		"rename":     direct(shadow.FileRename, "ss"),
		"mkdir":      direct(shadow.FileMkdir, "si"),
		"rmdir":      direct(shadow.FileRmdir, "s"),
		"rmall":      direct(shadow.FileRmall, "s"),
		"fsync":      direct(shadow.FileFsync, "i"),
		"lookup":     {files, "s", (*session).lookup},
		"read":       {files, "il", reading(shadow.FileRead)},
		"pread":      {files, "ill", reading(shadow.FilePread)},
		"sread":      {files, "illll", (*session).strideRead},
		"write":      {files, "il", writing(shadow.FileWrite)},
		"pwrite":     {files, "ill", writing(shadow.FilePwrite)},
		"swrite":     {files, "illll", writing(shadow.FileSwrite)},
		"fstat":      direct(shadow.FileFstat, "i"),
		"fstatfs":    direct(shadow.FileFstatfs, "i"),
		"fchown":     direct(shadow.FileFchown, "iii"),
		"fchmod":     direct(shadow.FileFchmod, "ii"),
		"ftruncate":  direct(shadow.FileFtruncate, "ii"),
		"getfile":    {files, "s", (*session).getFile},
		"putfile":    {files, "sil", (*session).putFile},
		"getdir":     {files, "s", listing(shadow.FileGetdir)},
		"getlongdir": {files, "s", listing(shadow.FileGetlongdir)},
		"whoami":     {files, "i", bytesOf(shadow.FileWhoami)},
		"whoareyou":  {files, "si", bytesOf(shadow.FileWhoareyou)},
		"link":       direct(shadow.FileLink, "ss"),
		"symlink":    direct(shadow.FileSymlink, "ss"),
		"readlink":   {files, "si", bytesOf(shadow.FileReadlink)},
		"statfs":     direct(shadow.FileStatfs, "s"),
		"stat":       direct(shadow.FileStat, "s"),
		"lstat":      direct(shadow.FileLstat, "s"),
		"access":     direct(shadow.FileAccess, "si"),
		"chmod":      direct(shadow.FileChmod, "si"),
		"chown":      direct(shadow.FileChown, "sii"),
		"lchown":     direct(shadow.FileLchown, "sii"),
		"truncate":   direct(shadow.FileTruncate, "si"),
		"utime":      direct(shadow.FileUtime, "sll"),

		"set_job_attr": {updates, "ss", (*session).setAttr},
		"get_job_attr": {updates, "s", (*session).getAttr},
		"constrain":    {updates, "s", (*session).constrain},
		"ulog":         {updates, "s", (*session).ulog},
		"version":      {updates, "", func(*session, []arg) (reply, error) { return reply{code: protocolVersion}, nil }},

		"set_job_attr_delayed": {delayed, "ss", (*session).setDelayed},
		"get_job_attr_delayed": {delayed, "s", (*session).getDelayed},
	}
}

// carryOut carries out a request. The error ends the connection; failures of the
// request are in the reply.
func (x *session) carryOut(words []string) (reply, error) {
	if len(words) == 0 {
		return reply{code: invalidRequest}, nil
	}
	v, ok := verbs[words[0]]
	if !ok || !x.permits(v.needs) || len(words)-1 < len(v.args) {
		x.log.Debug("A chirp request is not served", "verb", excerpt(words[0]))
		return reply{code: invalidRequest}, nil
	}
	args := make([]arg, len(v.args))
	for i, kind := range []byte(v.args) {
		args[i].text = words[i+1]
		if kind == 's' {
			continue
		}
		n, ok := number(words[i+1])
		if !ok {
			return reply{code: invalidRequest}, nil
		}
		if kind == 'i' {
			n = int64(int32(n))
		}
		args[i].n = n
	}
	r, err := v.run(x, args)
	x.log.Debug("Chirp request", "verb", words[0], "result", r.code)
	return r, err
}

func (x *session) permits(p permission) bool {
	switch p {
	case files:
		return x.o.Files
	case updates:
		return x.o.Updates
	default:
		return x.o.Delayed
	}
}

// excerpt keeps the log readable, whatever a job sends.
func excerpt(s string) string { return strings.ToValidUTF8(s[:min(len(s), 64)], "?") }

// fields are the words of a request in the order in which the shadow wants them,
// which is their own.
func fields(args []arg, kinds string) []shadow.Field {
	list := make([]shadow.Field, len(args))
	for i, a := range args {
		if kinds[i] == 's' {
			list[i] = shadow.Text(a.text)
		} else {
			list[i] = shadow.Int(a.n)
		}
	}
	return list
}

// direct is a request that is passed on unchanged; text from the shadow follows
// the result.
func direct(call shadow.FileCall, kinds string) verb {
	return verb{files, kinds, func(x *session, a []arg) (reply, error) {
		r := shadow.FileRequest{Call: call, Fields: fields(a, kinds)}
		if kinds[0] == 'i' && !x.isOpen(a[0].n, &r) {
			return reply{code: badFD}, nil
		}
		answer, code := x.ask(r)
		return reply{code: code, text: answer.Text}, nil
	}}
}

// ask makes a call and returns the result of the request.
func (x *session) ask(r shadow.FileRequest) (shadow.FileAnswer, int64) {
	answer, err := x.o.Shadow.File(context.WithoutCancel(x.ctx), r)
	if err != nil {
		return shadow.FileAnswer{}, x.code(err)
	}
	return answer, max(answer.Result, 0)
}

// code returns the result for a request that failed.
func (x *session) code(err error) int64 {
	if errors.Is(err, shadow.ErrLost) {
		// The files were opened on a connection that is gone. Another shadow may
		// take its place, without these files.
		x.mu.Lock()
		clear(x.opened)
		x.mu.Unlock()
	}
	code := codeOf(shadow.Errno(err))
	if code == unknown {
		x.complain.about(aboutFailures, "A chirp request failed with an error for which chirp has no code", "error", err)
	}
	return code
}

// isOpen reports whether a file was opened through this proxy, and binds the
// request to the shadow that opened it. Shadows have other files open, which the
// job must not use.
func (x *session) isOpen(fd int64, r *shadow.FileRequest) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	origin, ok := x.opened[fd]
	r.Origin = origin
	return ok
}
