package cedar

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"regexp"
	"strings"
	"testing"
	"time"

	"podstarter/testdata/streams"
)

const recordings = "../../testdata/streams"

// patience bounds what a replay may take.
const patience = time.Minute

// replayed is one end of a recorded connection that has to do the other's part.
type replayed struct {
	s *Stream
	r streams.Recording
}

var nonces = regexp.MustCompile(`Nonce = "[^"]*"`)

// say puts the bytes of a message, packet by packet.
func (p replayed) say(packet streams.Packet) error {
	if p.s.send.open < 0 {
		p.s.beginPacket(len(packet.Data))
	}
	p.s.send.buf = append(p.s.send.buf, packet.Data...)
	p.s.endPacket(packet.Last)
	return p.s.Flush()
}

// hear reads a message and compares it, nonces apart.
func (p replayed) hear(want []byte) error {
	room := make([]byte, 1<<20)
	n, err := p.s.ReadMessage(room)
	if err != nil {
		return err
	}
	if got := nonces.ReplaceAll(room[:n], nil); !bytes.Equal(got, nonces.ReplaceAll(want, nil)) {
		return fmt.Errorf("it said %s\n instead of %s", streams.Text(room[:n]), streams.Text(want))
	}
	return nil
}

// rest plays what was encrypted; in says which packets are this end's to say.
func (p replayed) rest(in bool) error {
	var message []byte
	for i, packet := range p.r.Sealed() {
		var err error
		if packet.In == in {
			err = p.say(packet)
		} else if message = append(message, packet.Data...); packet.Last {
			err = p.hear(message)
			message = nil
		}
		if err != nil {
			return fmt.Errorf("encrypted packet %d: %w", i+1, err)
		}
	}
	return nil
}

// attribute is what a plain message of the recording says.
func (p replayed) attribute(name string) string {
	for _, packet := range p.r.Packets {
		if _, rest, found := bytes.Cut(packet.Data, []byte(name+` = "`)); found && !packet.Sealed {
			value, _, _ := bytes.Cut(rest, []byte{'"'})
			return string(value)
		}
	}
	return ""
}

func replaySession(t *testing.T, id string) *Session {
	t.Helper()
	session, err := ImportSessionParts(id, "", vectorKey, "someone@pool.invalid", Daemon, Administrator, Write, Read)
	if err != nil {
		t.Fatal(err)
	}
	return session
}

// TestReplayServer has the daemons and tools of the recordings resume a session
// with a server and send it their commands.
func TestReplayServer(t *testing.T) {
	commands := map[int]int{}
	for _, r := range streams.All(t, recordings) {
		if !r.Packets[0].In || r.Packets[0].Sealed || r.Command() < 0 {
			continue
		}
		commands[r.Command()]++
		t.Run(fmt.Sprintf("%s/%s/%d", r.Version, r.Case, r.Command()), func(t *testing.T) {
			a, b := net.Pipe()
			defer a.Close()
			_ = a.SetDeadline(time.Now().Add(patience))
			peer, own := replayed{NewStream(a), r}, replayed{NewStream(b), r}
			session := replaySession(t, peer.attribute("Sid"))
			table := NewSessions()
			if err := table.Add(session); err != nil {
				t.Fatal(err)
			}
			server := &Server{Sessions: table, Version: own.answer("RemoteVersion")}
			server.Handle(r.Command(), Daemon, func(_ context.Context, c *Call) error {
				if want := own.attribute("RemoteVersion"); c.PeerVersion != want || c.User != session.User {
					t.Errorf("the peer is %s with %q, not %q", c.User, c.PeerVersion, want)
				}
				return own.rest(false)
			})
			served := make(chan error, 1)
			go func() {
				defer b.Close()
				call, handler, err := server.accept(t.Context(), own.s)
				if err == nil {
					_, err = server.run(t.Context(), call, handler)
				}
				served <- err
			}()
			err := peer.say(r.Packets[0])
			if err == nil && !r.Packets[1].Sealed {
				err = peer.hear(r.Packets[1].Data)
			}
			if err == nil {
				err = peer.s.setKey(session.key.bytes())
			}
			if err == nil {
				err = peer.rest(true)
			}
			if err != nil {
				a.Close() // the server waits for what does not come
			}
			if err := errors.Join(err, <-served); err != nil {
				t.Error(err)
			}
		})
	}
	for _, command := range []int{DCRaiseSignal, 1200, 1500, 1501, 1502, 1503} {
		if commands[command] == 0 {
			t.Errorf("command %d is not among the recorded ones: %v", command, commands)
		}
	}
}

