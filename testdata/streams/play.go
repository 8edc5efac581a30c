package streams

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// secret is what the key of every connection that is played is made of.
const secret = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"

// patience is how long a connection may be played.
const patience = time.Minute

const (
	headerSize = 5
	ivSize     = 16
	fromPlayer = 0xb2 // each byte of the vectors of initialisation
	toPlayer   = 0xa1
)

// Sealed are the packets that were encrypted.
func (r Recording) Sealed() []Packet {
	var some []Packet
	for _, p := range r.Packets {
		if p.Sealed {
			some = append(some, p)
		}
	}
	return some
}

// Messages are the messages in one direction.
func Messages(packets []Packet, in bool) [][]byte {
	var all [][]byte
	var message []byte
	for _, p := range packets {
		if p.In != in {
			continue
		}
		if message = append(message, p.Data...); p.Last {
			all, message = append(all, message), nil
		}
	}
	return all
}

// Play is the peer of a starter, in the middle of a connection: it sends what came
// in, each packet as soon as it has got all that went out before, and complains
// about a message that is not, byte for byte, the one that went out (but for [Same]), and about too
// few and too many. The packets are all encrypted or none is. The text describes
// the starter's end for cedar.Adopt.
func Play(t testing.TB, r Recording) string {
	t.Helper()
	packets := r.Sealed()
	if len(packets) == 0 {
		packets = r.Packets
	}
	return play(t, r.peer(), packets, true)
}

// Say sends what came in and takes whatever it gets.
func Say(t testing.TB, packets []Packet) string {
	t.Helper()
	var in []Packet
	for _, p := range packets {
		if p.In {
			in = append(in, p)
		}
	}
	return play(t, someone, in, false)
}

// someone is the address of who did not tell it.
const someone = "<127.0.0.1:9545>"

// peer is the address of who was connected to.
func (r Recording) peer() string {
	for _, p := range r.Packets {
		_, rest, found := bytes.Cut(p.Data, []byte(`ConnectSinful = "`))
		if address, _, ok := bytes.Cut(rest, []byte(`"`)); found && ok && !p.In {
			return string(address)
		}
	}
	return someone
}

func play(t testing.TB, peer string, packets []Packet, listens bool) string {
	t.Helper()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	f := os.NewFile(uintptr(fds[1]), "player")
	conn, err := net.FileConn(f)
	f.Close()
	if err != nil {
		t.Fatal(err)
	}
	sealed := len(packets) > 0 && packets[0].Sealed
	p := &player{conn: conn, listens: listens}
	description := fmt.Sprintf("%d*3*20*1*24*0*submit-side@matchsession**0*%s*", fds[0], peer)
	if sealed {
		p.aead = newAEAD(t)
		description += fmt.Sprintf("64*3*1*%s%s%X%X*%X*1*1*1*1*64*%0128d*0*", "01000000", "01000000",
			bytes.Repeat([]byte{toPlayer}, ivSize), bytes.Repeat([]byte{fromPlayer}, ivSize), adopted(t), 0)
	} else {
		description += "0*0*0*0*0*0*0*"
	}
	done := make(chan struct{})
	t.Cleanup(func() { <-done })
	go func() {
		defer close(done)
		defer conn.Close()
		// Nobody waits for ever for what the other does not say.
		_ = conn.SetDeadline(time.Now().Add(patience))
		if err := p.run(packets); err != nil {
			t.Errorf("the other end of the recorded connection: %v", err)
		}
	}()
	return description
}

// adopted is the key in the form in which a startd hands it down.
func adopted(t testing.TB) []byte {
	t.Helper()
	key, err := hkdf.Key(sha256.New, []byte(secret), []byte("htcondor"), "keygen", 32)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func newAEAD(t testing.TB) cipher.AEAD {
	t.Helper()
	block, err := aes.NewCipher(adopted(t))
	if err != nil {
		t.Fatal(err)
	}
	aead, err := cipher.NewGCMWithNonceSize(block, ivSize)
	if err != nil {
		t.Fatal(err)
	}
	return aead
}

// player knows of CEDAR what a packet is and how it is encrypted, apart from what
// package cedar makes of it.
type player struct {
	conn      net.Conn
	aead      cipher.AEAD // nil if nothing is encrypted
	said, got uint32      // packets
	listens   bool
}

func (p *player) run(packets []Packet) error {
	var want []byte
	for _, packet := range packets {
		if packet.In {
			if _, err := p.conn.Write(p.frame(packet)); err != nil {
				return nil // who reads has heard enough, and says so
			}
			continue
		}
		if want = append(want, packet.Data...); !packet.Last {
			continue
		}
		got, err := p.message()
		if errors.Is(err, io.EOF) || errors.Is(err, unix.ECONNRESET) {
			return fmt.Errorf("the connection ended where this was sent: %s", Text(want))
		}
		if err != nil {
			return err
		}
		if !Same(got, want) {
			return fmt.Errorf("what was sent is not what was recorded:\n got %s\nwant %s", Text(got), Text(want))
		}
		want = nil
	}
	_ = p.conn.(*net.UnixConn).CloseWrite()
	if !p.listens {
		_, _ = io.Copy(io.Discard, p.conn)
		return nil
	}
	if got, err := p.message(); err == nil {
		return fmt.Errorf("more was sent than was recorded: %s", Text(got))
	}
	return nil
}

// recordedPiece is what the recorded senders announced as the greatest message with
// contents of a file (reli_sock.h: AES_FILE_BUF_SZ).
const recordedPiece = 256 << 10

// Same says whether a message is the recorded one. Only how a file is cut may have
// changed, to pieces that are not greater: that is the second number of its head.
func Same(got, want []byte) bool {
	const head, number = 16, 8
	if len(want) == head && len(got) == head && binary.BigEndian.Uint64(want[number:]) == recordedPiece {
		piece := binary.BigEndian.Uint64(got[number:])
		return bytes.Equal(got[:number], want[:number]) && piece > 0 && piece <= recordedPiece
	}
	return bytes.Equal(got, want)
}

func nonce(base byte, counter uint32) []byte {
	iv := bytes.Repeat([]byte{base}, ivSize)
	binary.BigEndian.PutUint32(iv, binary.BigEndian.Uint32(iv)+counter)
	return iv
}

func (p *player) frame(packet Packet) []byte {
	if p.aead == nil {
		return frame(packet.Last, packet.Data)
	}
	header := frame(packet.Last, nil)
	binary.BigEndian.PutUint32(header[1:], uint32(len(packet.Data)+p.aead.Overhead()))
	p.said++
	return p.aead.Seal(header, nonce(fromPlayer, p.said), packet.Data, header)
}

// message reads a message.
func (p *player) message() ([]byte, error) {
	var all []byte
	for {
		header := make([]byte, headerSize)
		if _, err := io.ReadFull(p.conn, header); err != nil {
			return nil, err
		}
		body := make([]byte, binary.BigEndian.Uint32(header[1:]))
		if _, err := io.ReadFull(p.conn, body); err != nil {
			return nil, err
		}
		if p.aead != nil {
			p.got++
			var err error
			if body, err = p.aead.Open(nil, nonce(toPlayer, p.got), body, header); err != nil {
				return nil, fmt.Errorf("packet %d: %w", p.got, err)
			}
		}
		if all = append(all, body...); header[0] != 0 {
			return all, nil
		}
	}
}
