package conformance

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/message"
)

func memoryRetrieverChecks() []Check {
	return []Check{
		{ID: "retrieve.attached", Promise: 6, Suite: SuiteRetriever, retriever: retrieveAttached, dear: true, Needs: []Need{NeedAttacher},
			Rule: "a retriever that is attached to a store with entries in it finds what one finds that was told of each"},
		{ID: "retrieve.prompt", Promise: 9, Suite: SuiteRetriever, retriever: retrievePrompt, once: true,
			Rule: "a prompt is any text: empty, endless, of odd bytes or full of operators, and none is an error"},
		{ID: "retrieve.again", Promise: 6, Suite: SuiteRetriever, retriever: retrieveAgain, once: true,
			Rule: "what was asked before, how often, and in which order, changes no answer"},
		{ID: "retrieve.legal", Promise: 9, Suite: SuiteRetriever, retriever: retrieveLegal, once: true,
			Rule: "every legal query is answered: a small allowance, a time before the entries, settings of the host, a grant of its own scope"},
		{ID: "retrieve.late", Suite: SuiteRetriever, retriever: retrieveLate, dear: true, Needs: []Need{NeedLateRetriever},
			Rule: "Late says that there is more by now: who asks again gets another answer, and in the end nothing is late"},
	}
}

// retrieveAttached attaches a second retriever to what the first one was told of piece by piece, and a third one that was told of the last pieces too.
func retrieveAttached(r *retrieverRun) string {
	r.steps = append(r.steps, ordinary(150))
	// The first one has read the store when there was nothing in it.
	if text := r.ask(nil, nothing); text != "" {
		return text
	}
	if text := r.fill(); text != "" {
		return text
	}
	second, text := r.attached(shortPages{r.store, 20})
	if text == "" {
		text = r.like(second, "that was attached later")
	}
	if text != "" {
		return text
	}
	third, text := r.attached(r.store)
	if text != "" {
		return text
	}
	more := r.make(ordinary(6))
	if text := r.tell(more, r.retriever, third); text != "" {
		return text
	}
	r.remember(more)
	return r.like(third, "that was attached later and told of more before it was asked")
}

// prompts are texts that people and programs write, and that no index should take for anything else.
func prompts() []string {
	return []string{
		"", " \t\n", "\x00", "budget\x00report", "\xff\xfe budget \xc3\x28", "\ufeff\u200b\u2028", "\"", "'", "budget\"report", "budget' OR 1=1 --", "budget AND NOT (report OR", "NEAR(budget report", "budget*", "*",
		"^budget", "-budget", "+", "budget:report", "column:budget", "(((", "]]>", "\\", "%", "_", "{\"query\":", "budget\r\nreport", "<|im_start|>system", strings.Repeat("budget ", 300), strings.Repeat("x", 70000),
		strings.Repeat("\"", 5000), strings.Repeat("数据库", 2000), strings.Repeat("the budget report moved to friday, as the kestrel invoice says. ", 3000),
	}
}

func retrievePrompt(r *retrieverRun) string {
	r.steps = []batch{ordinary(12)}
	if text := r.fill(); text != "" {
		return text
	}
	for _, prompt := range prompts() {
		for _, alone := range []bool{false, true} {
			q := r.query(0, prompt)
			if alone {
				q.Recent = nil
			} else {
				q.Recent = append(q.Recent, core.Entry{ID: "E-current", Agent: q.Session.Agent, Session: q.Session.Session, Seq: 99, Role: message.User, Type: core.TypeMessage, Time: q.Now, Message: message.New(message.User, prompt)})
			}
			got, err := r.answer(r.retriever, q)
			if err != nil {
				return fmt.Sprintf("Retrieve(%.60q, %d bytes): error %.200v, want none", prompt, len(prompt), err)
			}
			if len(got) > q.Limit || slices.ContainsFunc(got, func(c core.Candidate) bool { return !q.Scope.Contains(c.Entry.SessionID()) }) {
				return fmt.Sprintf("Retrieve(%.60q, %d bytes) in %+v: %d candidates %q", prompt, len(prompt), q.Scope, len(got), candidateIDs(got))
			}
		}
	}
	return ""
}

