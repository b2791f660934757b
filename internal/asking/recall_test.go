package asking_test

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/contextengine/contextengine/backends/memory"
	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/engine"
	"github.com/contextengine/contextengine/core/message"
	"github.com/contextengine/contextengine/experiment/questions"
	"github.com/contextengine/contextengine/experiment/recall"
	"github.com/contextengine/contextengine/internal/datadir"
	"github.com/contextengine/contextengine/strategies/archive"
	"github.com/contextengine/contextengine/strategies/hybrid"
	"github.com/contextengine/contextengine/strategies/lexical"
)

// engine is one with lexical search over a store in memory.
func eng() (*engine.Engine, core.Retriever, func(context.Context) error, error) {
	index, err := lexical.New(lexical.DefaultConfig())
	if err != nil {
		return nil, nil, nil, err
	}
	cfg := hybrid.DefaultConfig()
	cfg.Limit = 1000
	r, err := hybrid.New(cfg, map[string]core.Searcher{"lexical": index})
	if err != nil {
		return nil, nil, nil, err
	}
	a, err := archive.New(archive.DefaultConfig())
	if err != nil {
		return nil, nil, nil, err
	}
	e, err := engine.New(engine.Parts{Store: memory.New(), Retriever: r, Compactor: a, Counter: func(s string) int { return len(s)/4 + 1 }, OwnStore: true}, engine.DefaultConfig())
	return e, r, func(ctx context.Context) error { return errors.Join(index.Close(), e.Dispose(ctx)) }, err
}

// TestFindsTheDay: of entries that say nearly the same, the one of the day that is asked for comes first.
func TestFindsTheDay(t *testing.T) {
	t.Parallel()
	e, r, closed, err := eng()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = closed(context.WithoutCancel(t.Context())) }()
	session := core.SessionID{Agent: "ada", Session: "meetings"}
	var batch []message.Message
	const days = 70
	for n := days; n > 0; n-- {
		m := message.New(message.User, fmt.Sprintf("Meeting notes: we decided to give the job to team %d, all agreed.", 100+n))
		m.Time = wednesday.AddDate(0, 0, -n).Truncate(24 * time.Hour).Add(10 * time.Hour)
		batch = append(batch, m)
	}
	res, err := e.IngestBatch(t.Context(), core.IngestBatchRequest{Session: session, Messages: batch})
	if err != nil {
		t.Fatal(err)
	}
	for prompt, want := range map[string][]int{
		"what did we decide last Tuesday?":                {1},
		"what did we decide on Friday?":                   {5},
		"what did we decide the day before yesterday?":    {2},
		"what did we decide 33 days ago?":                 {33},
		"which team did we decide on, Thursday last week": {6},
		"what did we decide on 2 March?":                  {65},
		"what did we decide on 2 March 2026?":             {65},
		"what did we decide on 2026-03-02?":               {65},
		"what did we decide last weekend?":                {3, 4},
		"what did we decide last week?":                   {3, 4, 5, 6, 7, 8, 9},
	} {
		got, err := r.Retrieve(t.Context(), core.Query{
			Session: session, Scope: session.Scope(), Prompt: prompt, Now: wednesday, Tokens: 4000, Limit: days,
		})
		if err != nil || len(got) < len(want) {
			t.Fatalf("%q: %d candidates, %v", prompt, len(got), err)
		}
		var first []int
		for _, c := range got[:len(want)] {
			first = append(first, days-slices.Index(res.IDs, c.Entry.ID))
		}
		slices.Sort(first)
		if !slices.Equal(first, want) {
			t.Errorf("%q: first come the entries of %v days ago, want %v", prompt, first, want)
		}
	}
}

// fullDate is a day with its year, as questions about long conversations name it.
var fullDate = regexp.MustCompile(`(?i)\b(?:on )?(?:the )?(?:(\d{1,2})(?:st|nd|rd|th)?(?: of)? ([a-z]{3,9}),? (\d{4})|([a-z]{3,9}) (\d{1,2})(?:st|nd|rd|th)?,? (\d{4}))`)

// relative replaces the one full date in a text by how many days ago it was.
func relative(text string, now time.Time) (string, bool) {
	all := fullDate.FindAllStringSubmatchIndex(text, -1)
	if len(all) != 1 {
		return "", false
	}
	part := func(i int) string {
		if all[0][2*i] < 0 {
			return ""
		}
		return text[all[0][2*i]:all[0][2*i+1]]
	}
	day, err := time.Parse("2 January 2006", part(1)+part(5)+" "+part(2)+part(4)+" "+part(3)+part(6))
	n := int(now.Sub(day).Hours() / 24)
	if err != nil || n < 1 || n > 999 {
		return "", false
	}
	return text[:all[0][0]] + fmt.Sprintf("%d days ago", n) + text[all[0][1]:], true
}

// TestRelativeDatesOfLoCoMo asks the questions that name a day as somebody would on the day of the last message. Recall is held near what the full date
// reaches; without dates it was 68 at 10 candidates.
func TestRelativeDatesOfLoCoMo(t *testing.T) {
	t.Parallel()
	path := datadir.File(t, "locomo/locomo-dev.json")
	at10 := func(rewrite bool) (int, float64) {
		set, err := questions.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		for at := range set.Conversations {
			c := &set.Conversations[at]
			var now time.Time
			for _, s := range c.Sessions {
				for _, m := range s.Messages {
					if m.Time.After(now) {
						now = m.Time
					}
				}
			}
			c.Questions = slices.DeleteFunc(c.Questions, func(q questions.Question) bool { _, ok := relative(q.Text, now); return !ok })
			for i := range c.Questions {
				if rewrite {
					c.Questions[i].Text, _ = relative(c.Questions[i].Text, now)
				}
			}
		}
		res, err := recall.Run(t.Context(), recall.Plan{Dataset: set, Depths: []int{10}, Budgets: []int{2000}, Workers: 1, Arms: []recall.Arm{{Name: "lexical", Open: func(context.Context) (recall.Subject, error) {
			e, r, closed, err := eng()
			return recall.Subject{Engine: e, Retriever: r, Close: closed}, err
		}}}})
		if err != nil || res.Arms[0].Error != "" {
			t.Fatal(err, res)
		}
		g := res.Arms[0].Groups[1] // adversarial questions included
		return g.Questions, 100 * g.Measures[0].Recall.Mean
	}
	n, full := at10(false)
	_, days := at10(true)
	t.Logf("%d questions: R@10 %.1f with the full date, %.1f with the days since", n, full, days)
	if n < 50 || days < 86 {
		t.Errorf("%d questions, R@10 %.1f, want at least 86", n, days)
	}
}
