package owner

import (
	"encoding/base64"
	"fmt"
	"strings"

	"podstarter/classads"
	"podstarter/condor/job"
	"podstarter/internal/cedar"
)

// Login is a request of condor_ssh_to_job, START_SSHD (starter.cpp:startSSHD).
type Login struct {
	// Shells are programs to try for a login without a command, best first.
	Shells []string
	// Slot is the slot's name for the greeting.
	Slot string
	// KeygenArgs are additional arguments for ssh-keygen.
	KeygenArgs []string
}

// Bounds of a tool's request.
const (
	maxShells = 8
	maxWord   = 4096
)

// ReadLogin reads the payload of START_SSHD.
func ReadLogin(s *cedar.Stream) (Login, error) {
	ad, err := readAd(s, "a request to log in")
	if err != nil {
		return Login{}, err
	}
	return loginOf(ad)
}

func loginOf(ad *classads.Ad) (Login, error) {
	l := Login{Slot: word(ad.StringOr("Name", ""))}
	for shell := range strings.SplitSeq(ad.StringOr("Shell", ""), ",") {
		if shell = strings.TrimSpace(word(shell)); shell != "" && len(l.Shells) < maxShells {
			l.Shells = append(l.Shells, shell)
		}
	}
	args, err := job.SplitV2(word(ad.StringOr("SSHKeyGenArgs", "")))
	if err != nil {
		return l, &Refusal{Reason: fmt.Sprintf("Failed to produce ssh-keygen arg list: %v", err)}
	}
	l.KeygenArgs = args
	return l, nil
}

// word drops characters that cannot be shown on a line and passed to a program.
func word(s string) string {
	if len(s) > maxWord || strings.ContainsAny(s, "\x00\r\n\x1b") {
		return ""
	}
	return s
}

// SendLogin answers START_SSHD: the user to log in as, the server's public key
// as in a known_hosts file, and the file with the client's private key.
// Everything after that on the connection is ssh.
func SendLogin(s *cedar.Stream, user string, hostKey, clientKey []byte) error {
	ad := classads.NewAd()
	ad.SetBool("Result", true)
	ad.SetString("RemoteUser", user)
	ad.SetString("SSHPublicServerKey", lines64(hostKey))
	ad.SetString("SSHPrivateClientKey", lines64(clientKey))
	return sendAd(s, ad)
}

// lines64 is base64 in lines of 64 characters. Tools of all versions decode only
// this form (condor_utils/condor_base64.cpp, which leaves it to OpenSSL's
// BIO_f_base64).
func lines64(data []byte) string {
	const width = 64
	var b strings.Builder
	text := base64.StdEncoding.EncodeToString(data)
	for len(text) > 0 {
		n := min(width, len(text))
		b.WriteString(text[:n])
		b.WriteByte('\n')
		text = text[n:]
	}
	return b.String()
}