// askedOften is how often a query comes again.
const askedOften = 60

func retrieveAgain(r *retrieverRun) string {
	r.steps = []batch{ordinary(30)}
	if text := r.fill(); text != "" {
		return text
	}
	type answer struct {
		q    core.Query
		want []string
	}
	var answers []answer
	text := r.ask(roomyLimit, func(q core.Query, got []core.Candidate) string {
		answers = append(answers, answer{q, candidateTexts(got)})
		return ""
	})
	if text != "" {
		return text
	}
	again := func(a answer, when string) string {
		got, err := r.answer(r.retriever, a.q)
		if err != nil {
			return fmt.Sprintf("Retrieve(%q) %s: error %v, want none", a.q.Prompt, when, err)
		}
		if d := sameIDs(candidateTexts(got), a.want); d != "" {
			return fmt.Sprintf("Retrieve(%q) %s, against the first time: %s", a.q.Prompt, when, d)
		}
		return ""
	}
	for n := range askedOften {
		if text := again(answers[1], fmt.Sprintf("for the %dth time", n+2)); text != "" {
			return text
		}
	}
	for _, a := range slices.Backward(answers) {
		if text := again(a, "once more, in another order"); text != "" {
			return text
		}
	}
	return ""
}

func roomyLimit(q *core.Query) { q.Limit = core.MaxPage }

func retrieveLegal(r *retrieverRun) string {
	r.steps = []batch{ordinary(30)}
	if text := r.fill(); text != "" {
		return text
	}
	for name, change := range map[string]func(*core.Query){
		"an allowance of a token":        func(q *core.Query) { q.Tokens = 1 },
		"an allowance without an end":    func(q *core.Query) { q.Tokens = 1 << 40 },
		"a time before all entries":      func(q *core.Query) { q.Now = epoch.AddDate(-1, 0, 0) },
		"no recent entries":              func(q *core.Query) { q.Recent = nil },
		"settings of the host":           func(q *core.Query) { filled(&q.Settings) },
		"a grant of its own scope":       func(q *core.Query) { q.Granted = []core.Scope{q.Scope, q.Scope} },
		"a scope of nobody":              func(q *core.Query) { q.Scope = core.Scope{Agent: "nobody"} },
		"a grant of a session of nobody": func(q *core.Query) { q.Granted = []core.Scope{{Agent: "nobody", Session: "none"}} },
	} {
		text := r.ask(change, func(q core.Query, got []core.Candidate) string {
			if len(got) > q.Limit || slices.ContainsFunc(got, func(c core.Candidate) bool {
				return !slices.ContainsFunc(q.Scopes(), func(s core.Scope) bool { return s.Contains(c.Entry.SessionID()) })
			}) {
				return fmt.Sprintf("%d candidates %q", len(got), candidateIDs(got))
			}
			return ""
		})
		if text != "" {
			return "with " + name + ": " + text
		}
	}
	return ""
}

// lateTries is how often in a row something may have been late.
const lateTries = 20

func retrieveLate(r *retrieverRun) string {
	late, _ := r.retriever.(core.LateRetriever)
	return r.each(nil, func(q core.Query, got []core.Candidate) string {
		for range lateTries {
			if !late.Late(q) {
				return ""
			}
			again, err := r.answer(r.retriever, q)
			if err != nil {
				return fmt.Sprintf("asked again for what was late: error %v", err)
			}
			if sameIDs(candidateTexts(again), candidateTexts(got)) == "" {
				return "Late says that there is more, asked again it is the same"
			}
			got = again
		}
		return fmt.Sprintf("asked %d times, there is always something late", lateTries)
	})
}

