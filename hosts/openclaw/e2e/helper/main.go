// Command helper is what the end-to-end run needs from Go besides the sidecar: it prints what a store holds, damages one, and runs an OpenBrain
// server on loopback.
//
//	helper dump FILE              one line of JSON for each entry of a SQLite store, oldest first
//	helper break index|views FILE damages a SQLite store
//	helper openbrain ADDRESS KEY  an OpenBrain server over memory, until its input ends
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "helper:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	switch {
	case len(args) == 2 && args[0] == "dump":
		return dump(ctx, args[1], os.Stdout)
	case len(args) == 3 && args[0] == "break" && args[1] == "index":
		return breakIndex(ctx, args[2])
	case len(args) == 3 && args[0] == "break" && args[1] == "views":
		return breakViews(ctx, args[2])
	case len(args) == 3 && args[0] == "openbrain":
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		go func() { _, _ = io.Copy(io.Discard, os.Stdin); cancel() }() // whoever started it is gone
		return openBrain(ctx, args[1], args[2], log)
	}
	return errors.New("usage: helper dump FILE | break index|views FILE | openbrain ADDRESS KEY")
}
