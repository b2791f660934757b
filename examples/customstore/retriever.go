package main

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/message"
)

// FactsConfig is what an operator can set.
type FactsConfig struct {
	Patterns []string `koanf:"patterns" doc:"regular expressions for sentences of the user worth remembering; upper and lower case are the same"`
	Limit    int      `koanf:"limit" doc:"largest number of facts recalled at once, at least 1"`
}

// DefaultFactsConfig returns the configuration that holds where nobody chose.
func DefaultFactsConfig() FactsConfig {
	return FactsConfig{Patterns: []string{`\bremember\b`, `\bprefer`, `\bmy (\w+ ){1,3}(is|are)\b`}, Limit: 10}
}

// Facts is a retriever with a memory of its own. The engine tells it about changes (core.Observer); what was there before, it reads
// from the store when somebody first asks (core.Attacher). It is safe for concurrent use; NewFacts makes one.
type Facts struct {
	patterns []*regexp.Regexp
	limit    int

	mu     sync.Mutex // never held while the store is read
	store  core.Store
	agents map[string]*agentFacts
}

var (
	_ core.Retriever = (*Facts)(nil)
	_ core.Observer  = (*Facts)(nil)
	_ core.Attacher  = (*Facts)(nil)
)

// agentFacts is what is known of one agent.
type agentFacts struct {
	facts map[string]fact // by entry id
	// Until ready, the store has to be read from next on. What the engine tells meanwhile is newer than what is read: entries in
	// told, by id and the scopes they were told for, are not taken from the store any more.
	ready bool
	next  core.Cursor
	told  map[string][]core.Scope
}

type fact struct {
	entry core.Entry
	text  string
	words map[string]bool
}

// NewFacts returns a retriever. A configuration that cannot be used is a core.ErrInvalid.
func NewFacts(cfg FactsConfig) (*Facts, error) {
	if cfg.Limit < 1 {
		return nil, fmt.Errorf("facts: limit: must be at least 1: %w", core.ErrInvalid)
	}
	f := &Facts{limit: cfg.Limit, agents: map[string]*agentFacts{}}
	for _, p := range cfg.Patterns {
		re, err := regexp.Compile("(?i)" + p)
		if err != nil {
			return nil, fmt.Errorf("facts: patterns: %v: %w", err, core.ErrInvalid)
		}
		f.patterns = append(f.patterns, re)
	}
	return f, nil
}

// Attach implements core.Attacher. There is no context to read the store with, so that is left to Retrieve.
func (f *Facts) Attach(store core.Store) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.store = store
	return nil
}

// Retrieve implements core.Retriever: facts that share words with the prompt come first, then the newest.
func (f *Facts) Retrieve(ctx context.Context, q core.Query) ([]core.Candidate, error) {
	for _, scope := range q.Scopes() {
		if err := f.catchUp(ctx, scope.Agent); err != nil {
			return nil, fmt.Errorf("facts: retrieve %q: %w", q.Session, err)
		}
	}
	asked := wordsOf(q.Prompt)
	f.mu.Lock()
	defer f.mu.Unlock()
	var out []core.Candidate
	seen := map[string]bool{}
	for _, scope := range q.Scopes() {
		for id, known := range f.of(scope.Agent).facts {
			if seen[id] || !scope.Contains(known.entry.SessionID()) || q.InWindow != nil && q.InWindow(id) {
				continue
			}
			seen[id] = true
			score := 1.0
			for w := range asked {
				if known.words[w] {
					score++
				}
			}
			out = append(out, core.Candidate{Entry: own(known.entry), Text: known.text, Score: score, Source: "facts"})
		}
	}
	// A map has no order; this one is total, so that the same question has the same answer.
	slices.SortFunc(out, func(a, b core.Candidate) int {
		return cmp.Or(cmp.Compare(b.Score, a.Score), b.Entry.Time.Compare(a.Entry.Time), cmp.Compare(b.Entry.Seq, a.Entry.Seq), cmp.Compare(a.Entry.ID, b.Entry.ID))
	})
	return out[:min(len(out), q.Limit, f.limit)], nil
}

