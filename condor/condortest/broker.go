package condortest

import (
	"fmt"
	"io"
	"net"
	"sync"
	"testing"

	"podstarter/classads"
	"podstarter/internal/cedar"
	"podstarter/rescue"
)

// Broker is a connection broker (CCB) of shadows that take no connections. It has one of
// them connect to a starter by connecting both, with the shadow's first words.
type Broker struct {
	listener net.Listener
	served   rescue.Group

	mu      sync.Mutex
	behind  []string // addresses of those that registered, by their ids
	denies  bool
	asked   int
	between []net.Conn
}

// NewBroker starts a broker, which ends with the test.
func NewBroker(t testing.TB) *Broker {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	b := &Broker{listener: l}
	b.served.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			b.served.Go(func() { b.serve(conn) })
		}
	})
	t.Cleanup(func() {
		l.Close()
		b.mu.Lock()
		for _, c := range b.between {
			c.Close()
		}
		b.mu.Unlock()
		b.served.Wait()
	})
	return b
}

// Register returns the address by which all know a daemon: nobody listens at its port.
func (b *Broker) Register(address string) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.behind = append(b.behind, address)
	return cedar.Sinful{Host: "127.0.0.1", Port: 1}.With("CCBID", fmt.Sprintf("%s#%d", b.listener.Addr(), len(b.behind)-1)).String()
}

// Deny makes the broker allow nobody anything.
func (b *Broker) Deny() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.denies = true
}

// Asked is how often it was asked.
func (b *Broker) Asked() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.asked
}

// serve agrees to a session without a key, as brokers of 23.9 do, and takes a request.
func (b *Broker) serve(conn net.Conn) {
	defer conn.Close()
	s := cedar.NewStream(conn)
	s.SetTimeout(patience)
	command, err := s.GetInt()
	if err != nil || command != cedar.DCAuthenticate {
		return
	}
	if _, err := takeAd(s); err != nil {
		return
	}
	b.mu.Lock()
	b.asked++
	code := "AUTHORIZED"
	if b.denies {
		code = "DENIED"
	}
	b.mu.Unlock()
	policy, result, reply := classads.NewAd(), classads.NewAd(), classads.NewAd()
	policy.SetString("Authentication", "NO")
	result.SetString("ReturnCode", code)
	for _, ad := range []*classads.Ad{policy, result} {
		s.PutAd(ad)
		if err := s.EndMessage(); err != nil {
			return
		}
	}
	request, err := takeAd(s)
	if err != nil {
		return
	}
	err = b.join(request)
	reply.SetBool("Result", err == nil)
	if err != nil {
		reply.SetString("ErrorString", err.Error())
	}
	s.PutAd(reply)
	_ = s.EndMessage()
}

func takeAd(s *cedar.Stream) (*classads.Ad, error) {
	ad, err := s.GetAd()
	if err != nil {
		return nil, err
	}
	return ad, s.EndOfMessage()
}

// join connects the starter and a daemon.
func (b *Broker) join(request *classads.Ad) error {
	var id int
	if _, err := fmt.Sscan(request.StringOr("CCBID", ""), &id); err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if id < 0 || id >= len(b.behind) {
		return fmt.Errorf("no daemon has the id %d", id)
	}
	starter, err := connect(request.StringOr("MyAddress", ""))
	if err != nil {
		return err
	}
	b.between = append(b.between, starter)
	s := cedar.NewStream(starter)
	s.PutInt(cedar.CCBReverseConnect)
	hello := classads.NewAd()
	hello.SetString("ClaimId", request.StringOr("ClaimId", ""))
	s.PutAd(hello)
	if err := s.EndMessage(); err != nil {
		return err
	}
	daemon, err := connect(b.behind[id])
	if err != nil {
		return err
	}
	b.between = append(b.between, daemon)
	for _, pair := range [][2]net.Conn{{starter, daemon}, {daemon, starter}} {
		b.served.Go(func() {
			_, _ = io.Copy(pair[0], pair[1])
			_ = pair[0].(*net.TCPConn).CloseWrite()
		})
	}
	return nil
}

func connect(address string) (net.Conn, error) {
	to, err := cedar.ParseSinful(address)
	if err != nil {
		return nil, err
	}
	return net.Dial("tcp", to.DialAddress())
}
