package chirp

import (
	"bufio"
	"bytes"
	"crypto/subtle"
	"errors"
	"io"
	"net"
	"strconv"
	"time"
)

// session is one connection.
type session struct {
	*Server
	conn net.Conn
	in   *bufio.Reader
}

// reply is the answer to a request: a result on a line, and the data behind it.
type reply struct {
	code int64
	text string
	body *spool
}

func (s *Server) serve(conn net.Conn, who *stranger) {
	defer s.drop(conn)
	// The buffer has room for the longest line and its line feed.
	x := &session{Server: s, conn: conn, in: bufio.NewReaderSize(conn, maxLine+1)}
	known := x.introduce(who.gone)
	s.met(who)
	if !known {
		return
	}
	defer func() { <-s.clients }()
	for {
		line, ok := x.line()
		if !ok {
			return
		}
		if err := x.request(line); err != nil {
			s.log.Debug("The chirp proxy ends a connection", "error", err)
			return
		}
	}
}

// line reads a request. An empty one ends the connection; one that is too long is
// answered first.
func (x *session) line() (string, bool) {
	line, err := x.in.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) {
		_ = x.answer(reply{code: tooBig})
		return "", false
	}
	line = bytes.TrimSuffix(line, []byte("\n"))
	if len(line) == 0 {
		return "", false
	}
	line, _, _ = bytes.Cut(line, []byte{0})
	return string(line), true
}

// introduce waits for the cookie.
func (x *session) introduce(gone <-chan struct{}) bool {
	if err := x.conn.SetDeadline(time.Now().Add(x.o.patience)); err != nil {
		return false
	}
	for range maxGuesses {
		line, ok := x.line()
		if !ok {
			return false
		}
		words := parse(line)
		switch {
		case len(words) < 2 || words[0] != "cookie":
			x.complain.about(aboutStrangers, "A chirp client did not begin with a cookie")
		case subtle.ConstantTimeCompare([]byte(words[1]), []byte(x.o.Cookie)) == 1:
			return x.welcome()
		default:
			x.complain.about(aboutStrangers, "A chirp client presented a wrong cookie")
			select {
			case <-time.After(wrongCookieTime):
			case <-gone:
				return false
			case <-x.ctx.Done():
				return false
			}
		}
		if x.answer(reply{code: notAuthenticated}) != nil {
			return false
		}
	}
	return false
}

func (x *session) welcome() bool {
	select {
	case x.clients <- struct{}{}:
	default:
		_ = x.answer(reply{code: busy})
		return false
	}
	if x.trust(x.conn) && x.conn.SetDeadline(time.Time{}) == nil && x.answer(reply{}) == nil {
		return true
	}
	<-x.clients
	return false
}

// request carries out one request and answers it. An error ends the connection.
func (x *session) request(line string) error {
	select {
	case x.turn <- struct{}{}:
	case <-x.ctx.Done():
		return x.ctx.Err()
	}
	mine := true
	release := func() {
		if mine {
			<-x.turn
			mine = false
		}
	}
	defer release()
	r, err := x.carryOut(parse(line))
	if err != nil {
		return err
	}
	if r.body != nil {
		defer r.body.close()
	}
	if r.body == nil || !r.body.large() {
		// A client that does not read its answer must not block others, unless
		// the answer takes space on a disk.
		release()
	}
	return x.answer(r)
}

func (x *session) answer(r reply) error {
	line := strconv.AppendInt(nil, r.code, 10)
	line = append(append(line, '\n'), r.text...)
	if r.body != nil && !r.body.large() {
		line = append(line, r.body.head.Bytes()...)
	}
	if _, err := x.conn.Write(line); err != nil {
		return err
	}
	if r.body == nil || !r.body.large() {
		return nil
	}
	_, err := io.Copy(x.conn, r.body.reader())
	return err
}
