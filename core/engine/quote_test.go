package engine_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/contextengine/contextengine/backends/memory"
	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/engine"
	"github.com/contextengine/contextengine/core/message"
	"github.com/contextengine/contextengine/core/window"
)

// quoting is a fixture whose retriever proposes what a test gives it; memories are entries of another session, in the order in which they were said.
type quoting struct {
	*fixture
	retriever *proposer
	memories  []core.Entry
	turns     int
}

func newQuoting(t *testing.T, change func(*engine.Config, *engine.Parts), memories ...message.Message) *quoting {
	t.Helper()
	k := &quoting{retriever: &proposer{}}
	host := &clock{now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
	k.fixture = newFixture(t, func(c *engine.Config, p *engine.Parts) {
		c.Recall.AcrossSessions, c.Recall.Gate, p.Retriever, p.Host = true, false, k.retriever, host
		if change != nil {
			change(c, p)
		}
	})
	elsewhere := core.SessionID{Agent: k.id.Agent, Session: "elsewhere"}
	for _, m := range memories {
		k.say(elsewhere, false, m)
		host.now = host.now.Add(time.Minute)
	}
	for e, err := range core.All(t.Context(), k.store, elsewhere.Scope(), false) {
		if err != nil {
			t.Fatal(err)
		}
		k.memories = append(k.memories, e)
	}
	k.ingest(user("hello"), assistant("hi"))
	return k
}

// propose sets what is proposed for the next turn: memories by their numbers, the best first, with these scores.
func (k *quoting) propose(scores []float64, numbers ...int) {
	k.retriever.candidates = nil
	for i, n := range numbers {
		k.retriever.candidates = append(k.retriever.candidates, core.Candidate{Entry: k.memories[n], Score: scores[i%len(scores)], Source: "test"})
	}
}

// quotes are what the block of a next turn quotes, in its order.
func (k *quoting) quotes(budget int, prompt string) ([]string, core.AssembleResult) {
	k.t.Helper()
	k.turns++
	k.ingest(user(fmt.Sprintf("prompt %d", k.turns)))
	res := k.assemble(budget, func(r *core.AssembleRequest) { r.PromptMode, r.Prompt = core.PromptFull, prompt })
	out := []string{}
	if res.RecallLen == 0 {
		return out, res
	}
	for _, part := range strings.Split(res.Messages[res.RecallAt].Text(), "\n[")[1:] {
		_, text, quote := strings.Cut(part, "]\n")
		if !quote { // the line of a day
			continue
		}
		text, _, _ = strings.Cut(text, "\n</recalled>")
		out = append(out, strings.ReplaceAll(strings.TrimPrefix(strings.TrimSpace(text), "> "), "\n> ", "\n"))
	}
	return out, res
}

func facts(n int) (out []message.Message) {
	for i := range n {
		out = append(out, user(fmt.Sprintf("fact number %d is of the kind %c", i, 'a'+i)))
	}
	return out
}

// TestQuotesAreWorthTheirPlace: a block quotes what the retriever proposes, each thing once, in the order in which it was said, and nothing that scores less than the
// configured share of the best; scores that say nothing leave nothing out.
func TestQuotesAreWorthTheirPlace(t *testing.T) {
	fact := func(n int) string { return fmt.Sprintf("fact number %d is of the kind %c", n, 'a'+n) }
	for name, c := range map[string]struct {
		scores  []float64
		numbers []int
		want    []string
		budget  int
	}{
		"in order":              {[]float64{1}, []int{3, 0, 2}, []string{fact(0), fact(2), fact(3)}, 4000},
		"proposed twice":        {[]float64{1}, []int{1, 1, 1, 2}, []string{fact(1), fact(2)}, 4000},
		"just worth it":         {[]float64{1, 0.15}, []int{1, 2}, []string{fact(1), fact(2)}, 4000},
		"not worth it":          {[]float64{1, 0.14, 0.1}, []int{1, 2, 3}, []string{fact(1)}, 4000},
		"scores of nothing":     {[]float64{0, -1, -5}, []int{1, 2, 3}, []string{fact(1), fact(2), fact(3)}, 4000},
		"what is in the prompt": {[]float64{1}, []int{4, 1}, []string{fact(1)}, 4000},
		"said twice":            {[]float64{1}, []int{5, 6, 1}, []string{fact(1), "the same words again"}, 4000},
		"blank":                 {[]float64{1}, []int{7, 1}, []string{fact(1)}, 4000},
		"worth it in 64k":       {[]float64{1, 0.15, 0.149}, []int{1, 2, 3}, []string{fact(1), fact(2)}, 64_000},
		"worth it in 128k":      {[]float64{1, 0.12, 0.119}, []int{1, 2, 3}, []string{fact(1), fact(2)}, 128_000},
		"worth it in 512k":      {[]float64{1, 0.075, 0.0749}, []int{1, 2, 3}, []string{fact(1), fact(2)}, 512_000},
	} {
		t.Run(name, func(t *testing.T) {
			k := newQuoting(t, nil, append(facts(4), user("what was asked?"), user("the same words again"), user("the same words again"), user(" \n "))...)
			k.propose(c.scores, c.numbers...)
			got, _ := k.quotes(c.budget, " what was asked?\n")
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("quoted (-want +got):\n%s", diff)
			}
		})
	}
}

