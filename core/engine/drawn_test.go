package engine_test

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/contextengine/contextengine/backends/memory"
	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/engine"
	"github.com/contextengine/contextengine/core/message"
	"github.com/contextengine/contextengine/internal/needs"
	"github.com/contextengine/contextengine/strategies/archive"
	"github.com/contextengine/contextengine/strategies/mask"
)

// TestDrawn leads conversations of which everything is drawn, and compares what came of each with its line in testdata/drawn: how many windows, calls of the
// store and of the counter there were, and a hash of all that the engine answered and the store holds at the end. Another hash is a change that is meant, or a
// defect: `drawn seed=7` in that file, with -rewrite, shows all of one conversation, so that two trees can be compared. Windows that can be read are TestWindows'.
func TestDrawn(t *testing.T) {
	needs.NoRace(t)
	datadriven.RunTest(t, "testdata/drawn", func(t *testing.T, d *datadriven.TestData) string {
		t.Helper()
		var seeds, one uint64
		d.MaybeScanArgs(t, "seeds", &seeds)
		if d.MaybeScanArgs(t, "seed", &one); one > 0 {
			return newDrawn(t, one).led()
		}
		var b strings.Builder
		for seed := uint64(1); seed <= seeds; seed++ {
			c := newDrawn(t, seed)
			all := c.led()
			h := fnv.New64a()
			_, _ = h.Write([]byte(all))
			fmt.Fprintf(&b, "%d: %s: %d windows, %d store calls, %d counted, %016x\n", seed, strings.Join(c.chosen, " "), len(c.sent), c.store.calls, c.counted.Load(), h.Sum64())
		}
		return b.String()
	})
}

// drawnConversation is a conversation of which everything is drawn: the configuration, the course, and what else a host, a person or another process asks
// between two turns.
type drawnConversation struct {
	*conversation
	course course
	chosen []string
	// engines are processes that serve the session by turns.
	engines []*engine.Engine
	said    []string
	// store counts the calls of the store, and counted how often the counter was asked.
	store   *struckStore
	counted atomic.Int64
	// leads puts a system message that changes in front of transcripts; limited says how much a model may answer.
	leads, limited bool
}

// settings are what may be drawn for a configuration.
var settings = []struct {
	key    string
	values []string
}{
	{"window.high", []string{"0.6", "0.75", "0.97"}},
	{"window.low", []string{"0.15", "0.3", "0.5"}},
	{"window.lowTokens", []string{"40", "150", "400"}},
	{"window.cachePrice", []string{"0", "0.5", "1"}},
	{"window.reserve", []string{"0", "0.06", "0.2"}},
	{"window.clipShare", []string{"0.03", "0.3"}},
	{"window.clipTokens", []string{"10", "30", "90"}},
	{"window.batchShare", []string{"0.1", "0.25", "0.7"}},
	{"window.keepResults", []string{"0", "1", "3"}},
	{"window.note", []string{"false"}},
	{"recall.share", []string{"0", "0.1", "0.5"}},
	{"recall.tokens", []string{"10", "40", "150"}},
	{"recall.floor", []string{"0", "0.4", "0.9"}},
	{"recall.gate", []string{"false"}},
	{"recall.candidates", []string{"1", "4", "15"}},
	{"recall.quote", []string{"20", "35", "80"}},
	{"recall.whole", []string{"8", "20", "60"}},
	{"recall.acrossSessions", []string{"true"}},
	{"recall.resetHistory", []string{"true"}},
	{"recall.resetMessages", []string{"1", "5"}},
	{"compaction.due", []string{"0.05", "0.2", "1"}},
	{"compaction.target", []string{"0.2", "0.4", "0.8"}},
	{"compaction.summaryShare", []string{"0.04", "0.1"}},
	{"compaction.maxSummary", []string{"20", "60"}},
	{"compaction.proactive", []string{"false"}},
	{"history.limitTurns", []string{"1", "3", "8"}},
	{"history.provider", []string{"anthropic", "google", "mistral", "openai"}},
	{"subagents.recall", []string{"false"}},
	{"subagents.recentMessages", []string{"0", "3"}},
	{"recentMessages", []string{"0", "1", "9"}},
	{"failure", []string{"strict"}},
}

