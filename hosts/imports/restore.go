package imports

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/contextengine/contextengine/core"
)

// Importer is a store that reads what an Exporter writes. It is asked only when nothing stands in front of it.
type Importer interface {
	// Import stores the entries and views of an export that are not there yet.
	Import(ctx context.Context, r io.Reader, progress func(core.Transfer)) (core.Transfer, error)
}

// restoreBatch is the number of entries that are appended at once.
const restoreBatch = 500

// Restore stores what Export wrote, compressed with gzip or not, one or several exports one after the other. Entries keep their ids, keys and places;
// those that are there count as duplicates. A session that has a view keeps it; others get theirs, with a version that begins anew
// unless the store is an Importer. So an import that was interrupted is resumed by starting it again.
//
// What is no export wraps core.ErrInvalid and names the line; so does one that was cut off, after all that it holds was stored.
func Restore(ctx context.Context, store core.Store, r io.Reader, progress func(core.Transfer)) (core.Transfer, error) {
	// Not through decorators: an outbox would not learn of what its inner store got.
	if im, ok := store.(Importer); ok {
		done, err := im.Import(ctx, r, progress)
		if !errors.Is(err, errors.ErrUnsupported) {
			return done, err
		}
	}
	x := &restorer{store: store, progress: progress}
	if err := x.run(ctx, r); err != nil {
		return x.done, fmt.Errorf("imports: restore: %w", err)
	}
	return x.done, nil
}

// restorer stores lines one after the other.
type restorer struct {
	store    core.Store
	progress func(core.Transfer)
	// skip is told what is malformed; nil ends the import there.
	skip func(n int, reason string)
	// dry says to look and store nothing; seen are the keys of the sessions that were looked at.
	dry  bool
	seen map[core.SessionID]map[string]bool

	done    core.Transfer
	pending []core.Entry
	// part is what was read since the last header, as the end line counts it.
	part   core.Transfer
	open   bool
	faults bool
}

func (x *restorer) run(ctx context.Context, r io.Reader) error {
	if x.progress == nil {
		x.progress = func(core.Transfer) {}
	}
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
				if x.skip == nil || !errors.Is(err, core.ErrInvalid) {
					return errors.Join(x.flush(ctx), fmt.Errorf("line %d: %w", n, err))
				}
				x.faults = true
				x.skip(n, err.Error())
			}
		}
		if readErr == nil {
			continue
		}
		err := x.flush(ctx)
		if err == nil && (x.open || n == 1) {
			err = fmt.Errorf("line %d: the export was cut off, its last line is missing: %w", n, core.ErrInvalid)
			if x.skip != nil {
				x.skip(n, err.Error())
				err = nil
			}
		}
		return err
	}
}