// TestQuotesFillTheirRoom: a block costs what it says and no more than its share, uses most of that, passes over what does not fit for what does, and names what
// found no room with what it would have cost.
func TestQuotesFillTheirRoom(t *testing.T) {
	long := user("a long one " + strings.Repeat("word ", 150))
	var many []message.Message
	for i := range 60 {
		many = append(many, user(fmt.Sprintf("note %d of %s", i, strings.Repeat(string(rune('a'+i%26))+" ", 5+i%20))))
	}
	k := newQuoting(t, nil, append(many, long, user("a short one"))...)
	for _, budget := range []int{500, 700, 1000, 2000} {
		var numbers []int
		for n := range k.memories {
			numbers = append(numbers, (n+k.turns*17)%len(k.memories))
		}
		k.propose([]float64{1}, numbers...)
		k.restart()
		got, res := k.quotes(budget, "what are the notes?")
		text := ""
		if res.RecallLen > 0 {
			text = res.Messages[res.RecallAt].Text()
		}
		cost := wordCounter(text) + 4 + 1
		if cost > budget/2 || cost < budget*2/10 {
			t.Errorf("the block costs %d tokens in a budget of %d, %d quotes", cost, budget, len(got))
		}
		out := 0
		for _, c := range res.Choices {
			switch c.Reason {
			case window.OutAllowance:
				out++
				if c.Tokens <= 0 || c.Entry == "" || c.Score != 1 || c.Source != "test" {
					t.Errorf("left out: %+v", c)
				}
			}
		}
		if out == 0 || out+len(got) > len(k.memories) {
			t.Errorf("%d are quoted and %d left out of %d", len(got), out, len(k.memories))
		}
	}
	k = newQuoting(t, nil, long, user("a short one"))
	k.propose([]float64{1}, 0, 1)
	if got, res := k.quotes(250, "which one?"); len(got) != 1 || got[0] != "a short one" {
		t.Errorf("quoted: %q, %+v", got, res.Choices)
	}
}

