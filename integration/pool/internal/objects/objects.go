// Package objects is the object store of the pool: the Versity S3 Gateway over a directory, on loopback, with the web server's certificate.
// It is built and started when a test asks for it.
package objects

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"podstarter/integration/pool/internal/cache"
	"podstarter/integration/pool/internal/cluster"
	"podstarter/integration/pool/internal/daemon"
)

// Name is the name of the daemon and of its port.
const Name = "objects"

// The account that may use the store, and its bucket. integration/harness has the same.
const (
	AccessKey = "AKIDPODSTARTER"
	SecretKey = "open-the-bucket"
	Bucket    = "bucket"
)

// Server is the object store of one pool.
type Server struct {
	Dir         string // the bucket is a directory in it
	Log         string // of requests
	Components  string // directory of the modules that are built
	Certificate string
	Key         string
	Port        int
}

// program is what is built.
func (s Server) program() cluster.Component {
	const module = "github.com/versity/versitygw"
	return cluster.Component{Family: "versitygw", Dir: filepath.Join(s.Components, "versitygw"), Module: module, Packages: []string{module + "/cmd/versitygw"}}
}

// Start builds the program unless the cache has it, starts the store unless it runs, and waits until it answers.
func (s Server) Start(ctx context.Context, daemons daemon.Set, store cache.Cache, log io.Writer) error {
	program, err := s.program().Build(ctx, store, log)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Join(s.Dir, Bucket), 0o755); err != nil {
		return fmt.Errorf("starting the object store: %w", err)
	}
	started, err := daemons.Start(ctx, daemon.Spec{Name: Name, Args: []string{
		filepath.Join(program, "versitygw"), "--port", s.address(), "--cert", s.Certificate, "--key", s.Key,
		"--access", AccessKey, "--secret", SecretKey, "--access-log", s.Log, "posix", "--nometa", s.Dir,
	}})
	if err != nil || !started {
		return err
	}
	return s.wait(ctx, daemons)
}

func (s Server) address() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(s.Port)) }

// wait waits until the port is listened on.
func (s Server) wait(ctx context.Context, daemons daemon.Set) error {
	ctx, cancel := context.WithTimeoutCause(ctx, 30*time.Second, fmt.Errorf("the object store does not listen within 30 seconds; see %s", daemons.Log(Name)))
	defer cancel()
	return cluster.Poll(ctx, 10*time.Millisecond, func(ctx context.Context) (bool, error) {
		if _, ok := daemons.Running(Name); !ok {
			return false, errors.New("the object store has ended; see " + daemons.Log(Name))
		}
		conn, err := new(net.Dialer).DialContext(ctx, "tcp", s.address())
		if err != nil {
			return false, err
		}
		return true, conn.Close()
	})
}
