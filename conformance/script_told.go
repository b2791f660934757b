package conformance

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand"
	"regexp"
	"slices"
	"strings"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/message"
)

// toldChecks tell one conversation in two ways.
var toldChecks = []Check{
	{ID: "contract.told", Promise: 6, Suite: SuiteEngine, script: scriptTold,
		Rule: "a conversation is stored and shown the same however it is told: message by message or in batches, with restarts, and asked for more than once"},
}

// chapter is a prompt, for which the window is asked, and what is said then.
type chapter struct {
	prompt   string
	messages []message.Message
	compact  bool
}

// toldBudget is what a window may cost while a conversation is told.
const toldBudget = 1200

// chapters draws a conversation: turns with tools, now and then a long message, a system message, a question about what was said, and a compaction.
func (s *script) chapters(rng *rand.Rand, n int) []chapter {
	topics := []string{"harbour", "lantern", "saffron", "granite", "kestrel", "orchard"}
	words := func(n int) string {
		out := make([]string, 1+rng.Intn(n))
		for i := range out {
			out[i] = topics[rng.Intn(len(topics))]
		}
		return strings.Join(out, " ")
	}
	out := make([]chapter, n)
	for i := range out {
		c := &out[i]
		if rng.Intn(12) == 0 {
			c.messages = append(c.messages, s.message(message.System, "from now on "+words(6)))
		}
		long := 20
		if rng.Intn(6) == 0 {
			long = 160
		}
		about := fmt.Sprintf("ship%d ", i)
		ask := s.message(message.User, about+words(long))
		if rng.Intn(3) == 0 {
			ask = s.message(message.User, fmt.Sprintf("What was said about ship%d?", rng.Intn(i+1)))
		}
		c.prompt = ask.Text()
		c.messages = append(c.messages, ask)
		for range rng.Intn(3) {
			call := s.message(message.Assistant, "looks")
			id := fmt.Sprintf("call-%d", s.n)
			call.Parts = append(call.Parts, message.Part{Kind: message.ToolCall, CallID: id, Name: "look", Args: `{"at":"it"}`})
			result := s.message(message.Tool, "")
			result.Parts = []message.Part{{Kind: message.ToolResult, CallID: id, Name: "look", Text: words(60)}}
			c.messages = append(c.messages, call, result)
		}
		c.messages = append(c.messages, s.message(message.Assistant, about+words(30)))
		c.compact = rng.Intn(8) == 0
	}
	return out
}

// scriptTold tells a conversation message by message to one session, and in a way that is drawn to another, of another agent.
func scriptTold(s *script) string {
	rng := rand.New(rand.NewSource(s.seed)) //nolint:gosec // what is drawn is no secret
	conversation := s.chapters(rng, 12+min(s.cases, 12))
	plain := s.tell(conversation, sessionOf(0), nil)
	if plain.failed != "" {
		return "message by message: " + plain.failed
	}
	odd := s.tell(conversation, sessionOf(2), rng)
	how := strings.Join(odd.how, ", ")
	if odd.failed != "" {
		return how + ": " + odd.failed
	}
	for i, want := range plain.windows {
		if got := odd.windows[i]; got != want {
			return fmt.Sprintf("window %d of a conversation that was told otherwise (%s): %s", i+1, how, firstDifference(got, want))
		}
	}
	if d := differs(odd.stored, plain.stored); d != "" {
		return fmt.Sprintf("what is stored of a conversation that was told otherwise (%s): %s", how, d)
	}
	return s.askedLater()
}

// askedLater looks at what is recalled of messages that came in one call, against those that came one by one.
func (s *script) askedLater() string {
	things := []string{"harbour", "lantern", "saffron", "granite", "kestrel", "orchard"}
	var before, list, after []message.Message
	for i := range 16 {
		role := []message.Role{message.User, message.Assistant}[i%2]
		before = append(before, s.message(role, strings.Repeat("the budget report moved ", 20)))
		after = append(after, s.message(role, strings.Repeat("the budget report moved ", 20)))
	}
	for i, thing := range things {
		list = append(list, s.message([]message.Role{message.User, message.Assistant}[i%2], "the "+thing+" is closed"))
	}
	each := func(id core.SessionID, list []message.Message) error {
		for _, m := range list {
			if _, err := s.engine.Ingest(s.ctx(), core.IngestRequest{Session: id, Message: m}); err != nil {
				return err
			}
		}
		return nil
	}
	ways := map[string]func(id core.SessionID) error{"ingest": func(id core.SessionID) error { return each(id, list) }}
	if e, ok := s.engine.(core.BatchIngester); ok {
		ways["ingest batch"] = func(id core.SessionID) error {
			_, err := e.IngestBatch(s.ctx(), core.IngestBatchRequest{Session: id, Messages: list})
			return err
		}
	}
	if e, ok := s.engine.(core.TurnCommitter); ok {
		ways["commit turn"] = func(id core.SessionID) error {
			_, err := e.CommitTurn(s.ctx(), core.CommitTurnRequest{Session: id, AdvancementKey: "turn", Messages: list})
			return err
		}
	}
	if e, ok := s.engine.(core.AfterTurner); ok {
		ways["after turn"] = func(id core.SessionID) error {
			return e.AfterTurn(s.ctx(), core.AfterTurnRequest{Session: id, Messages: slices.Concat(before, list), PrePrompt: len(before)})
		}
	}
	plain := ""
	for _, name := range append([]string{"ingest"}, slices.Sorted(maps.Keys(ways))...) {
		if ways[name] == nil {
			continue
		}
		id := core.SessionID{Agent: "asked later, by " + name, Session: "main"}
		var window string
		for _, part := range []func(core.SessionID) error{
			func(id core.SessionID) error { return each(id, before) }, nil, ways[name], func(id core.SessionID) error { return each(id, after) }, nil,
		} {
			var err error
			var res core.AssembleResult
			if part != nil {
				err = part(id)
			} else {
				res, err = s.engine.Assemble(s.ctx(), core.AssembleRequest{Session: id, Budget: toldBudget, Prompt: "What did we say about " + strings.Join(things, " and ") + " last week?"})
				window = s.toldWindow(id, res)
			}
			if err != nil {
				return fmt.Sprintf("%s of %d messages, and asked for them later: error %v", name, len(list), err)
			}
		}
		if name == "ingest" {
			plain = window
		}
		if window != plain {
			return fmt.Sprintf("what is recalled of %d messages that came by %s, against one by one: %s", len(list), name, firstDifference(window, plain))
		}
		if name == "ingest" {
			delete(ways, name)
		}
	}
	return ""
}

