package summary_test

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/message"
	"github.com/contextengine/contextengine/internal/compacting/compactingtest"
	"github.com/contextengine/contextengine/strategies/summary"
)

// published counts the replacements of a kind that a task hands over.
func counting(s *compactingtest.Session, into map[string]int) core.Compaction {
	c := s.Task()
	publish := c.Publish
	c.Publish = func(ctx context.Context, p core.Patch) error {
		for _, r := range p.Replace {
			into[r.Kind]++
		}
		return publish(ctx, p)
	}
	return c
}

func TestEveryCallThatIsAllowedIsPublished(t *testing.T) {
	for _, parallel := range []int{1, 2, 8} {
		m := honest()
		cfg := config()
		cfg.Spend, cfg.Parallel = summary.Spend{Calls: 24}, parallel
		s := compactingtest.New(compactingtest.Conversation(400), 6000, 5)
		s.Force = true
		kinds := map[string]int{}
		patch, err := newCompactor(t, cfg, m).Compact(t.Context(), counting(s, kinds))
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range patch.Replace {
			kinds[r.Kind]++
		}
		if err := s.Apply(patch); err != nil {
			t.Fatalf("the patch breaks a promise: %v", err)
		}
		if m.calls() != 24 || kinds["summary"] != 24 || s.Tokens > 6000 {
			t.Errorf("parallel %d: %d calls, published %v, %d tokens left; want 24 calls, 24 results and at most 6000", parallel, m.calls(), kinds, s.Tokens)
		}
	}
}

// TestNoCallIsForNothing: never more than Parallel calls are under way, and each one's answer is published, also when one call has no room for Fanout texts.
func TestNoCallIsForNothing(t *testing.T) {
	for _, parallel := range []int{1, 2, 5} {
		h := honest()
		var open, most atomic.Int64
		m := &model{answer: func(ctx context.Context, req core.CompletionRequest) (core.Completion, error) {
			n := open.Add(1)
			defer open.Add(-1)
			for seen := most.Load(); n > seen && !most.CompareAndSwap(seen, n); seen = most.Load() {
			}
			time.Sleep(time.Millisecond) // so that calls meet
			answer, err := h.answer(ctx, req)
			answer.Text += strings.Repeat("\nThe rest of it went as expected, and nothing of that is needed again.", 20)
			return answer, err
		}}
		cfg := config()
		cfg.Parallel, cfg.Fanout, cfg.MaxSummaries = parallel, 8, 12
		s := compactingtest.New(compactingtest.Conversation(100), 4000, 5)
		s.SummaryTokens = 600
		made := map[string]int{}
		patch, err := newCompactor(t, cfg, m).Compact(t.Context(), counting(s, made))
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range patch.Replace {
			made[r.Kind]++
		}
		if made["summary"] != m.calls() || made["fallback"] > 0 || most.Load() > int64(parallel) {
			t.Errorf("parallel %d: %d calls, %d at once, published %v", parallel, m.calls(), most.Load(), made)
		}
	}
}

func TestASpendLimitPausesWhatIsNotForced(t *testing.T) {
	m := honest()
	cfg := config()
	cfg.Spend = summary.Spend{SessionCalls: 10, Per: time.Minute}
	c := newCompactor(t, cfg, m)
	s := compactingtest.New(compactingtest.Conversation(100), 6000, 5)
	for round := range 3 {
		before := s.Tokens
		patch, err := compact(t.Context(), t, c, s)
		if err != nil || !strings.HasPrefix(patch.Reason, "the spend limit is reached") && s.Tokens > 6000 {
			t.Fatalf("round %d: %+v, %v", round, patch, err)
		}
		if m.calls() > 10*(round+1) || s.Tokens >= before || kinds(s)["fallback"] > 0 {
			t.Fatalf("round %d: %d calls, %d tokens of %d, summaries %v", round, m.calls(), s.Tokens, before, kinds(s))
		}
		if patch, _ := compact(t.Context(), t, c, s); m.calls() > 10*(round+1) || !patch.Empty() {
			t.Errorf("round %d: the same minute pays for %d calls", round, m.calls())
		}
		s.Now = s.Now.Add(2 * time.Minute)
	}
}

