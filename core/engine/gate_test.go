package engine_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/contextengine/contextengine/backends/memory"
	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/engine"
	"github.com/contextengine/contextengine/core/message"
	"github.com/contextengine/contextengine/core/window"
)

// allEntries proposes all that is not in the window, oldest first.
type allEntries struct{ store core.Store }

func (r *allEntries) Attach(store core.Store) error { r.store = store; return nil }

func (r *allEntries) Retrieve(ctx context.Context, q core.Query) ([]core.Candidate, error) {
	var out []core.Candidate
	for entry, err := range core.All(ctx, r.store, q.Scope, false) {
		if err != nil {
			return nil, err
		}
		if !q.InWindow(entry.ID) && len(out) < q.Limit {
			out = append(out, core.Candidate{Entry: entry, Score: 1 / float64(len(out)+1), Source: "all"})
		}
	}
	return out, nil
}

// chat is a session of which the beginning has left the window.
type chat struct {
	t      *testing.T
	engine *engine.Engine
	id     core.SessionID
	host   []message.Message
}

func newChat(t *testing.T, cfg engine.Config, first string) *chat {
	t.Helper()
	return newChatWith(t, cfg, &allEntries{}, first)
}

func newChatWith(t *testing.T, cfg engine.Config, retriever core.Retriever, first string) *chat {
	t.Helper()
	store := memory.New()
	e, err := engine.New(engine.Parts{Store: store, Retriever: retriever, Compactor: &halver{}, Counter: wordCounter, Observers: nil}, cfg)
	if err != nil {
		t.Fatal(err)
	}
	k := &chat{t: t, engine: e, id: core.SessionID{Agent: "ada", Session: "s"}}
	k.say(first)
	for i := range 30 {
		k.say(fmt.Sprintf("chapter %d of the diary please %s", i, strings.Repeat("harbour ", 20)))
	}
	return k
}

// say adds a turn to what the host has.
func (k *chat) say(text string) {
	k.host = append(k.host, message.New(message.User, text), message.New(message.Assistant, "noted, harbour"))
}

func (k *chat) ask(prompt string) core.AssembleResult {
	k.t.Helper()
	res, err := k.engine.Assemble(k.t.Context(), core.AssembleRequest{
		Session: k.id, Budget: 1000, Prompt: prompt, Transcript: &core.Transcript{Messages: slices.Clone(k.host)},
	})
	if err != nil {
		k.t.Fatal(err)
	}
	return res
}

func TestRecallIsGated(t *testing.T) {
	notes := strings.Repeat("The harbour keeps its chapter of the diary. ", 15)
	for _, tt := range []struct {
		name, first, prompt string
		want                bool
	}{
		{"a question", "the vault phrase is saffron", "What was the phrase?", true},
		{"a question about what the window speaks of", "the vault phrase is saffron", "Which harbour?", true},
		{"a wish that the window can meet", "the vault phrase is saffron", "Another chapter of the diary please", false},
		{"a wish that names what only history says", "the vault phrase is saffron", "Open the vault", true},
		{"another form of the word", "the vault phrase is saffron", "Open all vaults now", false},
		{"short words name nothing", "the old cat is red", "Feed the cat", false},
		{"notes that bring what they speak of", "the vault phrase is saffron", notes + "It has a vault.", false},
		{"notes with a question in them", "the vault phrase is saffron", notes + "Where was that vault? Go on.", true},
		{"notes with a question that they answer", "the vault phrase is saffron", notes + "Is the vault open? The vault is open.", false},
		{"a question in another script", "保险库的口令是藏红花", "保险库的口令是什么？", true},
		{"a wish in another script", "保险库的口令是藏红花", "打开保险库", true},
		{"a wish in another script that nothing speaks of", "保险库的口令是藏红花", "写日记", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			cfg := engine.DefaultConfig()
			k := newChat(t, cfg, tt.first)
			if got := k.ask(tt.prompt).RecallLen > 0; got != tt.want {
				t.Errorf("%q recalls: %v, want %v", tt.prompt, got, tt.want)
			}
			cfg.Recall.Gate = false
			if k := newChat(t, cfg, tt.first); k.ask(tt.prompt).RecallLen == 0 {
				t.Errorf("%q recalls nothing without the gate", tt.prompt)
			}
		})
	}
}