// fillOdd is fill with further entries: of every type that may be recalled, and with bytes that are no text.
func (r *retrieverRun) fillOdd() string {
	for i, t := range []core.EntryType{core.TypeMessage, core.TypeSubagent, core.TypeSummary} {
		batch := r.make(batch{Entries: []entrySpec{{Size: 4 + i}, {Who: 1, Size: 4 + i}}})
		for j := range batch {
			e := &batch[j]
			e.Type = t
			e.Message.Parts[0].Text += " the budget report\x00 moved \xff\xfe to friday \n"
			if j == 0 { // as a host wrote it, and larger than most
				e.Message.Format, e.Message.Raw = message.FormatPi, bytes.Repeat([]byte(`{"type": "text"} `), 100<<(3*i))
				e.Message.Parts[0].Raw = bytes.Clone(e.Message.Raw[:1500])
			}
			e.Fingerprint = message.Fingerprint(e.Message)
		}
		if _, err := r.store.Append(r.ctx(), cloneEntries(batch)); err != nil {
			return fmt.Sprintf("Append of entries of type %s: error %v, want none", t, err)
		}
		r.remember(batch)
	}
	return r.fill()
}

// fillAged is fill with further entries that were said minutes to years before a query, which words of them are asked for.
func (r *retrieverRun) fillAged() string {
	batch := r.aged()
	if _, err := r.store.Append(r.ctx(), cloneEntries(batch)); err != nil {
		return fmt.Sprintf("Append of entries of several ages: error %v, want none", err)
	}
	r.remember(batch)
	return r.fill()
}

// aged are entries that were said minutes to years before a query.
func (r *retrieverRun) aged() []core.Entry {
	ages := []time.Duration{time.Minute, 20 * time.Minute, 3 * time.Hour, 24 * time.Hour, 5 * 24 * time.Hour, 60 * 24 * time.Hour, 500 * 24 * time.Hour}
	batch := r.make(ordinary(2 * 3 * len(ages)))
	now := r.query(0, "").Now
	for i := range batch {
		e := &batch[i]
		e.Time = now.Add(-ages[(i*5+i/3)%len(ages)])
		e.Message.Parts[0].Text += strings.Repeat(" the budget report", i%4) + strings.Repeat(" moved to friday", i%3)
		e.Fingerprint = message.Fingerprint(e.Message)
	}
	return batch
}

// fillLeading is fill with system messages that stand in front of a transcript, and that say what is asked for.
func (r *retrieverRun) fillLeading() string {
	batch := r.make(batch{Entries: []entrySpec{{Size: 9}, {Who: 1, Size: 9}, {Who: 2, Size: 9}, {Size: 9}}})
	for i := range batch {
		leading(&batch[i])
	}
	if _, err := r.store.Append(r.ctx(), cloneEntries(batch)); err != nil {
		return fmt.Sprintf("Append of system messages: error %v, want none", err)
	}
	r.remember(batch)
	return r.fill()
}

// leading makes a system message from the beginning of a transcript of an entry.
func leading(e *core.Entry) {
	e.Role, e.Message = message.System, message.New(message.System, e.Message.Text()+" the budget report moved to friday")
	e.Fingerprint, e.Meta = message.Fingerprint(e.Message), map[string]string{"leads": "0"}
	if !e.Leads() {
		panic("conformance: an entry that leads is known by other metadata now")
	}
}

// roomy gives a query lists that others go on behind.
func roomy(q *core.Query) {
	beyond := core.Entry{ID: "E-beyond"}
	q.Recent = append(q.Recent, beyond)[:len(q.Recent)]
	q.Granted = append(roomyGrants(), core.Scope{Agent: "beyond"})[:len(roomyGrants())]
}

func roomyGrants() []core.Scope {
	return []core.Scope{sessionOf(2).Scope(), sessionOf(1).Scope(), {Agent: sessionOf(2).Agent}}
}

// fresh returns a roomy query once more, as it was made.
func (r *retrieverRun) fresh(q core.Query) core.Query {
	who := slices.IndexFunc([]core.SessionID{sessionOf(0), sessionOf(1), sessionOf(2)}, func(id core.SessionID) bool { return id == q.Session })
	same := r.query(who, q.Prompt)
	roomy(&same)
	return same
}

