// Package chirp is the proxy through which a running job reaches its shadow: the
// server that condor_chirp and the chirp libraries talk to
// (condor_starter.V6.1/io_proxy.cpp, io_proxy_handler.cpp,
// condor_chirp/chirp_protocol.h).
//
// A client connects over TCP, sends "cookie COOKIE", and then one request per
// line. Words are separated by blanks; a backslash escapes the next character. An
// answer is a number on a line: a result, or one of the negative codes below;
// bytes or text of that length may follow. The shadow carries requests out on the
// submit side and decides what is permitted; this package only decides which
// kinds of requests are served at all.
//
// Requests are carried out one after the other, over all connections. So a later
// request sees the effect of an earlier one, and a job that sends requests
// without end never has more than one call waiting for the shadow beside the
// starter's own.
//
// The client is the job, and may be hostile: lines, connections and bytes are
// bounded, and clients without the cookie are not served. A job can only delay
// itself.
package chirp

import "syscall"

// Codes of failed requests (condor_chirp/chirp_protocol.h).
const (
	notAuthenticated = -1
	notAuthorized    = -2
	doesntExist      = -3
	alreadyExists    = -4
	tooBig           = -5
	noSpace          = -6
	noMemory         = -7
	invalidRequest   = -8
	tooManyOpen      = -9
	busy             = -10
	tryAgain         = -11
	badFD            = -12
	isDir            = -13
	notDir           = -14
	notEmpty         = -15
	crossDevice      = -16
	offline          = -17
	unknown          = -127
)

// protocolVersion is what the request "version" answers.
const protocolVersion = 2

// maxLine is the length of a request in bytes, without the line feed.
const maxLine = 5120

// codeOf returns the code for an errno
// (condor_starter.V6.1/io_proxy_handler.cpp:IOProxyHandler::convert).
func codeOf(errno syscall.Errno) int64 {
	switch errno {
	case syscall.EPERM, syscall.EACCES:
		return notAuthorized
	case syscall.ENOENT:
		return doesntExist
	case syscall.EEXIST:
		return alreadyExists
	case syscall.EFBIG:
		return tooBig
	case syscall.ENOSPC:
		return noSpace
	case syscall.ENOMEM:
		return noMemory
	case syscall.EBADF:
		return badFD
	case syscall.E2BIG, syscall.EINVAL:
		return invalidRequest
	case syscall.ENFILE, syscall.EMFILE:
		return tooManyOpen
	case syscall.EBUSY, syscall.ETXTBSY:
		return busy
	case syscall.EAGAIN, syscall.EINTR:
		return tryAgain
	case syscall.EISDIR:
		return isDir
	case syscall.ENOTDIR:
		return notDir
	case syscall.ENOTEMPTY:
		return notEmpty
	case syscall.EXDEV:
		return crossDevice
	case syscall.ETIMEDOUT:
		return offline
	}
	return unknown
}
