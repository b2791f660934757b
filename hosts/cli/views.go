package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/engine"
	"github.com/contextengine/contextengine/internal/exports"
)

// mender is an engine that can make a session's view and entries agree.
type mender interface {
	Mend(ctx context.Context, id core.SessionID) (int, error)
}

// verifyViews compares views with entries, and mends them when it is to.
func (k *keeper) verifyViews(ctx context.Context, fix bool) error {
	flaws, err := k.flaws(ctx)
	if err != nil {
		return err
	}
	for _, f := range flaws {
		fmt.Fprintln(k.a.Stdout, f)
	}
	if len(flaws) == 0 {
		return nil
	}
	if !fix {
		return fmt.Errorf("%s whose views do not agree with their entries: \"verify --fix\" mends them", count(len(sessionsOf(flaws)), "session"))
	}
	kept, err := k.mendViews(ctx, func(id core.SessionID, n int) { fmt.Fprintf(k.a.Stdout, "session %q: mended %d\n", id, n) })
	if kept != "" {
		fmt.Fprintln(k.a.Stdout, "the views as they were are in "+kept)
	}
	return err
}

// sessionsOf returns the sessions that flaws are of.
func sessionsOf(flaws []engine.Flaw) (out []core.SessionID) {
	for _, f := range flaws {
		if n := len(out); n == 0 || out[n-1] != f.Session {
			out = append(out, f.Session)
		}
	}
	return out
}

// mendViews makes views and entries agree wherever they do not, and says of which sessions. The views as they were are in the file that is returned; "" where
// there was nothing to mend.
func (k *keeper) mendViews(ctx context.Context, mended func(id core.SessionID, n int)) (kept string, err error) {
	flaws, err := k.flaws(ctx)
	if err != nil || len(flaws) == 0 {
		return "", err
	}
	if kept, err = k.keepViews(ctx, sessionsOf(flaws)); err != nil {
		return "", fmt.Errorf("keep the views as they are, before they are mended: %w", err)
	}
	for _, id := range sessionsOf(flaws) {
		e, _, err := k.instance.Engine(ctx, id.Agent, id.Session)
		if err != nil {
			return kept, err
		}
		m, ok := e.(mender)
		if !ok {
			return kept, fmt.Errorf("engine %q cannot mend session %q: %w", e.Info().ID, id, errors.ErrUnsupported)
		}
		n, err := m.Mend(ctx, id)
		if err != nil {
			return kept, err
		}
		mended(id, n)
	}
	if flaws, err = k.flaws(ctx); err != nil || len(flaws) == 0 {
		return kept, err
	}
	return kept, fmt.Errorf("%s, also after it was mended", flaws[0])
}

// keepViews writes the views of sessions to a file, as an export that holds nothing else: beside the store where that is a file, else in the working directory.
func (k *keeper) keepViews(ctx context.Context, of []core.SessionID) (path string, err error) {
	views, ok := core.As[core.ViewStore](k.store)
	if !ok {
		return "", k.cannot("hand out views")
	}
	path = cmp.Or(k.path(), "contextengine") + ".views-before-repair-" + time.Now().UTC().Format("20060102T150405.000000") + ".jsonl"
	return path, outFile{flag: "the views", name: path}.write(nil, func(w io.Writer) error {
		out := exports.NewWriter(w, time.Now(), nil)
		err := out.Begin()
		for _, id := range of {
			var v core.View
			if v, err = views.LoadView(ctx, id); err == nil {
				err = out.View(&v)
			}
			if errors.Is(err, core.ErrNotFound) {
				err = nil // its entries alone are at fault
			}
			if err != nil {
				return err
			}
		}
		return errors.Join(err, out.End())
	})
}

// path returns the file of the store; "" where it has none, or does not say.
func (k *keeper) path() string {
	if at, ok := core.As[interface{ Path() string }](k.store); ok {
		return at.Path()
	}
	return ""
}

// flaws returns where views and entries do not agree.
func (k *keeper) flaws(ctx context.Context) (out []engine.Flaw, err error) {
	err = k.a.saying("comparing views with entries", func() error {
		for f, err := range engine.Flaws(ctx, k.store) {
			if err != nil {
				return err
			}
			out = append(out, f)
		}
		return nil
	})
	return out, err
}
