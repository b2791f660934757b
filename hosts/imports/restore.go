package imports

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/upkeep"
	"github.com/contextengine/contextengine/internal/exports"
)

// Importer is a store that reads what an Exporter writes. It is asked only when nothing stands in front of it.
type Importer interface {
	// Import stores the entries and views of an export that are not there yet.
	Import(ctx context.Context, r io.Reader, progress func(upkeep.Transfer)) (upkeep.Transfer, error)
}

// Restore stores what Export wrote, compressed with gzip or not, one or several exports one after the other. Entries keep their ids, keys and places;
// those that are there count as duplicates. A session that has a view keeps it; others get theirs, with a version that begins anew
// unless the store is an Importer. So an import that was interrupted is resumed by starting it again.
//
// What is no export wraps core.ErrInvalid and names the line; so does one that was cut off, after all that it holds was stored.
func Restore(ctx context.Context, store core.Store, r io.Reader, progress func(upkeep.Transfer)) (upkeep.Transfer, error) {
	// Not through decorators: an outbox would not learn of what its inner store got.
	if im, ok := store.(Importer); ok {
		done, err := im.Import(ctx, r, progress)
		if !errors.Is(err, errors.ErrUnsupported) {
			return done, err
		}
	}
	x := newRestorer(store, false, progress)
	if err := x.Read(ctx, r); err != nil {
		return x.Done, fmt.Errorf("imports: restore: %w", err)
	}
	return x.Done, nil
}

// restorer stores lines one after the other.
type restorer struct {
	exports.Reader
	store core.Store
	// dry says to look and store nothing; seen are the keys of the sessions that were looked at.
	dry  bool
	seen map[core.SessionID]map[string]bool
}

func newRestorer(store core.Store, dry bool, progress func(upkeep.Transfer)) *restorer {
	x := &restorer{store: store, dry: dry}
	x.Progress, x.View = progress, x.view
	x.Append = func(ctx context.Context, batch []core.Entry) (core.AppendResult, error) {
		return core.AppendMoved(ctx, store, batch)
	}
	if dry {
		x.Append = x.compare
	}
	return x
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
func (x *restorer) view(ctx context.Context, v *core.View) (kept bool, err error) {
	vs, ok := core.As[core.ViewStore](x.store)
	if !ok {
		return true, nil
	}
	_, err = vs.LoadView(ctx, v.Session)
	if err == nil || !errors.Is(err, core.ErrNotFound) {
		return err == nil, err
	}
	if x.dry {
		return false, nil
	}
	first := v.Clone()
	first.Version = 1
	err = vs.SwapView(ctx, first)
	if errors.Is(err, core.ErrConflict) {
		return true, nil
	}
	return false, err
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
	progress := func(upkeep.Transfer) {}
	if in.o.Progress != nil {
		progress = func(t upkeep.Transfer) {
			in.o.Progress(Progress{Sessions: len(look.sessions), Messages: int(t.Entries)})
		}
	}
	data := io.TeeReader(src.lines(), look)
	var done upkeep.Transfer
	if in.o.DryRun || in.o.KeepGoing {
		x := newRestorer(target.Store, in.o.DryRun, progress)
		if in.o.KeepGoing {
			x.Skip = func(n int, reason string) { _ = in.skip(fmt.Sprintf("%s:%d", src.name, n), reason) }
		}
		err = x.Read(ctx, data)
		done = x.Done
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
