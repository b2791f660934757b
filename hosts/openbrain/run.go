package openbrain

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/strategies/lexical"
)

// Setup is a server with its parts, for Run.
type Setup struct {
	Config Config
	// Listen is the "host:port" to listen on; port 0 is any free one.
	Listen string
	// Store keeps the thoughts. Run does not close it.
	Store core.Store
	// Searcher finds thoughts by words. When nil it is the store's own if it has one (see core.Searcher), or else a lexical index over it.
	Searcher core.Searcher
	// Embedder, when not nil, makes searches find thoughts by meaning too.
	Embedder core.Embedder
	// Logger gets the access log and failures; nil discards them.
	Logger *slog.Logger
	// Listening, when not nil, is called once with the address.
	Listening func(net.Addr)
}

// Run makes a server, serves until ctx ends, lets the requests under way come to their end as Serve does, and closes all it made. It
// listens first, so that nothing is read for a server that cannot be reached. Errors are those of Config.Listen, New and Serve.
func Run(ctx context.Context, setup Setup) (err error) {
	if err := setup.Config.Validate(); err != nil {
		return err
	}
	if setup.Store == nil {
		return fmt.Errorf("openbrain: run: no store given: %w", core.ErrInvalid)
	}
	ln, err := setup.Config.Listen(ctx, setup.Listen)
	if err != nil {
		return err
	}
	server, release, err := setup.open()
	if err != nil {
		_ = ln.Close()
		return err
	}
	if setup.Listening != nil {
		setup.Listening(ln.Addr())
	}
	err = server.Serve(ctx, ln)
	return errors.Join(err, server.Close(), release())
}

// open makes the server. release closes what was made for it.
func (s Setup) open() (server *Server, release func() error, err error) {
	release = func() error { return nil }
	searcher := s.Searcher
	if _, own := core.As[core.Searcher](s.Store); searcher == nil && !own {
		index, err := lexical.New(lexical.DefaultConfig())
		if err == nil {
			err = index.Attach(s.Store)
		}
		if err != nil {
			return nil, nil, fmt.Errorf("openbrain: run: %w", err)
		}
		searcher, release = index, func() error { return closePart(index) }
	}
	log := s.Logger
	if log == nil {
		log = discard()
	}
	opts := []Option{WithLogger(log)}
	if s.Embedder != nil {
		opts = append(opts, WithEmbedder(s.Embedder))
	}
	if server, err = New(s.Config, s.Store, searcher, opts...); err != nil {
		return nil, nil, errors.Join(err, release())
	}
	return server, release, nil
}

// closePart closes a part that wants to be closed.
func closePart(part any) error {
	if c, ok := part.(io.Closer); ok {
		return c.Close()
	}
	return nil
}
