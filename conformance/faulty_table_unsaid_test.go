package conformance_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/contextengine/contextengine/backends/memory"
	"github.com/contextengine/contextengine/conformance"
	"github.com/contextengine/contextengine/core"
)

// tableUnsaid are retrievers that are wrong where a call was given up, a name is long, many are found, or several fail or are late at once.
func tableUnsaid() []broken {
	calls := func(id, name string, f func(ctx context.Context, q core.Query, s sound) ([]core.Candidate, error)) broken {
		return caughtRetriever(id, name, func() func(context.Context, core.Query, sound) ([]core.Candidate, error) { return f })
	}
	plain := func(ctx context.Context, q core.Query, s sound) ([]core.Candidate, error) { return s(ctx, q) }
	over := func(id, name string, around func(*asker) core.Retriever) broken {
		return caughtRetriever(id, name, func() func(context.Context, core.Query, sound) ([]core.Candidate, error) { return plain }, overSearchers(around))
	}
	keeper := func(name string, change func(*keeps)) broken {
		return over("retrieve.late-searcher", name, func(a *asker) core.Retriever {
			k := newKeeps(a)
			change(k)
			return k
		})
	}
	return []broken{
		toldAlone("cancel.retrieve", "what was read until the time was over is all there is", func() core.Retriever { return &readsOnce{half: func(error) bool { return true }} }),
		toldAlone("cancel.retrieve", "what was read until a deadline is all there is", func() core.Retriever {
			return &readsOnce{half: func(err error) bool { return errors.Is(err, context.DeadlineExceeded) }}
		}),
		calls("retrieve.granted", "names of sessions are 200 bytes long", namesAs(func(s string) string { return s[:min(len(s), 200)] })),
		calls("retrieve.granted", "names of sessions are normalised", namesAs(func(s string) string { return strings.ReplaceAll(s, "e\u0301", "\u00e9") })),
		calls("retrieve.limit", "the first sixty are in order", func(ctx context.Context, q core.Query, s sound) ([]core.Candidate, error) {
			got, err := s(ctx, q)
			slices.SortFunc(got[min(len(got), 60):], func(a, b core.Candidate) int { return strings.Compare(a.Entry.ID, b.Entry.ID) })
			return got, err
		}),
		calls("retrieve.limit", "a large window of the host's has room for more", func(ctx context.Context, q core.Query, s sound) ([]core.Candidate, error) {
			if q.Settings.ContextWindow >= 128_000 {
				q.Limit *= 2
			}
			return s(ctx, q)
		}),
		calls("retrieve.limit", "what is newer than now has a score that is no number", func(ctx context.Context, q core.Query, s sound) ([]core.Candidate, error) {
			got, err := s(ctx, q)
			for i := range got {
				if got[i].Entry.Time.After(q.Now) {
					got[i].Score = math.Sqrt(q.Now.Sub(got[i].Entry.Time).Seconds())
				}
			}
			return got, err
		}),
		calls("retrieve.limit", "one more where the best asks something", func(ctx context.Context, q core.Query, s sound) ([]core.Candidate, error) {
			limit := q.Limit
			q.Limit++
			got, err := s(ctx, q)
			if len(got) > limit && !strings.HasSuffix(got[0].Entry.Text(), "?") {
				got = got[:limit]
			}
			return got, err
		}),
		calls("retrieve.clock", "scores fall with each day by the machine's clock, and no order changes", func(ctx context.Context, q core.Query, s sound) ([]core.Candidate, error) {
			got, err := s(ctx, q)
			for i := range got {
				got[i].Score -= float64(i) * time.Since(got[i].Entry.Time).Abs().Hours()
			}
			return got, err
		}),
		calls("retrieve.content", "what a text says behind its first 2,000 bytes", func(ctx context.Context, q core.Query, s sound) ([]core.Candidate, error) {
			got, err := s(ctx, q)
			for i := range got {
				for n, p := range got[i].Entry.Message.Parts {
					got[i].Entry.Message.Parts[n].Text = p.Text[:min(len(p.Text), 2000)]
				}
			}
			return got, err
		}),
		toldAlone("cancel.told", "says nothing of what it was told of too late: Appended", func() core.Retriever { return &tooLate{of: "Appended"} }),
		toldAlone("cancel.told", "says nothing of what it was told of too late: Updated", func() core.Retriever { return &tooLate{of: "Updated"} }),
		toldAlone("cancel.told", "says nothing of what it was told of too late: Deleted", func() core.Retriever { return &tooLate{of: "Deleted"} }),
		toldAlone("cancel.told", "what it was told of too late is an error of its own", func() core.Retriever { return &tooLate{of: "Updated", err: core.ErrUnavailable} }),
		calls("retrieve.text", "quotes 200 bytes, and what is left of a character", func(ctx context.Context, q core.Query, s sound) ([]core.Candidate, error) {
			got, err := s(ctx, q)
			for i := range got {
				if text := got[i].Entry.Text(); len(text) > 200 {
					got[i].Text = strings.ToValidUTF8(text[:200], "\ufffd")
				}
			}
			return got, err
		}),
		toldAlone("cancel.retrieve", "word waits until all is read", func() core.Retriever { return &inTurns{turn: make(chan struct{}, 1)} }),
		calls("cancel.retrieve", "asks a store that fails again after three seconds", func(ctx context.Context, q core.Query, s sound) ([]core.Candidate, error) {
			got, err := s(ctx, q)
			if err != nil && ctx.Err() == nil {
				time.Sleep(3 * time.Second)
				got, err = s(ctx, q)
			}
			return got, err
		}),
		calls("retrieve.surfaces", "an error of the store is told in words", func(ctx context.Context, q core.Query, s sound) ([]core.Candidate, error) {
			got, err := s(ctx, q)
			if err != nil && ctx.Err() == nil {
				err = errors.New("words: retrieve: the store cannot be read")
			}
			return got, err
		}),
		over("failure.retrieve", "time of its own for searchers", func(a *asker) core.Retriever {
			a.unhurried = true
			return a
		}),
		over("failure.retrieve", "of those that failed the first is named", func(a *asker) core.Retriever { return firstNamed{a} }),
		over("retrieve.late-searcher", "late is what the first says that may be late", func(a *asker) core.Retriever { return firstLate{a} }),
		keeper("what comes late is kept by prompt", func(k *keeps) { k.key = func(q core.Query) string { return q.Prompt } }),
		keeper("what comes late stays as it came", func(k *keeps) { k.deaf = true }),
		keeper("what comes late stays as it came where word came first", func(k *keeps) { k.hasty = true }),
		toldAlone("retrieve.erased", "deletions end at the first that it does not know", func() core.Retriever { return &untilUnknown{} }),
		calls("retrieve.text", "words are looked up in lower case, and quoted where they stand there", func(ctx context.Context, q core.Query, s sound) ([]core.Candidate, error) {
			got, err := s(ctx, q)
			for i := range got {
				got[i].Text = fromLower(got[i].Entry.Text(), q.Prompt)
			}
			return got, err
		}),
	}
}

