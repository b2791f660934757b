package builtin_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/engine"
	"github.com/contextengine/contextengine/core/message"
	"github.com/contextengine/contextengine/core/upkeep"
	"github.com/contextengine/contextengine/internal/openbraintest"
	"github.com/contextengine/contextengine/internal/sharedtest"
	"github.com/contextengine/contextengine/registry"
	"github.com/contextengine/contextengine/registry/builtin"
)

// productConfig is the product document's own openclaw.json.
const productConfig = `{
  "agents": { "defaults": { "contextEngine": "openbrain" } },
  "plugins": {
    "entries": {
      "openclaw-openbrain-context": {
        "enabled": true,
        "config": { "baseUrl": "BASE_URL", "apiKey": "API_KEY", "recentMessages": 20, "semanticSearchLimit": 10, "source": "openclaw" }
      }
    }
  }
}`

// brain is an agent whose memory is the engine openbrain.
type brain struct {
	t     *testing.T
	srv   *openbraintest.Server
	dir   string
	extra []registry.Source
	log   lockedBuffer
	i     *registry.Instance
	e     core.ContextEngine
	said  map[core.SessionID][]message.Message
	clock time.Time
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// newBrain starts an agent with the product's configuration and what is laid over it.
func newBrain(t *testing.T, srv *openbraintest.Server, extra ...registry.Source) *brain {
	t.Helper()
	b := &brain{t: t, srv: srv, dir: t.TempDir(), extra: extra, said: map[core.SessionID][]message.Message{}, clock: time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC)}
	b.start()
	t.Cleanup(func() { _ = b.i.Close(context.WithoutCancel(t.Context())) })
	return b
}

func (b *brain) start() {
	b.t.Helper()
	text := strings.NewReplacer("BASE_URL", b.srv.URL(), "API_KEY", b.srv.Key()).Replace(productConfig)
	file := filepath.Join(b.dir, "openclaw.json")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		b.t.Fatal(err)
	}
	r := builtin.New()
	cfg, err := r.Load(append([]registry.Source{registry.File(file)}, b.extra...)...)
	if err != nil {
		b.t.Fatal(err)
	}
	b.i, err = r.Build(b.t.Context(), cfg, registry.BuildOptions{
		Logger: slog.New(slog.NewTextHandler(&b.log, &slog.HandlerOptions{Level: slog.LevelWarn})), StateDir: b.dir,
	})
	if err != nil {
		b.t.Fatal(err)
	}
	if b.e, _, err = b.i.Engine(b.t.Context(), "main", "agent:main:main"); err != nil {
		b.t.Fatal(err)
	}
}

func (b *brain) restart() {
	b.t.Helper()
	if err := b.i.Close(b.t.Context()); err != nil {
		b.t.Fatal(err)
	}
	b.start()
}

const turnBudget = 6000

// turn assembles a prompt, as hosts do at the beginning of a turn, and commits what came of it. It returns what the model would see.
func (b *brain) turn(id core.SessionID, prompt, reply string) string {
	b.t.Helper()
	seen := b.assemble(id, prompt)
	b.commit(id, prompt, reply)
	return seen
}

func (b *brain) assemble(id core.SessionID, prompt string) string {
	b.t.Helper()
	// Hosts hand over what they still hold: the newest part.
	said := b.said[id]
	res, err := b.e.Assemble(b.t.Context(), core.AssembleRequest{
		Session: id, Budget: turnBudget, Prompt: prompt, Transcript: &core.Transcript{Messages: said},
	})
	if err != nil {
		b.t.Fatalf("assemble: %v", err)
	}
	var seen strings.Builder
	for _, m := range res.Messages {
		seen.WriteString(m.Text() + "\n")
	}
	return seen.String()
}

func (b *brain) commit(id core.SessionID, prompt, reply string) {
	b.t.Helper()
	turn := []message.Message{message.New(message.User, prompt), message.New(message.Assistant, reply)}
	for i := range turn {
		b.clock = b.clock.Add(7 * time.Second)
		turn[i].Time = b.clock
	}
	committer, ok := b.e.(core.TurnCommitter)
	if !ok {
		b.t.Fatal("the engine commits no turns")
	}
	_, err := committer.CommitTurn(b.t.Context(), core.CommitTurnRequest{Session: id, AdvancementKey: fmt.Sprintf("%s-%d", id.Session, len(b.said[id])), Messages: turn})
	if err != nil {
		b.t.Fatalf("commit: %v", err)
	}
	b.said[id] = append(b.said[id], turn...)
}

