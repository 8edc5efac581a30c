package podnet

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"
)

// RelayVerb is the program's own verb of the relay, which is a daemon.
const RelayVerb = "pod-relay"

// RelayArguments are those of [RelayVerb].
func (n Network) RelayArguments() ([]string, error) {
	text, err := json.Marshal(n)
	return []string{RelayVerb, string(text)}, err
}

// socket is where the relay listens for those who changed the notes.
func (n Network) socket() string { return filepath.Join(n.Dir, "relay.sock") }

// relayPatience is how long the relay may take to look at the notes.
const relayPatience = 20 * time.Second

// tell makes the relay look at the notes, and waits until it has.
func (n Network) tell() error {
	conn, err := net.DialTimeout("unix", n.socket(), relayPatience)
	if err != nil {
		return fmt.Errorf("telling the relay of a pod: %w", err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(relayPatience)); err != nil {
		return err
	}
	said, err := io.ReadAll(conn)
	if err == nil && len(said) > 0 {
		err = errors.New(string(said))
	}
	if err != nil {
		return fmt.Errorf("telling the relay of a pod: %w", err)
	}
	return nil
}

// A relay holds sockets in the networks of the router and of pods.
type relay struct {
	Network
	mutex sync.Mutex
	// at is where it listens for each pod: the text of its note, and the sockets.
	at map[string]listening
}

type listening struct {
	note    string
	sockets []net.Listener
}

// Relay is the body of [RelayVerb]. It returns only on failure.
func Relay(args []string) error {
	if len(args) != 1 {
		return errors.New("usage: " + RelayVerb + " NETWORK")
	}
	r := relay{at: map[string]listening{}}
	if err := json.Unmarshal([]byte(args[0]), &r.Network); err != nil {
		return fmt.Errorf("reading the network: %w", err)
	}
	if _, err := r.listen(r.router(), r.Service(), door{r.Server, r.Server}); err != nil {
		return err
	}
	if r.Kind == NAT {
		if _, err := r.listen(r.router(), clusterService, door{clusterPort, r.Server}); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(r.notes(), 0o755); err != nil {
		return fmt.Errorf("starting the relay: %w", err)
	}
	if err := os.Remove(r.socket()); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("starting the relay: %w", err)
	}
	l, err := net.Listen("unix", r.socket())
	if err != nil {
		return fmt.Errorf("starting the relay: %w", err)
	}
	if err := r.look(); err != nil {
		log.Print(err) // of a pod that is gone, for example
	}
	for {
		conn, err := l.Accept()
		if err != nil {
			return fmt.Errorf("waiting for changes: %w", err)
		}
		if err := r.look(); err != nil {
			log.Print(err)
			_, _ = io.WriteString(conn, err.Error())
		}
		conn.Close()
	}
}

// look brings the sockets in the pods' networks to what the notes say.
func (r *relay) look() error {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	var errs []error
	for _, pod := range r.Pods {
		text, err := os.ReadFile(filepath.Join(r.notes(), pod))
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			errs = append(errs, err)
		}
		note := string(text)
		if r.at[pod].note == note {
			continue
		}
		for _, s := range r.at[pod].sockets {
			s.Close()
		}
		delete(r.at, pod)
		_, namespace, _ := strings.Cut(strings.TrimSpace(note), " ")
		if namespace == "" {
			continue
		}
		var doors []door
		for _, port := range r.Local {
			doors = append(doors, door{port, port})
		}
		sockets, err := r.listen(namespace, "127.0.0.1", doors...)
		if err != nil {
			errs = append(errs, fmt.Errorf("the pod %s: %w", pod, err))
			continue
		}
		r.at[pod] = listening{note: note, sockets: sockets}
	}
	return errors.Join(errs...)
}

// A door leads from a port in a network to one of the machine's loopback.
type door struct{ from, to int }

// listen takes connections to some ports of a host in a network to those of the machine's loopback.
func (r *relay) listen(namespace, host string, doors ...door) ([]net.Listener, error) {
	var sockets []net.Listener
	err := within(namespace, func() error {
		for _, d := range doors {
			l, err := net.Listen("tcp", net.JoinHostPort(host, strconv.Itoa(d.from)))
			if err != nil {
				return err
			}
			sockets = append(sockets, l)
		}
		return nil
	})
	if err != nil {
		for _, s := range sockets {
			s.Close()
		}
		return nil, fmt.Errorf("listening in the network %s: %w", namespace, err)
	}
	for i, l := range sockets {
		go pass(l, net.JoinHostPort("127.0.0.1", strconv.Itoa(doors[i].to)))
	}
	return sockets, nil
}

// pass passes connections on until the socket is closed.
func pass(l net.Listener, to string) {
	for {
		from, err := l.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			log.Print(err)
			time.Sleep(100 * time.Millisecond) // until there are descriptors again
			continue
		}
		go func() {
			defer from.Close()
			conn, err := net.Dial("tcp", to)
			if err != nil {
				log.Print(err)
				return
			}
			defer conn.Close()
			join(from.(*net.TCPConn), conn.(*net.TCPConn))
		}()
	}
}

// join copies both ways until both are at their ends. An end that is reset resets the other.
func join(a, b *net.TCPConn) {
	var done sync.WaitGroup
	for _, way := range [][2]*net.TCPConn{{a, b}, {b, a}} {
		done.Go(func() {
			if _, err := io.Copy(way[1], way[0]); err != nil {
				_ = way[0].SetLinger(0)
				_ = way[1].SetLinger(0)
				way[0].Close()
				way[1].Close()
				return
			}
			_ = way[1].CloseWrite()
		})
	}
	done.Wait()
}

// Reaches reports whether somebody in a process's network listens at an address.
func Reaches(pid int, address string) error {
	return within(fmt.Sprintf("/proc/%d/ns/net", pid), func() error {
		conn, err := net.DialTimeout("tcp", address, time.Second)
		if err != nil {
			return err
		}
		return conn.Close()
	})
}