// TestQuotesOfLongEntries: a short entry is quoted whole, whatever passage of it is proposed; of a long one the passage is, or its beginning and its end as far as
// the bound of a quotation goes; a passage that the entry does not hold is not quoted, and that is said.
func TestQuotesOfLongEntries(t *testing.T) {
	short := "a short entry that says where the key is and something else"
	long := "its beginning " + strings.Repeat("word ", 300) + "the key is under the mat " + strings.Repeat("word ", 300) + "its end"
	for name, c := range map[string]struct {
		memory, passage string
		want            func(string) bool
		warned          bool
	}{
		"short, a passage": {short, "the key is", func(s string) bool { return s == short }, false},
		"long, a passage":  {long, "the key is under the mat", func(s string) bool { return s == "the key is under the mat" }, false},
		"long, in pieces":  {long, "its beginning ... the key is ... its end", func(s string) bool { return s == "its beginning ... the key is ... its end" }, false},
		"long, no passage": {long, "", func(s string) bool {
			n := wordCounter(s)
			return strings.HasPrefix(s, "its beginning") && strings.HasSuffix(s, "its end") && n <= 410 && n > 300 && !strings.Contains(s, "the key")
		}, false},
		"made up":            {short, "the key is lost", func(s string) bool { return s == short }, true},
		"made up, of a long": {long, "the key is lost", func(s string) bool { return strings.HasPrefix(s, "its beginning") && !strings.Contains(s, "lost") }, true},
		"in the wrong order": {short, "the key says where", func(s string) bool { return s == short }, true},
	} {
		t.Run(name, func(t *testing.T) {
			k := newQuoting(t, nil, user(c.memory))
			k.propose([]float64{1}, 0)
			k.retriever.candidates[0].Text = c.passage
			got, res := k.quotes(8000, "where is the key?")
			if len(got) != 1 || !c.want(got[0]) {
				t.Errorf("quoted: %q", got)
			}
			if warned := strings.Contains(strings.Join(res.Warnings, "\n"), "is not what was said"); warned != c.warned {
				t.Errorf("warnings: %q", res.Warnings)
			}
		})
	}
}

// TestQuotesOfWhatWasQuotedInPart: of an entry of which a block of an earlier turn quotes a part the rest is quoted, also where all of it is proposed.
func TestQuotesOfWhatWasQuotedInPart(t *testing.T) {
	passage := "the key is under the mat of the harbour"
	k := newQuoting(t, nil, user("its beginning "+passage+strings.Repeat(" word", 300)+" its end"))
	var res core.AssembleResult
	for n, text := range []string{passage, ""} {
		k.propose([]float64{1}, 0)
		k.retriever.candidates[0].Text = text
		_, res = k.quotes(8000, fmt.Sprint("where is the key, ", n))
	}
	if got := shown(res); strings.Count(got, passage) != 1 || strings.Count(got, "its end") != 1 {
		t.Errorf("shown: %q, want the passage and the rest once each", got)
	}
	k.sound()
}

// TestQuotesOfWhatASubagentHandedBack: it also stands in the subagent's session, with a call behind it. Whichever a block of an earlier turn quotes, nothing is quoted again.
func TestQuotesOfWhatASubagentHandedBack(t *testing.T) {
	said := assistant("let me look at the harbour")
	called := message.Message{Role: message.Assistant, Parts: append(slices.Clone(said.Parts), message.Part{Kind: message.ToolCall, CallID: "c1", Name: "read", Args: `{"path":"the pier"}`})}
	for _, order := range [][]int{{0, 1}, {1, 0}} {
		k := newQuoting(t, nil, called)
		handed := core.SessionID{Agent: k.id.Agent, Session: "parent"}
		k.say(handed, false, said)
		for e, err := range core.All(t.Context(), k.store, handed.Scope(), false) {
			if err != nil {
				t.Fatal(err)
			}
			k.memories = append(k.memories, e)
		}
		var res core.AssembleResult
		for n, m := range order {
			k.propose([]float64{1}, m)
			_, res = k.quotes(8000, fmt.Sprint("where is it, ", n))
		}
		if got := shown(res); strings.Count(got, "the harbour") != 1 || strings.Count(got, "the pier") != 1 {
			t.Errorf("order %v: shown: %q, want the text and the call once each", order, got)
		}
		k.sound()
	}
}

