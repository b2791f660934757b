package engine_test

import (
	"context"
	"errors"
	"testing"

	"github.com/contextengine/contextengine/backends/memory"
	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/engine"
	"github.com/contextengine/contextengine/core/message"
)

// unkept is a store that writes and then finds that it is in vain, as one does whose file was removed: what it wrote is read again, and never acknowledged.
type unkept struct {
	*memory.Store
	gone   bool
	writes int
	stop   context.CancelFunc
}

var errGone = errors.New("the file is gone")

func (s *unkept) answer(err error) error {
	if !s.gone || err != nil {
		return err
	}
	if s.writes++; s.writes > 500 {
		s.stop()
	}
	return errGone
}

func (s *unkept) Append(ctx context.Context, entries []core.Entry) (core.AppendResult, error) {
	res, err := s.Store.Append(ctx, entries)
	return res, s.answer(err)
}

func (s *unkept) SwapView(ctx context.Context, v core.View) error {
	return s.answer(s.Store.SwapView(ctx, v))
}

// TestWritesThatAreInVain: a call whose writes land and are not acknowledged ends with what the store says, instead of taking them for those of others again and again.
func TestWritesThatAreInVain(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	store := &unkept{Store: memory.New(), stop: cancel}
	f := newFixture(t, func(_ *engine.Config, p *engine.Parts) { p.Store = store })
	said := []message.Message{user("hi"), assistant("hello")}
	f.ingest(said...)
	store.gone = true
	for n := range 3 {
		for name, call := range map[string]func() error{
			"assemble": func() error {
				_, err := f.engine.Assemble(ctx, core.AssembleRequest{Session: f.id, Budget: 1000, Transcript: &core.Transcript{Messages: append(said, user("new"), assistant("newer"))}})
				return err
			},
			"commit turn": func() error {
				_, err := f.engine.CommitTurn(ctx, core.CommitTurnRequest{Session: f.id, AdvancementKey: string(rune('a' + n)), Messages: []message.Message{user("x"), assistant("y")}})
				return err
			},
			"bootstrap": func() error {
				_, err := f.engine.Bootstrap(ctx, core.BootstrapRequest{Session: f.id})
				return err
			},
		} {
			if err := call(); err != nil && !errors.Is(err, errGone) && !errors.Is(err, core.ErrQuarantined) {
				t.Errorf("%s: %v, want what the store says", name, err)
			}
		}
	}
	if ctx.Err() != nil {
		t.Errorf("the store was written to %d times", store.writes)
	}
}

// TestUnacknowledgedHead: messages that a host shows in front of everything that was stored, and whose storing was not acknowledged, stand in front all the same.
func TestUnacknowledgedHead(t *testing.T) {
	store := &unkept{Store: memory.New(), stop: func() {}}
	f := newFixture(t, func(c *engine.Config, p *engine.Parts) { c.Failure, p.Store = engine.FailStrict, store })
	f.ingest(user("later"), assistant("answer"))
	first := []message.Message{user("first"), assistant("one"), assistant("two")}
	store.gone = true
	whole := &core.Transcript{Messages: append(first[:3:3], user("later"), assistant("answer"), user("newest"))}
	if _, err := f.engine.Assemble(t.Context(), core.AssembleRequest{Session: f.id, Budget: 1000, Transcript: whole}); !errors.Is(err, errGone) {
		t.Fatalf("error %v, want that of the store", err)
	}
	store.gone = false
	got := shown(f.assemble(1000, transcript("", append(first[:3:3], user("another way"))...)))
	if want := "first | one | two | another way"; got != want {
		t.Errorf("shown: %q, want %q", got, want)
	}
}

// answering is a store that answers with these errors, one after another, when a view is to be stored.
type answering struct {
	*memory.Store
	errs []error
}

func (s *answering) SwapView(ctx context.Context, v core.View) error {
	if len(s.errs) > 0 {
		err := s.errs[0]
		if s.errs = s.errs[1:]; err != nil {
			return err
		}
	}
	return s.Store.SwapView(ctx, v)
}

// TestTriedAgainWhereSomethingIsOwed: a call that finds others first is tried again, also where the store refused before to keep what a window was decided to show; what it
// refused is not the answer to a call that is done.
func TestTriedAgainWhereSomethingIsOwed(t *testing.T) {
	full := errors.New("the disk is full")
	for name, c := range map[string]struct {
		owed, errs []error
	}{
		"nothing is owed":                {nil, []error{core.ErrConflict}},
		"refused, then others first":     {[]error{full}, []error{core.ErrConflict}},
		"refused, others first, refused": {[]error{full}, []error{core.ErrConflict, full}},
	} {
		store := &answering{Store: memory.New()}
		f := newFixture(t, func(_ *engine.Config, p *engine.Parts) { p.Store = store })
		f.store = store.Store
		f.ingest(turns(20)...)
		store.errs = c.owed
		f.assemble(300)
		store.errs = c.errs
		if _, err := f.engine.Ingest(t.Context(), core.IngestRequest{Session: f.id, Message: user("more")}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if got := shown(f.assemble(300)); len(store.errs) > 0 || got[max(len(got)-4, 0):] != "more" {
			t.Errorf("%s: shown %q, and %d errors were not met", name, got, len(store.errs))
		}
		f.sound()
	}
}