func newDrawn(t *testing.T, seed uint64) *drawnConversation {
	t.Helper()
	c := &drawnConversation{conversation: newConversation(t), store: &struckStore{Store: memory.New()}}
	c.parts.Store = c.store
	c.parts.Counter = func(text string) int { c.counted.Add(1); return wordCounter(text) }
	r := rand.New(rand.NewPCG(seed, 2)) //nolint:gosec // a conversation, no secret
	for _, s := range settings {
		if r.IntN(5) > 0 {
			continue
		}
		was, value := c.cfg, s.values[r.IntN(len(s.values))]
		if err := set(reflect.ValueOf(&c.cfg).Elem(), strings.Split(s.key, "."), value); err != nil {
			t.Fatal(err)
		}
		if c.cfg.Validate() != nil { // the low mark above the high one, and the like
			c.cfg = was
			continue
		}
		c.chosen = append(c.chosen, s.key+"="+value)
	}
	var err error
	switch r.IntN(6) {
	case 2:
		c.parts.Compactor = runtimes{}
		c.chosen = append(c.chosen, "delegate")
	case 0:
		c.parts.Compactor, err = mask.New(mask.DefaultConfig())
		c.chosen = append(c.chosen, "mask")
	case 1:
		c.parts.Compactor, err = archive.New(archive.DefaultConfig())
		c.chosen = append(c.chosen, "archive")
	}
	if err != nil {
		t.Fatal(err)
	}
	if r.IntN(5) == 0 {
		c.cfg.Redact = []engine.RedactRule{{Name: "ship", Pattern: `kestrel [0-9]+`}}
		c.chosen = append(c.chosen, "redact")
	}
	if r.IntN(6) == 0 {
		c.parts.Store, c.parts.Views = struct{ core.Store }{c.store}, c.store.Store // one that keeps no views, with what else keeps them
		c.chosen = append(c.chosen, "views")
	}
	now := func(n int) int { return r.IntN(n) * r.IntN(2) }
	c.course = course{
		turns: 12 + r.IntN(16), seed: int(seed), budget: []int{90, 200, 300, 500, 900, 2000}[r.IntN(6)], words: []int{4, 12, 30}[r.IntN(3)], tools: now(4),
		provider: []string{"", "", "anthropic", "google"}[r.IntN(4)], hosted: r.IntN(3) == 0, whole: r.IntN(2) == 0,
		long: now(6), ask: 1 + r.IntN(4), compact: now(7), forget: now(8), rewind: now(6), restart: now(6), narrow: now(6), spawn: now(8), system: now(9), beat: now(8),
	}
	if !c.course.hosted {
		c.course.rewind = 0 // who hands over messages takes none back
	}
	c.between, c.asks = c.besides, c.asked
	c.leads, c.limited = r.IntN(3) == 0, r.IntN(4) == 0
	for range 1 + r.IntN(2) {
		c.restart()
		c.engines = append(c.engines, c.engine)
	}
	return c
}

func (c *drawnConversation) led() string {
	return c.had() + c.lead(&c.course) + c.show() + c.state() + c.stored() + named(c.answers.String(), c.names)
}

// had is a history that some hosts have already when the engine comes: longer than what a window is looked for in.
func (c *drawnConversation) had() string {
	if c.rand = rand.New(rand.NewPCG(uint64(c.course.seed), 3)); c.rand.IntN(8) > 0 { //nolint:gosec // a conversation, no secret
		return ""
	}
	for n := range 80 + c.rand.IntN(300) {
		m := message.New([]message.Role{message.User, message.Assistant}[(n+c.rand.IntN(5)/4)%2], c.text(c.size(&c.course)))
		m.Time = c.now.Add(time.Duration(n) * time.Second)
		c.host = append(c.host, m)
	}
	c.now = c.now.Add(time.Hour)
	res, err := c.engine.Bootstrap(c.t.Context(), core.BootstrapRequest{Session: c.id, Transcript: &core.Transcript{Messages: slices.Clone(c.host), Whole: c.course.whole}})
	return fmt.Sprintf("bootstrap: %+v %v\n", res, err)
}

