package openbrain

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"net"
	"net/http"
)

// Serve answers requests on a listener until ctx ends, then lets the requests under way come to their end, for at most
// Config.ShutdownTimeout, and returns nil, or context.DeadlineExceeded wrapped when some had to be cut off. It closes the listener
// in any case, and refuses one that Config.CheckListen refuses. Readiness is withdrawn as soon as ctx ends. The background
// worker goes on until Close.
func (s *Server) Serve(ctx context.Context, ln net.Listener) error {
	hs, err := s.prepare(ln)
	if err != nil {
		_ = ln.Close()
		return err
	}
	// Requests do not end with ctx: they are drained.
	base, cut := context.WithCancel(context.WithoutCancel(ctx))
	defer cut()
	hs.BaseContext = func(net.Listener) context.Context { return base }
	served := make(chan error, 1)
	secure := hs.TLSConfig != nil // Serve changes the field
	go func() {
		if secure {
			served <- hs.ServeTLS(ln, "", "")
			return
		}
		served <- hs.Serve(ln)
	}()
	s.log.InfoContext(ctx, "openbrain: listening", slog.String("address", ln.Addr().String()), slog.Bool("tls", secure))
	if host, _, err := net.SplitHostPort(ln.Addr().String()); err == nil && !secure && !isLoopback(host) {
		s.log.WarnContext(ctx, "openbrain: no TLS beyond loopback: keys and thoughts travel in clear unless something in front encrypts them")
	}
	select {
	case err := <-served:
		_ = hs.Close()
		return fmt.Errorf("openbrain: serve: %w", err)
	case <-ctx.Done():
	}
	s.draining.Store(true)
	grace, cancel := context.WithTimeout(base, s.cfg.ShutdownTimeout)
	defer cancel()
	err = hs.Shutdown(grace)
	if err != nil {
		cut()
		_ = hs.Close()
	}
	if serr := <-served; err == nil && !errors.Is(serr, http.ErrServerClosed) {
		return fmt.Errorf("openbrain: serve: %w", serr)
	}
	if err != nil {
		return fmt.Errorf("openbrain: shut down: requests were cut off: %w", err)
	}
	s.log.InfoContext(ctx, "openbrain: stopped")
	return nil
}

// prepare returns the HTTP server with all its limits.
func (s *Server) prepare(ln net.Listener) (*http.Server, error) {
	if _, local := ln.Addr().(*net.UnixAddr); !local {
		if err := s.cfg.CheckListen(ln.Addr().String()); err != nil {
			return nil, err
		}
	}
	hs := &http.Server{
		Handler:           s.handler,
		ReadHeaderTimeout: s.cfg.ReadHeaderTimeout,
		ReadTimeout:       s.cfg.ReadTimeout,
		WriteTimeout:      s.cfg.WriteTimeout,
		IdleTimeout:       s.cfg.IdleTimeout,
		MaxHeaderBytes:    s.cfg.MaxHeaderBytes,
		ErrorLog:          log.New(errorLog{s.log}, "", 0),
	}
	if s.cfg.TLSCert != "" {
		cert, err := loadCertificate(s.cfg.TLSCert, s.cfg.TLSKey, s.log, s.now)
		if err != nil {
			return nil, err
		}
		hs.TLSConfig = &tls.Config{GetCertificate: cert.get, MinVersion: tls.VersionTLS12}
	}
	return hs, nil
}

// errorLog takes what net/http has to say about connections.
type errorLog struct{ log *slog.Logger }

// Write implements io.Writer.
func (l errorLog) Write(line []byte) (int, error) {
	l.log.Warn("openbrain: connection trouble", slog.String("cause", string(bytes.TrimSpace(line))))
	return len(line), nil
}

// Listen listens on a "host:port" that cfg allows, and is for Serve.
func (c Config) Listen(ctx context.Context, addr string) (net.Listener, error) {
	if err := c.CheckListen(addr); err != nil {
		return nil, err
	}
	var lc net.ListenConfig
	ln, err := lc.Listen(ctx, "tcp", addr)
	if err != nil {
		if op, ok := errors.AsType[*net.OpError](err); ok {
			err = op.Err // the address stands in the text already
		}
		return nil, fmt.Errorf("openbrain: listen on %q: %w", addr, err)
	}
	return ln, nil
}
