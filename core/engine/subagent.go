package engine

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/edit"
	"github.com/contextengine/contextengine/core/message"
	"github.com/contextengine/contextengine/core/window"
)

// Maintain does what can wait: it compacts when enough history has left the window. It is meant to be called off the reply path.
func (e *Engine) Maintain(ctx context.Context, req core.MaintainRequest) (_ core.MaintainResult, err error) {
	ctx, end := e.begin(ctx, "Maintain", req.Session)
	defer func() { end(err) }()
	leave, err := e.join("maintain")
	if err != nil {
		return core.MaintainResult{}, err
	}
	defer leave()
	if !e.cfg.Compaction.Proactive || !e.compactor.OwnsCompaction() {
		return core.MaintainResult{Reason: "nothing to do"}, nil
	}
	if err := e.quarantined(req.Session); err != nil {
		return core.MaintainResult{}, err
	}
	s, done, err := e.open(ctx, req.Session)
	if err != nil {
		return core.MaintainResult{}, e.failed(ctx, "store", "maintain", err)
	}
	due := e.cfg.due(&s.view)
	done()
	if !due {
		return core.MaintainResult{Reason: core.ReasonBelowThreshold}, nil
	}
	res, err := e.Compact(ctx, core.CompactRequest{
		Session: req.Session, Budget: req.Budget, Target: core.TargetThreshold, Trigger: "maintain", Settings: req.Settings,
		TranscriptScope: req.TranscriptScope,
	})
	if err != nil {
		return core.MaintainResult{}, err
	}
	return core.MaintainResult{Changed: res.Compacted, Reason: res.Reason}, nil
}

// PrepareSubagentSpawn prepares a child session. A fork begins with what the parent shows now, an isolated child with nothing. Both may recall from the
// parent until their grant expires, and the parent may search what they say; an isolated child gets no grant when Config.Subagents.Recall is off.
// Rollback takes the preparation back.
//
// What an isolated child recalls was said before it was spawned: the turn that spawned it says the task again.
func (e *Engine) PrepareSubagentSpawn(ctx context.Context, req core.SpawnRequest) (_ core.Spawn, err error) {
	ctx, end := e.begin(ctx, "PrepareSubagentSpawn", req.Child)
	defer func() { end(err) }()
	if err := req.Parent.Validate(); err != nil {
		return core.Spawn{}, err
	}
	if err := req.Child.Validate(); err != nil {
		return core.Spawn{}, err
	}
	if req.Parent == req.Child {
		return core.Spawn{}, invalid("spawn", "child", "must be another session than the parent")
	}
	ttl := req.TTL
	if ttl == 0 {
		ttl = e.cfg.Subagents.TTL
	}
	if ttl < 0 {
		return core.Spawn{}, invalid("spawn", "ttl", "must not be negative")
	}
	if req.Mode != core.SpawnFork && req.Mode != core.SpawnIsolated && req.Mode != "" {
		return core.Spawn{}, invalid("spawn", "contextMode", `must be "isolated" or "fork"`)
	}
	for n := 0; ; n++ {
		spawn, err := e.spawn(ctx, req, ttl)
		if !errors.Is(err, errOvertaken) {
			return spawn, err
		}
		if n == stuck {
			return core.Spawn{}, fmt.Errorf("core: spawn %q: what %q shows is being erased: %w", req.Child, req.Parent, core.ErrConflict)
		}
		if err := pause(ctx, n); err != nil {
			return core.Spawn{}, fmt.Errorf("core: spawn %q: others keep erasing what its parent shows: %w", req.Child, err)
		}
	}
}