func TestTokensAreLimitedToo(t *testing.T) {
	m := honest() // 110 tokens a call
	cfg := config()
	cfg.Spend, cfg.Parallel = summary.Spend{Tokens: 1000}, 1
	s := compactingtest.New(compactingtest.Conversation(100), 6000, 5)
	s.Force = true
	mustCompact(t, newCompactor(t, cfg, m), s)
	if m.calls() != 10 || s.Tokens > 6000 {
		t.Errorf("%d calls, %d tokens left; want 10 calls and at most 6000", m.calls(), s.Tokens)
	}
}

func TestModelsThatAreDownRest(t *testing.T) {
	m := failing()
	cfg := config()
	cfg.Parallel, cfg.Failures, cfg.Cooldown = 1, 2, time.Minute
	c := newCompactor(t, cfg, m)
	for round, want := range []int{2, 2, 4} {
		s := compactingtest.New(compactingtest.Conversation(60), 3000, 5)
		s.Now = s.Now.Add(time.Duration(round) * 40 * time.Second)
		mustCompact(t, c, s)
		if m.calls() != want {
			t.Errorf("compaction %d: %d calls so far, want %d", round, m.calls(), want)
		}
	}
}

// TestARerunPaysOnlyForWhatWasInFlight ends compactions after each number of calls and goes on with a new compactor.
func TestARerunPaysOnlyForWhatWasInFlight(t *testing.T) {
	cfg := config()
	whole := honest()
	mustCompact(t, newCompactor(t, cfg, whole), compactingtest.New(compactingtest.Conversation(80), 4000, 5))
	for stop := int64(1); stop < int64(whole.calls()); stop += 3 {
		ctx, cancel := context.WithCancel(t.Context())
		var calls atomic.Int64
		h := honest()
		m := &model{answer: func(ctx context.Context, req core.CompletionRequest) (core.Completion, error) {
			if calls.Add(1) == stop {
				cancel()
			}
			return h.answer(ctx, req)
		}}
		s := compactingtest.New(compactingtest.Conversation(80), 4000, 5)
		_, _ = compact(ctx, t, newCompactor(t, cfg, m), s)
		cancel()
		mustCompact(t, newCompactor(t, cfg, m), s)
		// Texts of a killed run may be condensed once more than those of one that went through.
		if most := whole.calls() + cfg.Parallel + 3; m.calls() > most || s.Tokens > 4000 {
			t.Errorf("stopped at call %d: %d calls in all, %d went through at once; %d tokens left", stop, m.calls(), whole.calls(), s.Tokens)
		}
	}
}

func TestAnAuditPutsATextRight(t *testing.T) {
	es := compactingtest.Conversation(12)
	es[0].Message = message.New(message.User, "Never delete bucket 4f9ab03c77de. Use /srv/deep/er_2/list.csv for it. The fee is 1,499.50 EUR.")
	s := compactingtest.New(es, 900, 5)
	cfg := config()
	cfg.ChunkTokens = 10000
	m := says("The bucket 4F9AB03C77DE is to be kept, the list is at /srv/deep/er_2/LIST.csv, and token deadbeef00112233 opens https://example.com/x. " +
		"Several requests failed because retryBudget was 0, and each of them was put right.")
	patch := mustCompact(t, newCompactor(t, cfg, m), s)
	rep := patch.Replace[0]
	for _, want := range []string{"4f9ab03c77de", "/srv/deep/er_2/list.csv", "Never delete bucket 4f9ab03c77de.", "1,499.50"} {
		if !strings.Contains(rep.Text, want) {
			t.Errorf("the summary lacks %q:\n%s", want, rep.Text)
		}
	}
	for _, lie := range []string{"4F9AB03C77DE", "LIST.csv", "deadbeef00112233", "example.com"} {
		if strings.Contains(rep.Text, lie) {
			t.Errorf("the summary says %q, which nobody said:\n%s", lie, rep.Text)
		}
	}
	if rep.Kind != "summary" || rep.Meta["auditAltered"] != "2" || rep.Meta["auditInvented"] != "2" || rep.Meta["auditPinned"] == "" || rep.Meta["auditRepaired"] == "" {
		t.Errorf("kind %q, meta = %v", rep.Kind, rep.Meta)
	}
}