// misfits are where a view's summaries and its path do not fit together.
func misfits(v *core.View) []string {
	var out []string
	if v.Start >= 0 && v.Frontier > v.Start {
		out = append(out, fmt.Sprintf("%s: the window begins at %d, and summaries stand for all in front of %d", v.Session, v.Start, v.Frontier))
	}
	at := v.Floor()
	for i := range v.Summaries {
		sum := &v.Summaries[i]
		held := 0
		for _, sp := range v.Slice(at, at+sum.Places()) {
			owner := *sp.Owned(v.Session).Session
			for seq := sp.From; seq < sp.To; seq++ {
				if sum.MadeOf(owner, seq) {
					held++
				}
			}
		}
		if at += sum.Places(); held != sum.Covers {
			out = append(out, fmt.Sprintf("%s: summary %d of %d stands for %d entries and %d late ones; of those in its place it was made of %d", v.Session, i, len(v.Summaries), sum.Covers, sum.Late, held))
		}
	}
	return out
}

// stored is all that the store holds at the end.
func (c *drawnConversation) stored() string {
	var b strings.Builder
	ctx := c.t.Context()
	for e, err := range core.All(ctx, c.store, core.Scope{Agent: c.id.Agent}, false) {
		fmt.Fprintf(&b, "%s %v\n", c.json(e), err)
	}
	for flaw, err := range engine.Flaws(ctx, c.store.Store) {
		fmt.Fprintf(&b, "flaw: %v, error %v\n", flaw, err)
		c.t.Errorf("conversation %d: %v, error %v", c.course.seed, flaw, err)
	}
	ids, err := c.store.ListViews(ctx, core.ViewQuery{Limit: core.MaxPage})
	if err != nil {
		c.t.Fatal(err)
	}
	for _, id := range ids {
		v, err := c.store.LoadView(ctx, id)
		fmt.Fprintf(&b, "%s %v\n", c.json(v), err)
		for _, text := range misfits(&v) {
			c.t.Errorf("conversation %d: %s", c.course.seed, text)
		}
	}
	// What is erased leaves a print that is made with a secret key, and each process marks what it stored.
	return prints.ReplaceAllStringFunc(named(b.String(), c.names), func(p string) string {
		if _, ok := c.names[p]; !ok {
			c.names[p] = len(c.names)
		}
		return fmt.Sprint("print", c.names[p])
	})
}

var prints = regexp.MustCompile(`\b[a-z]?[0-9a-f]{16,}\b|\b[A-Z2-7]{8}\b`)

func (c *drawnConversation) json(v any) []byte {
	raw, err := json.Marshal(v)
	if err != nil {
		c.t.Fatal(err)
	}
	return raw
}

// answer writes what a call returned.
func (c *drawnConversation) answer(what string, res any, err error) {
	fmt.Fprintf(&c.out, "%s: %s\n", what, named(fmt.Sprintf("%+v %v", res, err), c.names))
}

// besides makes some of the calls that come between two turns, and lets another process go on.
func (c *drawnConversation) besides(k *course) {
	for _, m := range c.last.Messages {
		if m.Entry != "" && !slices.Contains(c.said, m.Entry) {
			c.said = append(c.said, m.Entry)
		}
	}
	for range c.rand.IntN(3) {
		c.ask(k)
	}
	for i, e := range c.engines {
		if e == c.engine {
			c.engine = c.engines[(i+c.rand.IntN(2))%len(c.engines)]
			return
		}
	}
	c.engines[0] = c.engine // it was started again
}

// asked draws what else a host says when it asks for a window, and what it hands over of its transcript.
func (c *drawnConversation) asked(req *core.AssembleRequest) {
	loop := req.Call == core.CallLoop
	if loop && c.rand.IntN(8) == 0 {
		c.spawn(&c.course)
	}
	switch {
	case req.Transcript == nil:
	case loop && c.lastAt <= len(c.host) && c.rand.IntN(2) == 0: // the engine's own window, and what came since
		req.Transcript = &core.Transcript{Messages: slices.Concat(c.last.Messages, c.host[c.lastAt:])}
	default:
		req.Transcript = c.handsOver()
	}
	if c.limited {
		req.Settings.ContextWindow, req.Settings.MaxOutputTokens = req.Budget+c.rand.IntN(2)*req.Budget/4, req.Budget/(1+c.rand.IntN(4))
		if loop {
			req.Budget -= c.rand.IntN(req.Budget / 3)
		}
	}
}

