package classads

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"iter"
	"strings"
)

// Format is the format of a file of ads.
type Format uint8

// The formats, with the option of condor_q and condor_status that writes each.
const (
	FormatLong Format = iota // -long: old syntax; blank lines, or *** in history files, between ads
	FormatNew                // -long:new: [ ... ]
	FormatJSON               // -json
	FormatXML                // -xml
)

// Reader reads a file of many ads, one at a time.
type Reader struct {
	format Format
	parser Parser
	in     *bufio.Reader
	err    error
}

// NewReader returns a reader of ads in a format. The limits of the parser apply
// to each ad; the zero value has the default limits.
func NewReader(r io.Reader, format Format, parser Parser) *Reader {
	return &Reader{format: format, parser: parser.bounded(), in: bufio.NewReader(r)}
}

// Read returns the next ad, or io.EOF after the last. If the text of an ad is
// wrong, Read returns an error, and the next Read continues after that ad. Any
// other error is final.
func (r *Reader) Read() (*Ad, error) {
	ad, _, err := r.next()
	return ad, err
}

// All iterates over the remaining ads. For an ad whose text is wrong it yields an
// error and continues after that ad. Any other error ends the iteration; the end
// of the file is not an error. After a loop that ended early, another loop
// begins with the next ad.
func (r *Reader) All() iter.Seq2[*Ad, error] {
	return func(yield func(*Ad, error) bool) {
		for {
			ad, more, err := r.next()
			if !more && errors.Is(err, io.EOF) || !yield(ad, err) || !more {
				return
			}
		}
	}
}

// next reads an ad; without more, err is final.
func (r *Reader) next() (ad *Ad, more bool, err error) {
	for r.err == nil {
		var text string
		if r.format == FormatLong {
			text, r.err = r.longAd()
		} else {
			text, r.err = r.enclosed()
		}
		if text == "" {
			break
		}
		ad, err := r.parse(text)
		if err != nil || ad.Len() > 0 || r.format != FormatLong {
			return ad, true, err
		} // else nothing but comments
	}
	return nil, false, r.err
}

func (r *Reader) parse(text string) (*Ad, error) {
	switch r.format {
	case FormatNew:
		return r.parser.New(text)
	case FormatJSON:
		return r.parser.JSON(text)
	case FormatXML:
		return r.parser.XML(text)
	}
	return r.parser.Old(text)
}

// errTooLong is wrapped if an ad is longer than the parser allows.
var errTooLong = errors.New("longer than the parser allows")

// longAd reads up to a line that ends an ad, or io.EOF.
func (r *Reader) longAd() (string, error) {
	var b strings.Builder
	for {
		line, err := r.line(r.parser.MaxText - b.Len())
		switch {
		case err != nil && !errors.Is(err, io.EOF):
			return "", fmt.Errorf("reading ads: %w", err)
		case strings.TrimSpace(line) != "" && !strings.HasPrefix(line, "***"):
			b.WriteString(line)
		case b.Len() > 0:
			return b.String(), err
		}
		if err != nil {
			return b.String(), err
		}
	}
}

// line reads a line, with its end, of at most so many bytes.
func (r *Reader) line(most int) (string, error) {
	var b []byte
	for {
		part, err := r.in.ReadSlice('\n')
		if len(b)+len(part) > most {
			return "", errTooLong
		}
		b = append(b, part...)
		if !errors.Is(err, bufio.ErrBufferFull) {
			return string(b), err
		}
	}
}

// enclosed reads from an opening bracket to the one that closes it.
func (r *Reader) enclosed() (string, error) {
	s := encloser{format: r.format}
	var b []byte
	for {
		c, err := r.in.ReadByte()
		if err != nil {
			if errors.Is(err, io.EOF) && len(b) > 0 {
				err = io.ErrUnexpectedEOF
			}
			if !errors.Is(err, io.EOF) || len(b) > 0 {
				err = fmt.Errorf("reading ads: %w", err)
			}
			return "", err
		}
		inside, done := s.next(c)
		if !inside {
			b = b[:0]
			continue
		}
		if b = append(b, c); len(b) > r.parser.MaxText {
			return "", fmt.Errorf("reading ads: %w", errTooLong)
		}
		if done {
			return string(b), nil
		}
	}
}

// encloser finds where an ad begins and ends.
type encloser struct {
	format   Format
	depth    int
	quote    byte // within a string or name in quotes
	escaped  bool
	comment  byte // / or * within a comment
	previous byte
	tag      []byte // XML: the tag being read
}

// next takes a byte and tells whether it belongs to an ad, and ends it.
func (s *encloser) next(c byte) (inside, done bool) {
	if s.format == FormatXML {
		return s.nextXML(c)
	}
	open, end := byte('['), byte(']')
	if s.format == FormatJSON {
		open, end = '{', '}'
	}
	was := s.previous
	s.previous = c
	switch {
	case s.quote != 0:
		s.quoted(c)
	case s.comment == '/':
		if c == '\n' {
			s.comment = 0
		}
	case s.comment == '*':
		if was == '*' && c == '/' {
			s.comment, s.previous = 0, 0
		}
	case s.depth > 0 && s.format == FormatNew && was == '/' && (c == '/' || c == '*'):
		s.comment, s.previous = c, 0
	case s.depth > 0 && (c == '"' || c == '\'' && s.format == FormatNew):
		s.quote = c
	case c == open:
		s.depth++
	case c == end && s.depth > 0:
		s.depth--
		return true, s.depth == 0
	}
	return s.depth > 0, false
}

// quoted takes a byte within quotes.
func (s *encloser) quoted(c byte) {
	switch {
	case s.escaped:
		s.escaped = false
	case c == '\\':
		s.escaped = true
	case c == s.quote:
		s.quote = 0
	}
}

// nextXML counts <c> and </c>.
func (s *encloser) nextXML(c byte) (inside, done bool) {
	const longest = 8 // no tag that matters is longer
	switch {
	case c == '<':
		s.tag = append(s.tag[:0], c)
	case len(s.tag) > 0 && len(s.tag) < longest:
		s.tag = append(s.tag, c)
	}
	switch string(s.tag) {
	case "<c", "</c":
		// Before the tag is known, its text counts as part of the ad.
		return true, false
	case "<c>":
		s.depth++
		s.tag = s.tag[:0]
	case "</c>":
		s.tag = s.tag[:0]
		if s.depth--; s.depth == 0 {
			return true, true
		}
	}
	if c == '<' {
		return true, false
	}
	return s.depth > 0, false
}
