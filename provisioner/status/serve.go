package status

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"podstarter/provisioner/explain"
	"podstarter/rescue"
)

// Bounds of what those who connect can take.
const (
	maxConnections = 64
	maxRequests    = 8 // at a time, of each kind
	maxHeader      = 16 << 10
	requestTime    = 10 * time.Second
	idleTime       = 2 * time.Minute
	maxExplain     = 4 << 20 // bytes of an explanation
)

// Handler answers /healthz, /metrics, / and /explain?group=ID.
func (b *Board) Handler() http.Handler {
	registry := prometheus.NewRegistry()
	registry.MustRegister(b)
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{
		MaxRequestsInFlight: maxRequests, Timeout: requestTime, DisableCompression: true,
	}))
	mux.HandleFunc("GET /healthz", b.healthz)
	mux.HandleFunc("GET /explain", few(maxRequests, b.explain))
	mux.HandleFunc("GET /{$}", few(maxRequests, b.page))
	return safe(mux)
}

// safe sets the headers which keep a browser from doing anything with an answer
// except showing it.
func safe(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", policy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cache-Control", "no-store")
		next.ServeHTTP(w, r)
	})
}

// Serve answers until ctx ends.
func (b *Board) Serve(ctx context.Context, listener net.Listener) error {
	server := &http.Server{
		Handler: b.Handler(), MaxHeaderBytes: maxHeader, ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelError),
		ReadHeaderTimeout: requestTime, ReadTimeout: requestTime, WriteTimeout: 2 * requestTime, IdleTimeout: idleTime,
	}
	stop := context.AfterFunc(ctx, func() { rescue.Go(func() { _ = server.Close() }) })
	defer stop()
	err := server.Serve(&crowd{Listener: listener, most: maxConnections})
	if ctx.Err() != nil && errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return fmt.Errorf("serving the status page at %s: %w", listener.Addr(), err)
}

func plain(w http.ResponseWriter, code int, text []byte) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(code)
	_, _ = w.Write(text)
}

func (b *Board) healthz(w http.ResponseWriter, _ *http.Request) {
	if err := b.unhealthy(); err != nil {
		plain(w, http.StatusServiceUnavailable, []byte(cut(err.Error(), maxDetail)+"\n"))
		return
	}
	plain(w, http.StatusOK, []byte("ok: "+b.role()+"\n"))
}

// role says what this provisioner does.
func (b *Board) role() string {
	name, mine := b.config.Leader()
	switch {
	case mine:
		return "leader"
	case name == "":
		return "standby; no leader is known"
	}
	return "standby; leader is " + cut(name, maxName)
}

// explain writes why the jobs of a group get what they get, as -explain does.
func (b *Board) explain(w http.ResponseWriter, r *http.Request) {
	b.mu.Lock()
	last := b.last
	b.mu.Unlock()
	if last == nil {
		plain(w, http.StatusNotFound, []byte("No round has been done here: "+b.role()+".\n"))
		return
	}
	// Reports are not changed once they are noted.
	var text bytes.Buffer
	found, err := explain.Group(&bounded{into: &text, left: maxExplain}, *last, r.FormValue("group"))
	switch {
	case err != nil:
		text.WriteString("\nThe explanation is longer than is shown.\n")
		plain(w, http.StatusOK, text.Bytes())
	case !found:
		plain(w, http.StatusNotFound, []byte("No idle jobs have been in this group in the last round. The page lists the groups.\n"))
	default:
		plain(w, http.StatusOK, text.Bytes())
	}
}

// bounded takes a number of bytes.
type bounded struct {
	into *bytes.Buffer
	left int
}

func (b *bounded) Write(p []byte) (int, error) {
	if b.left -= len(p); b.left < 0 {
		return 0, errors.New("too long")
	}
	return b.into.Write(p)
}
