//go:build !unix

package openbraintest

import "net"

// held is an address that is left: another process may get it while the server is stopped.
type held struct{ addr string }

func hold(addr string) (*held, error) { return &held{addr}, nil }

func (h *held) listen() (net.Listener, error) { return net.Listen("tcp", h.addr) }

func (h *held) release() {}
