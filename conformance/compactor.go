package conformance

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leanovate/gopter"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/message"
	"github.com/contextengine/contextengine/core/window"
)

// TestCompactor holds a compactor to the contract of core.Compactor. open returns a compactor that asks model, or the host it is
// handed with each task, when it needs a model at all.
func TestCompactor(t *testing.T, open func(tb testing.TB, model *Model) core.Compactor, opts ...Option) {
	t.Helper()
	o := resolve(t, fewer(25), opts)
	t.Logf("conformance seed %d", o.seed)
	defer func() { o.close(t, t.Failed()) }()
	have := compactorHas(t, open)
	for _, c := range compactorChecks() {
		t.Run(c.ID, func(t *testing.T) {
			runCheck(t, c, have, o, func() (Finding, bool) { return examineCompactor(t, c, open, o) })
		})
	}
}

// ExamineCompactor is TestCompactor for tools: it returns what it finds instead of failing a test.
func ExamineCompactor(tb testing.TB, open func(tb testing.TB, model *Model) core.Compactor, opts ...Option) []Finding {
	tb.Helper()
	o := resolve(tb, fewer(25), opts)
	have := compactorHas(tb, open)
	var out []Finding
	for _, c := range compactorChecks() {
		if len(missing(c, have)) > 0 || o.claims != nil && !matches(c, o.claims) {
			continue
		}
		if f, found := examineCompactor(tb, c, open, o); found {
			out = append(out, f)
			if o.first {
				break
			}
		}
	}
	return out
}

func compactorHas(tb testing.TB, open func(testing.TB, *Model) core.Compactor) map[Need]bool {
	tb.Helper()
	c := &caseTB{TB: tb}
	defer c.end()
	owns := open(c, &Model{}).OwnsCompaction()
	return map[Need]bool{NeedOwner: owns, NeedDelegate: !owns}
}

// piece is one generated part of a conversation: a plain message, or a call with its results.
type piece struct {
	// Calls is the number of tool calls; 0 makes a plain message.
	Calls int
	Text  textKind
	Size  int
	// Joined puts all results into one message, with words of the host's behind them; each but the first is a third of it.
	Joined bool
	// Alike gives all calls of a message one id, as some hosts do.
	Alike bool
	// Ended puts the entry of a subagent that ended between a call and its last result.
	Ended bool
	// Odd makes a plain message one that hosts and engines write more seldom, see oddPieces.
	Odd int
}

// oddPiece changes a plain message.
type oddPiece struct {
	name   string
	change func(e *core.Entry)
}

// oddPieces change a plain message into what compactors also meet.
var oddPieces = []oddPiece{
	{"ordinary", func(*core.Entry) {}},
	{"of a subagent", func(e *core.Entry) { e.Type, e.Role, e.Message.Role = core.TypeSubagent, message.User, message.User }},
	{"with an image", func(e *core.Entry) {
		e.Message.Parts = append(e.Message.Parts, message.Part{Kind: message.Image, Text: "a bridge", Raw: []byte(`{"type":"image"}`)})
		e.Tokens += window.ImageTokens
	}},
	{"without parts", func(e *core.Entry) { e.Message.Parts = nil }},
	{"of the system", func(e *core.Entry) { e.Role, e.Message.Role = message.System, message.System }},
	{"with thinking", func(e *core.Entry) {
		e.Role, e.Message.Role = message.Assistant, message.Assistant
		e.Message.Parts = append([]message.Part{{Kind: message.Thinking, Text: "because", Signature: "c2ln"}}, e.Message.Parts...)
		e.Message.Parts = append(e.Message.Parts, message.Part{Kind: message.Other, Raw: []byte{0, 0xff}})
	}},
	{"of odd bytes", func(e *core.Entry) {
		e.Message.Format, e.Message.Raw, e.Meta = message.FormatPi, slices.Clone(oddBytes), map[string]string{"turn": "3"}
		e.Message.Parts[0].Text += "\x00 \xff\xfe"
	}},
	{"of the system, in front", leading},
	{"of a timer", func(e *core.Entry) { e.Type = core.TypeHeartbeat }},
	{"that was erased", func(e *core.Entry) { e.Type, e.Tokens, e.Message.Parts, e.Message.Raw = core.TypeErased, 0, nil, nil }},
}