// spawn is one try of PrepareSubagentSpawn. It is errOvertaken when something was erased of what a fork took over, before it could be seen to be one.
func (e *Engine) spawn(ctx context.Context, req core.SpawnRequest, ttl time.Duration) (core.Spawn, error) {
	var parent *core.View
	s, done, err := e.open(ctx, req.Parent)
	if err != nil {
		return core.Spawn{}, e.failed(ctx, "store", "spawn", err)
	}
	arm, before, closed := s.view.Arm, s.view.Next, outOfForce(&s.view)
	others := map[core.SessionID]uint64{req.Parent: s.mark}
	maps.Copy(others, s.others)
	blank := s.blank.Clone()
	if req.Mode == core.SpawnFork {
		v := s.view.Clone()
		parent, before = &v, 0
	} else if before == 0 {
		before = -1
	}
	done()
	opens := parent != nil || e.cfg.Subagents.Recall
	if opens && (req.Child.Agent != req.Parent.Agent || parent != nil && elsewhere(parent, req.Child.Agent)) {
		if err := e.inherits(ctx, req.Parent, req.Child); err != nil {
			return core.Spawn{}, e.failed(ctx, "store", "spawn", err)
		}
	}
	var had core.View
	spawn := core.Spawn{}
	now := e.now()
	grant := core.Grant{ID: e.newID(), Scope: req.Parent.Scope(), Until: now.Add(ttl), Before: before, Closed: closed}
	err = e.retry(ctx, req.Child, func(s *session) error {
		had = s.view.Clone()
		if unused(&had, req.Parent) { // an earlier call prepared it, whose answer was lost
			had = core.View{Session: req.Child, Version: had.Version}
			had.Apply(edit.Count{Next: s.view.Next}, edit.Epoch{Known: s.view.Epoch})
		}
		if had.Len() > 0 {
			return fmt.Errorf("core: spawn: child %q has messages already: %w", req.Child, core.ErrConflict)
		}
		v := had.Clone()
		v.Apply(edit.Adopt{Parent: req.Parent}, edit.Enlist{Arm: arm})
		if parent != nil {
			v.Apply(edit.Inherit{Parent: parent})
		}
		if opens {
			v.Apply(edit.Allow{Grant: grant, Now: now})
		}
		if parent != nil {
			for _, g := range handedOn(parent, grant) {
				v.Apply(edit.Allow{Grant: g, Now: now})
			}
		}
		s.cool()
		s.gone, s.others = nil, others // as they were when the parent was read
		if s.blank != nil {
			maps.Copy(s.blank, blank.Clone()) // another try must not find them changed
		}
		return s.publish(ctx, v)
	})
	if err != nil {
		return core.Spawn{}, e.failed(ctx, "store", "spawn", err)
	}
	spawn.Rollback = func(ctx context.Context) error {
		return errors.Join(e.rollback(ctx, req.Child, had, grant.ID), e.closes(ctx, req.Parent, req.Child))
	}
	if err := e.unerased(ctx, parent); err != nil {
		back := spawn.Rollback(context.WithoutCancel(ctx))
		if back == nil && errors.Is(err, errOvertaken) {
			return core.Spawn{}, err
		}
		return core.Spawn{}, e.failed(ctx, "store", "spawn", errors.Join(err, back))
	}
	if !opens {
		return spawn, nil
	}
	spawn.GrantID = grant.ID
	back := core.Grant{ID: grant.ID, Scope: req.Child.Scope(), Until: grant.Until, Search: true}
	// An earlier call may have given one whose answer was lost.
	if err := e.grants(ctx, req.Parent, edit.Revoke{Search: back.Scope}, edit.Allow{Grant: back, Now: e.now()}); err != nil {
		return core.Spawn{}, e.failed(ctx, "store", "spawn", errors.Join(err, spawn.Rollback(context.WithoutCancel(ctx))))
	}
	return spawn, nil
}

// unused reports whether a view was prepared for a subagent of a parent, and nothing was said in it, nor did it prepare others.
func unused(v *core.View, parent core.SessionID) bool {
	own := func(sp core.Span) bool { return *sp.Owned(v.Session).Session == v.Session }
	back := func(g core.Grant) bool { return g.Search }
	return v.Parent != nil && *v.Parent == parent && len(v.Commits)+len(v.Heirs) == 0 && !slices.ContainsFunc(v.Path, own) && !slices.ContainsFunc(v.Grants, back)
}

