package engine_test

import (
	"context"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/contextengine/contextengine/backends/memory"
	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/engine"
	"github.com/contextengine/contextengine/core/message"
)

// conversation is a host with one session that is led, and one besides.
type conversation struct {
	t      *testing.T
	parts  engine.Parts
	cfg    engine.Config
	engine *engine.Engine
	now    time.Time
	id     core.SessionID
	host   []message.Message
	turns  int
	calls  int
	drawn  int
	names  map[string]int
	// last is the newest window, and lastAt how many messages the host had when it was made.
	last   core.AssembleResult
	lastAt int
	out    strings.Builder
	// answers is what calls returned of which out says nothing.
	answers strings.Builder
	// sent is what the windows said, all of them.
	sent []string
	rand *rand.Rand
	// failed, where a test makes a part fail, reports whether an error is of that: the call is then made again.
	failed func(error) bool
	// between is called behind each turn; nil for nothing.
	between func(k *course)
	// asks changes what a window is asked for with; nil for nothing.
	asks func(req *core.AssembleRequest)
}

// do makes a call, and once more where it failed for that reason.
func (c *conversation) do(call func() error) error {
	err := call()
	if err != nil && c.failed != nil && c.failed(err) {
		err = call()
	}
	return err
}

// toldTime is a host of which the time is known.
type toldTime struct {
	core.NoHost
	now *time.Time
}

func (h toldTime) Now() time.Time { return *h.now }

// common proposes what has words in common with the question, the more of them the better.
type common struct{ store core.Store }

func (r *common) Attach(store core.Store) error { r.store = store; return nil }

func (r *common) Retrieve(ctx context.Context, q core.Query) ([]core.Candidate, error) {
	var out []core.Candidate
	for entry, err := range core.All(ctx, r.store, q.Scope, false) {
		if err != nil {
			return nil, err
		}
		score := 0.0
		for word := range strings.FieldsSeq(entry.Text()) {
			if len(word) > 4 && strings.Contains(q.Prompt, word) {
				score++
			}
		}
		if score > 0 && !q.InWindow(entry.ID) {
			out = append(out, core.Candidate{Entry: entry, Score: score, Source: "common"})
		}
	}
	slices.SortStableFunc(out, func(a, b core.Candidate) int { return int(b.Score - a.Score) })
	return out[:min(len(out), q.Limit)], nil
}

// counting replaces all that may go, and says how much that was and how it began.
type counting struct{}

func (counting) OwnsCompaction() bool { return true }

func (counting) Compact(_ context.Context, c core.Compaction) (core.Patch, error) {
	r := core.Replacement{Kind: "summary"}
	for _, e := range c.Entries[:len(c.Entries)-c.Protected] {
		r.Entries = append(r.Entries, e.ID)
	}
	for _, s := range c.Summaries {
		r.Summaries = append(r.Summaries, s.ID)
	}
	r.Text = fmt.Sprintf("%d messages and %d summaries, first %.20q", len(r.Entries), len(r.Summaries), c.Entries[0].Text())
	return core.Patch{Replace: []core.Replacement{r}}, nil
}

func newConversation(t *testing.T) *conversation {
	t.Helper()
	c := &conversation{t: t, names: make(map[string]int), cfg: engine.DefaultConfig(), now: time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC), id: core.SessionID{Agent: "ada", Session: "s"}}
	c.parts = engine.Parts{Store: memory.New(), Retriever: &common{}, Compactor: counting{}, Counter: wordCounter, Host: toldTime{now: &c.now}}
	c.cfg.RecentMessages = 4
	return c
}

func (c *conversation) restart() {
	e, err := engine.New(c.parts, c.cfg, engine.WithIDs(func() string { c.drawn++; return fmt.Sprintf("id%07d", c.drawn) }))
	if err != nil {
		c.t.Fatal(err)
	}
	c.engine = e
}

// course is how a conversation is led. Every says after how many turns something comes; 0 is never.
type course struct {
	turns, seed, budget, words, tools int
	provider                          string
	// hosted has the host hand over its transcript, without the newest message of the user; whole is all that it has.
	hosted, whole bool
	// every
	long, ask, compact, forget, rewind, restart, narrow, spawn, system, beat int
}

// lead leads a conversation and returns what came of it.
func (c *conversation) lead(k *course) string {
	c.rand = rand.New(rand.NewPCG(uint64(k.seed), 1)) //nolint:gosec // a conversation, no secret
	c.out.Reset()
	for range k.turns {
		c.turn(k)
	}
	return c.out.String()
}

// topics are what a conversation is about.
var topics = []string{"harbour", "lantern", "saffron", "granite", "kestrel", "orchard", "juniper", "compass"}

// text is so many words, half of them about the topics.
func (c *conversation) text(n int) string {
	words := make([]string, max(n, 1))
	for i := range words {
		words[i] = []string{"the", topics[c.rand.IntN(len(topics))], "of", strconv.Itoa(c.rand.IntN(1000))}[c.rand.IntN(4)]
	}
	return strings.Join(words, " ")
}

func (c *conversation) size(k *course) int { return 1 + c.rand.IntN(2*k.words) }

