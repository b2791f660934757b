package outbox

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/upkeep"
)

// copyPage is how many entries of the remote's history are copied at a time.
const copyPage = 200

// complete reports whether the local store has everything of a scope.
func (s *Store) complete(scope core.Scope) bool {
	if !s.cfg.Hydrate {
		return true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.q.copied[scope.Agent]
	return c != nil && (c.done || scope.Session != "" && c.sessions[scope.Session])
}

// copyFor makes the local store complete for a scope, and has the rest of the agent's history copied in the background.
func (s *Store) copyFor(ctx context.Context, scope core.Scope) error {
	if s.complete(scope) {
		return nil
	}
	s.mu.Lock()
	if c := s.q.copied[scope.Agent]; (c == nil || !c.done) && !slices.Contains(s.wanted, scope.Agent) {
		s.wanted = append(s.wanted, scope.Agent)
	}
	s.mu.Unlock()
	defer s.nudge()
	for {
		if done, err := s.copySome(ctx, scope); done || err != nil {
			return err
		}
		if s.closed.Load() {
			return core.ErrClosed
		}
	}
}

// copySome copies one page of a scope's remote history, all of it if the scope is a session, and reports whether that was the last.
// An agent's place is kept over restarts, a session's is not.
func (s *Store) copySome(ctx context.Context, scope core.Scope) (bool, error) {
	select {
	case s.copying <- struct{}{}:
		defer func() { <-s.copying }()
	case <-ctx.Done():
		return false, ctx.Err()
	}
	return s.copyNext(ctx, scope)
}

// copyNext is copySome for the holder of copying.
func (s *Store) copyNext(ctx context.Context, scope core.Scope) (bool, error) {
	if s.complete(scope) {
		return true, nil
	}
	if scope.Session != "" {
		// One session is short enough to be copied at once.
		for cursor := core.Cursor(""); ; {
			next, err := s.copyPage(ctx, scope, cursor)
			if err != nil || next == "" {
				return err == nil, err
			}
			if cursor = next; s.closed.Load() {
				return false, core.ErrClosed
			}
		}
	}
	s.mu.Lock()
	var cursor core.Cursor
	if c := s.q.copied[scope.Agent]; c != nil {
		cursor = c.cursor
	}
	s.mu.Unlock()
	next, err := s.copyPage(ctx, scope, cursor)
	if cursor != "" && errors.Is(err, core.ErrInvalid) {
		// The remote does not know its cursor any more. What was copied is not copied again.
		next, err = s.copyPage(ctx, scope, "")
	}
	return err == nil && next == "", err
}

// copyPage copies one page. What was changed here while the page was under way is left out: it is newer than the page.
func (s *Store) copyPage(ctx context.Context, scope core.Scope, cursor core.Cursor) (core.Cursor, error) {
	for {
		reloads := s.watch()
		page, err := s.fetch(ctx, scope, cursor)
		if err != nil {
			s.unwatch()
			return "", err
		}
		if err := s.acquire(ctx); err != nil {
			s.unwatch()
			return "", err
		}
		if s.reloadCount() != reloads {
			// Another process wrote the journal anew, and what it dropped may have been about this page.
			s.release()
			continue
		}
		err = s.adopt(ctx, scope, page)
		s.release()
		return page.Next, err
	}
}

func (s *Store) fetch(ctx context.Context, scope core.Scope, cursor core.Cursor) (core.Page, error) {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.AttemptTimeout)
	defer cancel()
	return s.far.Scan(ctx, core.ScanQuery{Scope: scope, Cursor: cursor, Limit: copyPage})
}

// watch begins to collect the ids of changes.
func (s *Store) watch() (reloads int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.q.watched = map[string]bool{}
	return s.reloads
}

func (s *Store) reloadCount() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.reloads
}

func (s *Store) unwatch() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.q.watched = nil
}

// adopt stores a page of the remote's in the local store. The right to change it is held.
func (s *Store) adopt(ctx context.Context, scope core.Scope, page core.Page) error {
	s.mu.Lock()
	newer := s.q.pending(scope)
	for id := range s.q.watched {
		newer[id] = true
	}
	s.q.watched = nil
	fresh := slices.DeleteFunc(slices.Clone(page.Entries), func(e core.Entry) bool {
		return newer[e.ID] || newer[s.q.localID(e.ID)]
	})
	s.mu.Unlock()
	bare, err := s.bare(ctx, fresh)
	if err != nil {
		return err
	}
	records, err := s.adoptAll(ctx, fresh)
	if err != nil {
		return err
	}
	if bare > 0 {
		records = append(records, record{kind: kindBare, bare: bare})
	}
	records = append(records, record{
		kind: kindCopied, session: core.SessionID(scope), cursor: string(page.Next), done: page.Next == "",
	})
	if err := s.j.write(records...); err != nil {
		return err
	}
	s.note(records...)
	return nil
}

// bare counts those of a page that come with their text alone and are not here yet.
func (s *Store) bare(ctx context.Context, entries []core.Entry) (uint64, error) {
	var n uint64
	for i := range entries {
		if entries[i].Meta[upkeep.MetaTextOnly] == "" || entries[i].Type == core.TypeErased {
			continue
		}
		_, err := s.local.Get(ctx, core.Scope(entries[i].SessionID()), []string{entries[i].ID})
		switch {
		case errors.Is(err, core.ErrNotFound):
			n++
		case err != nil:
			return 0, err
		}
	}
	return n, nil
}

// adoptAll returns the aliases of entries whose keys the local store has under other ids.
func (s *Store) adoptAll(ctx context.Context, entries []core.Entry) ([]record, error) {
	if len(entries) == 0 {
		return nil, nil
	}
	res, err := s.local.Append(ctx, entries)
	if errors.Is(err, core.ErrConflict) && len(entries) == 1 {
		// The remote may let several have one position; the local store does not.
		if res, err = core.AppendMoved(ctx, s.local, entries); errors.Is(err, core.ErrConflict) {
			return nil, nil // it was here before, and has another key since
		}
	}
	if errors.Is(err, core.ErrConflict) {
		var out []record
		for i := range entries {
			records, err := s.adoptAll(ctx, entries[i:i+1])
			if err != nil {
				return nil, err
			}
			out = append(out, records...)
		}
		return out, nil
	}
	if err != nil {
		return nil, err
	}
	var out []record
	for i, id := range res.IDs {
		if i < len(entries) && id != entries[i].ID {
			out = append(out, record{kind: kindAlias, session: entries[i].SessionID(), id: id, remote: entries[i].ID})
		}
	}
	return out, nil
}

// hydrate copies one page for the first agent that waits for it, and reports whether it had anything to do. Failures are tried again
// later.
func (s *Store) hydrate(ctx context.Context) bool {
	s.mu.Lock()
	var agent string
	if len(s.wanted) > 0 && !time.Now().Before(s.asked) {
		agent = s.wanted[0]
	}
	s.mu.Unlock()
	if agent == "" {
		return false
	}
	select {
	case s.copying <- struct{}{}:
	default:
		return false // a call copies what it needs, which may take long: there may be something to deliver meanwhile
	}
	done, err := s.copyNext(ctx, core.Scope{Agent: agent})
	<-s.copying
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case err != nil:
		s.askFails++
		s.asked = time.Now().Add(max(s.backoff(s.askFails), askedWait(err)))
		s.failedWith(err, nil)
	case done:
		s.wanted = slices.DeleteFunc(s.wanted, func(a string) bool { return a == agent })
		fallthrough
	default:
		s.askFails = 0
	}
	return true
}
