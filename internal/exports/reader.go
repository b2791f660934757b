package exports

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/upkeep"
)

// readBatch is the number of entries that are appended at once.
const readBatch = 500

// Reader reads one or several exports, compressed with gzip or not, one after the other.
type Reader struct {
	// Append stores entries.
	Append func(context.Context, []core.Entry) (core.AppendResult, error)
	// View stores a view unless its session has one, which kept reports.
	View func(context.Context, *core.View) (kept bool, err error)
	// Progress, when not nil, is called after every batch.
	Progress func(upkeep.Transfer)
	// Skip is told what is malformed; nil ends the reading there.
	Skip func(n int, reason string)
	// Done is what was stored.
	Done upkeep.Transfer

	pending []core.Entry
	// part is what was read since the last header, as the end line counts it.
	part   upkeep.Transfer
	open   bool
	faults bool
}

// Read reads r to its end. What is no export wraps core.ErrInvalid and names the line; so does one that was cut off, after all that it holds
// was stored.
func (x *Reader) Read(ctx context.Context, r io.Reader) error {
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
			return errors.Join(x.flush(ctx), fmt.Errorf("line %d: %w: %w", n, readErr, core.ErrInvalid))
		}
		if len(bytes.TrimSpace(text)) > 0 {
			if err := x.line(ctx, text); err != nil {
				if x.Skip == nil || !errors.Is(err, core.ErrInvalid) {
					return errors.Join(x.flush(ctx), fmt.Errorf("line %d: %w", n, err))
				}
				x.faults = true
				x.Skip(n, err.Error())
			}
		}
		if readErr == nil {
			continue
		}
		err := x.flush(ctx)
		if err == nil && (x.open || n == 1) {
			err = fmt.Errorf("line %d: the export was cut off, its last line is missing: %w", n, core.ErrInvalid)
			if x.Skip != nil {
				x.Skip(n, err.Error())
				err = nil
			}
		}
		return err
	}
}

func (x *Reader) line(ctx context.Context, text []byte) error {
	var l line
	if err := json.Unmarshal(text, &l); err != nil {
		return fmt.Errorf("not a line of an export: %w: %w", err, core.ErrInvalid)
	}
	switch {
	case l.Header != nil:
		if l.Header.Format != Format || l.Header.Version < 1 || l.Header.Version > Version {
			return fmt.Errorf("format %q version %d is not %q version 1 to %d: %w", l.Header.Format, l.Header.Version, Format, Version, core.ErrInvalid)
		}
		x.open, x.part, x.faults = true, upkeep.Transfer{}, false
		return nil
	case !x.open:
		return fmt.Errorf("the line with the format is missing in front of it: %w", core.ErrInvalid)
	case l.Entry != nil:
		return x.entry(ctx, &l)
	case l.View != nil:
		x.part.Views++
		// What a view shows is there before it.
		if err := x.flush(ctx); err != nil {
			return err
		}
		return x.view(ctx, l.View)
	case l.End != nil:
		x.open = false
		if !x.faults && (l.End.Entries != x.part.Entries || l.End.Views != x.part.Views) {
			return fmt.Errorf("%d entries and %d views were read, the export says %d and %d: %w", x.part.Entries, x.part.Views,
				l.End.Entries, l.End.Views, core.ErrInvalid)
		}
		return nil
	}
	return fmt.Errorf("neither entry nor view: %w", core.ErrInvalid)
}

func (x *Reader) entry(ctx context.Context, l *line) error {
	if l.Exact != nil {
		if err := unpackExact(l.Exact, l.Entry); err != nil {
			return fmt.Errorf("entry %q: exact: %w: %w", l.Entry.ID, err, core.ErrInvalid)
		}
	}
	e := l.Entry
	if e.ID == "" || e.Key == "" || e.SessionID().Validate() != nil {
		return fmt.Errorf("entry %q: id, key, agent or session is missing: %w", e.ID, core.ErrInvalid)
	}
	x.part.Entries++
	x.pending = append(x.pending, *e)
	if len(x.pending) < readBatch {
		return nil
	}
	return x.flush(ctx)
}

// flush stores what is pending.
func (x *Reader) flush(ctx context.Context) error {
	batch := x.pending
	x.pending = nil
	if len(batch) == 0 {
		return nil
	}
	res, err := x.Append(ctx, batch)
	if err != nil {
		return err
	}
	x.Done.Entries += int64(len(batch))
	x.Done.Duplicates += int64(res.Duplicates)
	if x.Progress != nil {
		x.Progress(x.Done)
	}
	return nil
}

func (x *Reader) view(ctx context.Context, v *core.View) error {
	if err := v.Session.Validate(); err != nil || v.Version == 0 {
		return fmt.Errorf("view of session %q without session or version: %w", v.Session, core.ErrInvalid)
	}
	kept, err := x.View(ctx, v)
	if err != nil {
		return err
	}
	x.Done.Views++
	if kept {
		x.Done.KeptViews++
	}
	return nil
}