// says adds a message to what the host has, and hands it over where the host does not hand over its transcript.
func (c *conversation) says(k *course, m message.Message, heartbeat bool) {
	c.now = c.now.Add(time.Minute)
	m.Time = c.now
	c.host = append(c.host, m)
	if k.hosted {
		return
	}
	c.ingest(c.id, m, heartbeat)
}

// ingest hands a message over, by a name, so that it can be made again.
func (c *conversation) ingest(id core.SessionID, m message.Message, heartbeat bool) {
	c.calls++
	req := core.IngestBatchRequest{Session: id, Messages: []message.Message{m}, Heartbeat: heartbeat, IdempotencyKey: strconv.Itoa(c.calls)}
	var res core.IngestResult
	if err := c.do(func() (err error) { res, err = c.engine.IngestBatch(c.t.Context(), req); return err }); err != nil {
		fmt.Fprintf(&c.out, "ingest: %v\n", err)
	}
	fmt.Fprintf(&c.answers, "ingest: %+v\n", res)
}

func (c *conversation) turn(k *course) {
	c.turns++
	every := func(n int) bool { return n > 0 && c.turns%n == 0 }
	ctx, began := c.t.Context(), len(c.host)
	if every(k.restart) {
		c.restart()
	}
	if every(k.rewind) {
		c.host = c.host[:len(c.host)-min(len(c.host), 1+c.rand.IntN(6))]
		began = len(c.host)
	}
	if every(k.system) {
		c.says(k, message.New(message.System, "from now on "+c.text(k.words)), false)
	}
	n := c.size(k)
	if every(k.long) {
		n *= 8
	}
	ask := c.text(n)
	if every(k.ask) {
		ask = "What was said about the " + topics[c.rand.IntN(len(topics))] + " and the " + topics[c.rand.IntN(len(topics))] + "?"
	}
	budget := k.budget
	if every(k.narrow) {
		budget /= 2
	}
	req := core.AssembleRequest{Session: c.id, Budget: budget, Settings: core.RuntimeSettings{Provider: k.provider}}
	if !k.hosted {
		c.says(k, message.New(message.User, ask), false)
	}
	c.assemble(k, req, ask)
	if k.hosted {
		c.says(k, message.New(message.User, ask), false)
	}
	req.Call = core.CallLoop
	for i := range c.rand.IntN(k.tools + 1) {
		call, results := message.New(message.Assistant, c.text(3)), []message.Message(nil)
		for j := range 1 + c.rand.IntN(2) {
			id, size := fmt.Sprintf("c%dx%dx%d", c.turns, i, j), c.size(k)
			if c.rand.IntN(4) == 0 {
				size *= 12
			}
			call.Parts = append(call.Parts, message.Part{Kind: message.ToolCall, CallID: id, Name: "look", Args: fmt.Sprintf(`{"n":%d}`, size)})
			results = append(results, message.Message{Role: message.Tool, Parts: []message.Part{{Kind: message.ToolResult, CallID: id, Name: "look", Text: c.text(size), IsError: c.rand.IntN(9) == 0}}})
		}
		c.says(k, call, false)
		for _, r := range results {
			c.says(k, r, false)
		}
		c.assemble(k, req, ask)
	}
	c.says(k, message.New(message.Assistant, c.text(c.size(k))), false)
	if k.hosted {
		turn := core.CommitTurnRequest{Session: c.id, AdvancementKey: strconv.Itoa(c.turns), Messages: c.host[began:]}
		var res core.CommitTurnResult
		if err := c.do(func() (err error) { res, err = c.engine.CommitTurn(ctx, turn); return err }); err != nil {
			fmt.Fprintf(&c.out, "commit: %v\n", err)
		}
		fmt.Fprintf(&c.answers, "commit: %+v\n", res)
	}
	if every(k.beat) {
		c.says(k, message.New(message.User, "anything new?"), true)
		c.says(k, message.New(message.Assistant, "nothing"), true)
	}
	if every(k.compact) {
		req, res := core.CompactRequest{Session: c.id, Budget: budget, Force: c.rand.IntN(2) == 0, Target: core.TargetThreshold}, core.CompactResult{}
		err := c.do(func() (err error) { res, err = c.engine.Compact(ctx, req); return err })
		fmt.Fprintf(&c.out, "compact: %t %q %d > %d %v\n", res.Compacted, res.Reason, res.TokensBefore, res.TokensAfter, err)
	}
	if every(k.forget) {
		c.forget()
	}
	if every(k.spawn) {
		c.spawn(k)
	}
	if c.between != nil {
		c.between(k)
	}
}

// forget erases what one of the window's messages shows.
func (c *conversation) forget() {
	var ids []string
	for _, m := range c.last.Messages {
		if m.Entry != "" {
			ids = append(ids, m.Entry)
		}
	}
	if len(ids) == 0 {
		return
	}
	req, rec := engine.ForgetRequest{Scope: c.id.Scope(), Entries: []string{ids[c.rand.IntN(len(ids))]}}, engine.Receipt{}
	err := c.do(func() (err error) { rec, err = c.engine.Forget(c.t.Context(), req); return err })
	fmt.Fprintf(&c.out, "forget: %d entries, %d summaries, %d views %v\n", rec.Entries, rec.Summaries, rec.Views, err)
}

