package sqlite_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/contextengine/contextengine/backends/sqlite"
	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/internal/needs"
)

// TestNoRoomForTheFile: where not even the file can be made, opening says why.
func TestNoRoomForTheFile(t *testing.T) {
	cfg := sqlite.DefaultConfig()
	cfg.Path = filepath.Join(needs.Disk(t, "nr_inodes=1"), "store.db")
	if _, err := sqlite.Open(t.Context(), cfg); !errors.Is(err, syscall.ENOSPC) || !errors.Is(err, core.ErrUnavailable) {
		t.Errorf("Open = %v, want that there is no room, and ErrUnavailable", err)
	}
}

// TestOpenedOnAFullDisk: a store that was closed is read by whoever opens it on a full disk, several at once. Once there is room they all go on writing, and see what
// the others wrote.
func TestOpenedOnAFullDisk(t *testing.T) {
	cfg := sqlite.DefaultConfig()
	cfg.Path = filepath.Join(needs.Disk(t, "size=2m"), "store.db")
	s := open(t, cfg)
	if _, err := newEngine(t, s).IngestBatch(t.Context(), core.IngestBatchRequest{Session: ann, Messages: talk(6)}); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	free := needs.FillDisk(t, filepath.Dir(cfg.Path))
	both := []*sqlite.Store{open(t, cfg), open(t, cfg)}
	for _, s := range both {
		if err := errors.Join(s.Ping(t.Context()), s.Verify(t.Context())); err != nil {
			t.Error(err)
		}
		if st, err := s.Stats(t.Context()); err != nil || st.Entries != 6 {
			t.Errorf("Stats = %+v, %v", st, err)
		}
		res, err := newEngine(t, s).Assemble(t.Context(), core.AssembleRequest{Session: ann, Budget: 900, PromptMode: core.PromptNone})
		if err != nil || len(res.Messages) != 6 {
			t.Errorf("Assemble shows %d messages, %v", len(res.Messages), err)
		}
		if _, err := s.Append(t.Context(), entries(ann, 20, 21)); !errors.Is(err, core.ErrUnavailable) || !strings.Contains(err.Error(), "the disk is full") {
			t.Errorf("Append = %v, want ErrUnavailable and why", err)
		}
	}
	free()
	for i, s := range both {
		if _, err := s.Append(t.Context(), entries(ann, 20+10*i, 25+10*i)); err != nil {
			t.Errorf("with room again: %v", err)
		}
	}
	for _, s := range both {
		if st, err := s.Stats(t.Context()); err != nil || st.Entries != 16 {
			t.Errorf("Stats = %+v, %v, want 16 entries", st, err)
		}
		if err := errors.Join(s.Verify(t.Context()), s.Close()); err != nil {
			t.Error(err)
		}
	}
	if n, err := opens(t, cfg); err != nil || n != 16 {
		t.Errorf("opened again: %d entries, %v", n, err)
	}
}

// TestFullDisk: on a disk without room nothing can be kept, what is there is shown all the same, by an engine that begins then too, and with room again work goes on.
func TestFullDisk(t *testing.T) {
	dir := needs.Disk(t, "size=2m")
	cfg := sqlite.DefaultConfig()
	cfg.Path = filepath.Join(dir, "store.db")
	s := open(t, cfg)
	if _, err := newEngine(t, s).IngestBatch(t.Context(), core.IngestBatchRequest{Session: ann, Messages: talk(6)}); err != nil {
		t.Fatal(err)
	}
	filler := filepath.Join(dir, "filler")
	f, err := os.Create(filler)
	if err != nil {
		t.Fatal(err)
	}
	for err == nil {
		_, err = f.Write(make([]byte, 4096))
	}
	if !errors.Is(err, syscall.ENOSPC) {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Append(t.Context(), entries(ann, 20, 60)); !errors.Is(err, core.ErrUnavailable) {
		t.Errorf("Append = %v, want ErrUnavailable", err)
	}
	for range 2 {
		e := newEngine(t, s)
		for range 2 {
			res, err := e.Assemble(t.Context(), core.AssembleRequest{Session: ann, Budget: 900, PromptMode: core.PromptNone})
			if err != nil || len(res.Messages) != 6 {
				t.Errorf("Assemble shows %d messages, %v", len(res.Messages), err)
			}
		}
		if err := s.Close(); err != nil && !errors.Is(err, core.ErrUnavailable) { // the log stays beside the file
			t.Error(err)
		}
		for err = error(nil); err == nil; { // what the log took is free again
			err = os.WriteFile(fmt.Sprintf("%s%d", filler, time.Now().UnixNano()), make([]byte, 4096), 0o600)
		}
		if s, err = sqlite.Open(t.Context(), cfg); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close() })
	}
	names, err := filepath.Glob(filler + "*")
	for _, name := range names {
		err = errors.Join(err, os.Remove(name))
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Append(t.Context(), entries(ann, 20, 60)); err != nil {
		t.Errorf("with room again: %v", err)
	}
	if err := s.Verify(t.Context()); err != nil {
		t.Error(err)
	}
}