// answer is what the server's answer of the recording said, if there was one.
func (p replayed) answer(name string) string {
	p.r.Packets = p.r.Packets[1:]
	return p.attribute(name)
}

// TestReplayClient sends the commands of the recordings again: the hop through the
// shared port, the resumption of the session, and what came next.
func TestReplayClient(t *testing.T) {
	commands := map[int]int{}
	for _, r := range streams.All(t, recordings) {
		if r.Packets[0].In || r.Command() < 0 {
			continue
		}
		commands[r.Command()]++
		t.Run(fmt.Sprintf("%s/%s/%d", r.Version, r.Case, r.Command()), func(t *testing.T) {
			a, b := net.Pipe()
			defer b.Close()
			_ = b.SetDeadline(time.Now().Add(patience))
			own, peer := replayed{nil, r}, replayed{NewStream(b), r}
			session := replaySession(t, own.attribute("Sid"))
			address := own.attribute("ServerCommandSock")
			name, _, _ := strings.Cut(string(r.Packets[0].Data[bytes.Index(r.Packets[0].Data, []byte("STARTER")):]), "\x00")
			client := &Client{
				Version: own.attribute("RemoteVersion"), Own: address, Name: strings.TrimSuffix(name, " "+address), Timeout: timeoutOf(t, r.Packets[0].Data),
				Dialer: func(context.Context, string, string) (net.Conn, error) { return a, nil },
			}
			heard := make(chan error, 1)
			go func() {
				defer b.Close()
				heard <- func() error {
					for _, packet := range r.Packets {
						switch {
						case packet.Sealed:
							if err := peer.s.setKey(session.key.bytes()); err != nil {
								return err
							}
							return peer.rest(true)
						case packet.In:
							if err := peer.say(packet); err != nil {
								return err
							}
						default:
							if err := peer.hear(packet.Data); err != nil {
								return err
							}
							if bytes.HasPrefix(packet.Data, []byte{0, 0, 0, 0, 0, 0, 0, SharedPortConnect}) {
								peer.s.resetTranscript()
							}
						}
					}
					return errors.New("nothing was encrypted")
				}()
			}()
			s, err := client.Command(t.Context(), own.attribute("ConnectSinful"), r.Command(), session)
			if err != nil {
				b.Close()
				t.Fatalf("%v; the other end: %v", err, <-heard)
			}
			defer s.Close()
			own.s = s
			if err := errors.Join(own.rest(false), <-heard); err != nil {
				t.Error(err)
			}
		})
	}
	for _, command := range []int{FileTransUpload, FileTransDownload, DCChildAlive, ReactivateClaimCheck} {
		if commands[command] == 0 {
			t.Errorf("command %d is not among the recorded ones: %v", command, commands)
		}
	}
}

// timeoutOf is the last but one number of a message to the shared port.
func timeoutOf(t *testing.T, hop []byte) time.Duration {
	t.Helper()
	s, _ := recorder(append(header(1, uint32(len(hop))), hop...))
	_, err := s.GetInt()
	for range 2 {
		if err == nil {
			_, err = s.GetString()
		}
	}
	seconds, err2 := s.GetInt()
	if err := errors.Join(err, err2); err != nil {
		t.Fatal(err)
	}
	return time.Duration(seconds) * time.Second
}
