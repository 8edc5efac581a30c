package chirp

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"syscall"

	"podstarter/condor/shadow"
)

// open looks up where the file is, opens it, and adds its stat data to the
// answer.
func (x *session) open(a []arg) (reply, error) {
	where, code := x.ask(shadow.FileRequest{Call: shadow.FileLookup, Fields: []shadow.Field{shadow.Text(a[0].text)}})
	if code < 0 {
		return reply{code: code}, nil
	}
	path := where.Text
	for _, prefix := range []string{"buffer:", "remote:"} { // shadows before 7.9.6
		path = strings.TrimPrefix(path, prefix)
	}
	opened, code := x.ask(shadow.FileRequest{Call: shadow.FileOpen, Fields: []shadow.Field{
		shadow.Int(openFlags(a[1].text)), shadow.Int(a[2].n), shadow.Text(path)}})
	if code < 0 {
		return reply{code: code}, nil
	}
	x.mu.Lock()
	x.opened[opened.Result] = opened.Origin
	x.mu.Unlock()
	is, _ := x.ask(shadow.FileRequest{Call: shadow.FileFstat, Fields: []shadow.Field{shadow.Int(opened.Result)}, Origin: opened.Origin})
	if is.Text == "" {
		is.Text = "\n" // the client waits for a line
	}
	return reply{code: opened.Result, text: is.Text}, nil
}

// openFlags turns the letters of a request into the flags of open(2), in the
// portable form of the wire (condor_io/open_flags.cpp).
func openFlags(letters string) int64 {
	const readOnly, writeOnly, readWrite = 0, 1, 2
	var flags int64
	switch has := func(c string) bool { return strings.Contains(letters, c) }; {
	case !has("w"):
		flags = readOnly
	case has("r"):
		flags = readWrite
	default:
		flags = writeOnly
	}
	for letter, flag := range map[rune]int64{'c': 0x100, 't': 0x200, 'x': 0x400, 'a': 0x1000} {
		if strings.ContainsRune(letters, letter) {
			flags |= flag
		}
	}
	return flags
}

func (x *session) closeFile(a []arg) (reply, error) {
	r := shadow.FileRequest{Call: shadow.FileClose, Fields: fields(a, "i")}
	if !x.isOpen(a[0].n, &r) {
		return reply{code: badFD}, nil
	}
	_, code := x.ask(r)
	x.mu.Lock()
	delete(x.opened, a[0].n)
	x.mu.Unlock()
	return reply{code: code}, nil
}

func (x *session) seek(a []arg) (reply, error) {
	r := shadow.FileRequest{Call: shadow.FileLseek, Fields: fields(a, "ili")}
	switch {
	case !x.isOpen(a[0].n, &r):
		return reply{code: badFD}, nil
	case a[2].n < io.SeekStart || a[2].n > io.SeekEnd:
		return reply{code: invalidRequest}, nil
	}
	_, code := x.ask(r)
	return reply{code: code}, nil
}

func (x *session) lookup(a []arg) (reply, error) {
	answer, code := x.ask(shadow.FileRequest{Call: shadow.FileLookup, Fields: fields(a, "s")})
	if code < 0 {
		return reply{code: code}, nil
	}
	return reply{code: int64(len(answer.Text)), text: answer.Text}, nil
}

// listing is a request whose answer is the length of a text, and the text.
func listing(call shadow.FileCall) func(*session, []arg) (reply, error) {
	return func(x *session, a []arg) (reply, error) {
		answer, code := x.ask(shadow.FileRequest{Call: call, Fields: fields(a, "s")})
		if code <= 0 {
			return reply{code: code}, nil
		}
		return reply{code: int64(len(answer.Text)), text: answer.Text}, nil
	}
}

// bytesOf is a request that is passed on unchanged and answered with bytes.
func bytesOf(call shadow.FileCall) func(*session, []arg) (reply, error) {
	return func(x *session, a []arg) (reply, error) {
		kinds := "si"
		if len(a) == 1 {
			kinds = "i"
		}
		return x.fetch(shadow.FileRequest{Call: call, Fields: fields(a, kinds)})
	}
}

// fetch makes a call that is answered with bytes.
func (x *session) fetch(r shadow.FileRequest) (reply, error) {
	body := &spool{file: x.o.Spool}
	r.Into = body
	_, code := x.ask(r)
	if code <= 0 {
		body.close()
		return reply{code: code}, nil
	}
	return reply{code: code, body: body}, nil
}

func (x *session) getFile(a []arg) (reply, error) {
	return x.fetch(shadow.FileRequest{Call: shadow.FileGetfile, Fields: fields(a, "s")})
}

// reading is read or pread. Old shadows die of lengths that newer ones refuse.
func reading(call shadow.FileCall) func(*session, []arg) (reply, error) {
	return func(x *session, a []arg) (reply, error) {
		r := shadow.FileRequest{Call: call, Fields: fields(a, "ill"[:len(a)])}
		switch {
		case !x.isOpen(a[0].n, &r):
			return reply{code: badFD}, nil
		case a[1].n < 0 || a[1].n > shadow.MaxFileBytes:
			return reply{code: invalidRequest}, nil
		}
		return x.fetch(r)
	}
}