// hiddenPieces is how many of oddPieces, the last ones, no prompt shows.
const hiddenPieces = 3

func (p piece) String() string {
	if p.Calls == 0 {
		return fmt.Sprintf("message %s size %d, %s", p.Text, p.Size, oddPieces[p.Odd].name)
	}
	joined := ""
	if p.Joined {
		joined = ", in one message"
	}
	if p.Alike {
		joined += ", of one id"
	}
	if p.Ended {
		joined += ", a subagent ends between them"
	}
	return fmt.Sprintf("%d calls with results %s size %d%s", p.Calls, p.Text, p.Size, joined)
}

func genPieces(r *rand.Rand) []piece {
	out := make([]piece, 1+r.Intn(30))
	for i := range out {
		out[i] = piece{Text: textKind(r.Intn(int(textKinds))), Size: r.Intn(40)}
		if r.Intn(3) == 0 {
			out[i].Calls = 1 + r.Intn(3)
			out[i].Joined, out[i].Ended, out[i].Alike = r.Intn(3) == 0, r.Intn(4) == 0, r.Intn(6) == 0
		}
		if r.Intn(40) == 0 {
			out[i].Size = 3000
		}
		if out[i].Calls == 0 && r.Intn(8) == 0 {
			out[i].Odd = r.Intn(len(oddPieces))
		}
	}
	// Some stand where compactions take something away.
	if r.Intn(3) == 0 && len(out) > 3 {
		out[r.Intn(len(out)/3)] = piece{Odd: len(oddPieces) - 1 - r.Intn(hiddenPieces)}
	}
	return out
}

func pieceShrinker() gopter.Shrinker {
	return sliceShrinker(func(p piece) []piece {
		var out []piece
		try := func(worth bool, change func(*piece)) {
			if worth {
				smaller := p
				change(&smaller)
				out = append(out, smaller)
			}
		}
		try(p.Calls > 0, func(s *piece) { *s = piece{Text: p.Text, Size: p.Size} })
		try(p.Joined, func(s *piece) { s.Joined = false })
		try(p.Alike, func(s *piece) { s.Alike = false })
		try(p.Ended, func(s *piece) { s.Ended = false })
		try(p.Odd > 0, func(s *piece) { s.Odd = 0 })
		try(p.Text != textPlain, func(s *piece) { s.Text = textPlain })
		try(p.Size > 0, func(s *piece) { s.Size /= 2 })
		return out
	})
}

// compactorRun is one case of one check.
type compactorRun struct {
	tb        testing.TB
	watch     *watch
	compactor core.Compactor
	// open makes another compactor that asks model.
	open   func(testing.TB, *Model) core.Compactor
	model  *Model
	host   *Host
	pieces []piece
	// groups holds the number of the group each entry belongs to.
	groups map[string]int
	// args are the arguments of tool calls.
	args      string
	entries   []core.Entry
	published []core.Patch
	// shown are the patches that trueTexts looked at last.
	shown []core.Patch
	// counter is what tokens are counted with; nil is cheapCount.
	counter core.TokenCounter
	// tried counts the tasks of asks.
	tried int
	// days are how many days later than at first the next task is asked.
	days int
}

// count counts tokens as the tasks do.
func (r *compactorRun) count(s string) int {
	if r.counter != nil {
		return r.counter(s)
	}
	return cheapCount(s)
}

// set changes the model's mood, from the next day on: whoever left it alone for a while asks it again.
func (r *compactorRun) set(mood Mood) {
	r.days++
	r.host.advance(24 * time.Hour)
	r.model.Set(mood)
}