// toldAlone is a retriever that is built broken, and has what it was told of and what it reads itself.
func toldAlone(id, name string, open func() core.Retriever) broken {
	return broken{class: "retriever: " + id, name: name, find: func(t *testing.T, only ...conformance.Option) []conformance.Finding {
		t.Helper()
		return early(5, only, func(opts ...conformance.Option) []conformance.Finding {
			return conformance.ExamineRetriever(t, func(testing.TB) (core.Retriever, core.Store) { return open(), memory.New() }, opts...)
		}, conformance.WithClaims(id))
	}}
}

// tooLate does not hear word of one kind whose context has ended.
type tooLate struct {
	listener
	of  string
	err error
}

func (l *tooLate) Appended(ctx context.Context, entries []core.Entry) error {
	if l.of == "Appended" && ctx.Err() != nil {
		return l.err
	}
	return l.listener.Appended(ctx, entries)
}

func (l *tooLate) Updated(ctx context.Context, e core.Entry) error {
	if l.of == "Updated" && ctx.Err() != nil {
		return l.err
	}
	return l.listener.Updated(ctx, e)
}

func (l *tooLate) Deleted(ctx context.Context, scope core.Scope, ids []string) error {
	if l.of == "Deleted" && ctx.Err() != nil {
		return l.err
	}
	return l.listener.Deleted(ctx, scope, ids)
}

// TestKeepsSound shows that what keeps late answers is not wrong in itself.
func TestKeepsSound(t *testing.T) {
	t.Parallel()
	open := func(testing.TB) (core.Retriever, core.Store) { return &wordRetriever{}, memory.New() }
	found := conformance.ExamineRetriever(t, open, overSearchers(func(a *asker) core.Retriever { return newKeeps(a) }), conformance.WithClaims("retrieve.late-searcher"))
	if len(found) > 0 {
		t.Errorf("a retriever that keeps late answers until it is told of something: %v", found)
	}
}

// namesAs takes sessions of an agent for one where their names are, made comparable.
func namesAs(of func(string) string) func(context.Context, core.Query, sound) ([]core.Candidate, error) {
	return func(ctx context.Context, q core.Query, s sound) ([]core.Candidate, error) {
		all, scopes := q, q.Scopes()
		all.Scope.Session, all.Granted, all.Limit = "", slices.Clone(q.Granted), 1<<20
		for i := range all.Granted {
			all.Granted[i].Session = ""
		}
		got, err := s(ctx, all)
		got = slices.DeleteFunc(got, func(c core.Candidate) bool {
			return !slices.ContainsFunc(scopes, func(in core.Scope) bool {
				return in.Agent == c.Entry.Agent && (in.Session == "" || of(in.Session) == of(c.Entry.Session))
			})
		})
		return got[:min(len(got), q.Limit)], err
	}
}