// strideRead reads pieces at regular distances. The shadow loops for ever if the
// file ends before it has all that was asked for (NTreceivers.cpp, CONDOR_sread),
// so it is never asked for more than the file has.
func (x *session) strideRead(a []arg) (reply, error) {
	length, offset, stride, skip := a[1].n, a[2].n, a[3].n, a[4].n
	look := shadow.FileRequest{Call: shadow.FileFstat, Fields: fields(a[:1], "i")}
	switch {
	case !x.isOpen(a[0].n, &look):
		return reply{code: badFD}, nil
	case length < 0 || length > shadow.MaxFileBytes, stride <= 0 || stride > shadow.MaxFileBytes, offset < 0, skip < 0:
		return reply{code: invalidRequest}, nil
	}
	is, code := x.ask(look)
	if code < 0 {
		return reply{code: code}, nil
	}
	size, err := fileSize(is.Text)
	if err != nil {
		return reply{code: unknown}, nil
	}
	if a[1].n = min(length, strided(size, offset, stride, skip, length)); a[1].n == 0 {
		return reply{}, nil
	}
	return x.fetch(shadow.FileRequest{Call: shadow.FileSread, Fields: fields(a, "illll"), Origin: look.Origin})
}

// strided returns how many bytes a file of that size has for a read in pieces of
// stride bytes, each beginning skip bytes behind the one before, and at most
// most.
func strided(size, offset, stride, skip, most int64) int64 {
	var sum int64
	for sum < most && offset < size {
		if skip == 0 {
			return most // the same piece again and again
		}
		sum += min(stride, size-offset)
		offset += skip
		if offset < 0 {
			break
		}
	}
	return min(sum, most)
}

// fileSize is the eighth number of the shadow's stat answer
// (condor_utils/stat_info.cpp: stat_string).
func fileSize(text string) (int64, error) {
	const at = 7
	numbers := strings.Fields(text)
	if len(numbers) <= at {
		return 0, fmt.Errorf("the shadow's description of a file has only %d numbers", len(numbers))
	}
	return strconv.ParseInt(numbers[at], 10, 64)
}

// errBody: the client left in the middle of its request.
var errBody = errors.New("the connection ended before all bytes of a request had arrived")

// receive takes the bytes that follow a request. The code says why they cannot be
// kept; the connection stays in step even then.
func (x *session) receive(n int64) (body *spool, code int64, err error) {
	body = &spool{file: x.o.Spool}
	var bad error
	piece := make([]byte, min(max(n, 0), 64<<10))
	for left := n; left > 0; {
		got, err := io.ReadFull(x.in, piece[:min(left, int64(len(piece)))])
		if err != nil {
			body.close()
			return nil, 0, fmt.Errorf("%w: %w", errBody, err)
		}
		left -= int64(got)
		switch {
		case bad != nil:
		case n > shadow.MaxFileBytes:
			bad = syscall.EINVAL
		default:
			_, bad = body.Write(piece[:got])
		}
	}
	if bad != nil {
		body.close()
		return nil, codeOf(shadow.Errno(bad)), nil
	}
	return body, 0, nil
}

// writing is write, pwrite or swrite, whose bytes follow the line.
func writing(call shadow.FileCall) func(*session, []arg) (reply, error) {
	return func(x *session, a []arg) (reply, error) {
		n := a[1].n
		if n < 0 {
			return reply{code: invalidRequest}, nil
		}
		body, code, err := x.receive(n)
		if err != nil || code < 0 {
			return reply{code: code}, err
		}
		defer body.close()
		r := shadow.FileRequest{Call: call, Fields: fields(a, "illll"[:len(a)]), Body: body.reader(), Size: n}
		switch {
		case !x.isOpen(a[0].n, &r):
			return reply{code: badFD}, nil
		case call == shadow.FileSwrite && a[3].n <= 0:
			return reply{code: invalidRequest}, nil
		}
		_, code = x.ask(r)
		return reply{code: code}, nil
	}
}

// putFile writes a whole file. A first answer says whether that is possible, a
// second one follows the bytes; condor_chirp does not wait for it. The shadow has
// a call for this, but would be blocked between its two halves, and a client can
// be slow. So the file is opened, written and closed instead, with the same
// permissions.
func (x *session) putFile(a []arg) (reply, error) {
	path, mode, n := a[0].text, a[1].n, a[2].n
	if n > shadow.MaxFileBytes {
		return reply{code: tooBig}, nil
	}
	const flags = 1 | 0x100 | 0x200 // write only, create, truncate
	opened, code := x.ask(shadow.FileRequest{Call: shadow.FileOpen, Fields: []shadow.Field{
		shadow.Int(flags), shadow.Int(mode), shadow.Text(path)}})
	if code < 0 {
		return reply{code: code}, nil
	}
	fd := []shadow.Field{shadow.Int(opened.Result)}
	defer x.ask(shadow.FileRequest{Call: shadow.FileClose, Fields: fd, Origin: opened.Origin})
	if n <= 0 {
		return reply{code: code}, nil
	}
	if err := x.answer(reply{code: code}); err != nil {
		return reply{}, err
	}
	body, code, err := x.receive(n)
	if err != nil || code < 0 {
		return reply{code: code}, err
	}
	defer body.close()
	_, code = x.ask(shadow.FileRequest{Call: shadow.FileWrite, Fields: append(fd, shadow.Int(n)), Origin: opened.Origin, Body: body.reader(), Size: n})
	return reply{code: code}, nil
}