// handsOver draws what a host hands over of its transcript: all of it, what came last and what was before by its digest, or only what came last, which may begin
// with a line of its own.
func (c *drawnConversation) handsOver() *core.Transcript {
	t := &core.Transcript{Messages: slices.Clone(c.host), Whole: c.course.whole}
	if c.leads {
		t.Messages = slices.Insert(t.Messages, 0, message.New(message.System, fmt.Sprintf("you are Ada, and it is part %d", c.turns/3)))
	}
	if len(c.host) == 0 {
		return t
	}
	switch n := c.rand.IntN(len(t.Messages)); c.rand.IntN(6) {
	case 0:
		t.Skipped, t.Digest, t.Messages = n, message.DigestOf(t.Messages[:n]), t.Messages[n:]
	case 1:
		t.Messages, t.Whole = t.Messages[n:], false
		if t.Messages[0].Role == message.Assistant {
			t.Messages = append([]message.Message{message.New(message.User, "(session bootstrap)")}, t.Messages...)
		}
	}
	return t
}

func (c *drawnConversation) some() string {
	if len(c.said) == 0 {
		return "id0000001"
	}
	return c.said[c.rand.IntN(len(c.said))]
}

func (c *drawnConversation) ask(k *course) {
	ctx, e := c.t.Context(), c.engine
	other := core.SessionID{Agent: c.id.Agent, Session: "other"}
	switch c.rand.IntN(16) {
	case 0, 1:
		req := engine.SearchRequest{Session: c.id, Query: c.text(1 + c.rand.IntN(4)), Limit: c.rand.IntN(6), Tokens: c.rand.IntN(2) * (20 + c.rand.IntN(200))}
		if c.rand.IntN(3) == 0 {
			req.From, req.To = c.now.Add(-time.Duration(c.rand.IntN(30))*time.Minute), c.now.Add(-time.Duration(c.rand.IntN(5))*time.Minute)
		}
		for range 3 {
			res, err := e.Search(ctx, req)
			c.answer("search", res, err)
			if req.Offset = res.Next; res.Next == 0 {
				break
			}
		}
	case 2, 3:
		req := engine.ExpandRequest{Session: c.id, ID: c.some(), Before: c.rand.IntN(2) * c.rand.IntN(4), After: c.rand.IntN(2) * c.rand.IntN(4), Tokens: c.rand.IntN(2) * (10 + c.rand.IntN(100))}
		if d, err := e.Describe(ctx, engine.DescribeRequest{Session: c.id}); err == nil && len(d.Summaries) > 0 && c.rand.IntN(2) == 0 {
			req.ID = d.Summaries[c.rand.IntN(len(d.Summaries))].ID
		}
		for range 3 {
			res, err := e.Expand(ctx, req)
			c.answer("expand", res, err)
			if req.Offset = res.Next; res.Next == 0 {
				break
			}
		}
	case 4:
		res, err := e.Describe(ctx, engine.DescribeRequest{Session: c.id})
		c.answer("describe", res, err)
	case 5:
		res, err := e.Maintain(ctx, core.MaintainRequest{Session: c.id, Reason: "turn", Budget: k.budget})
		c.answer("maintain", res, err)
	case 6:
		had := len(c.host) - min(len(c.host), c.rand.IntN(5))
		err := e.AfterTurn(ctx, core.AfterTurnRequest{Session: c.id, Messages: c.host, PrePrompt: had})
		c.answer("after turn", nil, err)
		c.answer("disposed", nil, e.Dispose(ctx)) // what it began in the background is done
		i := slices.Index(c.engines, e)
		c.restart()
		c.engines[max(i, 0)] = c.engine
	case 7:
		req := core.BootstrapRequest{Session: c.id}
		if c.rand.IntN(2) == 0 {
			req.Transcript = c.handsOver()
		}
		if c.rand.IntN(4) == 0 {
			req.TranscriptScope = core.TranscriptScope{SessionID: fmt.Sprint("t", c.rand.IntN(2))}
		}
		res, err := e.Bootstrap(ctx, req)
		c.answer("bootstrap", res, err)
	case 8:
		req := engine.ForgetRequest{Scope: c.id.Scope(), Reason: "asked"}
		switch c.rand.IntN(6) {
		case 0:
			req.Purge = true
		case 1, 2:
			req.From, req.To = c.now.Add(-time.Duration(5+c.rand.IntN(20))*time.Minute), c.now.Add(-time.Duration(c.rand.IntN(5))*time.Minute)
		case 3:
			req.Scope.Session = other.Session
		default:
			req.Entries = []string{c.some(), c.some()}
			if req.Entries[0] == req.Entries[1] {
				req.Entries = req.Entries[:1]
			}
		}
		res, err := e.Forget(ctx, req)
		c.answer("forget", res, err)
		if req.Purge && err == nil {
			c.host, c.said = nil, nil
		}
	case 9:
		c.answer("score", nil, e.Score(ctx, engine.Outcome{Session: c.id, Turn: int64(c.rand.IntN(c.turns + 1)), Name: "liked", Value: c.rand.Float64()}))
		res, err := e.Outcomes(ctx, c.id.Agent)
		c.answer("outcomes", res, err)
		arm, err := e.Arm(ctx, c.id, func(recorded string) string { return recorded + "a" })
		c.answer("arm", arm, err)
	case 10:
		n, err := e.Mend(ctx, c.id)
		c.answer("mend", n, err)
		c.answer("refresh", nil, e.Refresh(ctx))
		res, err := e.Receipts(ctx, c.id.Agent)
		c.answer("receipts", res, err)
		c.answer("health", e.Info().Health, nil)
	case 11:
		c.now = c.now.Add(2 * time.Hour)
	case 12:
		c.batch(k)
	case 13:
		req := core.AssembleRequest{Session: c.id, Budget: k.budget, PromptMode: []core.PromptMode{core.PromptMinimal, core.PromptNone}[c.rand.IntN(2)], Prompt: c.text(3)}
		if c.rand.IntN(2) == 0 {
			req.Memory = core.MemoryPrompt{AvailableTools: []string{"memory_search"}, CitationMode: "on", Sections: []string{c.text(5)}}
		}
		res, err := e.Assemble(ctx, req)
		c.answer("assemble", res, err)
	case 14:
		req := core.CompactRequest{Session: c.id, Budget: c.rand.IntN(2) * k.budget, CurrentTokens: c.rand.IntN(2) * k.budget * 2, Target: core.TargetBudget, Force: c.rand.IntN(3) == 0}
		if c.rand.IntN(2) == 0 {
			req.Instructions = c.text(4)
		}
		res, err := e.Compact(ctx, req)
		c.answer("compact", res, err)
	case 15: // another session of the agent
		for range 1 + c.rand.IntN(6) {
			m := message.New([]message.Role{message.User, message.Assistant}[c.rand.IntN(2)], c.text(c.size(k)))
			m.Time = c.now
			c.ingest(other, m, false)
		}
		c.assemble(k, core.AssembleRequest{Session: other, Budget: k.budget}, "")
	}
}

