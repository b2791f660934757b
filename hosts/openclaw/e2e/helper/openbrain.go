package main

import (
	"context"
	"errors"
	"log/slog"
	"net"

	"github.com/contextengine/contextengine/backends/memory"
	"github.com/contextengine/contextengine/hosts/openbrain"
	"github.com/contextengine/contextengine/strategies/lexical"
)

// openBrain serves thoughts from memory until ctx ends.
func openBrain(ctx context.Context, address, key string, log *slog.Logger) error {
	store, err := memory.Open(ctx, memory.DefaultConfig())
	if err != nil {
		return err
	}
	index, err := lexical.New(lexical.DefaultConfig())
	if err != nil {
		return err
	}
	if err := index.Attach(store); err != nil {
		return err
	}
	cfg := openbrain.DefaultConfig()
	cfg.Keys = []openbrain.Key{{Name: "e2e", SHA256: openbrain.HashKey(key), Sources: []string{"*"}}}
	server, err := openbrain.New(cfg, store, index, openbrain.WithLogger(log))
	if err != nil {
		return err
	}
	var lc net.ListenConfig
	ln, err := lc.Listen(ctx, "tcp", address)
	if err != nil {
		return errors.Join(err, server.Close())
	}
	return errors.Join(server.Serve(ctx, ln), server.Close(), store.Close())
}