func (b *brain) drain() {
	b.t.Helper()
	eng, ok := b.e.(*engine.Engine)
	if !ok {
		b.t.Fatalf("engine is a %T", b.e)
	}
	if d, ok := core.As[upkeep.Drainer](eng.Store()); ok {
		ctx, cancel := context.WithTimeout(b.t.Context(), time.Minute) // against hangs
		defer cancel()
		if left, err := d.Drain(ctx); left > 0 || err != nil {
			b.t.Fatalf("%d changes are left: %v", left, err)
		}
	}
}

// contents counts the thoughts on the server by what they say.
func (b *brain) contents() map[string]int {
	out := map[string]int{}
	for _, th := range b.srv.Thoughts() {
		if strings.HasPrefix(th.Source, "openclaw:") {
			out[th.Content]++
		}
	}
	return out
}

func fact(n int) (said, asked, answer string) {
	animals := []string{"otter", "heron", "badger", "marten", "kestrel", "lynx", "ibex", "stoat", "curlew", "adder"}
	places := []string{"harbour", "quarry", "orchard", "belfry", "cellar", "meadow", "viaduct", "chapel", "boathouse", "granary"}
	answer = fmt.Sprintf("zq-%d-%s", 7919*(n+3)%10007, animals[(n*3)%10])
	return fmt.Sprintf("Please remember: the passphrase of the %s at the %s is %s.", animals[n], places[n], answer),
		fmt.Sprintf("Which passphrase belongs to the %s at the %s?", animals[n], places[n]), answer
}

func chatter(n int) (string, string) {
	topics := []string{"rain", "bread", "trains", "chess", "paint", "gravel", "yeast", "tiles", "wool", "maps"}
	return fmt.Sprintf("Tell me something about %s, number %d, in a few words.", topics[n%10], n),
		fmt.Sprintf("About %s there is much to say; item %d is that most of it depends on weather, patience and a good plan. ", topics[n%10], n) + strings.Repeat("One more sentence about it. ", n%5)
}

// strictServers are the bounds that the document leaves open.
var strictServers = []struct {
	name  string
	most  int
	clamp bool
}{{"refuses above 100", 100, false}, {"refuses above 20", 20, false}, {"cuts at 100", 100, true}, {"cuts at 20", 20, true}}

// TestOpenBrainOfTheDocument: the product's configuration over a server that has the six documented calls alone carries many turns, a restart, a
// subagent, a compaction and an erasure, and recalls what was said.
func TestOpenBrainOfTheDocument(t *testing.T) {
	t.Parallel()
	turns := sharedtest.Number("OPENBRAIN_TURNS", 60)
	every := turns / 30 // turns from one fact to the next; the last two thirds are chatter
	for _, server := range strictServers {
		for _, alone := range []bool{false, true} {
			if alone && server.clamp != (server.most == 20) {
				continue // two of the four will do
			}
			t.Run(fmt.Sprintf("%s, alone %t", server.name, alone), func(t *testing.T) {
				t.Parallel()
				srv := openbraintest.New(t, openbraintest.Strict(server.most, server.clamp))
				for i := range 60 { // others use the same server
					srv.Insert(fmt.Sprintf("The passphrase of the note number %d at the office is nobody's business.", i), "notes", map[string]any{"id": "x"})
				}
				var extra []registry.Source
				views := server.clamp
				if alone {
					store := map[string]any{"type": "openbrain"}
					if views {
						store["views"] = filepath.Join(t.TempDir(), "views.db")
					}
					extra = append(extra, registry.Values("test", map[string]any{"store": store}))
				}
				// What is recalled is looked at here, not how long it may take: a busy machine answers late.
				b := newBrain(t, srv, append(extra, registry.Values("patience", map[string]any{"recall": map[string]any{"deadline": "1m"}}))...)
				main := core.SessionID{Agent: "main", Session: "agent:main:main"}
				for n := range turns {
					said, reply := chatter(n)
					if n < 10*every && n%every == every/2 {
						said, _, _ = fact(n / every)
						reply = "Noted."
					}
					b.turn(main, said, reply)
					switch n {
					case turns / 2:
						b.subagent(main)
					case turns * 2 / 3:
						if _, err := b.e.Compact(t.Context(), core.CompactRequest{Session: main, Budget: turnBudget, Force: true}); err != nil {
							t.Fatalf("compact: %v", err)
						}
					case turns * 5 / 6:
						b.restart()
					}
				}
				b.drain()
				recalled := 0
				for n := range 10 {
					_, asked, answer := fact(n)
					if strings.Contains(b.assemble(main, asked), answer) {
						recalled++
					}
				}
				if recalled != 10 {
					t.Errorf("%d of 10 facts are recalled", recalled)
				}
				// A new session begins with what its agent knows.
				_, asked, answer := fact(4)
				if !strings.Contains(b.assemble(core.SessionID{Agent: "main", Session: "agent:main:new"}, asked), answer) {
					t.Error("a new session does not know what was said in another")
				}
				for text, times := range b.contents() {
					if times > 1 && !strings.HasPrefix(text, "Noted.") && !strings.HasPrefix(text, "(") {
						t.Errorf("%d thoughts say %q", times, text)
					}
				}
				if n := len(b.contents()); n < 2*turns-10 {
					t.Errorf("the server has %d different thoughts of the agent, want all that was said", n)
				}
				b.undocumented()
				if !alone {
					b.erase(main)
				}
			})
		}
	}
}

