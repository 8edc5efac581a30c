package main

import (
	"bytes"
	"regexp"
)

// secrets are what must not stay in a recording: keys, which HTCondor writes as
// hexadecimal digits or base64, and the cookies and session names of claims.
var secrets = []*regexp.Regexp{
	regexp.MustCompile(`[0-9a-fA-F]{32,}`),
	regexp.MustCompile(`[A-Za-z0-9+/]{60,}={0,2}`),
	regexp.MustCompile(`eyJ[A-Za-z0-9_.-]+`), // a token
}

// redact overwrites secrets by zeros of the same length, so that all lengths in
// the packet stay true.
func redact(payload []byte) []byte {
	for _, pattern := range secrets {
		payload = pattern.ReplaceAllFunc(payload, func(s []byte) []byte { return bytes.Repeat([]byte{'0'}, len(s)) })
	}
	return payload
}