func examineCompactor(tb testing.TB, c Check, open func(testing.TB, *Model) core.Compactor, o options) (Finding, bool) {
	tb.Helper()
	defer o.watch.tally.during(c, o.watch)()
	w := watched{watch: o.watch}
	cases := o.cases
	switch {
	case c.once: // of which no drawn case is a smaller one
		cases, o.shrink = 1, false
	case c.dear && !o.exact:
		cases = max(1, cases/5)
	}
	if o.watch.hurried.Load() { // what it does wrong is known: what else it does is not worth minutes
		cases, o.shrink = 1, false
	}
	broken := "" // the check whose rule is broken, where it is not this one's
	text, pieces, found := forAll(seedFor(o.seed, c.ID), cases, o.shrink, genPieces, pieceShrinker(), func(pieces []piece) string {
		if len(pieces) == 0 {
			return ""
		}
		tb := &caseTB{TB: tb}
		defer w.finish(tb)
		return w.run(tb, func() string {
			m, h := &Model{}, &heard{}
			each := func(tb testing.TB, m *Model) core.Compactor { tb.Helper(); return newEachCall(open(tb, m), m, h) }
			text := c.compactor(&compactorRun{tb: tb, watch: w.watch, compactor: each(tb, m), open: each, model: m, host: NewHost(m), pieces: pieces})
			id, besides := h.found()
			if text != "" || besides == "" || o.passes(id) {
				return text
			}
			broken = id
			if id == idSoon { // each smaller case would wait as long
				w.hung = besides
			}
			return besides
		})
	})
	if !found {
		return Finding{}, false
	}
	if i := slices.IndexFunc(compactorChecks(), func(c Check) bool { return c.ID == broken }); i >= 0 {
		c = compactorChecks()[i]
	}
	text = cmp.Or(w.hung, text)
	lines := make([]string, len(pieces))
	for i, s := range pieces {
		lines[i] = s.String()
	}
	return Finding{Check: c, Text: text, Case: strings.Join(lines, "\n"), Seed: o.seed}, true
}

// passes reports whether what breaks the rule of a check that every call is held to is nobody's finding.
func (o options) passes(id string) bool {
	_, known := o.known[id]
	return known || o.claims != nil && !slices.ContainsFunc(compactorChecks(), func(c Check) bool { return c.ID == id && matches(c, o.claims) })
}

// ctx is the context of the next call.
func (r *compactorRun) ctx() context.Context { return r.watch.calling(r.tb.Context()) }

// cheapCount is a counter that is quick and never below one token for four bytes.
func cheapCount(s string) int { return (len(s) + 3) / 4 }

// messageTokens is what a message costs besides its parts.
const messageTokens = 4

// task builds the conversation and asks for half of it to go.
func (r *compactorRun) task(force bool) core.Compaction {
	r.entries, r.groups, r.published = nil, map[string]int{}, nil
	add := r.add
	for g, p := range r.pieces {
		text := makeText(markOf(0, g), p.Text, p.Size, g, nil)
		if p.Calls == 0 {
			role := message.User
			if g%2 == 1 {
				role = message.Assistant
			}
			add(g, message.New(role, text))
			e := &r.entries[len(r.entries)-1]
			oddPieces[p.Odd].change(e)
			e.Fingerprint = message.Fingerprint(e.Message)
			continue
		}
		name := []string{"read", "bash", "grep", "fetch", "ls"}[g%5]
		idOf := func(i int) string {
			if p.Alike {
				i = 0
			}
			return fmt.Sprintf("c%d.%d", g, i)
		}
		call := message.New(message.Assistant, "")
		call.Parts = nil
		for i := range p.Calls {
			call.Parts = append(call.Parts, message.Part{Kind: message.ToolCall, CallID: idOf(i), Name: name, Args: cmp.Or(r.args, `{"n":1}`)})
		}
		add(g, call)
		joined := message.Message{Role: message.Tool}
		for i := range p.Calls {
			if p.Ended && (i == g%p.Calls && !p.Joined || i == 0 && p.Joined) {
				add(g, message.New(message.User, "the subagent says "+text))
				r.entries[len(r.entries)-1].Type = core.TypeSubagent
			}
			result := message.Part{Kind: message.ToolResult, CallID: idOf(i), Name: name, Text: text, IsError: (g+i)%3 == 1}
			switch {
			case !p.Joined:
				add(g, message.Message{Role: message.Tool, Parts: []message.Part{result}})
				continue
			case i > 0:
				result.Text = makeText(markOf(0, g), p.Text, p.Size/3, g+i, nil)
			}
			joined.Parts = append(joined.Parts, result)
		}
		if p.Joined {
			joined.Parts = append(joined.Parts, message.Part{Kind: message.Text, Text: "the host says that these are all of the results there are"})
			add(g, joined)
		}
	}
	return r.taskOf(force)
}

