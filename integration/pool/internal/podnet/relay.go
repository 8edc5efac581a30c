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
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"podstarter/integration/pool/internal/statedir"
)

// RelayVerb is the program's own verb of the relay, which is a daemon.
const RelayVerb = "pod-relay"

// RelayArguments are those of [RelayVerb].
func (n Network) RelayArguments() ([]string, error) {
	text, err := json.Marshal(n)
	return []string{RelayVerb, string(text)}, err
}

// notes is the directory with what the relay must know: a file for each pod, whose name is the id of the pod's sandbox, with the name
// of the file that holds its network namespace.
func (n Network) notes() string { return filepath.Join(n.Dir, "pods") }

// note notes a pod's network and waits until the relay listens there.
func (n Network) note(sandbox, namespace string) error {
	if err := statedir.WriteFile(filepath.Join(n.notes(), sandbox), []byte(namespace+"\n"), 0o644); err != nil {
		return err
	}
	return n.tell()
}

// forget forgets a pod's network. It may be forgotten already.
func (n Network) forget(sandbox string) error {
	if err := os.Remove(filepath.Join(n.notes(), sandbox)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("forgetting the network of the sandbox %s: %w", sandbox, err)
	}
	// A relay that does not run holds no socket there.
	_ = n.tell()
	return nil
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
	// at are its sockets for each pod, by the id of its sandbox.
	at map[string][]net.Listener
}

// Relay is the body of [RelayVerb]. It returns only on failure.
func Relay(args []string) error {
	if len(args) != 1 {
		return errors.New("usage: " + RelayVerb + " NETWORK")
	}
	r := relay{at: map[string][]net.Listener{}}
	if err := json.Unmarshal([]byte(args[0]), &r.Network); err != nil {
		return fmt.Errorf("reading the network: %w", err)
	}
	for _, service := range Services() {
		if _, err := r.listen(r.router(), service, door{ServicePort, r.Server}); err != nil {
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
	names, err := r.noted()
	if err != nil {
		return err
	}
	for name, sockets := range r.at {
		if slices.Contains(names, name) {
			continue
		}
		for _, s := range sockets {
			s.Close()
		}
		delete(r.at, name)
	}
	var errs []error
	for _, name := range names {
		if r.at[name] != nil {
			continue
		}
		if r.at[name], err = r.listenIn(name); err != nil {
			errs = append(errs, fmt.Errorf("the sandbox %s: %w", name, err))
		}
	}
	return errors.Join(errs...)
}

// noted are the ids of the sandboxes that have a note.
func (r *relay) noted() ([]string, error) {
	entries, err := os.ReadDir(r.notes())
	if err != nil {
		return nil, fmt.Errorf("looking for pods: %w", err)
	}
	var names []string
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), ".") { // one that is being written
			names = append(names, e.Name())
		}
	}
	return names, nil
}

// listenIn listens on the loopback of a pod. One that is gone has none, and its plugin may never have had the time to say so.
func (r *relay) listenIn(sandbox string) ([]net.Listener, error) {
	text, err := os.ReadFile(filepath.Join(r.notes(), sandbox))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	namespace := strings.TrimSpace(string(text))
	if !held(namespace) {
		return nil, nil
	}
	var doors []door
	for _, port := range r.Local {
		doors = append(doors, door{port, port})
	}
	return r.listen(namespace, "127.0.0.1", doors...)
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