// TestQuotesBesideWhatASubagentHandedBack: the same, where what it handed back stands in the window.
func TestQuotesBesideWhatASubagentHandedBack(t *testing.T) {
	for name, other := range map[string]*message.Part{
		"nothing": nil, "a call": {Kind: message.ToolCall, CallID: "c1", Name: "read", Args: `{"path":"the pier"}`}, "thinking": {Kind: message.Thinking, Text: "so", Signature: "s"},
		"an image": {Kind: message.Image, Raw: []byte(`{"type":"image","data":"aGVsbG8=","mimeType":"image/png"}`)},
	} {
		for _, words := range []int{0, 40, 400} {
			text := "the lantern is in the harbour" + strings.Repeat(" and so on", words)
			answer := assistant(text)
			if other != nil {
				answer.Parts = append(answer.Parts, *other)
			}
			k := newQuoting(t, nil, user("find it"))
			child := core.SessionID{Agent: k.id.Agent, Session: "child"}
			if _, err := k.engine.PrepareSubagentSpawn(t.Context(), core.SpawnRequest{Parent: k.id, Child: child, Mode: core.SpawnIsolated}); err != nil {
				t.Fatal(err)
			}
			k.say(child, false, user("find it"), answer)
			k.ingest(user("where is it"))
			if err := k.engine.OnSubagentEnded(t.Context(), core.SubagentEnded{Parent: k.id, Child: child, Reason: "completed", Result: text}); err != nil {
				t.Fatal(err)
			}
			k.everything(k.retriever, k.id.Agent)
			k.ingest(user("what of the lantern?"))
			res := k.assemble(8000, full)
			if n := strings.Count(shown(res), "the lantern is in the harbour"); n != 1 {
				t.Errorf("%d words with %s: shown %d times: %q", words, name, n, shown(res))
			}
			k.sound()
		}
	}
}

// TestQuotesThatCannotBeConfirmed: where it cannot be found out whether something quoted was erased, a strict engine says so, and another one quotes nothing and warns.
func TestQuotesThatCannotBeConfirmed(t *testing.T) {
	for _, policy := range []engine.FailurePolicy{engine.FailDegrade, engine.FailStrict} {
		t.Run(string(policy), func(t *testing.T) {
			broken := &unreachable{Store: memory.New()}
			k := newQuoting(t, func(c *engine.Config, p *engine.Parts) { c.Failure, p.Store = policy, broken })
			k.store = broken.Store
			elsewhere := core.SessionID{Agent: k.id.Agent, Session: "elsewhere"}
			k.say(elsewhere, false, user("a fact"), user("another"))
			k.everything(k.retriever, k.id.Agent)
			k.forget(engine.ForgetRequest{Scope: elsewhere.Scope(), Entries: []string{k.retriever.candidates[len(k.retriever.candidates)-1].Entry.ID}})
			k.ingest(user("what is a fact?"))
			broken.err = errors.New("disk on fire")
			res, err := k.engine.Assemble(t.Context(), core.AssembleRequest{Session: k.id, Budget: 4000, PromptMode: core.PromptFull, Prompt: "what is a fact?"})
			if policy == engine.FailStrict {
				if !errors.Is(err, broken.err) {
					t.Errorf("error %v, want that of the store", err)
				}
				return
			}
			if err != nil || res.RecallLen > 0 || !strings.Contains(strings.Join(res.Warnings, "\n"), "recall: ") || !strings.Contains(shown(res), "what is a fact?") {
				t.Errorf("%q, warnings %q, %v", shown(res), res.Warnings, err)
			}
		})
	}
}

// unreachable is a store whose entries cannot be asked for when told so.
type unreachable struct {
	*memory.Store
	err error
}

func (s *unreachable) Get(ctx context.Context, scope core.Scope, ids []string) ([]core.Entry, error) {
	if s.err != nil {
		return nil, s.err
	}
	return s.Store.Get(ctx, scope, ids)
}

