//go:build unix

package openbraintest

import (
	"net"
	"strings"
	"syscall"
	"testing"
)

// A server that was stopped keeps its address: the system gives it to nobody else.
func TestHold(t *testing.T) {
	t.Parallel()
	s := New(t)
	addr := strings.TrimPrefix(s.URL(), "http://")
	// As the system looks for a free port: one that is taken is not shared, also where nobody listens.
	lc := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) error {
		return c.Control(func(fd uintptr) { _ = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 0) })
	}}
	s.Stop()
	if ln, err := lc.Listen(t.Context(), "tcp", addr); err == nil {
		_ = ln.Close()
		t.Error("somebody else gets the address")
	}
	s.Start()
	s.close()
	ln, err := lc.Listen(t.Context(), "tcp", addr)
	if err != nil {
		t.Fatalf("where it was left nobody gets it: %v: nothing is tested", err)
	}
	_ = ln.Close()
}
