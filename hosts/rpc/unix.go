package rpc

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/contextengine/contextengine/core"
)

// ServeUnix serves clients on a unix socket of mode 0600 until ctx ends or Close is called; calls under way then have Config.ShutdownTimeout to come to their
// end. It returns nil in these cases. A socket on which somebody answers is not taken over, which is core.ErrConflict; a dead one is removed,
// another file is not. The socket is removed at the end.
func (s *Server) ServeUnix(ctx context.Context, path string) error {
	ln, err := listenUnix(ctx, path)
	if err != nil {
		return err
	}
	return s.Serve(ctx, ln)
}

// Serve is ServeUnix for a listener that there is already. It closes the listener.
func (s *Server) Serve(ctx context.Context, ln net.Listener) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if err := s.listen(ln, cancel); err != nil {
		_ = ln.Close()
		return err
	}
	defer s.unlisten(ln)
	closed := make(chan struct{})
	context.AfterFunc(ctx, func() { _ = ln.Close(); close(closed) })
	var clients sync.WaitGroup
	for {
		nc, err := ln.Accept()
		if ctx.Err() != nil || errors.Is(err, net.ErrClosed) {
			if err == nil {
				_ = nc.Close()
			}
			break
		}
		if err != nil { // the machine is short of something, such as file descriptors
			s.log.WarnContext(ctx, "rpc: accept failed", slog.String("cause", err.Error()))
			select {
			case <-time.After(100 * time.Millisecond):
			case <-ctx.Done():
			}
			continue
		}
		clients.Go(func() {
			w := newWire(nc, nc, nc.Close, s.cfg.MaxFrame, s.cfg.WriteTimeout)
			if err := s.serve(ctx, w, false); err != nil {
				s.log.WarnContext(ctx, "rpc: connection ended", slog.String("cause", err.Error()))
			}
		})
	}
	cancel()
	<-closed
	clients.Wait()
	return nil
}

// listen registers a listener, so that Close can end it.
func (s *Server) listen(ln net.Listener, cancel context.CancelFunc) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped {
		return fmt.Errorf("rpc: serve: server: %w", core.ErrClosed)
	}
	s.listeners[ln] = cancel
	return nil
}

func (s *Server) unlisten(ln net.Listener) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.listeners, ln)
}

// socket is a listener that removes its file.
type socket struct {
	net.Listener
	path string
	made fs.FileInfo
	once sync.Once
}

// Close stops listening and removes the file, if it is still the one that was made.
func (s *socket) Close() error {
	err := net.ErrClosed
	s.once.Do(func() {
		if now, serr := os.Lstat(s.path); serr == nil && os.SameFile(now, s.made) {
			_ = os.Remove(s.path)
		}
		err = s.Listener.Close()
	})
	return err
}

// listenUnix makes the socket in a private folder beside its place, so that nobody can connect before its mode is set, and
// links it there, which fails if there is a file already.
func listenUnix(ctx context.Context, path string) (net.Listener, error) {
	fail := func(err error) (net.Listener, error) {
		return nil, fmt.Errorf("rpc: listen on %q: %w", path, err)
	}
	dir, err := os.MkdirTemp(filepath.Dir(path), ".s")
	if err != nil {
		return fail(cause(err))
	}
	defer func() { _ = os.RemoveAll(dir) }()
	private := filepath.Join(dir, "s")
	var lc net.ListenConfig
	ln, err := lc.Listen(ctx, "unix", private)
	if err != nil {
		return fail(cause(err))
	}
	ln.(*net.UnixListener).SetUnlinkOnClose(false)
	if err = os.Chmod(private, 0o600); err == nil {
		err = place(ctx, private, path)
	}
	var made fs.FileInfo
	if err == nil {
		made, err = os.Lstat(path)
	}
	if err != nil {
		_ = ln.Close()
		return fail(cause(err))
	}
	return &socket{Listener: ln, path: path, made: made}, nil
}

// place links the socket to its path. A dead socket there is moved aside first, which only one of two servers that start at once can do.
func place(ctx context.Context, private, path string) error {
	for range 3 {
		err := os.Link(private, path)
		if !errors.Is(err, fs.ErrExist) {
			return err
		}
		old, err := os.Lstat(path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			continue
		case err != nil:
			return err
		case old.Mode().Type() != fs.ModeSocket:
			return fmt.Errorf("there is a file that is no socket: %w", core.ErrConflict)
		case alive(ctx, path):
			return fmt.Errorf("another server answers there: %w", core.ErrConflict)
		}
		aside := filepath.Join(filepath.Dir(private), rand.Text()[:4])
		if err := os.Rename(path, aside); err != nil {
			if errors.Is(err, fs.ErrNotExist) {
				continue
			}
			return err
		}
		if alive(ctx, aside) { // somebody else had put a living one there meanwhile
			_ = os.Link(aside, path)
			return fmt.Errorf("another server answers there: %w", core.ErrConflict)
		}
	}
	return fmt.Errorf("other servers start at the same time: %w", core.ErrConflict)
}

// alive reports whether somebody listens on a socket.
func alive(ctx context.Context, path string) bool {
	d := net.Dialer{Timeout: time.Second}
	nc, err := d.DialContext(ctx, "unix", path)
	if err != nil {
		return false
	}
	_ = nc.Close()
	return true
}

// cause takes the path out of an error that is going to be named with it.
func cause(err error) error {
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		return p.Err
	}
	if l, ok := errors.AsType[*os.LinkError](err); ok {
		return l.Err
	}
	if o, ok := errors.AsType[*net.OpError](err); ok {
		return o.Err
	}
	return err
}
