package postgres

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/contextengine/contextengine/core"
)

// ErrDamaged means that something in the tables is not what was written, or that they were changed. Restore a backup, or delete the
// entry that the text names.
var ErrDamaged = errors.New("damaged")

// ErrSchema means that the schema belongs to something else, to a newer version of this program, or that the server cannot serve it.
var ErrSchema = errors.New("schema not supported")

// failure is why one try did not do what it should. Its text is made of our own words: what the server and the driver say may hold
// addresses, names and contents.
type failure struct {
	what string
	// kind is the sentinel callers see; nil when there is none.
	kind error
	// undone says that the server certainly did nothing, doubt that nobody knows; both that trying again may help.
	undone, doubt bool
	// lost says that the connection is gone.
	lost bool
}

func (f *failure) Error() string {
	if f.kind == nil {
		return f.what
	}
	return f.what + ": " + f.kind.Error()
}

// Unwrap returns the sentinel.
func (f *failure) Unwrap() error { return f.kind }

func (f *failure) again(r repeat) bool { return f.undone || f.doubt && r == repeatable }

// wrap puts the place in front of the cause of a failed operation.
func wrap(op, id string, err error) error {
	switch {
	case err == nil:
		return nil
	case id == "":
		return fmt.Errorf("postgres: %s: %w", op, err)
	}
	return fmt.Errorf("postgres: %s %q: %w", op, id, err)
}

func timedOut(after time.Duration) error {
	return &failure{what: fmt.Sprintf("not done within %v", after), kind: core.ErrUnavailable}
}

// describe says in the words of an operator what went wrong. Errors of this package pass through.
func describe(err error) *failure {
	for _, known := range []error{core.ErrNotFound, core.ErrConflict, core.ErrInvalid, core.ErrClosed, errors.ErrUnsupported, ErrDamaged, ErrSchema} {
		if errors.Is(err, known) {
			return &failure{what: said(err, known), kind: known}
		}
	}
	if f, ok := errors.AsType[*failure](err); ok {
		return f
	}
	if errors.Is(err, pgx.ErrNoRows) {
		return &failure{what: "no such row", kind: core.ErrNotFound}
	}
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok {
		return answered(pg)
	}
	_, connecting := errors.AsType[*pgconn.ConnectError](err)
	f := &failure{what: "connection to the server lost", kind: core.ErrUnavailable, lost: true}
	if connecting {
		f.what = "cannot connect to the server"
	}
	f.undone = connecting || pgconn.SafeToRetry(err)
	f.doubt = !f.undone
	switch why := transport(err); {
	case why != "":
		f.what += ": " + why
	case !connecting && !f.undone:
		// Nothing that has to do with the network: a value could not be encoded or read.
		return &failure{what: "the server's answer cannot be read", kind: ErrDamaged}
	}
	if trust(err) {
		f.undone, f.doubt, f.kind = false, false, core.ErrAuth
	}
	return f
}

// said returns what err says in front of the sentinel that it ends with.
func said(err, sentinel error) string {
	text, end := err.Error(), ": "+sentinel.Error()
	if len(text) > len(end) && text[len(text)-len(end):] == end {
		return text[:len(text)-len(end)]
	}
	return text
}

// transport says what is wrong with a connection, "" when err is about something else.
func transport(err error) string {
	var dns *net.DNSError
	var timeout net.Error
	var op *net.OpError
	switch {
	case errors.As(err, &dns):
		return "the host's name cannot be resolved"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "connection refused"
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return "connection reset"
	case trust(err):
		return "the server's certificate is not trusted"
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, net.ErrClosed):
		return "connection closed"
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		return "no answer in time"
	case errors.As(err, &op), pgconn.Timeout(err):
		return "network error"
	}
	return ""
}

func trust(err error) bool {
	var unknown x509.UnknownAuthorityError
	var host x509.HostnameError
	var bad x509.CertificateInvalidError
	var verify *tls.CertificateVerificationError
	return errors.As(err, &unknown) || errors.As(err, &host) || errors.As(err, &bad) || errors.As(err, &verify)
}

// damaged says that something read from the tables is not what was written.
func damaged(format string, args ...any) error {
	return fmt.Errorf("%s: %w", fmt.Sprintf(format, args...), ErrDamaged)
}