// subagent runs one that hands back a result.
func (b *brain) subagent(parent core.SessionID) {
	b.t.Helper()
	host, ok := b.e.(core.SubagentHost)
	if !ok {
		b.t.Fatal("the engine knows no subagents")
	}
	child := core.SessionID{Agent: "main", Session: "agent:main:subagent:5e1b7f0c-3e55-4c0e-9d2a-0b8d6f3a1c77"}
	if _, err := host.PrepareSubagentSpawn(b.t.Context(), core.SpawnRequest{Parent: parent, Child: child}); err != nil {
		b.t.Fatal(err)
	}
	b.turn(child, "Count the boats in the picture.", "There are eleven boats.")
	if err := host.OnSubagentEnded(b.t.Context(), core.SubagentEnded{Parent: parent, Child: child, Reason: "completed", Result: "The subagent counted eleven boats."}); err != nil {
		b.t.Fatal(err)
	}
}

// undocumented fails when the server was asked for something that is not in the document more than once.
func (b *brain) undocumented() {
	b.t.Helper()
	seen := map[string]int{}
	for _, r := range b.srv.Requests() {
		key := r.Method + " " + r.Path
		switch {
		case r.Path == "/v1/search" && (strings.Contains(r.Body, `"source"`) || strings.Count(r.Body, `":`) > 2):
			b.t.Errorf("a search with more than query and limit: %s", r.Body)
		case key == "POST /v1/thoughts", key == "POST /v1/search", key == "GET /v1/thoughts/recent", r.Method == http.MethodDelete, r.Method == http.MethodPatch:
			if r.Path == "/v1/thoughts/recent" {
				seen["limit "+r.Query]++
			}
		case r.Method == http.MethodGet && strings.HasPrefix(r.Path, "/v1/thoughts/"):
			seen["GET /v1/thoughts/:id"]++
		default:
			seen[key]++
		}
	}
	const processes = 2 // one before the restart, one after
	for key, n := range seen {
		if !strings.HasPrefix(key, "limit ") && n > processes {
			b.t.Errorf("%s was asked for %d times: a refusal is remembered", key, n)
		}
	}
}

