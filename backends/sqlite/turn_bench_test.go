package sqlite_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/contextengine/contextengine/backends/sqlite"
	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/window"
)

// BenchmarkTurn asks a store of 100,000 messages for what the assembly of one turn asks it for, between appends of the turn's messages: a store's
// caches are as they are in use, which they are not when it is read again and again with nothing written in between. One operation is a turn;
// the parts of it are the metrics.
func BenchmarkTurn(b *testing.B) {
	const from, recalled = 100_000, 50
	s := open(b, config(b))
	for n := 0; n < from; n += 500 {
		mustAppend(b, s, chats(b, n, 500)...)
	}
	known := make(map[string]bool, from)
	for n := range from {
		known[chatID(n)] = true
	}
	q := core.ChangeQuery{Agent: ann.Agent, Limit: core.MaxPage, Known: func(id string) bool { return known[id] }}
	for more := true; more; {
		page := changes(b, s, q)
		q.After, more = page.Mark, page.More
	}
	rng := rand.New(rand.NewPCG(1, 2))
	view := core.View{Session: ann, Stubs: map[string]window.Stub{"e1": {Kind: window.Clipped, Texts: map[int]string{0: "head and tail"}}}}
	// It goes on where the run before stopped.
	n := from
	for _, watched := range []bool{false, true} {
		b.Run(fmt.Sprintf("watched=%t", watched), func(b *testing.B) {
			ctx := context.Background()
			if watched {
				// Whoever assembles has a deadline.
				var stop context.CancelFunc
				ctx, stop = context.WithTimeout(ctx, time.Hour)
				defer stop()
			}
			took := map[string]time.Duration{}
			timed := func(part string, f func() error) {
				begin := time.Now()
				err := f()
				took[part] += time.Since(begin)
				if err != nil {
					b.Fatal(err)
				}
			}
			for b.Loop() {
				ask, answer := chats(b, n, 1), chats(b, n+1, 1)
				known[ask[0].ID], known[answer[0].ID] = true, true
				ids := make([]string, recalled)
				for i := range ids {
					ids[i] = chatID(rng.IntN(n))
				}
				view = grown(view, rng)
				timed("append", func() error { _, err := s.Append(ctx, ask); return err })
				timed("changes", func() error {
					page, err := s.Changes(ctx, q)
					q.After = page.Mark
					return err
				})
				timed("idle", func() error { _, err := s.Changes(ctx, q); return err })
				timed("get", func() error { _, err := s.Get(ctx, ann.Scope(), ids); return err })
				timed("swap", func() error { return s.SwapView(ctx, view) })
				timed("append", func() error { _, err := s.Append(ctx, answer); return err })
				n += 2
			}
			for part, d := range took {
				b.ReportMetric(float64(d.Nanoseconds())/float64(b.N), part+"-ns/op")
			}
		})
	}
}

func changes(tb testing.TB, s *sqlite.Store, q core.ChangeQuery) core.ChangePage {
	tb.Helper()
	page, err := s.Changes(tb.Context(), q)
	if err != nil {
		tb.Fatal(err)
	}
	return page
}

// grown returns the next view: another recall block, of 10 to 25 KB.
func grown(v core.View, rng *rand.Rand) core.View {
	r := core.Recall{Turn: int64(v.Version), Time: time.Unix(int64(v.Version), 0).UTC(), At: 7}
	var text strings.Builder
	for size := 10_000 + rng.IntN(15_000); text.Len() < size; {
		fmt.Fprintf(&text, "> [%d] the \"ledger\" moved because kestrel's invoice\n> was <late> & the bridge works again\n", rng.IntN(1_000_000))
		if len(r.Items) < 50 {
			r.Items = append(r.Items, core.RecallItem{ID: chatID(rng.IntN(100_000)), Score: rng.Float64(), Source: "lexical"})
		}
	}
	r.Text, r.Tokens = text.String(), text.Len()/4
	v.Recall, v.Version = &r, v.Version+1
	v.Host.Count, v.Output.Count = int(v.Version), int(v.Version)
	return v
}
