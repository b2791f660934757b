package engine_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/engine"
	"github.com/contextengine/contextengine/core/message"
	"github.com/contextengine/contextengine/internal/drawn"
)

// crossing is a store in whose calls, before and after they are done, other processes get to do something.
type crossing struct {
	core.Store
	at func(what string)
}

func (s crossing) Unwrap() core.Store { return s.Store }

func (s crossing) Append(ctx context.Context, entries []core.Entry) (core.AppendResult, error) {
	s.at("append")
	defer s.at("appended")
	return s.Store.Append(ctx, entries)
}

func (s crossing) Scan(ctx context.Context, q core.ScanQuery) (core.Page, error) {
	s.at("scan")
	defer s.at("scanned")
	return s.Store.Scan(ctx, q)
}

func (s crossing) Update(ctx context.Context, scope core.Scope, id string, c core.Change) error {
	s.at("update")
	defer s.at("updated")
	return s.Store.Update(ctx, scope, id, c)
}

// crossed is a few processes over one store that get into each other's way, and what they should have.
type crossed struct {
	t      *testing.T
	r      *rand.Rand
	all    []*fixture
	busy   []bool
	forked bool
	ids    []core.SessionID
	// said are the words of each session, erased those whose erasure is over, going those that are being erased.
	said          map[core.SessionID][]string
	erased, going map[string]bool
	words         int
	children      int
	log           []string
}

var saidWord = regexp.MustCompile(`w\d+z`)

func (w *crossed) note(format string, args ...any) {
	w.log = append(w.log, fmt.Sprintf(format, args...))
}

// keepsWords makes a summary of all the words of what may go, and lets others do something meanwhile.
type keepsWords struct{ w *crossed }

func (keepsWords) OwnsCompaction() bool { return true }

func (k keepsWords) Compact(_ context.Context, c core.Compaction) (core.Patch, error) {
	r := core.Replacement{Kind: "summary", Text: "."}
	if k.w.r.IntN(3) > 0 {
		for i := range c.Summaries {
			r.Summaries = append(r.Summaries, c.Summaries[i].ID)
			r.Text += " " + c.Summaries[i].Text
		}
	}
	for _, e := range c.Entries[:len(c.Entries)-c.Protected] {
		r.Entries = append(r.Entries, e.ID)
		r.Text += " " + strings.Join(saidWord.FindAllString(e.Text(), -1), " ")
	}
	k.w.cross("summarising", 2)
	if len(r.Entries)+len(r.Summaries) == 0 {
		return core.Patch{}, nil
	}
	return core.Patch{Replace: []core.Replacement{r}}, nil
}

// cross lets a process that does nothing do something, once in that many times.
func (w *crossed) cross(what string, times int) {
	if w.r.IntN(times) > 0 {
		return
	}
	free := slices.Collect(func(yield func(int) bool) {
		for i, busy := range w.busy {
			if !busy && !yield(i) {
				return
			}
		}
	})
	if len(free) == 0 || len(free) == len(w.busy) { // of three one goes on at the end
		return
	}
	w.note("%s:", what)
	w.do(free[w.r.IntN(len(free))])
	w.note("%s ends", what)
}

