package engine_test

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/engine"
	"github.com/contextengine/contextengine/core/message"
	"github.com/contextengine/contextengine/internal/needs"
)

// longTalk is a conversation at whose every call the promises of a window are checked.
type longTalk struct {
	*fixture
	rand   *rand.Rand
	budget int
	said   int
	// last is what was sent last without the newest turn and what was recalled for it, epoch what it was sent in.
	last  []string
	epoch uint64
	// change is made to every request.
	change func(*core.AssembleRequest)
	stayed int
	// compacted says that a compaction came in between.
	compacted bool
}

var tag = regexp.MustCompile(`\bm(\d+)\b`)

// text is a message that is told from all others.
func (k *longTalk) text(words int) string {
	k.said++
	return fmt.Sprintf("m%d %s", k.said, strings.Repeat("word ", words))
}

// call assembles and checks: it fits, it ends with what was said last, it is in order and says nothing twice, it is the same again and for another process, it is
// no waste, and it goes on with what was sent last unless it is said not to.
func (k *longTalk) call(kind core.Call) {
	k.t.Helper()
	ask := func() core.AssembleResult {
		return k.assemble(k.budget, func(r *core.AssembleRequest) {
			r.Call = kind
			if k.change != nil {
				k.change(r)
			}
		})
	}
	res := ask()
	var sent []string
	newest, counted := 0, 0
	for i := range res.Messages {
		m := &res.Messages[i]
		sent = append(sent, fmt.Sprintf("%s %q %+v", m.Role, m.Text(), m.Parts))
		counted += 4 + wordCounter(string(m.Role))
		for _, p := range m.Parts {
			counted += wordCounter(p.Text) + wordCounter(p.Name) + wordCounter(p.Args)
		}
		if m.Role == message.User && tag.MatchString(m.Text()) && (i < res.RecallAt || i >= res.RecallAt+res.RecallLen) {
			newest = i
		}
	}
	where := fmt.Sprintf("after m%d, budget %d", k.said, k.budget)
	if res.EstimatedTokens > k.budget || counted > res.EstimatedTokens {
		k.t.Errorf("%s: estimated %d, counted %d", where, res.EstimatedTokens, counted)
	}
	before, at := 0, -1
	for i := range res.Messages {
		if i >= res.RecallAt && i < res.RecallAt+res.RecallLen || strings.Contains(res.Messages[i].Text(), "<recalled") {
			continue
		}
		for _, found := range tag.FindAllStringSubmatch(fmt.Sprint(res.Messages[i].Text(), sent[i]), -1) {
			n, _ := strconv.Atoi(found[1])
			if n < before || n == before && at != i {
				k.t.Errorf("%s: m%d stands behind m%d", where, n, before)
			}
			before, at = n, i
		}
	}
	if before != k.said {
		k.t.Errorf("%s: it ends with m%d", where, before)
	}
	d, err := k.engine.Describe(k.t.Context(), engine.DescribeRequest{Session: k.id})
	if err != nil {
		k.t.Fatal(err)
	}
	if d.Left > 0 && k.cfg.History.LimitTurns == 0 && res.EstimatedTokens < k.budget/5 {
		k.t.Errorf("%s: %d are left out and %d tokens are used", where, d.Left, res.EstimatedTokens)
	}
	is := slices.Equal(sent[:min(len(k.last), len(sent))], k.last)
	if !is && res.Epoch == k.epoch {
		k.t.Errorf("%s: what was sent is no beginning of it, and the epoch is %d still\nwas\n%s\nis\n%s", where, k.epoch, strings.Join(k.last, "\n"), strings.Join(sent, "\n"))
	}
	if !is && !res.Stepped && !k.compacted {
		k.t.Errorf("%s: what was sent is no beginning of it, and it is not said to have stepped", where)
	}
	k.compacted = false
	if is {
		k.stayed++
	}
	k.last, k.epoch = sent[:newest], res.Epoch
	if res.RecallLen > 0 && res.RecallAt < newest {
		k.last = sent[:res.RecallAt]
	}
	if k.rand.IntN(3) > 0 {
		return
	}
	for _, who := range []string{"it", "another process"} {
		again := ask()
		var got []string
		for i := range again.Messages {
			got = append(got, fmt.Sprintf("%s %q %+v", again.Messages[i].Role, again.Messages[i].Text(), again.Messages[i].Parts))
		}
		if !slices.Equal(got, sent) {
			k.t.Errorf("%s: the next time %s sends\n%s\nand it was\n%s", where, who, strings.Join(got, "\n"), strings.Join(sent, "\n"))
		}
		k.restart()
	}
}

// TestLongTalk: whatever is said and however long a turn gets, at every call the promises of a window hold.
func TestLongTalk(t *testing.T) {
	needs.NoRace(t) // one goroutine, and long
	for name, change := range map[string]func(*engine.Config, *engine.Parts){
		"as it is":        func(*engine.Config, *engine.Parts) {},
		"without a note":  func(c *engine.Config, _ *engine.Parts) { c.Window.Note = false },
		"few results":     func(c *engine.Config, _ *engine.Parts) { c.Window.KeepResults = 2 },
		"limited turns":   func(c *engine.Config, _ *engine.Parts) { c.History.LimitTurns = 4 },
		"merged messages": func(c *engine.Config, _ *engine.Parts) { c.History.Provider = "anthropic" },
		"with recall":     func(c *engine.Config, p *engine.Parts) { c.Recall.Gate, p.Retriever = false, &allEntries{} },
	} {
		t.Run(name, func(t *testing.T) {
			seed := rand.Uint64()
			k := &longTalk{fixture: newFixture(t, change), rand: rand.New(rand.NewPCG(seed, 0)), budget: 800} //nolint:gosec // a test
			defer func() {
				if t.Failed() {
					t.Logf("seed %d", seed)
				}
			}()
			calls := 0
			for turn := range 30 {
				if turn == 20 {
					k.budget = 1400 // another model
				}
				if turn == 25 {
					k.compact(k.budget)
					k.compacted = true
				}
				prompt := k.text(1 + k.rand.IntN(60))
				if k.parts.Retriever != nil {
					k.change = func(r *core.AssembleRequest) { r.PromptMode = core.PromptFull }
				}
				k.ingest(user(prompt))
				k.call(core.CallPrompt)
				calls++
				steps := k.rand.IntN(4)
				if turn%13 == 5 {
					steps = 25
				}
				for n := range steps {
					id := fmt.Sprintf("c%d-%d", turn, n)
					c := calling(id)
					c.Parts[0].Args = `{"what":"` + k.text(1) + `"}`
					k.ingest(c, resulting(id, k.text(k.rand.IntN(150))))
					k.call(core.CallLoop)
					calls++
				}
				k.ingest(assistant(k.text(k.rand.IntN(60))))
				if t.Failed() {
					return
				}
			}
			if k.stayed < calls/2 {
				t.Errorf("only %d of %d calls went on with what was sent before", k.stayed, calls)
			}
		})
	}
}
