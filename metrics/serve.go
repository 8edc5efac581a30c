package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"golang.org/x/net/netutil"

	"podstarter/rescue"
)

// Bounds of what one who connects can take: jobs share the pod's network.
const (
	maxConnections = 32
	maxOfOne       = 4 // of these, from one address, or from this pod; fewer than maxRequests
	maxRequests    = 8 // at a time
	maxHeader      = 8 << 10
	requestTime    = 5 * time.Second
	idleTime       = 2 * time.Minute // Prometheus comes again sooner, once a minute by default
)

// handler answers scrapes.
func handler(c prometheus.Collector) http.Handler {
	registry := prometheus.NewRegistry()
	registry.MustRegister(c)
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{
		MaxRequestsInFlight: maxRequests, Timeout: requestTime, DisableCompression: true,
	}))
	return mux
}

// serve answers scrapes until ctx ends. peer says to whom a connection counts.
func serve(ctx context.Context, listener net.Listener, peer func(net.Conn) string, c prometheus.Collector, log *slog.Logger) error {
	server := &http.Server{
		Handler: handler(c), MaxHeaderBytes: maxHeader, ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelError),
		ReadHeaderTimeout: requestTime, ReadTimeout: requestTime, WriteTimeout: 2 * requestTime, IdleTimeout: idleTime,
	}
	stop := context.AfterFunc(ctx, func() { rescue.Go(func() { _ = server.Close() }) })
	defer stop()
	err := server.Serve(netutil.LimitListener(newShares(listener, maxOfOne, peer), maxConnections))
	if ctx.Err() != nil && errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return fmt.Errorf("serve metrics at %s: %w", listener.Addr(), err)
}
