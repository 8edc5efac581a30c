package main

import (
	"bytes"
	"encoding/binary"
	"regexp"
)

// secrets are what must not stay in a recording, in their first group: keys, which
// HTCondor writes as hexadecimal digits or base64, nonces, cookies, the names of
// sessions, the keys of transfers, and the name of the machine.
var secrets = []*regexp.Regexp{
	regexp.MustCompile(`([0-9a-fA-F]{20,})`),
	regexp.MustCompile(`\b[0-9]{1,6}#([0-9a-f]{12,})`), // TransferKey
	regexp.MustCompile(`"([A-Za-z0-9+/]{60,}={0,2})"`),
	regexp.MustCompile(`(?i)\b(?:Nonce|SSHPublicServerKey|SSHPrivateClientKey) = "([^"]*)"`),
	regexp.MustCompile(`(?s)-----BEGIN [A-Z ]+-----\n(.*?)-----END`),
	regexp.MustCompile(`(eyJ[A-Za-z0-9_.-]+)`), // a token
	// Names the machine that the pool ran on.
	regexp.MustCompile(`\bUtsname(?:Nodename|Release|Version) = "([^"]*)"`),
}

// redact overwrites secrets with zeros, so that all lengths in the packet stay
// true.
func redact(payload []byte) []byte {
	payload = bytes.Clone(payload)
	for _, pattern := range secrets {
		for _, at := range pattern.FindAllSubmatchIndex(payload, -1) {
			begin := at[2]
			// The length of a string can look like its first digit.
			if begin >= 7 && binary.BigEndian.Uint64(payload[begin-7:]) == uint64(at[3]-begin) {
				begin++
			}
			for i := begin; i < at[3]; i++ {
				if payload[i] != '\n' {
					payload[i] = '0'
				}
			}
		}
	}
	return payload
}
