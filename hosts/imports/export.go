package imports

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/contextengine/contextengine/core"
)

// What the first line of an export says.
const (
	exportFormat  = "contextengine-export"
	exportVersion = 1
)

// progressEvery is the number of entries between two calls of a progress function.
const progressEvery = 1000

// Exporter is a store that exports itself.
type Exporter interface {
	// Export writes everything the store holds, as of one moment, in the lines that Restore reads.
	Export(ctx context.Context, w io.Writer, progress func(core.Transfer)) error
}

// line is one line of an export: one of its fields is set. Exact, beside an entry, has what JSON cannot hold: text that is not UTF-8, and
// the difference between nothing and an empty list.
type line struct {
	Header *header        `json:"header,omitempty"`
	Entry  *core.Entry    `json:"entry,omitempty"`
	Exact  []byte         `json:"exact,omitempty"`
	View   *core.View     `json:"view,omitempty"`
	End    *core.Transfer `json:"end,omitempty"`
}

type header struct {
	Format  string    `json:"format"`
	Version int       `json:"version"`
	Time    time.Time `json:"time"`
}

// Export writes a store as JSON lines: entries, then views, between a header and a line with their numbers. Only what the scope holds is
// written; a scope without an agent is everything. Progress, when not nil, is called now and then and at the end.
//
// A store that is an Exporter writes everything itself. All others are walked, agent by agent, which sees what is appended meanwhile or
// not; which agents there are is known from views, so a store without them needs an agent, else it is core.ErrInvalid.
func Export(ctx context.Context, store core.Store, w io.Writer, scope core.Scope, progress func(core.Transfer)) (core.Transfer, error) {
	if progress == nil {
		progress = func(core.Transfer) {}
	}
	if x, ok := core.As[Exporter](store); ok && scope.Agent == "" {
		var done core.Transfer
		err := x.Export(ctx, w, func(t core.Transfer) {
			done = t
			progress(t)
		})
		return done, err
	}
	if scope.Agent == "" && scope.Session != "" {
		return core.Transfer{}, fmt.Errorf("imports: export: agent: name the one that session %q belongs to: %w", scope.Session, core.ErrInvalid)
	}
	buf := bufio.NewWriterSize(w, 1<<16)
	enc := json.NewEncoder(buf)
	enc.SetEscapeHTML(false)
	x := &exporter{store: store, json: enc, progress: progress}
	err := x.run(ctx, scope)
	if err == nil {
		err = buf.Flush()
	}
	if err != nil {
		return x.done, fmt.Errorf("imports: export: %w", err)
	}
	progress(x.done)
	return x.done, nil
}

type exporter struct {
	store    core.Store
	json     *json.Encoder
	done     core.Transfer
	progress func(core.Transfer)
}

func (x *exporter) run(ctx context.Context, scope core.Scope) error {
	if err := x.json.Encode(line{Header: &header{Format: exportFormat, Version: exportVersion, Time: time.Now().UTC()}}); err != nil {
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
			if err := x.entry(&e); err != nil {
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
		x.done.Views++
		if err := x.json.Encode(line{View: &v}); err != nil {
			return err
		}
	}
	return x.json.Encode(line{End: &x.done})
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
	s, ok := core.As[core.Statter](x.store)
	if !ok || scope.Agent != "" {
		return nil
	}
	st, err := s.Stats(ctx)
	if errors.Is(err, errors.ErrUnsupported) {
		return nil
	}
	if err == nil && int64(st.Entries) > x.done.Entries {
		err = fmt.Errorf("%d of %d entries are of agents without views: export each agent by its name: %w",
			int64(st.Entries)-x.done.Entries, st.Entries, core.ErrInvalid)
	}
	return err
}

func (x *exporter) entry(entry *core.Entry) error {
	e := core.Shareable(*entry)
	l := line{Entry: &e}
	if !exactInJSON(&e) {
		l.Exact = packExact(&e)
	}
	if err := x.json.Encode(l); err != nil {
		return fmt.Errorf("entry %q: %w", e.ID, err)
	}
	if x.done.Entries++; x.done.Entries%progressEvery == 0 {
		x.progress(x.done)
	}
	return nil
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