// TestInventedFactsAreMarked: sums, dates, addresses and telephone numbers that the source does not hold, in any of the forms that people write.
func TestInventedFactsAreMarked(t *testing.T) {
	es := compactingtest.Conversation(12)
	es[0].Message = message.New(message.User, "The fee is 1,499.50 EUR, the deposit $1,200, due on 3 May 2026; yesterday I wrote to ann@example.com about db1.example.com:5432 at 10.0.0.12. "+
		"Loaf 2 came out flat. The loan is 3.5 million, the rent 800 zł or EUR900, the trip 2k; the fair opens on 5. März 2031. Call 030 1234-5678.")
	es[0].Time = time.Date(2026, 4, 20, 12, 0, 0, 0, time.UTC)
	for said, want := range map[string]string{
		"the fee of 1499.50 EUR":                "the fee of 1499.50 EUR",
		"the fee of EUR 1,499.50":               "the fee of EUR 1,499.50",
		"a deposit of 1,200.00 dollars":         "a deposit of 1,200.00 dollars",
		"a fee of $1,950":                       "a fee of $[unverified]",
		"a fee of 1.950,00 €":                   "a fee of [unverified] €",
		"a fee of 7777 euros":                   "a fee of [unverified] euros",
		"12 files in 45 steps":                  "12 files in 45 steps",
		"due on 2026-05-03":                     "due on 2026-05-03",
		"due on May 3rd, 2026":                  "due on May 3rd, 2026",
		"due on 3 May":                          "due on 3 May",
		"due on 03.05.2026":                     "due on 03.05.2026",
		"due on May 13, 2026":                   "due on [unverified]",
		"due on 2025-05-03":                     "due on [unverified]",
		"due on 5 June":                         "due on [unverified]",
		"asked on 2026-04-20, wrote 2026-04-19": "asked on 2026-04-20, wrote 2026-04-19",
		"wrote to ann@example.com":              "wrote to ann@example.com",
		"wrote to bob@example.com":              "wrote to [unverified]",
		"the host db1.example.com:5432":         "the host db1.example.com:5432",
		"the host db2.example.com":              "the host [unverified]",
		"see example.org/x":                     "see [unverified]",
		"at 10.0.0.12":                          "at 10.0.0.12",
		"at 10.0.0.13":                          "at [unverified]",
		"a loan of $3,500,000, or 3.5M euros":   "a loan of $3,500,000, or 3.5M euros",
		"a loan of $2 million":                  "a loan of $[unverified]",
		"a loan of 2,5 Millionen euros":         "a loan of [unverified] euros",
		"a rent of 900 EUR, 800 PLN":            "a rent of 900 EUR, 800 PLN",
		"a rent of 4711 zł, 300 Kč, 950 kr":     "a rent of [unverified] zł, [unverified] Kč, [unverified] kr",
		"a rent of EUR950 or R$ 750, 80 cents":  "a rent of EUR[unverified] or R$ [unverified], [unverified] cents",
		"a trip for $2,000":                     "a trip for $2,000",
		"a trip for 5k euros":                   "a trip for [unverified] euros",
		"on March 5, 2031, le 5 mars":           "on March 5, 2031, le 5 mars",
		"on 2031/03/05, 05/03/31, 3/5/31":       "on 2031/03/05, 05/03/31, 3/5/31",
		"on 6. März 2031, am 7. Dezember":       "on [unverified], am [unverified]",
		"le 6 mars 2031, el 7 de marzo de 2031": "le [unverified], el [unverified]",
		"on 03/06/31 or 2031.03.06":             "on [unverified] or [unverified]",
		"call +49 30 12345678":                  "call +49 30 12345678",
		"call +49 30 12345679, (555) 012-3456":  "call [unverified], [unverified]",
		"8/10 in 3/4 of 1/2 try 5, 12 m 3 kr":   "8/10 in 3/4 of 1/2 try 5, 12 m 3 kr",
	} {
		s := compactingtest.New(es, 900, 5)
		cfg := config()
		cfg.ChunkTokens = 10000
		patch := mustCompact(t, newCompactor(t, cfg, says("It was said: "+said+". Several requests failed because retryBudget was 0, and each of them was put right by raising it.")), s)
		if text := patch.Replace[0].Text; !strings.Contains(text, "It was said: "+want+". Several") {
			t.Errorf("%q became\n%s\nwant %q", said, text, want)
		}
	}
}

