//go:build unix

// Command filestore is contextengine with a store of its own: one file, which several processes may use at once. Everything but the file is core/keyed's.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"os"
	"sync"
	"syscall"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/keyed"
	"github.com/contextengine/contextengine/hosts/cli"
	"github.com/contextengine/contextengine/registry"
	"github.com/contextengine/contextengine/registry/builtin"
)

// Config is what an operator sets.
type Config struct {
	Path string `koanf:"path" doc:"the file; it is made if needed"`
}

// File is a keyed.Medium: a line of JSON for each transaction, and what they come to in memory.
type File struct {
	mu   sync.Mutex
	file *os.File
	data keyed.Map
	read int64 // how much of the file is in data
}

// Open opens a store over a file.
func Open(_ context.Context, cfg Config, _ registry.Env) (core.Store, error) {
	file, err := os.OpenFile(cfg.Path, os.O_RDWR|os.O_CREATE|os.O_SYNC, 0o600)
	if err != nil {
		return nil, fmt.Errorf("filestore: open: %w: %w", err, core.ErrUnavailable)
	}
	return keyed.New(&File{file: file}), nil
}

// Do implements keyed.Medium: the file's lock keeps other processes out, and what they wrote is read first.
func (f *File) Do(_ context.Context, do func(keyed.Reader) ([]keyed.Change, error)) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := syscall.Flock(int(f.file.Fd()), syscall.LOCK_EX); err != nil {
		return fmt.Errorf("lock: %w", err)
	}
	defer func() { _ = syscall.Flock(int(f.file.Fd()), syscall.LOCK_UN) }()
	if err := f.catchUp(); err != nil {
		return err
	}
	changes, err := do(&f.data)
	if err != nil || len(changes) == 0 {
		return err
	}
	line, err := json.Marshal(changes)
	if err != nil {
		return err
	}
	if _, err := f.file.WriteAt(append(line, '\n'), f.read); err != nil {
		return err
	}
	return f.catchUp()
}

// catchUp reads the whole lines that are new. Half a line is from a process that died while it wrote; the next one writes over it.
func (f *File) catchUp() error {
	rest, err := io.ReadAll(io.NewSectionReader(f.file, f.read, 1<<62))
	if err != nil {
		return err
	}
	for line := range bytes.Lines(rest) {
		if !bytes.HasSuffix(line, []byte("\n")) {
			return f.file.Truncate(f.read)
		}
		var changes []keyed.Change
		if err := json.Unmarshal(line, &changes); err != nil {
			return fmt.Errorf("line at byte %d: %w", f.read, err)
		}
		f.data.Apply(changes)
		f.read += int64(len(line))
	}
	return nil
}

func (f *File) Close() error { return f.file.Close() }

func main() {
	reg := builtin.New()
	if err := registry.AddStore(reg, "file", "one file, for several processes", func() Config { return Config{Path: "store.jsonl"} }, Open); err != nil {
		log.Fatal(err)
	}
	os.Exit(cli.Main(reg))
}
