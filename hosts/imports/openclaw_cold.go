package imports

import (
	"bytes"
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
)

// coldName is the form of the names of cold archives; no other is opened.
var coldName = regexp.MustCompile(`^[a-f0-9]{64}\.jsonl\.zst$`)

// thaw reads a session that the host moved to an archive because it was idle: into the database, or into a file beside it.
func (c *clawFile) thaw(ctx context.Context, w window) ([]event, map[int64]bool, error) {
	var name, sum string
	var packed []byte
	err := c.q.QueryRowContext(ctx, "SELECT archive_name, archive_sha256, archive_blob FROM session_transcript_cold_archives WHERE session_id = ?", w.id).
		Scan(&name, &sum, &packed)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	where := at(c.src, "session %q, archive %q", w.id, name)
	if packed == nil {
		if packed, err = c.coldFile(name); err != nil {
			return nil, nil, c.in.skip(where, err.Error())
		}
	}
	data, err := unseal(packed, sum)
	if err != nil {
		return nil, nil, c.in.skip(where, err.Error())
	}
	events, shown, err := coldEvents(data)
	if err != nil {
		return nil, nil, c.in.skip(where, err.Error())
	}
	return events, shown, nil
}

// coldFile reads an archive beside the database.
func (c *clawFile) coldFile(name string) ([]byte, error) {
	if !coldName.MatchString(name) {
		return nil, errors.New("it is not the name of an archive")
	}
	dir := filepath.Dir(c.src.db.path)
	var first error
	for _, folder := range []string{filepath.Join(filepath.Dir(dir), "sessions"), filepath.Join(dir, "sessions"), dir} {
		data, err := os.ReadFile(filepath.Join(folder, "cold", name))
		if err == nil {
			return data, nil
		}
		if first == nil {
			first = err
		}
	}
	return nil, first
}

// unseal verifies and decompresses an archive.
func unseal(packed []byte, sum string) ([]byte, error) {
	if got := sha256.Sum256(packed); hex.EncodeToString(got[:]) != sum {
		return nil, errors.New("it does not match its checksum")
	}
	if !isZstd(packed) {
		return packed, nil
	}
	return unzstd(packed, maxUnpacked)
}

// coldEvents reads the lines of a cold archive: rows of the tables that the session had.
func coldEvents(data []byte) ([]event, map[int64]bool, error) {
	var events []event
	var shown map[int64]bool
	n := 0
	for line := range bytes.Lines(data) {
		n++
		var l struct {
			Kind string `json:"kind"`
			Row  struct {
				Seq      int64  `json:"seq"`
				JSON     string `json:"event_json"`
				EventSeq int64  `json:"event_seq"`
				Stale    int    `json:"needs_rebuild"`
			} `json:"row"`
		}
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		if err := json.Unmarshal(line, &l); err != nil {
			return nil, nil, fmt.Errorf("line %d: %w", n, err)
		}
		switch l.Kind {
		case "event":
			events = append(events, event{seq: l.Row.Seq, json: []byte(l.Row.JSON)})
		case "active":
			if shown == nil {
				shown = make(map[int64]bool)
			}
			shown[l.Row.EventSeq] = true
		case "index":
			if l.Row.Stale != 0 {
				return events, nil, nil
			}
		}
	}
	return events, shown, nil
}

// archived imports the transcripts that were set aside when a session was reset. Those of deleted sessions stay where they are: somebody wanted
// them gone.
func (c *clawFile) archived(ctx context.Context) error {
	if !c.archives {
		return nil
	}
	type archive struct {
		window
		reason, sum, generation string
	}
	var list []archive
	var a archive
	if err := each(ctx, c.q, `SELECT session_id, session_key, reason, archive_sha256, generation FROM session_transcript_archives
		ORDER BY created_at, session_id, generation`, nil, []any{&a.id, &a.key, &a.reason, &a.sum, &a.generation}, func() error {
		list = append(list, a)
		return nil
	}); err != nil {
		return err
	}
	for _, a := range list {
		if a.reason == "deleted" {
			c.in.leave(leftDeleted, 1)
			continue
		}
		var packed []byte
		if err := c.q.QueryRowContext(ctx, "SELECT archive_blob FROM session_transcript_archives WHERE session_id = ? AND generation = ?",
			a.id, a.generation).Scan(&packed); err != nil {
			return err
		}
		data, err := unseal(packed, a.sum)
		if err != nil {
			if err := c.in.skip(at(c.src, "session %q, archive of generation %q", a.id, a.generation), err.Error()); err != nil {
				return err
			}
			continue
		}
		var events []event
		for line := range bytes.Lines(data) {
			if len(bytes.TrimSpace(line)) > 0 {
				events = append(events, event{seq: int64(len(events)), json: bytes.Clone(line)})
			}
		}
		if err := c.ingest(ctx, c.place(a.window), a.id, events, nil); err != nil {
			return err
		}
	}
	return nil
}