// add appends a message to the conversation.
func (r *compactorRun) add(group int, m message.Message) {
	id, n := sessionOf(0), len(r.entries)
	tokens := messageTokens + r.count(m.Text())
	for _, p := range m.Parts {
		switch p.Kind {
		case message.ToolCall:
			tokens += r.count(p.Name + p.Args)
		case message.Image:
			tokens += window.ImageTokens
		}
	}
	e := core.Entry{ID: fmt.Sprintf("C-%d", n), Agent: id.Agent, Session: id.Session, Seq: int64(n), Turn: int64(group), Role: m.Role,
		Type: core.TypeMessage, Time: epoch.Add(time.Duration(n) * time.Second), Tokens: tokens, Key: fmt.Sprintf("k%d", n),
		Fingerprint: message.Fingerprint(m), Message: m}
	r.groups[e.ID] = group
	r.entries = append(r.entries, e)
}

// taskOf asks for half of the conversation to go.
func (r *compactorRun) taskOf(force bool) core.Compaction {
	id := sessionOf(0)
	c := core.Compaction{
		Session: id, Entries: cloneEntries(r.entries), Force: force, Now: epoch.Add(time.Hour).AddDate(0, 0, r.days), Count: r.count, Host: r.host,
		SummaryTokens: 300, Request: core.CompactRequest{Session: id, Budget: 4000, Force: force, Trigger: "manual"},
		Publish: func(_ context.Context, p core.Patch) error { r.published = append(r.published, p); return nil },
	}
	for _, e := range r.entries {
		cost := e.Tokens
		if e.Hidden() { // no prompt shows it
			cost = 0
		}
		c.Cost = append(c.Cost, cost)
		c.Tokens += cost
	}
	// The newest third stays, in whole groups.
	keepFrom := len(r.pieces) * 2 / 3
	for _, e := range r.entries {
		if r.groups[e.ID] >= keepFrom {
			c.Protected++
		}
	}
	c.Target = c.Tokens / 2
	return c
}

// removable returns the cost of what may go.
func removable(c core.Compaction) int {
	n := 0
	for _, cost := range c.Cost[:len(c.Entries)-c.Protected] {
		n += cost
	}
	return n
}

// costsIn returns what the entries and the summaries of a task cost, by their ids.
func costsIn(c core.Compaction) map[string]int {
	cost := map[string]int{}
	for i, e := range c.Entries {
		cost[e.ID] = c.Cost[i]
	}
	for _, s := range c.Summaries {
		cost[s.ID] = s.Tokens
	}
	return cost
}

// saves returns how many tokens the patches save.
func (r *compactorRun) saves(c core.Compaction, patches []core.Patch) int {
	cost := costsIn(c)
	saved := 0
	for _, p := range patches {
		for id, s := range p.Stubs {
			if before := cost[id]; before > 0 {
				saved += before - s.Tokens
				cost[id] = s.Tokens
			}
		}
		for _, rep := range p.Replace {
			for _, id := range slices.Concat(rep.Entries, rep.Summaries) {
				saved += cost[id]
				cost[id] = 0
			}
			text := messageTokens + r.count(rep.Text)
			saved -= text
			if rep.Ref != "" { // a later one may end it
				cost[rep.Ref] = text
			}
		}
	}
	return saved
}

// all returns everything that a compaction handed over.
func (r *compactorRun) all(p core.Patch) []core.Patch { return append(slices.Clone(r.published), p) }

func cancelled(ctx context.Context) (context.Context, context.CancelFunc) {
	c, cancel := cancellable(ctx)
	cancel()
	return c, cancel
}

func compactorCancel(r *compactorRun) string {
	ctx, cancel := cancelled(r.ctx())
	defer cancel()
	if _, err := r.compactor.Compact(ctx, r.task(true)); err != nil && !errors.Is(err, context.Canceled) {
		return fmt.Sprintf("Compact with a cancelled context: error %v, want none or context.Canceled", err)
	}
	return ""
}