// catchUp reads an agent's entries from the store, once. When ctx ends, the next call goes on where this one was.
func (f *Facts) catchUp(ctx context.Context, agent string) error {
	for {
		f.mu.Lock()
		m, store := f.of(agent), f.store
		ready, next := m.ready, m.next
		f.mu.Unlock()
		if err := ctx.Err(); err != nil || ready {
			return err
		}
		if store == nil {
			return fmt.Errorf("no store is attached: call Attach first: %w", core.ErrInvalid)
		}
		page, err := store.Scan(ctx, core.ScanQuery{Scope: core.Scope{Agent: agent}, Cursor: next, Limit: 200})
		if err != nil && ctx.Err() == nil {
			f.mu.Lock()
			m.next = "" // the store may have been restarted, and its cursors with it: begin anew the next time
			f.mu.Unlock()
		}
		if err != nil {
			return err
		}
		f.mu.Lock()
		for _, e := range page.Entries {
			if !m.ready && !m.wasTold(e) {
				f.learn(m, e)
			}
		}
		if m.next = page.Next; m.next == "" {
			m.ready, m.told = true, nil
		}
		f.mu.Unlock()
	}
}

// Appended implements core.Observer.
func (f *Facts) Appended(_ context.Context, entries []core.Entry) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, e := range entries {
		f.learn(f.of(e.Agent), own(e))
	}
	return nil
}

// Updated implements core.Observer.
func (f *Facts) Updated(_ context.Context, e core.Entry) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	m := f.of(e.Agent)
	m.tell(e.SessionID().Scope(), e.ID)
	f.learn(m, own(e))
	return nil
}

// Deleted implements core.Observer.
func (f *Facts) Deleted(_ context.Context, scope core.Scope, ids []string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	m := f.of(scope.Agent)
	for _, id := range ids {
		m.tell(scope, id)
		if known, ok := m.facts[id]; ok && scope.Contains(known.entry.SessionID()) {
			delete(m.facts, id)
		}
	}
	return nil
}

// of returns what is known of an agent; f.mu is held.
func (f *Facts) of(agent string) *agentFacts {
	m := f.agents[agent]
	if m == nil {
		m = &agentFacts{facts: map[string]fact{}, told: map[string][]core.Scope{}}
		f.agents[agent] = m
	}
	return m
}

func (m *agentFacts) tell(scope core.Scope, id string) {
	if !m.ready {
		m.told[id] = append(m.told[id], scope)
	}
}

func (m *agentFacts) wasTold(e core.Entry) bool {
	return slices.ContainsFunc(m.told[e.ID], func(s core.Scope) bool { return s.Contains(e.SessionID()) })
}

// learn remembers what an entry says now. Only the user states facts.
func (f *Facts) learn(m *agentFacts, e core.Entry) {
	delete(m.facts, e.ID)
	if e.Type != core.TypeMessage || e.Role != message.User {
		return
	}
	var facts []string
	for s := range strings.FieldsFuncSeq(e.Text(), func(r rune) bool { return strings.ContainsRune(".!?\r\n", r) }) {
		if s = strings.TrimSpace(s); s != "" && slices.ContainsFunc(f.patterns, func(p *regexp.Regexp) bool { return p.MatchString(s) }) {
			facts = append(facts, s)
		}
	}
	if text := strings.Join(facts, ". "); text != "" {
		m.facts[e.ID] = fact{entry: e, text: text, words: wordsOf(text)}
	}
}

// wordsOf returns the words of more than three bytes: most of what is shorter is in every sentence.
func wordsOf(text string) map[string]bool {
	words := map[string]bool{}
	for w := range strings.FieldsFuncSeq(strings.ToLower(text), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }) {
		if len(w) > 3 {
			words[w] = true
		}
	}
	return words
}
