package sweep

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"

	"github.com/contextengine/contextengine/core"
)

// Journal is a file with finished results, one JSON line each: {"key": ..., "value": ...}. It is safe for concurrent use, by one process.
type Journal struct {
	mu      sync.Mutex
	file    *os.File
	entries map[string]json.RawMessage
	// Torn says that the last line of the file was not complete, as after a crash, and was removed.
	Torn bool
}

// record is a line.
type record struct {
	Key   string          `json:"key"`
	Value json.RawMessage `json:"value"`
}

// OpenJournal opens a file, which is made where it is not there. A last line that is not complete is removed; any other line that cannot be read is an
// error that wraps core.ErrInvalid and names it.
func OpenJournal(path string) (*Journal, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("sweep: open journal: %w", err)
	}
	j := &Journal{file: f, entries: make(map[string]json.RawMessage)}
	if err := j.read(); err != nil {
		return nil, errors.Join(fmt.Errorf("sweep: open journal %q: %w", path, err), f.Close())
	}
	return j, nil
}

func (j *Journal) read() error {
	data, err := io.ReadAll(j.file)
	if err != nil {
		return err
	}
	size, n := 0, 0
	for line := range bytes.Lines(data) {
		n++
		if !bytes.HasSuffix(line, []byte("\n")) {
			j.Torn = true
			break
		}
		if text := bytes.TrimSpace(line); len(text) > 0 {
			var r record
			if json.Unmarshal(text, &r) != nil || r.Key == "" || r.Value == nil {
				return fmt.Errorf(`line %d: not a result: field "key" or "value" cannot be read: this is no journal of a sweep, or it is damaged; remove the line, or name another file: %w`, n, core.ErrInvalid)
			}
			j.entries[r.Key] = bytes.Clone(r.Value)
		}
		size += len(line)
	}
	if j.Torn {
		if err := j.file.Truncate(int64(size)); err != nil {
			return err
		}
	}
	_, err = j.file.Seek(int64(size), io.SeekStart)
	return err
}

// Len returns the number of results.
func (j *Journal) Len() int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return len(j.entries)
}

// Lookup reads the newest value of a key into a pointer, and reports whether there is one.
func (j *Journal) Lookup(key string, into any) (bool, error) {
	j.mu.Lock()
	raw, ok := j.entries[key]
	j.mu.Unlock()
	if !ok {
		return false, nil
	}
	if err := json.Unmarshal(raw, into); err != nil {
		return false, fmt.Errorf("sweep: look up %q: the result cannot be read: name another file: %w: %w", key, err, core.ErrInvalid)
	}
	return true, nil
}

// Record writes a value. It is on the disk when Record returns nil.
func (j *Journal) Record(key string, value any) error {
	raw, err := json.Marshal(value)
	if err != nil {
		return fmt.Errorf("sweep: record %q: %w", key, err)
	}
	line, err := json.Marshal(record{key, raw})
	if err != nil {
		return fmt.Errorf("sweep: record %q: %w", key, err)
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if _, err := j.file.Write(append(line, '\n')); err != nil {
		return fmt.Errorf("sweep: record %q: %w", key, err)
	}
	if err := j.file.Sync(); err != nil {
		return fmt.Errorf("sweep: record %q: %w", key, err)
	}
	j.entries[key] = raw
	return nil
}

// Close releases the file.
func (j *Journal) Close() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.file.Close()
}
