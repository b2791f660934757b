package sqlite

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/contextengine/contextengine/core"
)

// importBatch is the number of entries in one transaction of an import.
const importBatch = 500

// Import stores what Export or Retain wrote, compressed with gzip or not, one or several of them one after the other.
// Entries that are there already count as duplicates, and a session that has a view keeps it. Entries that share a position, as older stores let them, go
// on doing so until they are mended. So an import that was
// interrupted is resumed by starting it again. progress, when not nil, is called after every batch.
//
// What is no export is core.ErrInvalid naming the line; so is one that was cut off, after all that it holds was stored.
func (s *Store) Import(ctx context.Context, r io.Reader, progress func(Progress)) (Progress, error) {
	if progress == nil {
		progress = func(Progress) {}
	}
	in := &importer{s: s, progress: progress}
	err := in.run(ctx, r)
	if err != nil {
		return in.done, fmt.Errorf("sqlite: import: %w", err)
	}
	return in.done, nil
}

type importer struct {
	s        *Store
	progress func(Progress)
	done     Progress
	pending  []core.Entry
	// part is what was read since the last header, as the end line counts it.
	part Progress
	open bool
}

func (in *importer) run(ctx context.Context, r io.Reader) error {
	buf := bufio.NewReaderSize(r, 1<<16)
	if magic, _ := buf.Peek(2); bytes.Equal(magic, []byte{0x1f, 0x8b}) {
		z, err := gzip.NewReader(buf)
		if err != nil {
			return fmt.Errorf("%w: %w", err, core.ErrInvalid)
		}
		defer z.Close()
		buf = bufio.NewReaderSize(z, 1<<16)
	}
	for n := 1; ; n++ {
		text, readErr := buf.ReadBytes('\n')
		if readErr != nil && !errors.Is(readErr, io.EOF) {
			return errors.Join(in.flush(ctx), fmt.Errorf("line %d: %w: %w", n, readErr, core.ErrInvalid))
		}
		if len(bytes.TrimSpace(text)) > 0 {
			if err := in.line(ctx, text); err != nil {
				return errors.Join(in.flush(ctx), fmt.Errorf("line %d: %w", n, err))
			}
		}
		if readErr == nil {
			continue
		}
		err := in.flush(ctx)
		if err == nil && (in.open || n == 1) {
			err = fmt.Errorf("line %d: the export was cut off, its last line is missing: %w", n, core.ErrInvalid)
		}
		return err
	}
}

func (in *importer) line(ctx context.Context, text []byte) error {
	var l line
	if err := json.Unmarshal(text, &l); err != nil {
		return fmt.Errorf("not a line of an export: %w: %w", err, core.ErrInvalid)
	}
	switch {
	case l.Header != nil:
		if l.Header.Format != exportFormat || l.Header.Version < 1 || l.Header.Version > exportVersion {
			return fmt.Errorf("format %q version %d is not %q version 1 to %d: %w", l.Header.Format, l.Header.Version, exportFormat,
				exportVersion, core.ErrInvalid)
		}
		in.open, in.part = true, Progress{}
		return nil
	case !in.open:
		return fmt.Errorf("the line with the format is missing in front of it: %w", core.ErrInvalid)
	case l.Entry != nil:
		if l.Exact != nil {
			if err := unpackExact(l.Exact, l.Entry); err != nil {
				return fmt.Errorf("entry %q: exact: %w: %w", l.Entry.ID, err, core.ErrInvalid)
			}
		}
		in.part.Entries++
		in.pending = append(in.pending, *l.Entry)
		if len(in.pending) < importBatch {
			return nil
		}
		return in.flush(ctx)
	case l.View != nil:
		in.part.Views++
		// What a view shows is there before it.
		if err := in.flush(ctx); err != nil {
			return err
		}
		return in.view(ctx, l.View)
	case l.End != nil:
		in.open = false
		if l.End.Entries != in.part.Entries || l.End.Views != in.part.Views {
			return fmt.Errorf("%d entries and %d views were read, the export says %d and %d: %w", in.part.Entries, in.part.Views,
				l.End.Entries, l.End.Views, core.ErrInvalid)
		}
		return nil
	}
	return fmt.Errorf("neither entry nor view: %w", core.ErrInvalid)
}

// flush stores what is pending.
func (in *importer) flush(ctx context.Context) error {
	if len(in.pending) == 0 {
		return nil
	}
	batch := in.pending
	in.pending = nil
	res, err := in.s.append(ctx, batch, true)
	if err != nil {
		return err
	}
	in.done.Entries += int64(len(batch))
	in.done.Duplicates += int64(res.Duplicates)
	in.progress(in.done)
	return nil
}

// view stores a view as it is, whatever its version, unless the session has one.
func (in *importer) view(ctx context.Context, v *core.View) error {
	if err := v.Session.Validate(); err != nil || v.Version == 0 {
		return fmt.Errorf("view of session %q without session or version: %w", v.Session, core.ErrInvalid)
	}
	body, sum, err := in.s.encodeView(v, new(bytes.Buffer))
	if err != nil {
		return err
	}
	return in.s.write(ctx, "import view", v.Session.String(), func(tx *sql.Tx) error {
		quiet := context.WithoutCancel(ctx)
		scope, _, err := in.s.ensureScope(quiet, tx, v.Session)
		if err != nil {
			return err
		}
		res, err := tx.ExecContext(quiet, "INSERT INTO views (scope, version, body, sum) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING",
			scope, int64(v.Version), body, sum)
		if err != nil {
			return err
		}
		n, err := res.RowsAffected()
		in.done.Views++
		if n == 0 {
			in.done.KeptViews++
		}
		return err
	})
}