// unerased returns errOvertaken when something was erased since a view was read that a fork took over, or is being purged; nil is the view of none.
func (e *Engine) unerased(ctx context.Context, parent *core.View) error {
	if parent == nil || parent.Version == 0 {
		return nil
	}
	v, err := e.views.LoadView(ctx, parent.Session)
	if errors.Is(err, core.ErrNotFound) || err == nil && (v.Erased != parent.Erased || v.Version < parent.Version) {
		return errOvertaken
	}
	seen := make(map[core.SessionID]bool)
	for _, sp := range parent.Path {
		owner := *sp.Owned(parent.Session).Session
		if err != nil || seen[owner] {
			continue
		}
		seen[owner] = true
		var first core.Entry
		first, err = core.First(ctx, e.store, core.ScanQuery{Scope: owner.Scope(), FromSeq: sp.From})
		if errors.Is(err, core.ErrNotFound) || err == nil && first.Seq != sp.From { // a purge deletes the entries first, and then the view
			err = errOvertaken
		}
	}
	return err
}

// handedOn are the grants of a parent that a fork gets with its own: what the parent inherited, the fork shows as well, and no longer than either may.
func handedOn(parent *core.View, own core.Grant) []core.Grant {
	var out []core.Grant
	for _, g := range parent.Grants {
		if !g.Search {
			g.ID = own.ID
			if own.Until.Before(g.Until) {
				g.Until = own.Until
			}
			out = append(out, g)
		}
	}
	return out
}

// elsewhere reports whether a view shows entries of other agents.
func elsewhere(v *core.View, agent string) bool {
	return slices.ContainsFunc(v.Path, func(sp core.Span) bool { return sp.Owned(v.Session).Session.Agent != agent })
}

// grants changes what is open to a session.
func (e *Engine) grants(ctx context.Context, id core.SessionID, changes ...core.Edit) error {
	return e.retry(ctx, id, func(s *session) error {
		v := s.view.Clone()
		v.Apply(changes...)
		return s.publish(ctx, v)
	})
}

// closes takes from a parent what it may search of a child.
func (e *Engine) closes(ctx context.Context, parent, child core.SessionID) error {
	return e.retry(ctx, parent, func(s *session) error {
		v := s.view.Clone()
		if v.Apply(edit.Revoke{Search: child.Scope()}); len(v.Grants) == len(s.view.Grants) {
			return nil
		}
		return s.publish(ctx, v)
	})
}

// inherits notes a fork that belongs to another agent. It is noted before the fork is made, so that none is missed.
func (e *Engine) inherits(ctx context.Context, parent, child core.SessionID) error {
	return e.retry(ctx, parent, func(s *session) error {
		if slices.Contains(s.view.Heirs, child) {
			return nil
		}
		v := s.view.Clone()
		v.Apply(edit.Heir{Session: child})
		return s.publish(ctx, v)
	})
}

// rollback takes a preparation back. A child that has been used keeps its conversation, and nothing stays open to it by that preparation's grants.
func (e *Engine) rollback(ctx context.Context, child core.SessionID, had core.View, grant string) error {
	return e.retry(ctx, child, func(s *session) error {
		if s.view.Parent == nil {
			return nil
		}
		v := had.Clone()
		if s.view.Next > had.Next {
			v = s.view.Clone()
			if v.Apply(edit.Revoke{ID: grant}); len(v.Grants) == len(s.view.Grants) {
				return nil
			}
		}
		s.cool()
		s.outputs = nil
		return s.publish(ctx, v)
	})
}

