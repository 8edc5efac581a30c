package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
)

// chirp speaks to the job's chirp proxy by hand, with or without condor_chirp in
// the image: a request on each line of a file, with $fd for the result of the last
// open, and bytes to send after a bar. It prints the answers, without what is
// particular to a machine.
func chirp(_ *state, name string) error {
	script, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	config, err := os.ReadFile(os.Getenv("_CONDOR_CHIRP_CONFIG"))
	if err != nil {
		return err
	}
	fields := strings.Fields(string(config))
	if len(fields) != 3 {
		return fmt.Errorf("the file that tells of the proxy has %d words", len(fields))
	}
	conn, err := net.Dial("tcp", net.JoinHostPort(fields[0], fields[1]))
	if err != nil {
		return err
	}
	defer conn.Close()
	c := &chirper{conn: conn, in: bufio.NewReader(conn)}
	fd := ""
	for line := range strings.Lines(string(script)) {
		request, body, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "|")
		sent := strings.NewReplacer("$cookie", fields[2], "$fd", fd).Replace(request)
		if _, err := io.WriteString(c.conn, sent+"\n"); err != nil {
			return err
		}
		verb, _, _ := strings.Cut(request, " ")
		putfile := verb == "putfile"
		if body != "" && !putfile {
			if _, err := io.WriteString(c.conn, body); err != nil {
				return err
			}
		}
		code, said, err := c.answer(verb)
		if err != nil {
			return fmt.Errorf("%s: %w", request, err)
		}
		if verb == "open" && code >= 0 {
			fd, code = strconv.Itoa(code), 0
		}
		if putfile && code >= 0 {
			if _, err := io.WriteString(c.conn, body); err != nil {
				return err
			}
			if code, said, err = c.answer(verb); err != nil {
				return fmt.Errorf("%s: %w", request, err)
			}
		}
		if err := print(os.Stdout, strings.TrimRight(fmt.Sprintf("%s: %d %s", request, code, said), " ")); err != nil {
			return err
		}
	}
	return nil
}

type chirper struct {
	conn net.Conn
	in   *bufio.Reader
}

// answer reads the answer to a request with this verb.
func (c *chirper) answer(verb string) (code int, said string, err error) {
	line, err := c.in.ReadString('\n')
	if err != nil {
		return 0, "", err
	}
	if code, err = strconv.Atoi(strings.TrimSpace(line)); err != nil || code < 0 {
		return code, "", err
	}
	switch verb {
	case "read", "pread", "sread", "getfile", "getdir", "getlongdir", "whoami", "whoareyou", "readlink", "lookup", "get_job_attr", "get_job_attr_delayed":
		b := make([]byte, code)
		_, err = io.ReadFull(c.in, b)
		said = string(b)
		switch verb {
		case "lookup": // a path of one run
			code, said = 0, "found"
		case "getlongdir":
			said = fmt.Sprintf("(%d lines)", strings.Count(said, "\n"))
		}
	case "open", "stat", "lstat", "fstat", "statfs", "fstatfs":
		line, err = c.in.ReadString('\n')
		numbers := strings.Fields(line)
		said = fmt.Sprintf("(%d numbers)", len(numbers))
		const size = 7
		if len(numbers) > size && verb != "open" {
			said += " size " + numbers[size]
		}
	}
	return code, said, err
}