// told is what came of telling a conversation.
type told struct {
	windows []string
	stored  []message.Message
	how     []string
	failed  string
}

// tell tells a conversation to a session: message by message where rng is nil, otherwise in ways that it draws.
func (s *script) tell(conversation []chapter, id core.SessionID, rng *rand.Rand) told {
	var out told
	one := func(of int) bool { return rng != nil && rng.Intn(of) == 0 }
	for i, c := range conversation {
		if one(4) && s.restarts() {
			s.reopen(true)
			out.how = append(out.how, fmt.Sprintf("a restart before chapter %d", i+1))
		}
		times := 1
		if one(3) {
			times = 2
			out.how = append(out.how, fmt.Sprintf("asked twice in chapter %d", i+1))
		}
		for range times {
			res, err := s.engine.Assemble(s.ctx(), core.AssembleRequest{Session: id, Budget: toldBudget, Prompt: c.prompt})
			if err != nil {
				out.failed = fmt.Sprintf("assemble: error %v", err)
				return out
			}
			window := s.toldWindow(id, res)
			if len(out.windows) > i && out.windows[i] != window {
				out.failed = fmt.Sprintf("window %d, asked for once more: %s", i+1, firstDifference(window, out.windows[i]))
				return out
			}
			out.windows = append(out.windows[:i], window)
		}
		for list := c.messages; len(list) > 0; {
			n := 1
			if b, ok := s.engine.(core.BatchIngester); ok && one(2) {
				n = 1 + rng.Intn(len(list))
				if _, err := b.IngestBatch(s.ctx(), core.IngestBatchRequest{Session: id, Messages: list[:n]}); err != nil {
					out.failed = fmt.Sprintf("a batch of %d: error %v", n, err)
					return out
				}
				out.how = append(out.how, fmt.Sprintf("a batch of %d in chapter %d", n, i+1))
			} else if _, err := s.engine.Ingest(s.ctx(), core.IngestRequest{Session: id, Message: list[0]}); err != nil {
				out.failed = fmt.Sprintf("ingest: error %v", err)
				return out
			}
			list = list[n:]
		}
		if c.compact {
			if _, err := s.engine.Compact(s.ctx(), core.CompactRequest{Session: id, Budget: toldBudget}); err != nil {
				out.failed = fmt.Sprintf("compact: error %v", err)
				return out
			}
		}
	}
	for _, e := range s.held(id) {
		if e.Type == core.TypeMessage {
			out.stored = append(out.stored, e.Message)
		}
	}
	return out
}

// idWord is what an id may be in a text.
var idWord = regexp.MustCompile(`[A-Za-z0-9_-]+`)

// toldWindow is a window as text, a line for each message, with the entries of a session named by the order in which they appear.
func (s *script) toldWindow(id core.SessionID, res core.AssembleResult) string {
	ids, names := map[string]bool{}, map[string]string{}
	for _, e := range s.held(id) {
		ids[e.ID] = true
	}
	named := func(text string) string {
		return idWord.ReplaceAllStringFunc(text, func(word string) string {
			if ids[word] && names[word] == "" {
				names[word] = fmt.Sprintf("entry-%d", len(names)+1)
			}
			return cmp.Or(names[word], word)
		})
	}
	dear := 0 // what the ids cost, which are others each time
	cost := func(text string) string {
		as := named(text)
		if as != text {
			dear += s.env.Count(text) - s.env.Count(as)
		}
		return as
	}
	addition := cost(res.SystemPromptAddition)
	var b strings.Builder
	for _, m := range res.Messages {
		for i := range m.Parts {
			cost(m.Parts[i].Text)
		}
		fmt.Fprintf(&b, "%s %s %+q\n", m.Role, m.Name, named(fmt.Sprintf("%+v", m.Parts)))
	}
	return fmt.Sprintf("%d tokens, addition %q\n", res.EstimatedTokens-dear, addition) + b.String()
}

// firstDifference describes the first line in which two texts differ.
func firstDifference(got, want string) string {
	g, w := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range max(len(g), len(w)) {
		switch {
		case i >= len(g):
			return fmt.Sprintf("it ends before %.200s", w[i])
		case i >= len(w):
			return fmt.Sprintf("it goes on with %.200s", g[i])
		case g[i] != w[i]:
			at := 0
			for at < min(len(g[i]), len(w[i])) && g[i][at] == w[i][at] {
				at++
			}
			at = max(at-40, 0)
			return fmt.Sprintf("line %d is %d bytes, want %d: at %d it says %.160s, want %.160s", i+1, len(g[i]), len(w[i]), at, g[i][min(at, len(g[i])):], w[i][min(at, len(w[i])):])
		}
	}
	return "none"
}