// erase forgets one message, and then the whole session.
func (b *brain) erase(id core.SessionID) {
	b.t.Helper()
	_, _, secret := fact(2)
	eng, _ := b.e.(*engine.Engine)
	var one string
	for entry, err := range core.All(b.t.Context(), eng.Store(), id.Scope(), false) {
		if err != nil {
			b.t.Fatal(err)
		}
		if strings.Contains(entry.Text(), secret) {
			one = entry.ID
			break
		}
	}
	before := len(b.srv.Thoughts())
	b.srv.Forget()
	if _, err := b.i.Forget(b.t.Context(), engine.ForgetRequest{Scope: id.Scope(), Entries: []string{one}}); err != nil {
		b.t.Fatal(err)
	}
	deletes := 0
	for _, r := range b.srv.Requests() {
		if r.Method == http.MethodDelete {
			deletes++
		}
	}
	// The message, and the note of the compaction that stood for it.
	if n, fewer := len(b.srv.Requests()), before-len(b.srv.Thoughts()); deletes != fewer || fewer < 1 || fewer > 2 || n > fewer+1 {
		b.t.Errorf("one message: %d deletes and %d requests for %d thoughts", deletes, n, fewer)
	}
	b.srv.Forget()
	receipt, err := b.i.Forget(b.t.Context(), engine.ForgetRequest{Scope: id.Scope()})
	if err != nil || len(receipt.Left) > 0 || receipt.Undelivered > 0 {
		b.t.Fatalf("forget: %+v, %v", receipt, err)
	}
	if n := len(b.srv.Requests()); n > 5 {
		b.t.Errorf("%d requests to erase a session, want at most 5", n)
	}
	for _, th := range b.srv.Thoughts() {
		if th.Metadata["sessionId"] == id.Session {
			b.t.Errorf("the server still has %v", th.Metadata)
		}
	}
	_, asked, answer := fact(7)
	b.said[id] = nil
	if strings.Contains(b.assemble(core.SessionID{Agent: "main", Session: "agent:main:later"}, asked), answer) {
		b.t.Error("what was erased is recalled")
	}
}

// TestOpenBrainMetadata: the document's keys, with the document's values.
func TestOpenBrainMetadata(t *testing.T) {
	t.Parallel()
	srv := openbraintest.New(t, openbraintest.Strict(100, false))
	b := newBrain(t, srv)
	main := core.SessionID{Agent: "main", Session: "agent:main:main"}
	b.turn(main, "How many boats?", "I shall ask.")
	b.subagent(main)
	b.drain()
	types := map[string]bool{}
	for _, th := range srv.Thoughts() {
		if th.Source != "openclaw:main" {
			t.Errorf("source %q", th.Source)
		}
		for _, key := range []string{"sessionId", "turn", "role", "type"} {
			if th.Metadata[key] == nil {
				t.Errorf("metadata without %s: %v", key, th.Metadata)
			}
		}
		if kind, ok := th.Metadata["type"].(string); ok {
			types[kind] = true
		}
		body, err := json.Marshal(map[string]any{"content": th.Content, "source": th.Source, "metadata": th.Metadata})
		if limit := len(th.Content)*3/2 + 300; err != nil || len(body) > limit {
			t.Errorf("a thought of %d bytes for %d of content, want at most %d: %s", len(body), len(th.Content), limit, body)
		}
	}
	if !types["message"] || !types["subagent-result"] {
		t.Errorf("types are %v", types)
	}
}

// TestOpenBrainFaults: whatever the server does, no turn fails or waits for it, and afterwards everything is there once.
func TestOpenBrainFaults(t *testing.T) {
	t.Parallel()
	for name, do := range map[string]openbraintest.Action{
		"hangs": openbraintest.Stall, "hangs after it stored": openbraintest.Then(openbraintest.Stall), "429": openbraintest.TooMany(1), "500": openbraintest.Broken,
		"500 after it stored": openbraintest.Then(openbraintest.Broken), "reset": openbraintest.Reset, "reset after it stored": openbraintest.Then(openbraintest.Reset),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := openbraintest.New(t, openbraintest.Strict(20, true))
			b := newBrain(t, srv, registry.Values("test", map[string]any{"engine": map[string]any{"timeout": "500ms"}}))
			main := core.SessionID{Agent: "main", Session: "agent:main:main"}
			const turns = 36
			for n := range turns {
				switch n {
				case 4:
					srv.Inject(openbraintest.Fault{Do: do, Times: -1})
					srv.Forget()
				case 20:
					searches := 0
					for _, r := range srv.Requests() {
						if r.Path == "/v1/search" {
							searches++
						}
					}
					if searches > 4 {
						t.Errorf("%d searches in 16 turns of a server that answers none: it is left alone after 3", searches)
					}
					if n == 20 && strings.HasPrefix(name, "reset") {
						b.restart() // in the middle of it
					}
				case 24:
					srv.Heal()
				}
				said, reply := chatter(n)
				if n%8 == 6 {
					said, _, _ = fact(n / 8)
				}
				b.watched(func() { b.turn(main, said, fmt.Sprintf("%s (%d)", reply, n)) })
			}
			b.drain()
			got := b.contents()
			for _, m := range b.said[main] {
				if got[m.Text()] != 1 {
					t.Errorf("%d thoughts say %q, want 1", got[m.Text()], m.Text())
				}
			}
			_, asked, answer := fact(1)
			if !strings.Contains(b.assemble(core.SessionID{Agent: "main", Session: "agent:main:new"}, asked), answer) {
				t.Error("what was said while the server failed is not recalled")
			}
		})
	}
}