// batch hands over several messages at once, odd ones among them.
func (c *drawnConversation) batch(k *course) {
	req := core.IngestBatchRequest{Session: c.id, IdempotencyKey: []string{"", "again"}[c.rand.IntN(2)]}
	for i := range 1 + c.rand.IntN(5) {
		m := message.New(message.User, c.text(c.size(k)))
		switch c.rand.IntN(9) {
		case 0:
			m = message.New(message.Assistant, "")
		case 1:
			m = message.New(message.User, "  \n")
		case 2:
			m.Parts = append(m.Parts, message.Part{Kind: message.Image, Raw: []byte(`{"type":"image","data":"aGVsbG8=","mimeType":"image/png"}`)})
		case 3:
			m = message.New(message.Assistant, c.text(3))
			m.Stop = "error"
		case 4:
			n := c.rand.IntN(4) // the same one again, soon
			m = message.New(message.User, fmt.Sprint("as the host has it, ", n))
			m.ID = fmt.Sprint("h", n)
		case 5:
			m = message.Message{Role: message.Tool, Parts: []message.Part{{Kind: message.ToolResult, CallID: "nobody", Name: "look", Text: c.text(9)}}}
		case 6:
			m.Name = "Bo"
			m.Parts = append(m.Parts, message.Part{Kind: message.Text, Text: c.text(c.size(k) * 3)}, message.Part{Kind: message.Other, Raw: []byte(`{"type":"odd"}`)})
		case 7:
			m = message.New(message.Assistant, c.text(4))
			m.Parts = append([]message.Part{{Kind: message.Thinking, Text: c.text(5), Signature: "s"}}, m.Parts...)
		}
		m.Time = c.now.Add(time.Duration(i) * time.Second)
		req.Messages = append(req.Messages, m)
		if k.hosted {
			c.host = append(c.host, m)
		}
	}
	res, err := c.engine.IngestBatch(c.t.Context(), req)
	c.answer("batch", res, err)
}