// inTurns is told of changes between two readings.
type inTurns struct {
	readsOnce
	turn chan struct{}
}

func (r *inTurns) Retrieve(ctx context.Context, q core.Query) ([]core.Candidate, error) {
	select {
	case r.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	defer func() { <-r.turn }()
	return r.readsOnce.Retrieve(ctx, q)
}

func (r *inTurns) Appended(ctx context.Context, entries []core.Entry) error {
	r.turn <- struct{}{}
	defer func() { <-r.turn }()
	return r.readsOnce.Appended(ctx, entries)
}

// firstNamed names the first of those that failed.
type firstNamed struct{ *asker }

func (f firstNamed) Retrieve(ctx context.Context, q core.Query) ([]core.Candidate, error) {
	got, err := f.asker.Retrieve(ctx, q)
	if err != nil {
		first, _, _ := strings.Cut(err.Error(), "\n")
		err = fmt.Errorf("%w: %s", core.ErrPartial, first)
	}
	return got, err
}

// firstLate asks the first searcher alone that may be late.
type firstLate struct{ *asker }

func (f firstLate) Late(q core.Query) bool {
	for _, name := range slices.Sorted(maps.Keys(f.searchers)) {
		if l, ok := f.searchers[name].(core.LateSearcher); ok {
			return slices.ContainsFunc(q.Scopes(), func(in core.Scope) bool { return l.Late(core.SearchQuery{Scope: in, Text: q.Prompt}) })
		}
	}
	return false
}

// keeps lets searchers go on whose time is over, and keeps what they find for who asks the same again. It is sound where its key is all of a query that searchers
// are asked, and nothing is kept that was asked before it was told of something.
type keeps struct {
	*asker
	mu   sync.Mutex
	news int
	kept map[string][]core.Candidate
	key  func(core.Query) string
	// deaf drops nothing that it keeps, hasty drops it and keeps what was asked before that.
	deaf, hasty bool
}

func newKeeps(a *asker) *keeps {
	return &keeps{asker: a, kept: map[string][]core.Candidate{}, key: func(q core.Query) string { return fmt.Sprintf("%q %q", q.Prompt, q.Scopes()) }}
}

func (k *keeps) Retrieve(ctx context.Context, q core.Query) ([]core.Candidate, error) {
	key := k.key(q)
	k.mu.Lock()
	got, ok := k.kept[key]
	delete(k.kept, key)
	news := k.news
	k.mu.Unlock()
	if ok {
		return got[:min(len(got), q.Limit)], nil
	}
	type answer struct {
		got []core.Candidate
		err error
	}
	answers := make(chan answer)
	go func() {
		on, done := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer done()
		got, err := k.asker.Retrieve(on, q)
		select {
		case answers <- answer{got, err}:
			return
		case <-ctx.Done():
		}
		k.mu.Lock()
		defer k.mu.Unlock()
		if err == nil && (news == k.news || k.deaf || k.hasty) {
			k.kept[key] = got
		}
	}()
	select {
	case a := <-answers:
		return a.got, a.err
	case <-ctx.Done():
		names := slices.Sorted(maps.Keys(k.searchers))
		return nil, fmt.Errorf("keeps: %q: %w: %w", names, core.ErrPartial, ctx.Err())
	}
}

func (k *keeps) Late(q core.Query) bool {
	k.mu.Lock()
	_, ok := k.kept[k.key(q)]
	k.mu.Unlock()
	return ok || k.asker.Late(q)
}

func (k *keeps) told() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.deaf {
		k.news++
		clear(k.kept)
	}
	return nil
}

func (k *keeps) Appended(context.Context, []core.Entry) error        { return k.told() }
func (k *keeps) Updated(context.Context, core.Entry) error           { return k.told() }
func (k *keeps) Deleted(context.Context, core.Scope, []string) error { return k.told() }

// untilUnknown is deaf to the rest of a list once it does not know one of it.
type untilUnknown struct{ readsOnce }

func (r *untilUnknown) Deleted(_ context.Context, scope core.Scope, ids []string) error {
	return r.note("delete", scope.Agent, func(known map[string]core.Entry) {
		for _, id := range ids {
			if _, ok := known[id]; !ok {
				return
			}
			delete(known, id)
		}
	})
}

// fromLower quotes sixty bytes from the first word of a prompt on, as counted in the text in lower case.
func fromLower(text, prompt string) string {
	lower, first := " "+strings.ToLower(text), 0
	for word := range strings.FieldsSeq(prompt) {
		if at := strings.Index(lower, " "+word); at >= 0 && len(word) > 3 {
			first = cmp.Or(min(first, at), at)
		}
	}
	if first == 0 {
		return ""
	}
	end := min(len(text), first+60)
	for end < len(text) && !utf8.RuneStart(text[end]) {
		end++
	}
	return text[first:end]
}
