package rpc_test

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/hosts/rpc"
)

type rawMessage = json.RawMessage

func raws(list [][]byte) []json.RawMessage {
	out := make([]json.RawMessage, len(list))
	for i := range list {
		out[i] = list[i]
	}
	return out
}

// socketPath returns a path that is short enough for a socket.
func socketPath(tb testing.TB) string {
	tb.Helper()
	dir, err := os.MkdirTemp("", "rpc") //nolint:usetesting // TempDir is too long for a socket
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = os.RemoveAll(dir) })
	return filepath.Join(dir, "s")
}

// serveUnix serves until the end of the test and returns when clients can connect.
func serveUnix(tb testing.TB, engines rpc.Engines, host *rpc.Host, path string, opts ...rpc.Option) *rpc.Server {
	tb.Helper()
	s := newServer(tb, engines, host, opts...)
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- s.ServeUnix(ctx, path) }()
	tb.Cleanup(func() {
		cancel()
		if err := receive(tb, "end of ServeUnix", served); err != nil {
			tb.Errorf("ServeUnix = %v", err)
		}
	})
	for {
		select {
		case err := <-served:
			served <- nil
			tb.Fatalf("ServeUnix = %v", err)
		default:
		}
		if nc, err := net.Dial("unix", path); err == nil {
			_ = nc.Close()
			return s
		}
		time.Sleep(time.Millisecond)
	}
}

// waitFor waits until somebody answers on a socket.
func waitFor(tb testing.TB, path string) {
	tb.Helper()
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(time.Millisecond) {
		if nc, err := net.Dial("unix", path); err == nil {
			_ = nc.Close()
			return
		}
	}
	tb.Fatal("nobody answers")
}

// dial returns a client that has called Initialize.
func dial(tb testing.TB, path string) *rpc.Client {
	tb.Helper()
	c, err := rpc.Dial(tb.Context(), path, rpc.ClientOptions{})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = c.Close() })
	if _, err := c.Initialize(tb.Context(), rpc.InitializeParams{Client: rpc.Program{Name: "test"}, Format: "pi"}); err != nil {
		tb.Fatal(err)
	}
	return c
}

func TestUnixSocket(t *testing.T) {
	t.Parallel()
	path := socketPath(t)
	serveUnix(t, one{&fake{}}, nil, path)
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 || info.Mode().Type() != os.ModeSocket {
		t.Errorf("socket = %v, %v", info.Mode(), err)
	}
	// A living one is not taken over.
	second := newServer(t, one{&fake{}}, nil)
	if err := second.ServeUnix(t.Context(), path); !errors.Is(err, core.ErrConflict) {
		t.Errorf("second ServeUnix = %v, want ErrConflict", err)
	}
	if err := dial(t, path).Ping(t.Context()); err != nil {
		t.Errorf("Ping = %v", err)
	}
	left, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(left) != 1 {
		t.Errorf("the folder holds %v, %v", left, err)
	}
}

func TestUnixSocketThatIsDead(t *testing.T) {
	t.Parallel()
	path := socketPath(t)
	dead, err := net.ListenUnix("unix", &net.UnixAddr{Name: path})
	if err != nil {
		t.Fatal(err)
	}
	dead.SetUnlinkOnClose(false)
	_ = dead.Close()
	serveUnix(t, one{&fake{}}, nil, path)
	if err := dial(t, path).Ping(t.Context()); err != nil {
		t.Errorf("Ping = %v", err)
	}
}

func TestFileThatIsNoSocket(t *testing.T) {
	t.Parallel()
	path := socketPath(t)
	if err := os.WriteFile(path, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := newServer(t, one{&fake{}}, nil)
	if err := s.ServeUnix(t.Context(), path); !errors.Is(err, core.ErrConflict) {
		t.Errorf("ServeUnix = %v, want ErrConflict", err)
	}
	if b, err := os.ReadFile(path); err != nil || string(b) != "precious" {
		t.Errorf("the file holds %q, %v", b, err)
	}
}

// Of many servers that start at once over a dead socket, one serves and the others say so.
func TestServersThatStartAtOnce(t *testing.T) {
	t.Parallel()
	path := socketPath(t)
	dead, err := net.ListenUnix("unix", &net.UnixAddr{Name: path})
	if err != nil {
		t.Fatal(err)
	}
	dead.SetUnlinkOnClose(false)
	_ = dead.Close()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	const servers = 8
	refused := make(chan error, servers)
	var work sync.WaitGroup
	for range servers {
		s := newServer(t, one{&fake{}}, nil)
		work.Go(func() {
			if err := s.ServeUnix(ctx, path); err != nil {
				refused <- err
			}
		})
	}
	for range servers - 1 {
		if err := receive(t, "refusal", refused); !errors.Is(err, core.ErrConflict) {
			t.Errorf("ServeUnix = %v, want ErrConflict", err)
		}
	}
	if err := dial(t, path).Ping(t.Context()); err != nil {
		t.Errorf("Ping = %v", err)
	}
	cancel()
	work.Wait()
	if _, err := os.Lstat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the socket is left: %v", err)
	}
}

// The end of the context lets calls under way come to their end.
func TestServeUnixEndsGracefully(t *testing.T) {
	t.Parallel()
	begun, free := make(chan struct{}), make(chan struct{})
	f := &fake{assemble: func(ctx context.Context, _ core.AssembleRequest) (core.AssembleResult, error) {
		close(begun)
		<-free
		return core.AssembleResult{EstimatedTokens: 7, PromptAuthority: core.AuthorityAssembled}, ctx.Err()
	}}
	path := socketPath(t)
	s := newServer(t, one{f}, nil)
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- s.ServeUnix(ctx, path) }()
	for {
		if _, err := os.Lstat(path); err == nil {
			break
		}
		time.Sleep(time.Millisecond)
	}
	c := dial(t, path)
	done := make(chan error, 1)
	go func() {
		res, err := c.Assemble(context.Background(), rpc.AssembleParams{Session: sid("s"), Budget: 9})
		if err == nil && res.EstimatedTokens != 7 {
			err = errors.New("wrong result")
		}
		done <- err
	}()
	receive(t, "assemble", begun)
	cancel()
	for {
		if _, err := os.Lstat(path); errors.Is(err, os.ErrNotExist) {
			break
		}
		time.Sleep(time.Millisecond)
	}
	close(free)
	if err := receive(t, "answer", done); err != nil {
		t.Errorf("Assemble = %v", err)
	}
	if err := receive(t, "end of ServeUnix", served); err != nil {
		t.Errorf("ServeUnix = %v", err)
	}
}