// TestWhatModelsSayIsReported: a model that refuses the key is named with its words, in every compaction as long as it is not asked for that reason.
func TestWhatModelsSayIsReported(t *testing.T) {
	m := &model{answer: func(context.Context, core.CompletionRequest) (core.Completion, error) {
		return core.Completion{}, fmt.Errorf("openai: complete \"m\": status 401: %w", core.ErrAuth)
	}}
	cfg := config()
	cfg.Failures, cfg.Cooldown = 1, time.Hour
	c := newCompactor(t, cfg, m)
	for n, want := range []string{"a model failed: openai: complete \"m\": status 401: not authorized", "because too many calls failed: a model failed: openai"} {
		s := compactingtest.New(compactingtest.Conversation(40), 900, 5)
		s.Now = time.Date(2026, 4, 20, 12, 0, 0, 0, time.UTC)
		patch := mustCompact(t, c, s)
		if len(patch.Warnings) != 1 || !strings.Contains(patch.Warnings[0], want) {
			t.Errorf("compaction %d: warnings %q, want %q", n+1, patch.Warnings, want)
		}
	}
}

func TestSpendIsValidated(t *testing.T) {
	for _, change := range []func(*summary.Config){
		func(c *summary.Config) { c.Spend.Calls = -1 }, func(c *summary.Config) { c.Spend.Per = 0 }, func(c *summary.Config) { c.Fanout = 1 },
		func(c *summary.Config) { c.Cooldown = -1 },
	} {
		cfg := config()
		change(&cfg)
		if cfg.Validate() == nil {
			t.Errorf("Validate accepts %+v", cfg)
		}
	}
}

// BenchmarkBacklog compacts a backlog with an instant model, forced, to a fixed target. The time per message must not depend on their number.
func BenchmarkBacklog(b *testing.B) {
	instant := honest()
	cfg := summary.DefaultConfig()
	cfg.Spend = summary.Spend{}
	for _, turns := range []int{1950, 19500} {
		es := compactingtest.Conversation(turns)
		b.Run(strconv.Itoa(len(es))+"-messages", func(b *testing.B) {
			for b.Loop() {
				c, err := summary.New(cfg, instant)
				if err != nil {
					b.Fatal(err)
				}
				s := compactingtest.New(es, 19_200, 20)
				s.SummaryTokens, s.Force = 4000, true
				task := s.Task()
				published := 0
				task.Publish = func(context.Context, core.Patch) error { published++; return nil }
				if _, err := c.Compact(context.Background(), task); err != nil {
					b.Fatal(err)
				}
				b.ReportMetric(float64(published), "published")
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(es)), "ns/message")
		})
	}
}