func (x *restorer) line(ctx context.Context, text []byte) error {
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
		x.open, x.part, x.faults = true, core.Transfer{}, false
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

func (x *restorer) entry(ctx context.Context, l *line) error {
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
	if len(x.pending) < restoreBatch {
		return nil
	}
	return x.flush(ctx)
}

// flush stores what is pending.
func (x *restorer) flush(ctx context.Context) error {
	batch := x.pending
	x.pending = nil
	if len(batch) == 0 {
		return nil
	}
	var res core.AppendResult
	var err error
	if x.dry {
		res, err = x.compare(ctx, batch)
	} else {
		res, err = core.AppendMoved(ctx, x.store, batch)
	}
	if err != nil {
		return err
	}
	x.done.Entries += int64(len(batch))
	x.done.Duplicates += int64(res.Duplicates)
	x.progress(x.done)
	return nil
}

// compare counts the entries that are there.
func (x *restorer) compare(ctx context.Context, batch []core.Entry) (core.AppendResult, error) {
	var res core.AppendResult
	for i := range batch {
		id := batch[i].SessionID()
		keys := x.seen[id]
		if keys == nil {
			if x.seen == nil {
				x.seen = make(map[core.SessionID]map[string]bool)
			}
			keys = make(map[string]bool)
			for e, err := range core.All(ctx, x.store, id.Scope(), false) {
				if err != nil {
					return res, err
				}
				keys[e.Key] = true
			}
			x.seen[id] = keys
		}
		if keys[batch[i].Key] {
			res.Duplicates++
		}
		keys[batch[i].Key] = true
	}
	return res, nil
}

// view stores a view unless the session has one. A store without room for views makes them anew from the entries.
func (x *restorer) view(ctx context.Context, v *core.View) error {
	if err := v.Session.Validate(); err != nil || v.Version == 0 {
		return fmt.Errorf("view of session %q without session or version: %w", v.Session, core.ErrInvalid)
	}
	x.done.Views++
	vs, ok := core.As[core.ViewStore](x.store)
	if !ok {
		x.done.KeptViews++
		return nil
	}
	_, err := vs.LoadView(ctx, v.Session)
	switch {
	case err == nil:
		x.done.KeptViews++
		return nil
	case !errors.Is(err, core.ErrNotFound):
		return err
	case x.dry:
		return nil
	}
	first := v.Clone()
	first.Version = 1
	err = vs.SwapView(ctx, first)
	if errors.Is(err, core.ErrConflict) {
		x.done.KeptViews++
		return nil
	}
	return err
}

// restoreInto is Restore for File.
func restoreInto(ctx context.Context, src *source, in *intake) error {
	if in.o.Agent != "" || in.o.Session != "" {
		return fmt.Errorf("an export names agents and sessions itself: leave them out: %w", core.ErrInvalid)
	}
	target, err := in.sink.Target(ctx, core.SessionID{Agent: "main", Session: "import"})
	if err != nil {
		return err
	}
	look := &onlooker{report: &in.report, sessions: make(map[core.SessionID]bool)}
	progress := func(core.Transfer) {}
	if in.o.Progress != nil {
		progress = func(t core.Transfer) {
			in.o.Progress(Progress{Sessions: len(look.sessions), Messages: int(t.Entries)})
		}
	}
	data := io.TeeReader(src.lines(), look)
	var done core.Transfer
	if in.o.DryRun || in.o.KeepGoing {
		x := &restorer{store: target.Store, dry: in.o.DryRun, progress: progress}
		if in.o.KeepGoing {
			x.skip = func(n int, reason string) { _ = in.skip(fmt.Sprintf("%s:%d", src.name, n), reason) }
		}
		err = x.run(ctx, data)
		done = x.done
	} else {
		done, err = Restore(ctx, target.Store, data, progress)
	}
	if err != nil {
		err = fmt.Errorf("imports: %q: %w", src.name, err)
	}
	if errors.Is(err, core.ErrInvalid) {
		err = fmt.Errorf("%w: %w", err, ErrMalformed)
	}
	r := &in.report
	r.Sessions, r.Messages, r.Duplicates = len(look.sessions), int(done.Entries), int(done.Duplicates)
	r.Imported, r.Views, r.KeptViews = r.Messages-r.Duplicates, int(done.Views), int(done.KeptViews)
	return err
}

// onlooker counts, for a report, what passes it on its way into a store.
type onlooker struct {
	report   *Report
	sessions map[core.SessionID]bool
	rest     []byte
}

// Write takes a piece of an export.
func (o *onlooker) Write(p []byte) (int, error) {
	o.rest = append(o.rest, p...)
	for {
		text, rest, ok := bytes.Cut(o.rest, []byte{'\n'})
		if !ok {
			return len(p), nil
		}
		o.line(text)
		o.rest = append(o.rest[:0], rest...)
	}
}

func (o *onlooker) line(text []byte) {
	var l struct {
		Entry *struct {
			Agent   string    `json:"agent"`
			Session string    `json:"session"`
			Time    time.Time `json:"time"`
		} `json:"entry"`
	}
	if json.Unmarshal(text, &l) != nil || l.Entry == nil {
		return
	}
	o.sessions[core.SessionID{Agent: l.Entry.Agent, Session: l.Entry.Session}] = true
	r := o.report
	if r.First.IsZero() || l.Entry.Time.Before(r.First) {
		r.First = l.Entry.Time
	}
	if l.Entry.Time.After(r.Last) {
		r.Last = l.Entry.Time
	}
}
