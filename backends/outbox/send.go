package outbox

import (
	"context"
	"errors"
	"fmt"

	"github.com/contextengine/contextengine/core"
)

// parcel is one try to deliver changes of a session: it makes the remote's entries equal to the local ones.
type parcel struct {
	s       *Store
	session core.SessionID
	items   []item

	// done are the changes that were delivered, or have nothing to deliver any more.
	done               []uint64
	delivered, missing uint64
	dead               []refusal
	aliases            []record
	// err is why the try ended early; refused says that it is about one change and will not pass.
	err     error
	refused bool
	// sent are the entries that errors may be about.
	sent []core.Entry
}

// refusal is a change that is to be set aside.
type refusal struct {
	seq      uint64
	attempts int
	reason   string
	text     string
}

func (p *parcel) scope() core.Scope { return core.Scope(p.session) }

// records returns what the journal should say about the try.
func (p *parcel) records(at int64) []record {
	out := p.aliases
	if len(p.done) > 0 {
		out = append(out, record{kind: kindDone, session: p.session, seqs: p.done, delivered: p.delivered, missing: p.missing})
	}
	for _, d := range p.dead {
		out = append(out, record{kind: kindDead, session: p.session, seqs: []uint64{d.seq}, at: at, attempts: uint64(d.attempts), reason: d.reason, detail: d.text})
	}
	return out
}

// hold returns how many changes the next try should be about: the same ones, but a refused one alone.
func (p *parcel) hold() int {
	if p.refused {
		return 1
	}
	return len(p.items) - len(p.done) - len(p.dead)
}

func (p *parcel) send(ctx context.Context) {
	all := p.together
	if p.items[0].op == opUpdate {
		all = p.update
	}
	p.finish(ctx, p.items, all(ctx, p.items))
	// Where the remote refuses them together, it may be about one of them only.
	if p.refused && len(p.items) > 1 {
		p.err, p.refused = nil, false
		for _, it := range p.items {
			if p.err == nil {
				p.finish(ctx, []item{it}, p.together(ctx, []item{it}))
			}
		}
	}
}

// together delivers appends or deletes.
func (p *parcel) together(ctx context.Context, items []item) error {
	if items[0].op == opUpdate {
		return p.update(ctx, items)
	}
	if items[0].op == opDelete {
		return p.delete(ctx, items)
	}
	entries, err := p.current(ctx, items)
	if err != nil || len(entries) == 0 {
		return err
	}
	if err := p.append(ctx, entries); err != nil {
		return err
	}
	p.delivered += uint64(len(entries))
	return nil
}

// current returns the entries of changes as they are now, each once. Those that are not there, and were not deleted by a later change, are
// counted as missing: their append was never acknowledged, or the local store lost them.
func (p *parcel) current(ctx context.Context, items []item) ([]core.Entry, error) {
	ids := make([]string, 0, len(items))
	seen := map[string]bool{}
	for _, it := range items {
		if !seen[it.id] {
			seen[it.id] = true
			ids = append(ids, it.id)
		}
	}
	found, err := p.s.local.Get(ctx, p.scope(), ids)
	if errors.Is(err, core.ErrNotFound) {
		if found, err = p.those(ctx, ids); err != nil {
			return nil, err
		}
		there := map[string]bool{}
		for i := range found {
			there[found[i].ID] = true
		}
		for _, it := range items {
			if it.op != opDelete && !there[it.id] && !p.s.later(p.session, it) {
				p.missing++
				p.s.log.WarnContext(ctx, "outbox has nothing to deliver: the entry is not in the local store", "session", p.session.String(), "id", it.id)
			}
		}
	}
	if err != nil {
		return nil, fmt.Errorf("local store: %w", passing(err))
	}
	p.sent = append(p.sent, found...)
	return found, nil
}

// those returns the entries that there are of some.
func (p *parcel) those(ctx context.Context, ids []string) ([]core.Entry, error) {
	var out []core.Entry
	for _, id := range ids {
		found, err := p.s.local.Get(ctx, p.scope(), []string{id})
		if errors.Is(err, core.ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("local store: %w", passing(err))
		}
		out = append(out, found...)
	}
	return out, nil
}

// passing makes an error of the local store one that is tried again: it says nothing about what the remote accepts.
func passing(err error) error {
	if permanent(err) {
		return fmt.Errorf("%w: %w", err, core.ErrUnavailable)
	}
	return err
}

func (s *Store) later(id core.SessionID, it item) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.q.later(id, it)
}