// roomyKept describes what of a roomy query was changed.
func (r *retrieverRun) roomyKept(q core.Query) string {
	same := r.fresh(q)
	if d := sameEntries(q.Recent, same.Recent); d != "" {
		return "changed Query.Recent: " + d
	}
	if !slices.Equal(q.Granted[:cap(q.Granted)][:len(q.Granted)+1], same.Granted[:len(same.Granted)+1]) {
		return fmt.Sprintf("changed Query.Granted: it is %+v, and behind it %+v", q.Granted, q.Granted[:len(q.Granted)+1][len(q.Granted)])
	}
	if next := q.Recent[:len(q.Recent)+1][len(q.Recent)]; next.ID != "E-beyond" {
		return fmt.Sprintf("wrote %q behind Query.Recent", next.ID)
	}
	return ""
}

// goneNext takes away, or changes, what was found best, and asks the same once more.
func (r *retrieverRun) goneNext(change func(core.Entry) (now *core.Entry, text string)) string {
	for who := range 3 {
		q := r.query(who, queries[0])
		got, err := r.answer(r.retriever, q)
		if err != nil {
			return fmt.Sprintf("Retrieve: error %v, want none", err)
		}
		if len(got) == 0 {
			continue
		}
		id := got[0].Entry.ID
		now, text := change(got[0].Entry)
		if text != "" {
			return text
		}
		text = r.settled(func() string {
			got, err := r.answer(r.retriever, q)
			if err != nil {
				return fmt.Sprintf("Retrieve: error %v, want none", err)
			}
			i := slices.Index(candidateIDs(got), id)
			switch {
			case i >= 0 && now == nil:
				return fmt.Sprintf("candidate %q was erased since the same was asked before", id)
			case i >= 0:
				if d := sameEntry(got[i].Entry, *now); d != "" {
					return "after an update, the same asked as before: " + d
				}
			}
			return ""
		})
		if text != "" {
			return text
		}
	}
	return ""
}

// slowStore is a store in which reading takes until its caller's time is over.
type slowStore struct {
	core.Store
	// asked is called when somebody reads, once the store is slow.
	asked func()
	slow  atomic.Bool
	// over ends the waiting of those who do not look at their context.
	over chan struct{}
}

func (s *slowStore) Unwrap() core.Store { return s.Store }

func (s *slowStore) wait(ctx context.Context) error {
	if !s.slow.Load() {
		return nil
	}
	s.asked()
	select {
	case <-ctx.Done():
		return fmt.Errorf("conformance: slow store: %w", ctx.Err())
	case <-s.over:
		return fmt.Errorf("conformance: slow store: %w", core.ErrClosed)
	}
}

func (s *slowStore) Get(ctx context.Context, scope core.Scope, ids []string) ([]core.Entry, error) {
	if err := s.wait(ctx); err != nil {
		return nil, err
	}
	return s.Store.Get(ctx, scope, ids)
}

func (s *slowStore) Scan(ctx context.Context, q core.ScanQuery) (core.Page, error) {
	if err := s.wait(ctx); err != nil {
		return core.Page{}, err
	}
	return s.Store.Scan(ctx, q)
}

// cancelSlow ends the time of a query while the store is read.
func (r *retrieverRun) cancelSlow() string {
	second, _ := r.open(r.tb)
	a, ok := second.(core.Attacher)
	if !ok {
		return ""
	}
	ctx, cancel := cancellable(r.ctx())
	defer cancel()
	s := &slowStore{Store: r.store, asked: cancel, over: make(chan struct{})}
	r.tb.Cleanup(func() { close(s.over) })
	if err := a.Attach(s); err != nil {
		return fmt.Sprintf("Attach: error %v, want none", err)
	}
	s.slow.Store(true)
	if _, err := r.retrieve(ctx, second, r.query(0, queries[0])); err != nil && !errors.Is(err, context.Canceled) {
		return fmt.Sprintf("Retrieve whose time was over while the store was read: error %v, want none or context.Canceled", err)
	}
	return ""
}
