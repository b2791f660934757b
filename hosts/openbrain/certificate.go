package openbrain

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"sync"
	"time"
)

// certificate is the server's certificate as its files hold it now: certificates are renewed while servers run.
type certificate struct {
	certFile, keyFile string
	log               *slog.Logger
	now               func() time.Time

	mu    sync.Mutex
	files watched
	held  *tls.Certificate
}

func loadCertificate(certFile, keyFile string, log *slog.Logger, now func() time.Time) (*certificate, error) {
	c := &certificate{certFile: certFile, keyFile: keyFile, log: log, now: now, files: watched{paths: []string{certFile, keyFile}}}
	c.files.due(now())
	c.files.changed()
	held, err := tls.LoadX509KeyPair(certFile, keyFile)
	if err != nil {
		return nil, fmt.Errorf("openbrain: load certificate: %w", err)
	}
	c.held = &held
	return c, nil
}

// get is a tls.Config.GetCertificate. While the files do not fit each other, which is so in the middle of a renewal, the
// certificate stays what it was.
func (c *certificate) get(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.files.due(c.now()) || !c.files.changed() {
		return c.held, nil
	}
	held, err := tls.LoadX509KeyPair(c.certFile, c.keyFile)
	ctx := context.Background()
	if hello != nil {
		ctx = hello.Context()
	}
	if c.files.failed(err) {
		c.log.ErrorContext(ctx, "openbrain: the new certificate cannot be used, the old one stays", slog.Any("error", err))
	}
	if err == nil {
		c.held = &held
		c.log.InfoContext(ctx, "openbrain: certificate read again")
	}
	return c.held, nil
}