// do lets a process do something in a session.
func (w *crossed) do(i int) {
	f := w.all[i]
	w.busy[i] = true
	defer func() { w.busy[i] = false }()
	f.id = w.ids[w.r.IntN(len(w.ids))]
	ctx := w.t.Context()
	fail := func(what string, err error) {
		if err != nil {
			w.t.Fatalf("%s of process %d: %v\n%s", what, i, err, strings.Join(w.log, "\n"))
		}
	}
	switch w.r.IntN(8) {
	case 0, 1, 2:
		var list []message.Message
		for range 1 + w.r.IntN(3) {
			w.words++
			word := fmt.Sprintf("w%dz", w.words)
			list = append(list, message.New([]message.Role{message.User, message.Assistant}[w.words%2], "it is so and so that we say here "+word))
			w.said[f.id] = append(w.said[f.id], word)
		}
		w.note("%d says %q in %s", i, textsOf(list), f.id)
		_, err := f.engine.IngestBatch(ctx, core.IngestBatchRequest{Session: f.id, Messages: list})
		fail("ingest", err)
	case 3:
		w.note("%d compacts %s", i, f.id)
		_, err := f.engine.Compact(ctx, core.CompactRequest{Session: f.id, Budget: 40, Force: true})
		fail("compact", err)
	case 4, 5:
		var ids, words []string
		for entry, err := range core.All(ctx, f.store, f.id.Scope(), false) {
			fail("read", err)
			if word := saidWord.FindString(entry.Text()); entry.Type == core.TypeMessage && w.r.IntN(6) == 0 {
				ids, words = append(ids, entry.ID), append(words, word)
				w.going[word] = true
			}
		}
		if len(ids) == 0 {
			return
		}
		w.note("%d erases %q", i, words)
		_, err := f.engine.Forget(ctx, engine.ForgetRequest{Scope: f.id.Scope(), Entries: ids})
		fail("forget", err)
		w.note("%d has erased %q", i, words)
		for _, word := range words {
			w.erased[word] = true
		}
	case 6:
		w.look(i)
	default:
		if w.forked && w.children < 3 {
			w.children++
			child := core.SessionID{Agent: []string{"main", "other"}[w.r.IntN(2)], Session: fmt.Sprint("child", w.children)}
			w.note("%d spawns %s of %s", i, child, f.id)
			_, err := f.engine.PrepareSubagentSpawn(ctx, core.SpawnRequest{Parent: f.id, Child: child, Mode: core.SpawnFork})
			fail("spawn", err)
			w.ids = append(w.ids, child)
			return
		}
		w.note("%d is opened anew", i)
		f.restart()
	}
}

// look looks at what a process shows of a session: nothing that was erased before.
func (w *crossed) look(i int) string {
	f := w.all[i]
	before := make(map[string]bool)
	for word := range w.erased {
		before[word] = true
	}
	res, err := f.engine.Assemble(w.t.Context(), core.AssembleRequest{Session: f.id, Budget: 100_000})
	if err != nil {
		w.t.Fatalf("assemble of process %d: %v\n%s", i, err, strings.Join(w.log, "\n"))
	}
	got := shown(res)
	w.note("%d shows %q of %s", i, got, f.id)
	for _, word := range saidWord.FindAllString(got, -1) {
		if before[word] {
			w.t.Fatalf("process %d shows %s, which was erased, in %s\n%s", i, word, f.id, strings.Join(w.log, "\n"))
		}
	}
	return got
}

// TestErasuresCrossCompactions: whatever processes do in each other's calls, what one erased nobody shows from the next call on, and no summary says it once its session was
// opened again; and nothing else is lost.
func TestErasuresCrossCompactions(t *testing.T) {
	r := drawn.Rand(t)
	for n := range 400 {
		viewed, forked := n%2 == 0, n%4 >= 2
		w := &crossed{
			t: t, r: r, busy: make([]bool, 3), forked: forked, ids: []core.SessionID{{Agent: "main", Session: "s1"}},
			said: make(map[core.SessionID][]string), erased: make(map[string]bool), going: make(map[string]bool),
		}
		quiet := false
		at := func(what string) {
			if !quiet {
				w.cross(what, 25)
			}
		}
		first := newRemote()
		for range w.busy {
			f := newFixture(t, func(_ *engine.Config, p *engine.Parts) {
				p.Compactor = keepsWords{w}
				if p.Store = (crossing{first.Store, at}); !viewed {
					p.Store = crossing{first, at}
				}
			})
			f.store = first.inner(t)
			w.all = append(w.all, f)
		}
		for range 25 {
			w.do(r.IntN(len(w.all)))
		}
		quiet = true
		for range 2 {
			for i, f := range w.all {
				for _, f.id = range w.ids {
					got := w.look(i)
					for _, word := range w.said[f.id] {
						if !w.going[word] && !strings.Contains(got, word) && !strings.Contains(got, "was erased") {
							t.Fatalf("process %d lost %s of %s\n%s", i, word, f.id, strings.Join(w.log, "\n"))
						}
						if strings.Count(got, "here "+word) > 1 {
							t.Fatalf("process %d shows %s twice in %s\n%s", i, word, f.id, strings.Join(w.log, "\n"))
						}
					}
				}
			}
		}
		for word := range w.erased {
			if got := w.all[0].left(word); got != nil {
				t.Fatalf("left of %s: %q\n%s", word, got, strings.Join(w.log, "\n"))
			}
		}
	}
}