// TestRecallIsBounded: what is recalled has a bound of its own, however large the budget is.
func TestRecallIsBounded(t *testing.T) {
	cfg := engine.DefaultConfig()
	cfg.Recall.Tokens = 90
	k := newChat(t, cfg, "the vault phrase is saffron")
	res := k.ask("What was the phrase?")
	if res.RecallLen != 1 {
		t.Fatal("nothing is recalled")
	}
	if n := wordCounter(res.Messages[res.RecallAt].Text()); n > 90 {
		t.Errorf("the block costs %d tokens, the bound is 90", n)
	}
}

// TestRecallStays: the block of a turn stands where it stood when turns follow, says nothing twice, and leaves with the next step.
func TestRecallStays(t *testing.T) {
	k := newChat(t, engine.DefaultConfig(), "the vault phrase is saffron")
	first := k.ask("What was the phrase?")
	if first.RecallLen != 1 {
		t.Fatal("nothing is recalled")
	}
	before := first.Messages
	k.say("What was the phrase?")
	stayed := false
	for i := range 60 {
		res := k.ask("And what was it again?")
		if res.Stepped {
			if !stayed {
				t.Fatal("the window moved at once")
			}
			if n := blocks(res); n > res.RecallLen {
				t.Errorf("%d blocks stand behind a step, want the one of the turn", n)
			}
			return
		}
		for j := range before {
			if res.Messages[j].Text() != before[j].Text() {
				t.Fatalf("turn %d: message %d is %.60q, was %.60q", i, j, res.Messages[j].Text(), before[j].Text())
			}
		}
		quoted := map[string]int{}
		for _, ch := range res.Choices {
			if ch.Reason == window.ReasonRecalled && ch.Entry != "" {
				if quoted[ch.Entry]++; quoted[ch.Entry] > 1 {
					t.Fatalf("turn %d: %s is quoted twice", i, ch.Entry)
				}
			}
		}
		before, stayed = res.Messages, true
		k.say("And what was it again?")
	}
	t.Error("the window never moved")
}

func blocks(res core.AssembleResult) int {
	n := 0
	for _, m := range res.Messages {
		if strings.HasPrefix(m.Text(), "<recalled>") {
			n++
		}
	}
	return n
}

// TestNoStepInsideATurn: what a tool loop adds makes the window move at the next turn, as long as the grant fits.
func TestNoStepInsideATurn(t *testing.T) {
	cfg := engine.DefaultConfig()
	cfg.Recall.Share = 0.2
	k := newChat(t, cfg, "hello")
	settings := core.RuntimeSettings{MaxOutputTokens: 400, ContextWindow: 2000}
	req := core.AssembleRequest{Session: k.id, Budget: 1000, Prompt: "go", Transcript: &core.Transcript{Messages: k.host}, Settings: settings}
	res, err := k.engine.Assemble(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	fill := res.EstimatedTokens
	for i := 0; fill < 850; i++ { // up to the mark at which a turn would step
		k.say(fmt.Sprintf("%d %s", i, strings.Repeat("w ", 20)))
		req.Transcript = &core.Transcript{Messages: k.host}
		if res, err = k.engine.Assemble(t.Context(), req); err != nil {
			t.Fatal(err)
		}
		if fill = res.EstimatedTokens; i > 60 {
			t.Fatal("the window does not fill")
		}
	}
	k.host = append(k.host, message.New(message.User, strings.Repeat("w ", 60)))
	loop := req
	loop.Call, loop.Transcript, loop.Budget = core.CallLoop, &core.Transcript{Messages: k.host}, 1900
	loop.Settings.ContextWindow = 1900
	if res, err = k.engine.Assemble(t.Context(), loop); err != nil {
		t.Fatal(err)
	}
	if res.Stepped {
		t.Errorf("the window moved inside the turn, at %d tokens", res.EstimatedTokens)
	}
	req.Prompt, req.Transcript = "next", &core.Transcript{Messages: k.host}
	if res, err = k.engine.Assemble(t.Context(), req); err != nil {
		t.Fatal(err)
	}
	if !res.Stepped {
		t.Errorf("the window did not move at the next turn, at %d tokens", res.EstimatedTokens)
	}
}
