package sqlite

import (
	"context"
	"database/sql"
	"slices"

	"github.com/contextengine/contextengine/core"
)

// window is what the views of all sessions need.
type window struct {
	// shown is what a view shows or has yet to compact, path what it counts beside that; ids are of entries that are on no path.
	shown, path map[core.SessionID][]core.Span
	ids         map[string]bool
	// views and sums, their number and checksums, tell whether a view was published since.
	views, sums int64
}

// needed reads all views.
func (s *Store) needed(ctx context.Context, tx *sql.Tx) (window, error) {
	w := window{shown: map[core.SessionID][]core.Span{}, path: map[core.SessionID][]core.Span{}, ids: map[string]bool{}}
	if err := w.count(ctx, tx); err != nil {
		return w, err
	}
	return w, s.everyView(ctx, tx, "", func(v *core.View) error {
		w.add(v)
		return nil
	})
}

func (w *window) count(ctx context.Context, tx *sql.Tx) error {
	return tx.QueryRowContext(ctx, "SELECT count(*), coalesce(sum(sum), 0) FROM views").Scan(&w.views, &w.sums)
}

// refresh reads the views again when one of them changed.
func (s *Store) refresh(ctx context.Context, tx *sql.Tx, w *window) error {
	var now window
	if err := now.count(ctx, tx); err != nil || now.views == w.views && now.sums == w.sums {
		return err
	}
	again, err := s.needed(ctx, tx)
	if err == nil {
		*w = again
	}
	return err
}

func (w *window) add(v *core.View) {
	put := func(to map[core.SessionID][]core.Span, spans []core.Span) {
		for _, span := range spans {
			owner := v.Session
			if span.Session != nil {
				owner = *span.Session
			}
			to[owner] = append(to[owner], span)
		}
	}
	// A start that is to be found anew is -1.
	from := max(0, min(v.Start, v.Frontier))
	put(w.shown, v.Slice(0, v.Lead))
	put(w.shown, v.Slice(from, v.Len()))
	put(w.path, v.Slice(v.Lead, from))
	summaries := v.Summaries
	if v.Shown != nil {
		summaries = append(slices.Clip(summaries), v.Shown.Summaries...)
	}
	for i := range summaries {
		w.ids[summaries[i].ID] = true
	}
	if v.Pinned != "" {
		w.ids[v.Pinned] = true
	}
}

// shows reports whether a view shows an entry, or has yet to compact it.
func (w *window) shows(c *candidate) bool { return w.ids[c.id] || holds(w.shown[c.owner], c.seq) }

// counts reports whether an entry stands on the path of a view.
func (w *window) counts(c *candidate) bool { return holds(w.path[c.owner], c.seq) }

func holds(spans []core.Span, seq int64) bool {
	for _, span := range spans {
		if seq >= span.From && seq < span.To {
			return true
		}
	}
	return false
}
