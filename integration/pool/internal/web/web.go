// Package web is the web server of the pool: nginx, on loopback, for jobs that
// have their files at URLs. It serves what tests put into a directory, over HTTP
// and, with certificates of authorities of its own, over HTTPS; it takes uploads
// (PUT), is a proxy for HTTP, and fails in the ways web servers fail (nginx.conf
// has the paths).
package web

import (
	"context"
	_ "embed"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"podstarter/integration/pool/internal/cache"
	"podstarter/integration/pool/internal/cluster"
	"podstarter/integration/pool/internal/daemon"
	"podstarter/integration/pool/internal/debian"
	"podstarter/integration/pool/internal/statedir"
)

// Name is the name of the daemon and the beginning of its ports' names.
const Name = "web"

// The names of the ports.
const (
	HTTP     = Name + "-http"
	HTTPS    = Name + "-https"
	Stranger = Name + "-stranger" // HTTPS with a certificate of an authority that nobody trusts
)

// Token is the one that /bearer/ and /put-bearer/ ask for.
const Token = "open-sesame"

//go:embed nginx.conf
var configuration string

// Server is the web server of one pool. All its files except the logs are below
// Dir.
type Server struct {
	Dir    string         // files/ is served, put/ takes uploads
	Logs   string         // directory of the logs
	Public string         // directory that is served as /public/
	Ports  map[string]int // by the names above
}

// config is the text of the configuration.
func (s Server) config() string {
	return strings.NewReplacer(
		"<<dir>>", s.Dir, "<<log>>", s.Logs, "<<public>>", s.Public, "<<token>>", Token,
		"<<http>>", strconv.Itoa(s.Ports[HTTP]), "<<https>>", strconv.Itoa(s.Ports[HTTPS]), "<<stranger>>", strconv.Itoa(s.Ports[Stranger]),
	).Replace(configuration)
}

func (s Server) path(names ...string) string {
	return filepath.Join(append([]string{s.Dir}, names...)...)
}

// Certificates is the directory in which execution points look for certificates of
// authorities. It is empty until a test puts one there.
func (s Server) Certificates() string { return s.path("certificates") }

// Program returns the directory of the server's program, from the cache or freshly fetched.
func Program(ctx context.Context, store cache.Cache, log io.Writer) (string, error) {
	return store.Dir(ctx, "nginx", cache.Key("1"), func(ctx context.Context, dir string) error {
		return debian.Package(ctx, log, "nginx", dir)
	})
}

// Start starts the server, or leaves it as it is if it runs already, and waits
// until it answers.
func (s Server) Start(ctx context.Context, daemons daemon.Set, store cache.Cache, log io.Writer) error {
	program, err := Program(ctx, store, log)
	if err != nil {
		return err
	}
	for _, dir := range []string{s.path("files"), s.path("put"), s.path("tmp"), s.Certificates(), s.Logs} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return fmt.Errorf("starting the web server: %w", err)
		}
	}
	for dir, authority := range map[string]string{"pki": "podstarter web authority", "stranger": "podstarter unknown authority"} {
		if err := (cluster.PKI{Dir: s.path(dir)}).MakeServer(authority); err != nil {
			return err
		}
	}
	if err := publish(s.path("pki", "ca.crt"), s.path("authority")); err != nil {
		return err
	}
	config := s.config()
	if err := statedir.WriteFile(s.path("nginx.conf"), []byte(config), 0o644); err != nil {
		return err
	}
	started, err := daemons.Start(ctx, daemon.Spec{Name: Name, Inputs: []string{config}, Args: []string{
		filepath.Join(program, "usr", "sbin", "nginx"), "-p", s.Dir, "-c", s.path("nginx.conf"), "-e", filepath.Join(s.Logs, "web-error.log"),
	}})
	if err != nil || !started {
		return err
	}
	return s.wait(ctx, daemons)
}

// wait waits until all ports are listened on.
func (s Server) wait(ctx context.Context, daemons daemon.Set) error {
	ctx, cancel := context.WithTimeoutCause(ctx, 30*time.Second, fmt.Errorf("the web server does not listen within 30 seconds; see %s", daemons.Log(Name)))
	defer cancel()
	for _, port := range []string{HTTP, HTTPS, Stranger} {
		address := net.JoinHostPort("127.0.0.1", strconv.Itoa(s.Ports[port]))
		err := cluster.Poll(ctx, 10*time.Millisecond, func(ctx context.Context) (bool, error) {
			if _, ok := daemons.Running(Name); !ok {
				return false, fmt.Errorf("it has ended; see %s", daemons.Log(Name))
			}
			conn, err := new(net.Dialer).DialContext(ctx, "tcp", address)
			if err != nil {
				return false, err
			}
			return true, conn.Close()
		})
		if err != nil {
			return err
		}
	}
	return nil
}