// watched fails when f hangs.
func (b *brain) watched(f func()) {
	b.t.Helper()
	hung := time.AfterFunc(30*time.Second, func() { panic("a turn hangs") })
	defer hung.Stop()
	f()
}

// TestOpenBrainSlowSearch: what a server finds in 600 ms is in a later call of the same turn.
func TestOpenBrainSlowSearch(t *testing.T) {
	t.Parallel()
	srv := openbraintest.New(t, openbraintest.Strict(100, false))
	b := newBrain(t, srv)
	said, asked, answer := fact(6)
	srv.Insert(said, "openclaw:main", map[string]any{ // another machine's
		"sessionId": "agent:main:elsewhere", "turn": 1, "role": "user", "type": "message", "source": "openclaw:main", "id": "agent:main:elsewhere",
		"v": 2, "entry": "e-1", "seq": 0, "at": 1_700_000_000_000,
	})
	main := core.SessionID{Agent: "main", Session: "agent:main:main"}
	b.turn(main, "Good morning.", "Good morning.")
	srv.Inject(openbraintest.Fault{Path: "/v1/search", Times: -1, Do: openbraintest.Slow(600 * time.Millisecond)})
	if strings.Contains(b.assemble(main, asked), answer) {
		t.Fatal("the first call has what the server cannot have said yet")
	}
	b.watched(func() {
		for !strings.Contains(b.assemble(main, asked), answer) {
			time.Sleep(20 * time.Millisecond)
		}
	})
	searches := 0
	for _, r := range srv.Requests() {
		if strings.Contains(r.Body, asked) {
			searches++
		}
	}
	if searches != 1 {
		t.Errorf("%d searches for one prompt", searches)
	}
	// And it can be looked up.
	recaller, ok := b.e.(engine.Recaller)
	if !ok {
		t.Fatal("the engine has no way back")
	}
	if _, err := recaller.Expand(t.Context(), engine.ExpandRequest{Session: main, ID: "e-1"}); err != nil {
		t.Errorf("expand: %v", err)
	}
}

// TestOpenBrainReset: other sessions are recalled, and what was reset inside a session is not, unless that is configured; a key switches the first off.
func TestOpenBrainReset(t *testing.T) {
	t.Parallel()
	said, asked, answer := fact(8)
	main, other := core.SessionID{Agent: "main", Session: "agent:main:main"}, core.SessionID{Agent: "main", Session: "agent:main:other"}
	for _, c := range []struct {
		name          string
		values        map[string]any
		itself, later bool
	}{
		{"default", nil, false, true},
		{"one session", map[string]any{"engine": map[string]any{"acrossSessions": false}}, false, false},
		{"reset history", map[string]any{"recall": map[string]any{"resetHistory": true}}, true, true},
	} {
		srv := openbraintest.New(t, openbraintest.Strict(100, false))
		var extra []registry.Source
		if c.values != nil {
			extra = append(extra, registry.Values("test", c.values))
		}
		b := newBrain(t, srv, extra...)
		b.turn(main, said, "Noted.")
		b.drain()
		b.said[main] = nil // the host begins anew under the same name
		b.turn(main, "Hello again.", "Hello.")
		if got := strings.Contains(b.assemble(main, asked), answer); got != c.itself {
			t.Errorf("%s: what was reset is recalled: %t", c.name, got)
		}
		if got := strings.Contains(b.assemble(other, asked), answer); got != c.later {
			t.Errorf("%s: another session recalls it: %t", c.name, got)
		}
	}
}