// TestQuotesKeepToTheirShare: in a window that not all of the conversation fits in, a block costs no more than the share of recall, and uses all of it that takes
// another quotation.
func TestQuotesKeepToTheirShare(t *testing.T) {
	var tiny []message.Message
	for n := range 80 {
		tiny = append(tiny, user(fmt.Sprint("n", n)))
	}
	k := newQuoting(t, nil, tiny...)
	for n := range 60 {
		k.ingest(user(fmt.Sprintf("question %d of several words", n)), assistant(fmt.Sprintf("answer %d of several words", n)))
	}
	var numbers []int
	for n := range k.memories {
		numbers = append(numbers, n)
	}
	k.propose([]float64{1}, numbers...)
	for _, budget := range []int{1000, 600} {
		_, res := k.quotes(budget, "what is there?")
		if res.RecallLen == 0 {
			t.Fatalf("budget %d: nothing is recalled", budget)
		}
		if cost, most := wordCounter(res.Messages[res.RecallAt].Text())+4+1, budget*3/10; cost > most || cost < most-20 {
			t.Errorf("budget %d: the block costs %d of %d", budget, cost, most)
		}
		k.restart()
	}
}

// TestQuotesPassOverWhatDoesNotFit: a passage that is too long for the room is left out and named with what it would cost, and a shorter one behind it is quoted.
func TestQuotesPassOverWhatDoesNotFit(t *testing.T) {
	passage := strings.TrimSpace(strings.Repeat("word ", 180))
	k := newQuoting(t, nil, user("a beginning "+passage+" and an end of it "+strings.Repeat("more ", 100)), user("a short one"))
	k.propose([]float64{1, 0.9}, 0, 1)
	k.retriever.candidates[0].Text = passage
	got, res := k.quotes(300, "which one?")
	if diff := cmp.Diff([]string{"a short one"}, got); diff != "" {
		t.Errorf("quoted (-want +got):\n%s", diff)
	}
	found := false
	for _, c := range res.Choices {
		found = found || c.Reason == window.OutAllowance && c.Entry == k.memories[0].ID && c.Tokens > 180 && c.Tokens < 200
	}
	if !found {
		t.Errorf("it is not said that the long one was left out: %+v", res.Choices)
	}
}

// TestQuotesStandInTheOrderOfTime: what was said earlier is quoted first, whenever it was stored; what was said at one time as it was stored.
func TestQuotesStandInTheOrderOfTime(t *testing.T) {
	at := func(text string, day int) message.Message {
		m := user(text)
		m.Time = time.Date(2025, 1, day, 0, 0, 0, 0, time.UTC)
		return m
	}
	k := newQuoting(t, nil, at("third", 3), at("first", 1), at("second", 2), at("and second", 2), at("fourth", 4))
	k.propose([]float64{1}, 4, 3, 0, 2, 1)
	got, _ := k.quotes(4000, "in which order?")
	if diff := cmp.Diff([]string{"first", "second", "and second", "third", "fourth"}, got); diff != "" {
		t.Errorf("quoted (-want +got):\n%s", diff)
	}
}

// TestPassageThatJustFits: a passage of a long message that is as long as a quotation may be is quoted as it is, and one that is longer is shortened.
func TestPassageThatJustFits(t *testing.T) {
	const limit = 50
	long := user(strings.TrimSpace(strings.Repeat("abc ", 95))) // 100 tokens with what a message costs besides its words
	most := len(long.Text()) * limit / 100
	for over, whole := range []bool{true, false} {
		k := newQuoting(t, func(c *engine.Config, _ *engine.Parts) { c.Recall.Quote, c.Recall.Whole = limit, 20 }, long)
		passage := long.Text()[:most+over]
		k.propose([]float64{1}, 0)
		k.retriever.candidates[0].Text = passage
		got, _ := k.quotes(4000, "what was it?")
		if len(got) != 1 || (got[0] == passage) != whole || strings.Contains(got[0], "...") == whole {
			t.Errorf("%d bytes of %d: quoted %q", len(passage), most, got)
		}
	}
}