// spawn has a subagent look at what the session is, say something and hand it back.
func (c *conversation) spawn(k *course) {
	ctx, child := c.t.Context(), core.SessionID{Agent: c.id.Agent, Session: fmt.Sprintf("child%d", c.turns)}
	mode := []core.SpawnMode{core.SpawnFork, core.SpawnIsolated}[c.rand.IntN(2)]
	err := c.do(func() error {
		_, err := c.engine.PrepareSubagentSpawn(ctx, core.SpawnRequest{Parent: c.id, Child: child, Mode: mode})
		return err
	})
	fmt.Fprintf(&c.out, "spawn: %s %v\n", mode, err)
	ask := message.New(message.User, "What was said about the "+topics[c.rand.IntN(len(topics))]+"?")
	ask.Time = c.now
	for _, m := range []message.Message{ask, message.New(message.Assistant, "found "+c.text(k.words))} {
		m.Time = c.now
		c.ingest(child, m, false)
		c.assemble(k, core.AssembleRequest{Session: child, Budget: k.budget}, ask.Text())
	}
	err = c.do(func() error {
		return c.engine.OnSubagentEnded(ctx, core.SubagentEnded{Parent: c.id, Child: child, Reason: "completed"})
	})
	fmt.Fprintf(&c.out, "ended: %v\n", err)
}

// assemble asks for a window and writes a line about it. Asked again at once it is the same.
func (c *conversation) assemble(k *course, req core.AssembleRequest, prompt string) {
	own := req.Session == c.id
	if k.hosted && own {
		req.Transcript = &core.Transcript{Messages: slices.Clone(c.host), Whole: k.whole}
		if req.Call != core.CallLoop {
			req.Prompt = prompt
		}
	}
	if c.asks != nil && own {
		c.asks(&req)
	}
	var res core.AssembleResult
	if err := c.do(func() (err error) { res, err = c.engine.Assemble(c.t.Context(), req); return err }); err != nil {
		fmt.Fprintf(&c.out, "%d: %v\n", c.turns, err)
		return
	}
	if own {
		c.last, c.lastAt = res, len(c.host)
	}
	fmt.Fprintf(&c.out, "%d: %d messages, %d tokens, epoch %d", c.turns, len(res.Messages), res.EstimatedTokens, res.Epoch)
	for _, flag := range []struct {
		word string
		set  bool
	}{{"stepped", res.Stepped}, {"addition", res.SystemPromptAddition != ""}, {"due", res.CompactionDue}} {
		if flag.set {
			fmt.Fprint(&c.out, ", ", flag.word)
		}
	}
	if res.RecallLen > 0 {
		fmt.Fprintf(&c.out, ", recall at %d", res.RecallAt)
	}
	var all strings.Builder
	for _, m := range res.Messages {
		fmt.Fprintf(&all, "%s %q %+v\n", m.Role, m.Entry, m.Parts)
	}
	c.sent = append(c.sent, fmt.Sprintf("turn %d, %s:\n%s", c.turns, req.Session, named(all.String(), make(map[string]int))))
	for _, ch := range res.Choices {
		fmt.Fprintf(&all, "%+v\n", ch)
	}
	h := fnv.New32a()
	_, _ = h.Write([]byte(named(all.String(), c.names)))
	fmt.Fprintf(&c.out, ", %08x", h.Sum32())
	for _, w := range res.Warnings {
		fmt.Fprintf(&c.out, ", %s", w)
	}
	fmt.Fprintln(&c.out)
}

// named gives each id in a text the number of its first appearance: what has failed and is made again draws others.
func named(text string, names map[string]int) string {
	return ids.ReplaceAllStringFunc(text, func(id string) string {
		if _, ok := names[id]; !ok {
			names[id] = len(names) + 1
		}
		return fmt.Sprintf("id%d", names[id])
	})
}

var ids = regexp.MustCompile(`\bid[0-9]{7}\b`)

func (c *conversation) show() string {
	var b strings.Builder
	for i, m := range c.last.Messages {
		text := ""
		for _, p := range m.Parts {
			text += p.Text + p.Args + " "
		}
		words := strings.Fields(text)
		if len(words) > 12 {
			words = slices.Concat(words[:6], []string{"…"}, words[len(words)-5:])
		}
		fmt.Fprintf(&b, "%d %s %s: %s\n", i, m.Role, m.Entry, strings.Join(words, " "))
	}
	for _, ch := range c.last.Choices {
		if ch.Message < 0 {
			fmt.Fprintf(&b, "%s: %d from %s, %d tokens\n", ch.Reason, ch.Count, ch.Entry, ch.Tokens)
		}
	}
	return named(b.String(), c.names)
}

func (c *conversation) state() string {
	res, err := c.engine.Describe(c.t.Context(), engine.DescribeRequest{Session: c.id})
	return named(fmt.Sprintf("%+v %v\n", res, err), c.names)
}
