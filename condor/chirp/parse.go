package chirp

import "strings"

// parse splits a request into words. A backslash makes the next character part of
// the word (io_proxy_handler.cpp:sscanf_chirp); at the end of the line it is
// dropped.
func parse(line string) []string {
	var words []string
	var word strings.Builder
	inside := false
	end := func() {
		if inside {
			words = append(words, word.String())
			word.Reset()
			inside = false
		}
	}
	for i := 0; i < len(line); i++ {
		c := line[i]
		switch {
		case blank(c):
			end()
			continue
		case c == '\\':
			if i++; i == len(line) {
				continue
			}
			c = line[i]
		}
		inside = true
		word.WriteByte(c)
	}
	end()
	return words
}

// blank is isspace(3) of the C locale.
func blank(c byte) bool { return c == ' ' || '\t' <= c && c <= '\r' }

// number reads the decimal number at the beginning of a word, as strtol(3) does.
// A number out of range becomes the largest or smallest possible.
func number(word string) (n int64, ok bool) {
	digits := strings.TrimLeft(word, "+-")
	if len(word)-len(digits) > 1 {
		return 0, false
	}
	const most = 1<<63 - 1
	for _, c := range []byte(digits) {
		if c < '0' || c > '9' {
			break
		}
		ok = true
		if n > (most-9)/10 {
			n = most
			break
		}
		n = n*10 + int64(c-'0')
	}
	if word != "" && word[0] == '-' {
		n = -n
	}
	return n, ok
}
