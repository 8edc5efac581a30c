package sshtojob

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/pem"
	"fmt"
	"strconv"
	"strings"

	"golang.org/x/crypto/ssh"
)

// KeyType says which keys to make.
type KeyType struct {
	Type string `json:"type"` // as for ssh-keygen -t: ecdsa, ed25519 or rsa
	Bits int    `json:"bits"` // as for -b; 0 for the default
}

// defaultKeys are made quickly and known to every ssh of the last decade,
// including those in FIPS 140 mode.
var defaultKeys = KeyType{Type: "ecdsa"}

// Bounds of the size of RSA keys, in bits. Clients refuse smaller ones, and
// larger ones take minutes to make.
const (
	minRSA     = 2048
	defaultRSA = 3072
	maxRSA     = 8192
)

// ParseKeyType finds the type of key in arguments for ssh-keygen, which sites and
// users may give (SSH_TO_JOB_SSH_KEYGEN_ARGS, condor_ssh_to_job -keygen-options);
// the last one wins. Without any this package chooses. Other options are ignored,
// since no ssh-keygen is run.
func ParseKeyType(args []string) (KeyType, error) {
	k := defaultKeys
	for i := 0; i < len(args); i++ {
		option, value := args[i], ""
		if !strings.HasPrefix(option, "-t") && !strings.HasPrefix(option, "-b") {
			continue
		}
		if value = option[2:]; value == "" && i+1 < len(args) {
			i++
			value = args[i]
		}
		if option[1] == 't' {
			k = KeyType{Type: strings.ToLower(value)}
			continue
		}
		n, err := strconv.Atoi(value)
		if err != nil {
			return k, fmt.Errorf("the size of a key is %.40q, which is not a number", value)
		}
		k.Bits = n
	}
	return k, k.check()
}

func (k KeyType) check() error {
	switch k.Type {
	case "ed25519":
		return nil
	case "ecdsa":
		switch k.Bits {
		case 0, 256, 384, 521:
			return nil
		}
		return fmt.Errorf("an ECDSA key has 256, 384 or 521 bits, not %d", k.Bits)
	case "rsa":
		if k.Bits == 0 || k.Bits >= minRSA && k.Bits <= maxRSA {
			return nil
		}
		return fmt.Errorf("an RSA key has %d to %d bits here, not %d", minRSA, maxRSA, k.Bits)
	}
	return fmt.Errorf("keys of type %.40q are not supported; use ecdsa, ed25519 or rsa", k.Type)
}

func (k KeyType) generate() (crypto.PrivateKey, error) {
	if err := k.check(); err != nil {
		return nil, err
	}
	switch k.Type {
	case "ed25519":
		_, key, err := ed25519.GenerateKey(rand.Reader)
		return key, err
	case "rsa":
		bits := k.Bits
		if bits == 0 {
			bits = defaultRSA
		}
		return rsa.GenerateKey(rand.Reader, bits)
	}
	curve := elliptic.P256()
	switch k.Bits {
	case 384:
		curve = elliptic.P384()
	case 521:
		curve = elliptic.P521()
	}
	return ecdsa.GenerateKey(curve, rand.Reader)
}

// pair is the keys of one visit.
type pair struct {
	host   ssh.Signer
	client ssh.PublicKey
}

// makePair makes two pairs of keys, one for each side.
func makePair(k KeyType) (pair, Keys, error) {
	hostKey, err := k.generate()
	if err != nil {
		return pair{}, Keys{}, fmt.Errorf("make the key of the ssh server: %w", err)
	}
	host, err := ssh.NewSignerFromKey(hostKey)
	if err != nil {
		return pair{}, Keys{}, fmt.Errorf("make the key of the ssh server: %w", err)
	}
	clientKey, err := k.generate()
	if err != nil {
		return pair{}, Keys{}, fmt.Errorf("make the key of the ssh client: %w", err)
	}
	client, err := ssh.NewSignerFromKey(clientKey)
	if err != nil {
		return pair{}, Keys{}, fmt.Errorf("make the key of the ssh client: %w", err)
	}
	block, err := ssh.MarshalPrivateKey(clientKey, "")
	if err != nil {
		return pair{}, Keys{}, fmt.Errorf("write the key of the ssh client: %w", err)
	}
	return pair{host, client.PublicKey()}, Keys{
		Host:   ssh.MarshalAuthorizedKey(host.PublicKey()),
		Client: pem.EncodeToMemory(block),
	}, nil
}
