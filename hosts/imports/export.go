package imports

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/upkeep"
	"github.com/contextengine/contextengine/internal/exports"
)

// Exporter is a store that exports itself.
type Exporter interface {
	// Export writes everything the store holds, as of one moment, in the lines that Restore reads.
	Export(ctx context.Context, w io.Writer, progress func(upkeep.Transfer)) error
}

// Export writes a store as JSON lines: entries, then views, between a header and a line with their numbers. Only what the scope holds is
// written; a scope without an agent is everything. Progress, when not nil, is called now and then and at the end.
//
// A store that is an Exporter writes everything itself. All others are walked, agent by agent, which sees what is appended meanwhile or
// not; which agents there are is known from views, so a store without them needs an agent, else it is core.ErrInvalid.
func Export(ctx context.Context, store core.Store, w io.Writer, scope core.Scope, progress func(upkeep.Transfer)) (upkeep.Transfer, error) {
	if progress == nil {
		progress = func(upkeep.Transfer) {}
	}
	if x, ok := core.As[Exporter](store); ok && scope.Agent == "" {
		var done upkeep.Transfer
		err := x.Export(ctx, w, func(t upkeep.Transfer) {
			done = t
			progress(t)
		})
		return done, err
	}
	if scope.Agent == "" && scope.Session != "" {
		return upkeep.Transfer{}, fmt.Errorf("imports: export: agent: name the one that session %q belongs to: %w", scope.Session, core.ErrInvalid)
	}
	x := &exporter{store: store, Writer: exports.NewWriter(w, time.Now(), progress)}
	if err := x.run(ctx, scope); err != nil {
		return x.Done, fmt.Errorf("imports: export: %w", err)
	}
	return x.Done, nil
}

type exporter struct {
	*exports.Writer
	store core.Store
}

func (x *exporter) run(ctx context.Context, scope core.Scope) error {
	if err := x.Begin(); err != nil {
		return err
	}
	views, err := viewsOf(ctx, x.store, scope)
	if err != nil {
		return err
	}
	agents, err := x.agents(scope, views)
	if err != nil {
		return err
	}
	for _, agent := range agents {
		for e, err := range core.All(ctx, x.store, core.Scope{Agent: agent, Session: scope.Session}, false) {
			if err != nil {
				return err
			}
			if err := x.Entry(&e); err != nil {
				return err
			}
		}
	}
	if err := x.complete(ctx, scope); err != nil {
		return err
	}
	vs, _ := core.As[core.ViewStore](x.store)
	for _, id := range views {
		v, err := vs.LoadView(ctx, id)
		if errors.Is(err, core.ErrNotFound) {
			continue // it was deleted meanwhile
		}
		if err != nil {
			return err
		}
		if err := x.View(&v); err != nil {
			return err
		}
	}
	return x.End()
}

// agents returns whose entries are in a scope.
func (x *exporter) agents(scope core.Scope, views []core.SessionID) ([]string, error) {
	if scope.Agent != "" {
		return []string{scope.Agent}, nil
	}
	if _, ok := core.As[core.ViewStore](x.store); !ok {
		return nil, fmt.Errorf("agent: the store cannot tell which agents it has, name one: %w", core.ErrInvalid)
	}
	var out []string
	for _, id := range views { // ordered by agent
		if len(out) == 0 || out[len(out)-1] != id.Agent {
			out = append(out, id.Agent)
		}
	}
	return out, nil
}

// complete makes sure that walking the agents that have views missed none.
func (x *exporter) complete(ctx context.Context, scope core.Scope) error {
	s, ok := core.As[upkeep.Statter](x.store)
	if !ok || scope.Agent != "" {
		return nil
	}
	st, err := s.Stats(ctx)
	if errors.Is(err, errors.ErrUnsupported) {
		return nil
	}
	if err == nil && int64(st.Entries) > x.Done.Entries {
		err = fmt.Errorf("%d of %d entries are of agents without views: export each agent by its name: %w",
			int64(st.Entries)-x.Done.Entries, st.Entries, core.ErrInvalid)
	}
	return err
}

// viewsOf lists the views of a scope, none for a store without views.
func viewsOf(ctx context.Context, store core.Store, scope core.Scope) ([]core.SessionID, error) {
	vs, ok := core.As[core.ViewStore](store)
	if !ok {
		return nil, nil
	}
	var out []core.SessionID
	q := core.ViewQuery{Agent: scope.Agent, Limit: core.MaxPage}
	for {
		page, err := vs.ListViews(ctx, q)
		if errors.Is(err, errors.ErrUnsupported) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		for _, id := range page {
			if scope.Session == "" || scope.Session == id.Session {
				out = append(out, id)
			}
		}
		if len(page) < q.Limit {
			return out, nil
		}
		q.After = page[len(page)-1]
	}
}
