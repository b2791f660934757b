package core

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
)

// erasedText stands in a window where a summary was erased.
const erasedText = "[A summary of earlier messages was erased; what else it stood for is stored but not shown.]"

const erasedKind = "erased"

// eachView visits every view of the agent whose entries are erased.
func (er *erasure) eachView(ctx context.Context, visit func(View) error) error {
	q := ViewQuery{Agent: er.req.Scope.Agent, Limit: MaxPage}
	for {
		ids, err := er.e.views.ListViews(ctx, q)
		if err != nil {
			return fmt.Errorf("list views: %w", err)
		}
		for _, id := range ids {
			v, err := er.e.views.LoadView(ctx, id)
			if err != nil {
				continue // it was dropped meanwhile
			}
			if err := visit(v); err != nil {
				return err
			}
		}
		if len(ids) < q.Limit {
			return nil
		}
		q.After = ids[len(ids)-1]
	}
}

// eachHolder visits every view that may show an entry of the agent: its own, and those of forks that belong to others.
func (er *erasure) eachHolder(ctx context.Context, visit func(View) error) error {
	seen := make(map[SessionID]bool)
	var heirs []SessionID
	see := func(v View) error {
		seen[v.Session] = true
		heirs = append(heirs, v.Heirs...)
		return visit(v)
	}
	if err := er.eachView(ctx, see); err != nil {
		return err
	}
	for len(heirs) > 0 {
		id := heirs[0]
		if heirs = heirs[1:]; seen[id] {
			continue
		}
		seen[id] = true
		v, err := er.e.views.LoadView(ctx, id)
		if err != nil {
			continue // it was dropped meanwhile
		}
		if err := see(v); err != nil {
			return err
		}
	}
	return nil
}

// cleanViews takes what is erased out of every view that shows it: sessions in memory first, whatever they are about to publish, then all
// others.
func (er *erasure) cleanViews(ctx context.Context) error {
	done := make(map[SessionID]bool)
	for _, id := range er.e.inMemory(er.req.Scope.Agent) {
		done[id] = true
		if err := er.cleanView(ctx, id); err != nil {
			return err
		}
	}
	return er.eachHolder(ctx, func(v View) error {
		if done[v.Session] || !er.touched(&v) {
			return nil
		}
		return er.cleanView(ctx, v.Session)
	})
}

// inMemory lists the sessions that the engine holds in memory and that may show entries of an agent; all when it is empty.
func (e *Engine) inMemory(agent string) []SessionID {
	e.mu.Lock()
	defer e.mu.Unlock()
	out := make([]SessionID, 0, len(e.sessions))
	for id, s := range e.sessions {
		if agent == "" || id.Agent == agent || s.adopted.Load() {
			out = append(out, id)
		}
	}
	return out
}

// cleanView publishes a session's view without what is erased.
func (er *erasure) cleanView(ctx context.Context, id SessionID) error {
	return er.e.retry(ctx, id, func(s *session) error {
		if !er.touched(&s.view) {
			return nil
		}
		v := s.view.Clone()
		for i := range v.Summaries {
			if err := er.late(ctx, id, &v.Summaries[i]); err != nil {
				return err
			}
			er.blank(&v.Summaries[i])
		}
		for sid := range v.Stubs {
			if er.ids[sid] {
				delete(v.Stubs, sid)
			}
		}
		if er.ids[v.Pinned] {
			v.Pinned = ""
		}
		if er.req.Purge && slices.ContainsFunc(v.Path, func(sp Span) bool { return sp.Session != nil && er.req.Scope.Contains(*sp.Session) }) {
			v.disown()
		}
		v.Recall, v.Shown = nil, nil
		v.Start = -1 // what was too much before may fit now, and something must be shown
		v.Epoch++
		v.Erased++
		s.forget()
		err := er.e.publish(ctx, s, v)
		s.loaded = err == nil
		if err == nil {
			er.rec.Views++
		}
		return err
	})
}

// late finds a summary of erased entries that a compaction published while the erasure was under way.
func (er *erasure) late(ctx context.Context, id SessionID, sum *Summary) error {
	if er.summaries[sum.ID] || sum.Kind == erasedKind || !er.standsFor(sum.Of) {
		return nil
	}
	if _, err := er.e.store.Delete(ctx, id.Scope(), []string{sum.ID}); err != nil {
		return err
	}
	er.summaries[sum.ID] = true
	er.rec.Summaries++
	er.e.observe(ctx, func(o Observer) error { return o.Deleted(ctx, id.Scope(), []string{sum.ID}) }, 1)
	return nil
}

// standsFor reports whether spans hold an erased entry.
func (er *erasure) standsFor(of []Span) bool {
	for id, entries := range er.spans {
		for _, entry := range entries {
			if slices.ContainsFunc(of, func(sp Span) bool { return sp.holds(id, entry.Seq) }) {
				return true
			}
		}
	}
	return false
}

// blank empties a summary that stands for something erased. It keeps its place: what it covers stays out of the window.
func (er *erasure) blank(sum *Summary) {
	if !er.summaries[sum.ID] {
		return
	}
	sum.Text, sum.Kind = erasedText, erasedKind
	sum.Tokens = er.e.messageCost(summaryMessage(*sum))
}

// erasedPrint is what an erased entry is known by: a digest that tells whether a host's message is the one that was erased, and nothing else.
func erasedPrint(id SessionID, fingerprint string) string {
	sum := sha256.Sum256([]byte("erased\x00" + id.Agent + "\x00" + id.Session + "\x00" + fingerprint))
	return "erased:" + hex.EncodeToString(sum[:12])
}

// recognise gives erased entries on a path the fingerprints of the host's messages that they were, so that these are not taken for new ones.
func recognise(known []knownEntry, rows []row) {
	owners := make(map[SessionID]map[string][]int)
	for i, k := range known {
		if !k.erased {
			continue
		}
		if owners[k.owner] == nil {
			owners[k.owner] = make(map[string][]int)
		}
		owners[k.owner][k.fp] = append(owners[k.owner][k.fp], i)
	}
	for owner, prints := range owners {
		for _, r := range rows {
			for _, i := range prints[erasedPrint(owner, r.fp)] {
				known[i].fp, known[i].soft = r.fp, known[i].leads
			}
		}
	}
}