// OnSubagentEnded puts the child's result into the parent's conversation and ends the child's access to its parent. Called again for the same
// child and result it changes nothing.
func (e *Engine) OnSubagentEnded(ctx context.Context, req core.SubagentEnded) (err error) {
	ctx, end := e.begin(ctx, "OnSubagentEnded", req.Child)
	defer func() { end(err) }()
	if err := req.Child.Validate(); err != nil {
		return err
	}
	parent := req.Parent
	if parent != (core.SessionID{}) {
		if err := parent.Validate(); err != nil {
			return err
		}
	}
	result := req.Result
	err = e.retry(ctx, req.Child, func(s *session) error {
		if parent == (core.SessionID{}) && s.view.Parent != nil {
			parent = *s.view.Parent
		}
		if window.Blank(result) {
			var err error
			if result, err = s.lastAnswer(ctx); err != nil {
				return err
			}
		}
		if len(s.view.Grants) == 0 {
			return nil
		}
		v := s.view.Clone()
		v.Apply(edit.Revoke{})
		return s.publish(ctx, v)
	})
	if err != nil {
		return e.failed(ctx, "store", "subagent ended", err)
	}
	if parent == (core.SessionID{}) || window.Blank(result) {
		return nil
	}
	tries := make(tries)
	err = e.retry(ctx, parent, func(s *session) error {
		v := s.view.Clone()
		m := message.New(message.Assistant, e.redact.edit(result))
		m.Key = "subagent:" + req.Child.String() + ":" + message.Fingerprint(m)
		in, err := s.append(ctx, &v, draft{
			messages: []message.Message{m}, kind: core.TypeSubagent, tries: tries,
			meta: map[string]string{"child": req.Child.Session, "reason": req.Reason},
		})
		if err != nil {
			return err
		}
		if len(in.entries)+len(in.before) > 0 {
			if err := e.unquote(ctx, &v, req.Child, &m); err != nil {
				return err
			}
		}
		return s.adopt(ctx, v, in)
	})
	return e.failed(ctx, "store", "subagent ended", err)
}

// unquote takes out what was recalled where that quotes what a child handed back: the window shows it as its result now.
func (e *Engine) unquote(ctx context.Context, v *core.View, child core.SessionID, result *message.Message) error {
	said, blocks := message.Fingerprint(*result), recallsOf(v)
	for i, r := range blocks {
		for _, it := range r.Items {
			got, err := e.store.Get(ctx, child.Scope(), []string{it.ID})
			if errors.Is(err, core.ErrNotFound) {
				continue // it is another session's
			}
			if err != nil {
				return fmt.Errorf("core: subagent %q: read what was recalled: %w", child, err)
			}
			if message.Fingerprint(message.New(message.Assistant, got[0].Said())) != said {
				continue
			}
			if v.Recall != nil && i == len(blocks)-1 && v.Recall.Text != "" {
				v.Apply(edit.Recall{}) // the next call makes another one
				return nil
			}
			v.Apply(edit.Unrecall{}, edit.Anew{})
			return nil
		}
	}
	return nil
}

// lastAnswer returns the text of the newest assistant message of the child's own that is in force and says something.
func (s *session) lastAnswer(ctx context.Context) (string, error) {
	copied, err := s.e.reader.copied(ctx, &s.view)
	if err != nil {
		return "", fmt.Errorf("core: subagent %q: %w", s.id, err)
	}
	const step = 64
	for to := s.view.Len(); to > 0; to -= step {
		items, err := s.e.reader.read(ctx, &s.view, max(to-step, 0), to)
		if err != nil {
			return "", fmt.Errorf("core: subagent %q: %w", s.id, err)
		}
		for _, it := range slices.Backward(items) {
			if text := it.entry.Said(); !window.Blank(text) && answers(&it.entry, s.id) && !copied[it.entry.ID] {
				return text, nil
			}
		}
	}
	return "", nil
}

// answers reports whether an entry is what the assistant said in a session.
func answers(entry *core.Entry, id core.SessionID) bool {
	return entry.Role == message.Assistant && entry.Type == core.TypeMessage && entry.SessionID() == id
}