// append stores entries in the remote. One that it has with another key is made what it should be: its key was changed here after an
// earlier try had arrived.
func (p *parcel) append(ctx context.Context, entries []core.Entry) error {
	res, err := p.s.far.Append(ctx, entries)
	if len(entries) == 1 && errors.Is(err, core.ErrConflict) {
		uerr := p.s.far.Update(ctx, entries[0].SessionID().Scope(), entries[0].ID, whole(&entries[0]))
		if errors.Is(uerr, core.ErrNotFound) {
			return err // the id is somebody else's
		}
		return uerr
	}
	if err != nil {
		return err
	}
	if len(res.IDs) != len(entries) {
		return fmt.Errorf("remote store named %d ids for %d entries: %w", len(res.IDs), len(entries), core.ErrUnavailable)
	}
	var conflict error
	for i := range entries {
		if err := p.landed(ctx, &entries[i], res.IDs[i]); err != nil && conflict == nil {
			conflict = err
		}
	}
	return conflict
}

// landed takes note under which id the remote has an entry.
func (p *parcel) landed(ctx context.Context, e *core.Entry, remote string) error {
	p.s.mu.Lock()
	have := p.s.q.remoteID(e.ID)
	pending := have != remote && remote != e.ID && !p.s.textOnly && p.s.q.pending(core.Scope{Agent: e.Agent})[remote]
	p.s.mu.Unlock()
	if have == remote {
		return nil
	}
	if p.s.textOnly { // such ids are nobody's here
		p.aliases = append(p.aliases, record{kind: kindAlias, session: e.SessionID(), id: e.ID, remote: remote})
		return nil
	}
	if remote == e.ID {
		p.aliases = append(p.aliases, record{kind: kindAlias, session: e.SessionID(), id: e.ID})
		return nil
	}
	// The key may be that of another entry of ours, whose key was changed here and not there yet.
	_, err := p.s.local.Get(ctx, core.Scope{Agent: e.Agent}, []string{remote})
	if err != nil && !errors.Is(err, core.ErrNotFound) {
		return fmt.Errorf("local store: %w", passing(err))
	}
	if err == nil || pending {
		if p.s.later(p.session, item{change: change{id: e.ID, seq: p.items[len(p.items)-1].seq}}) {
			return nil // a change that waits behind this one will mend it
		}
		return fmt.Errorf("entry %q: the remote store has its key under the id of another entry: %w", e.ID, core.ErrConflict)
	}
	p.aliases = append(p.aliases, record{kind: kindAlias, session: e.SessionID(), id: e.ID, remote: remote})
	return nil
}

// update makes an entry of the remote what the local one is, whatever it was.
func (p *parcel) update(ctx context.Context, items []item) error {
	entries, err := p.current(ctx, items)
	if err != nil || len(entries) == 0 {
		return err
	}
	e := &entries[0]
	if e.Type == core.TypeErased {
		if done, err := p.sweep(ctx, items[0]); done || err != nil {
			return err
		}
	}
	p.s.mu.Lock()
	remote := p.s.q.remoteID(e.ID)
	p.s.mu.Unlock()
	err = p.s.far.Update(ctx, e.SessionID().Scope(), remote, whole(e))
	if errors.Is(err, core.ErrNotFound) {
		if err = p.append(ctx, entries); err == nil {
			p.delivered++
		}
	}
	return err
}

// whole is the change that makes any entry equal to e, apart from its place.
func whole(e *core.Entry) core.Change {
	c := core.Change{Message: &e.Message, Tokens: e.Tokens, Fingerprint: e.Fingerprint, Type: e.Type, Key: e.Key, Meta: e.Meta}
	if c.Meta == nil {
		c.Meta = map[string]string{}
	}
	return c
}

// delete erases entries from the remote. One that is in the local store, because its delete did not come about or it was
// appended again, is stored anew: the remote may have had an older content.
func (p *parcel) delete(ctx context.Context, items []item) error {
	var ids, remote []string
	seen := map[string]bool{}
	for _, it := range items {
		done, err := p.sweep(ctx, it)
		if err != nil {
			return err
		}
		if seen[it.id] = done; done {
			p.aliases = append(p.aliases, record{kind: kindAlias, session: p.session, id: it.id})
		}
	}
	p.s.mu.Lock()
	for _, it := range items {
		if seen[it.id] {
			continue
		}
		seen[it.id] = true
		ids = append(ids, it.id)
		remote = append(remote, p.s.q.remoteID(it.id))
		if r := p.s.q.remoteID(it.id); r != it.id {
			p.aliases = append(p.aliases, record{kind: kindAlias, session: p.session, id: it.id})
		}
	}
	p.s.mu.Unlock()
	if len(remote) == 0 {
		return nil
	}
	if _, err := p.s.far.Delete(ctx, p.scope(), remote); err != nil {
		p.aliases = nil
		return err
	}
	still, err := p.those(ctx, ids)
	if err != nil || len(still) == 0 {
		return err
	}
	return p.append(ctx, still)
}
