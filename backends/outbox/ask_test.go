package outbox_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/contextengine/contextengine/backends/memory"
	"github.com/contextengine/contextengine/backends/outbox"
	"github.com/contextengine/contextengine/core"
)

// slowFinder answers searches after a time, or never.
type slowFinder struct {
	*finder
	after atomic.Int64 // nanoseconds; 0 is never
	asked atomic.Int64
}

func (s *slowFinder) Search(ctx context.Context, q core.SearchQuery) ([]core.Hit, error) {
	s.asked.Add(1)
	d := time.Duration(s.after.Load())
	if d == 0 {
		d = time.Hour
	}
	select {
	case <-time.After(d):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	return s.finder.Search(ctx, q)
}

// TestSearchDoesNotWait: the remote's answer is waited for as long as is said, is had by the next search for the same when it comes later, and is
// not asked for any more when it does not come.
func TestSearchDoesNotWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		far := &slowFinder{finder: newFinder()}
		far.after.Store(int64(600 * time.Millisecond))
		s := open(t, volatile(func(*outbox.Config) {}), memory.New(), far)
		mustAppend(t, s, said(0, "kestrel one"), said(1, "kestrel two"), answered(2, "yes"))
		mustDrain(t, s)
		time.Sleep(time.Hour) // what was delivered lately is found here
		searcher, _ := core.As[core.Searcher](s)
		late, _ := core.As[core.LateSearcher](s)
		q := core.SearchQuery{Scope: ann.Scope(), Text: "kestrel", Limit: 10}
		ask := func(text string) (int, time.Duration) {
			q.Text = text
			began := time.Now()
			hits, err := searcher.Search(t.Context(), q)
			if err != nil && !errors.Is(err, core.ErrPartial) {
				t.Fatalf("Search: %v", err)
			}
			took := time.Since(began)
			if waited := took == 300*time.Millisecond; waited && err == nil || err != nil && len(hits) > 0 {
				t.Errorf("search for %q after %v: %d hits, error %v; nothing waits here, and what went without the remote says so", text, took, len(hits), err)
			}
			return len(hits), took
		}
		if _, took := ask("kestrel"); took != 300*time.Millisecond {
			t.Errorf("the first search took %v", took)
		}
		if late.Late(q) {
			t.Error("an answer is there before the remote gave it")
		}
		time.Sleep(300 * time.Millisecond)
		synctest.Wait()
		if !late.Late(q) {
			t.Error("the answer that came later is not there")
		}
		if n, took := ask("kestrel"); n != 2 || took != 0 || far.asked.Load() != 1 {
			t.Errorf("the second search found %d after %v, %d were asked", n, took, far.asked.Load())
		}
		if late.Late(q) {
			t.Error("what was had is late still")
		}

		// Slow answers do not stop the questions, none at all do.
		for i := range 5 {
			if _, took := ask(fmt.Sprint("kestrel ", i)); took != 300*time.Millisecond {
				t.Errorf("search %d of a slow remote took %v", i, took)
			}
			time.Sleep(time.Second)
		}
		far.after.Store(0)
		before := far.asked.Load()
		var took []time.Duration
		for i := range 10 {
			_, d := ask(fmt.Sprint("never ", i))
			took = append(took, d)
			time.Sleep(time.Second)
		}
		if want := slices.Concat(slices.Repeat([]time.Duration{300 * time.Millisecond}, 3), make([]time.Duration, 7)); !slices.Equal(took, want) || far.asked.Load()-before != 3 {
			t.Errorf("searches took %v, want %v; %d were asked", took, want, far.asked.Load()-before)
		}
		// It is tried once after a while, and when that succeeds all is as before.
		time.Sleep(time.Minute)
		far.after.Store(int64(time.Millisecond))
		if n, took := ask("kestrel"); n != 2 || took != time.Millisecond {
			t.Errorf("after the rest: %d hits in %v", n, took)
		}
		if n, took := ask("kestrel t"); n != 1 || took != time.Millisecond {
			t.Errorf("and again: %d hits in %v", n, took)
		}
	})
}

// TestSearchIsAnticipated: the remote is asked when a user's message arrives, and not when a turn is stored that is over.
func TestSearchIsAnticipated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		far := &slowFinder{finder: newFinder()}
		far.after.Store(int64(200 * time.Millisecond))
		s := open(t, volatile(func(*outbox.Config) {}), memory.New(), far)
		mustAppend(t, s, said(0, "kestrel"), answered(1, "it flies"))
		mustDrain(t, s)
		if n := far.asked.Load(); n != 0 {
			t.Errorf("%d searches for a turn that is over", n)
		}
		mustAppend(t, s, said(2, "kestrel"))
		time.Sleep(200 * time.Millisecond)
		began := time.Now()
		got := search(t, s, core.SearchQuery{Scope: ann.Scope(), Text: "kestrel", Limit: 5})
		if took := time.Since(began); took != 0 || len(got) != 2 || far.asked.Load() != 1 {
			t.Errorf("found %v after %v, %d were asked", got, took, far.asked.Load())
		}
	})
}

func answered(n int, text string) core.Entry {
	e := said(n, text)
	e.Role, e.Message.Role = "assistant", "assistant"
	return e
}

// TestErasedIsNotFound: a search that is under way does not bring back what was erased meanwhile.
func TestErasedIsNotFound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		far := &slowFinder{finder: newFinder()}
		far.after.Store(int64(time.Millisecond))
		s := open(t, volatile(func(*outbox.Config) {}), memory.New(), far)
		mustAppend(t, s, said(0, "kestrel one"), answered(1, "yes"))
		mustDrain(t, s)
		far.after.Store(int64(400 * time.Millisecond))
		q := core.SearchQuery{Scope: ann.Scope(), Text: "kestrel", Limit: 5}
		searcher, _ := core.As[core.Searcher](s)
		if _, err := searcher.Search(t.Context(), q); !errors.Is(err, core.ErrPartial) {
			t.Errorf("a search that does not wait: error %v, want core.ErrPartial", err)
		}
		if _, err := s.Delete(t.Context(), ann.Scope(), []string{entry(ann, 0).ID}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		if got := strings.Join(search(t, s, q), " "); got != "" {
			t.Errorf("found %s", got)
		}
	})
}
