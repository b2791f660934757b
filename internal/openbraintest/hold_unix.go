//go:build unix

package openbraintest

import (
	"net"
	"net/netip"
	"os"
	"syscall"
)

// held is an address that is taken and not listened at: whoever calls is refused, and nobody else gets it.
type held struct{ file *os.File }

func hold(addr string) (*held, error) {
	at, err := netip.ParseAddrPort(addr)
	if err != nil {
		return nil, err
	}
	syscall.ForkLock.RLock()
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	if err == nil {
		syscall.CloseOnExec(fd)
	}
	syscall.ForkLock.RUnlock()
	if err != nil {
		return nil, os.NewSyscallError("socket", err)
	}
	h := &held{os.NewFile(uintptr(fd), addr)}
	err = os.NewSyscallError("setsockopt", syscall.SetsockoptInt(fd, syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 1))
	if err == nil {
		err = os.NewSyscallError("bind", syscall.Bind(fd, &syscall.SockaddrInet4{Port: int(at.Port()), Addr: at.Addr().As4()}))
	}
	if err != nil {
		h.release()
		return nil, err
	}
	return h, nil
}

// listen listens at the address, which is held no more.
func (h *held) listen() (net.Listener, error) {
	defer h.release()
	if err := syscall.Listen(int(h.file.Fd()), syscall.SOMAXCONN); err != nil {
		return nil, os.NewSyscallError("listen", err)
	}
	return net.FileListener(h.file)
}

func (h *held) release() { _ = h.file.Close() }
