package engine_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/engine"
	"github.com/contextengine/contextengine/core/message"
)

// TestErasedComesAgain: what was erased stays erased in its session, whichever way it comes again, and the empty place costs no tokens.
func TestErasedComesAgain(t *testing.T) {
	said := user("my code is " + secret)
	withID := said
	withID.ID = "m3"
	host := []message.Message{user("hello"), assistant("hi"), said, assistant("noted")}
	for name, again := range map[string]func(f *fixture){
		"a rewind and back": func(f *fixture) {
			f.assemble(1000, transcript("next", host[:2]...))
			f.assemble(1000, transcript("next", host...))
		},
		"a reset and back": func(f *fixture) {
			f.assemble(1000, transcript("next", user("anew")))
			f.assemble(1000, transcript("next", host...))
		},
		"an empty transcript and back": func(f *fixture) {
			f.assemble(1000, transcript("next"))
			f.assemble(1000, transcript("next", host...))
		},
		"twice in the transcript": func(f *fixture) {
			f.assemble(1000, transcript("next", slices.Concat(host, host[2:3])...))
			f.assemble(1000, transcript("next", slices.Concat(host, host[2:3], host[2:3], host[3:])...))
		},
		"in another order":         func(f *fixture) { f.assemble(1000, transcript("next", host[2], host[0], host[1], host[3])) },
		"ingested":                 func(f *fixture) { f.ingest(said) },
		"ingested with its id":     func(f *fixture) { f.ingest(withID); f.ingest(withID) },
		"ingested twice at a time": func(f *fixture) { f.ingest(said, assistant("so?"), said) },
		"committed": func(f *fixture) {
			req := core.CommitTurnRequest{Session: f.id, AdvancementKey: "k", Messages: []message.Message{said, assistant("ok")}}
			if _, err := f.engine.CommitTurn(t.Context(), req); err != nil {
				t.Fatal(err)
			}
		},
		"after a turn": func(f *fixture) {
			if err := f.engine.AfterTurn(t.Context(), core.AfterTurnRequest{Session: f.id, Messages: []message.Message{said, assistant("ok")}}); err != nil {
				t.Fatal(err)
			}
		},
		"bootstrapped": func(f *fixture) {
			req := core.BootstrapRequest{Session: f.id, Transcript: &core.Transcript{Messages: slices.Concat(host[:1], host[2:], host[2:3])}}
			if _, err := f.engine.Bootstrap(t.Context(), req); err != nil {
				t.Fatal(err)
			}
		},
		"a timer": func(f *fixture) {
			if _, err := f.engine.Ingest(t.Context(), core.IngestRequest{Session: f.id, Message: said, Heartbeat: true}); err != nil {
				t.Fatal(err)
			}
		},
	} {
		for _, reset := range []bool{false, true} { // erased in force, and off the path
			for _, restart := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s/reset %v/restart %v", name, reset, restart), func(t *testing.T) {
					f := newFixture(t)
					with := slices.Clone(host)
					if strings.Contains(name, "its id") {
						with[2] = withID
					}
					f.assemble(1000, transcript("next", with...))
					id := f.entry(secret).ID
					if reset {
						f.assemble(1000, transcript("next", user("anew")))
					}
					if restart {
						f.restart()
					}
					f.forget(engine.ForgetRequest{Scope: f.id.Scope(), Entries: []string{id}})
					if restart {
						f.restart()
					}
					again(f)
					if got := f.traces(); got != nil {
						t.Errorf("stored again: %q", got)
					}
					for _, e := range entriesOf(f) {
						if e.Type == core.TypeErased && e.Tokens != 0 {
							t.Errorf("what is left of it costs %d tokens", e.Tokens)
						}
					}
					before := f.stored()
					for range 2 {
						got := f.assemble(1000)
						if s := shown(got); strings.Contains(s, secret) {
							t.Errorf("shown: %s", s)
						}
						f.restart()
					}
					if n := f.stored(); n != before {
						t.Errorf("%d entries stored, before %d were", n, before)
					}
				})
			}
		}
	}
}

// TestErasedIsNotWhatIsSaidAnew: a message that its host knows by another key, id or time is another one, and a purge forgets that there was any.
func TestErasedIsNotWhatIsSaidAnew(t *testing.T) {
	at := func(text string, minute int) message.Message {
		m := user(text)
		m.Time = time.Date(2026, 1, 2, 3, minute, 0, 0, time.UTC)
		return m
	}
	f := newFixture(t)
	host := []message.Message{at("yes", 1), at("go on", 2)}
	f.assemble(1000, transcript("next", host...))
	f.forget(engine.ForgetRequest{Scope: f.id.Scope()})
	host = append(host, assistant("done"), at("yes", 5))
	for range 2 {
		if s := shown(f.assemble(1000, transcript("next", host...))); s != "done | yes" {
			t.Errorf("shown: %q", s)
		}
		f.restart()
	}
	f.ingest(at("go on", 7), at("go on", 2))
	if s := shown(f.assemble(1000)); s != "done | yes | go on" {
		t.Errorf("shown: %q", s)
	}
	f.forget(engine.ForgetRequest{Scope: f.id.Scope(), Purge: true})
	f.ingest(at("go on", 2))
	if s := shown(f.assemble(1000)); s != "go on" {
		t.Errorf("purged, it shows %q", s)
	}
}

// TestErasedResultIsNotAnotherCalls: where messages have no names the ids of calls tell them apart: what another call was given, or another one that asks the same, is
// shown although the first one was erased; that one comes back in no way.
func TestErasedResultIsNotAnotherCalls(t *testing.T) {
	for _, how := range []string{"by transcript", "ingested"} {
		for _, what := range []string{"the result", "the call", "both"} {
			for _, restart := range []bool{false, true} {
				f := newFixture(t)
				host := one(user("do it"), calling("a"), resulting("a", "ok"), assistant("done"))
				f.assemble(1000, transcript("next", host...))
				var gone []string
				for _, e := range entriesOf(f) {
					if what != "the call" && e.Message.HasResults() || what != "the result" && e.Message.HasCalls() {
						gone = append(gone, e.ID)
					}
				}
				f.forget(engine.ForgetRequest{Scope: f.id.Scope(), Entries: gone})
				if restart {
					f.restart()
				}
				more := one(user("again"), calling("b"), resulting("b", "ok"))
				var res core.AssembleResult
				if how == "ingested" {
					f.ingest(more...)
					f.ingest(host[1], host[2]) // as a client that lost the answer says them again
					res = f.assemble(1000)
				} else {
					res = f.assemble(1000, transcript("", join(host, more)...), inLoop)
				}
				calls, results := 0, 0
				for _, m := range res.Messages {
					for _, p := range m.Parts {
						if p.Kind == message.ToolCall && p.CallID == "b" {
							calls++
						}
						if p.Kind == message.ToolResult && p.CallID == "b" && p.Text == "ok" {
							results++
						}
						if p.CallID == "a" && (what != "the call" && p.Text == "ok" || what != "the result" && p.Kind == message.ToolCall) {
							t.Errorf("%s, %s erased, restarts %t: it is shown: %q", how, what, restart, shown(res))
						}
					}
				}
				if calls != 1 || results != 1 {
					t.Errorf("%s, %s erased, restarts %t: the other one has %d calls and %d results: %q", how, what, restart, calls, results, shown(res))
				}
			}
		}
	}
}

// TestErasedStaysErasedInForks: a fork's host has a copy of what its parent erased, also when the grant is over.
func TestErasedStaysErasedInForks(t *testing.T) {
	for _, agent := range []string{"main", "helper"} {
		host := &clock{now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
		f := newFixture(t, func(_ *engine.Config, p *engine.Parts) { p.Host = host })
		said := []message.Message{user("hello"), assistant("my code is " + secret), user("more")}
		f.assemble(1000, transcript("next", said...))
		child := core.SessionID{Agent: agent, Session: "child"}
		if _, err := f.engine.PrepareSubagentSpawn(t.Context(), core.SpawnRequest{Parent: f.id, Child: child, Mode: core.SpawnFork, TTL: time.Hour}); err != nil {
			t.Fatal(err)
		}
		inChild := func(r *core.AssembleRequest) { r.Session = child }
		f.assemble(1000, transcript("next", said...), inChild)
		f.forget(engine.ForgetRequest{Scope: f.id.Scope(), Entries: []string{f.entry(secret).ID}})
		for range 2 {
			if s := shown(f.assemble(1000, transcript("next", append(said, said[1], user("and?"))...), inChild)); strings.Contains(s, secret) || !strings.HasSuffix(s, "more | and?") {
				t.Errorf("agent %s: the fork shows %q", agent, s)
			}
			host.now = host.now.Add(2 * time.Hour)
			f.restart()
		}
	}
}

// TestErasedStaysErasedInForksOfForks: a fork whose grant is over has copies of what it was given, and so has the host of its own fork. What was erased does not come back
// there, and nothing of what was given is taken for what a subagent answered.
func TestErasedStaysErasedInForksOfForks(t *testing.T) {
	for name, erase := range map[string]bool{"erased": true, "kept": false} {
		t.Run(name, func(t *testing.T) {
			host := &clock{now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
			f := newFixture(t, func(_ *engine.Config, p *engine.Parts) { p.Host = host })
			said := []message.Message{user("hello"), assistant("yes"), user("my code is " + secret), assistant("so be it")}
			for i := range said {
				said[i].ID = fmt.Sprint("id ", i)
			}
			f.assemble(1000, transcript("", said...))
			if erase {
				f.forget(engine.ForgetRequest{Scope: f.id.Scope(), Entries: []string{f.entry(secret).ID}})
			}
			for depth := range 3 {
				parent, child := f.id, core.SessionID{Agent: f.id.Agent, Session: fmt.Sprint("child ", depth)}
				if _, err := f.engine.PrepareSubagentSpawn(t.Context(), core.SpawnRequest{Parent: parent, Child: child, Mode: core.SpawnFork, TTL: time.Minute}); err != nil {
					t.Fatal(err)
				}
				f.id = child
				f.assemble(1000, transcript("", said...))
				host.now = host.now.Add(time.Hour)
				if s := shown(f.assemble(1000, transcript("", said...))); erase && strings.Contains(s, secret) {
					t.Errorf("fork %d, whose grant is over, shows %q", depth, s)
				}
				if depth < 2 {
					continue
				}
				if err := f.engine.OnSubagentEnded(t.Context(), core.SubagentEnded{Parent: parent, Child: child, Reason: "completed"}); err != nil {
					t.Fatal(err)
				}
				for entry, err := range core.All(t.Context(), f.store, parent.Scope(), false) {
					if err != nil || entry.Type == core.TypeSubagent {
						t.Errorf("%s is told that its subagent answered %q, error %v", parent.Session, entry.Text(), err)
					}
				}
			}
		})
	}
}

// TestErasedResultInAForkWhoseGrantIsOver: the prompt that a fork was given is handed back after a result in it was erased and the grant is over: what rules made of the
// result, with another id or in one message with others, does not come back.
func TestErasedResultInAForkWhoseGrantIsOver(t *testing.T) {
	call := message.New(message.Assistant, "I look")
	for _, id := range []string{"a", "b"} {
		call.Parts = append(call.Parts, message.Part{Kind: message.ToolCall, CallID: id, Name: "read", Args: `{"n":"` + id + `"}`})
	}
	host := one(user("hello"), call, resulting("a", "the code is "+secret), resulting("b", "nothing here"), assistant("noted"))
	for _, provider := range []string{"", "anthropic", "google", "openai", "mistral"} {
		for _, over := range []bool{false, true} {
			for _, restart := range []bool{false, true} {
				now := &clock{now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
				f := newFixture(t, func(_ *engine.Config, p *engine.Parts) { p.Host = now })
				f.assemble(1000, transcript("next", host...))
				child := core.SessionID{Agent: f.id.Agent, Session: "child"}
				if _, err := f.engine.PrepareSubagentSpawn(t.Context(), core.SpawnRequest{Parent: f.id, Child: child, Mode: core.SpawnFork, TTL: time.Hour}); err != nil {
					t.Fatal(err)
				}
				in := func(r *core.AssembleRequest) { r.Session, r.Settings.Provider = child, provider }
				given := f.assemble(1000, in, transcript("look again", host...)).Messages
				f.forget(engine.ForgetRequest{Scope: f.id.Scope(), Entries: []string{f.entry(secret).ID}})
				if over {
					now.now = now.now.Add(2 * time.Hour)
				}
				if restart {
					f.restart()
				}
				for range 2 {
					if s := shown(f.assemble(1000, in, inLoop, transcript("", join(given, one(user("look again"), assistant("I do")))...))); strings.Contains(s, secret) {
						t.Errorf("provider %q, grant over %t, restarts %t: shown %q", provider, over, restart, s)
					}
				}
			}
		}
	}
}

// TestErasedStaysErasedInForksThatGoBack: the same, where the fork's host began anew, or went back, and shows its copy again later.
func TestErasedStaysErasedInForksThatGoBack(t *testing.T) {
	host := []message.Message{user("hello"), assistant("hi"), user("my code is " + secret), assistant("noted")}
	for name, between := range map[string][]message.Message{
		"a reset": {user("anew"), assistant("so be it")}, "an empty list": {}, "a rewind": host[:1], "an edit": {host[0], host[1], user("never mind"), assistant("well")},
	} {
		for _, agent := range []string{"main", "other"} {
			for _, erased := range []string{"before the fork", "in the fork", "behind it"} {
				for _, restart := range []bool{false, true} {
					f := newFixture(t)
					erase := func(when string) {
						if when == erased {
							f.forget(engine.ForgetRequest{Scope: f.id.Scope(), Entries: []string{f.entry(secret).ID}})
						}
						if restart {
							f.restart()
						}
					}
					f.assemble(1000, transcript("next", host...))
					erase("before the fork")
					of, id := f.id, f.id
					for depth := range 2 { // a fork, and a fork of it
						id = core.SessionID{Agent: agent, Session: fmt.Sprint("child ", depth)}
						if _, err := f.engine.PrepareSubagentSpawn(t.Context(), core.SpawnRequest{Parent: of, Child: id, Mode: core.SpawnFork}); err != nil {
							t.Fatal(err)
						}
						of = id
					}
					erase("in the fork")
					in := func(r *core.AssembleRequest) { r.Session = id }
					f.assemble(1000, in, transcript("next", between...))
					erase("behind it")
					for range 2 {
						if s := shown(f.assemble(1000, in, transcript("next", host...))); strings.Contains(s, secret) || !strings.HasSuffix(s, "noted") {
							t.Errorf("%s, agent %s, erased %s, restarts %t: the fork shows %q", name, agent, erased, restart, s)
						}
					}
					for e, err := range core.All(t.Context(), f.store, id.Scope(), false) {
						if err != nil || strings.Contains(e.Text(), secret) {
							t.Errorf("%s, agent %s, erased %s, restarts %t: the fork stores %q, error %v", name, agent, erased, restart, e.Text(), err)
						}
					}
				}
			}
		}
	}
}

// TestOwnOutputAfterAnErasure: the engine's own output from before an erasure, handed back in the loop, brings nothing back: not what was merged, clipped,
// recalled or summarised.
func TestOwnOutputAfterAnErasure(t *testing.T) {
	f := newFixture(t)
	f.parts.Compactor = teller{}
	f.restart()
	anthropic := func(r *core.AssembleRequest) { r.Settings.Provider = "anthropic" }
	host := []message.Message{user("one"), assistant("two"), user("my code is " + secret), assistant(""), user("hello"), assistant("three " + strings.Repeat(secret+" ", 300))}
	f.assemble(400, transcript("next", host...), anthropic)
	f.compact(400)
	host = append(host, user("again "+secret), assistant(" "), user("and more"))
	out := f.assemble(400, transcript("next", host...), anthropic)
	if !strings.Contains(shown(out), secret) {
		t.Fatalf("shown: %s", shown(out))
	}
	for {
		var id string
		for entry, err := range core.All(t.Context(), f.store, f.id.Scope(), false) {
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(entry.Text(), secret) && entry.Type == core.TypeMessage {
				id = entry.ID
			}
		}
		if id == "" {
			break
		}
		f.forget(engine.ForgetRequest{Scope: f.id.Scope(), Entries: []string{id}})
	}
	if _, err := f.engine.Ingest(t.Context(), core.IngestRequest{Session: f.id, Message: user("tick"), Heartbeat: true}); err != nil {
		t.Fatal(err)
	}
	if s := shown(f.assemble(400, transcript("next", append(out.Messages, assistant("four"))...), loopCall, anthropic)); strings.Contains(s, secret) {
		t.Errorf("shown: %s", s)
	}
	if got := f.traces(); got != nil {
		t.Errorf("stored again: %q", got)
	}
}

// TestErasedPrintsCannotBeGuessed: who has the entry of an erasure, and every number that it may have held, does not find out which it was.
func TestErasedPrintsCannotBeGuessed(t *testing.T) {
	f := newFixture(t)
	m := user("47#11") // no id that is drawn holds it
	m.ID, m.Time = "m1", time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	f.ingest(user("pin?"), m)
	f.forget(engine.ForgetRequest{Scope: f.id.Scope(), Entries: []string{f.entry("47#11").ID}})
	var left []string
	for entry, err := range core.All(t.Context(), f.store, core.Scope{Agent: "main"}, false) {
		if err != nil {
			t.Fatal(err)
		}
		if entry = core.Shareable(entry); entry.Type == core.TypeErased {
			body, err := json.Marshal(entry)
			if err != nil {
				t.Fatal(err)
			}
			left = append(left, string(body))
		}
	}
	if len(left) != 3 { // the place, the key and the receipt
		t.Fatalf("%d entries say of the erasure", len(left))
	}
	fp := message.Fingerprint(m)
	sum := sha256.Sum256([]byte("erased\x00main\x00s1\x00" + fp))
	for _, body := range left {
		for _, guess := range []string{fp, hex.EncodeToString(sum[:12]), "47#11"} {
			if strings.Contains(body, guess) {
				t.Errorf("%s tells", body)
			}
		}
	}
	// Other processes know it by the same print, and another session or store by another one.
	first := left[0]
	for range 2 {
		f.restart()
		f.ingest(m)
		if n := f.stored(); n != 2 {
			t.Errorf("%d entries stored, want 2", n)
		}
	}
	other := newFixture(t)
	other.ingest(user("pin?"), m)
	other.forget(engine.ForgetRequest{Scope: other.id.Scope(), Entries: []string{other.entry("47#11").ID}})
	for entry := range core.All(t.Context(), other.store, other.id.Scope(), false) {
		if entry.Type == core.TypeErased && strings.Contains(first, entry.Fingerprint) {
			t.Error("two stores know it by the same print")
		}
	}
}

// TestErasedBefore: what was erased when prints had no key stays erased.
func TestErasedBefore(t *testing.T) {
	f := newFixture(t)
	said := user("my code is " + secret)
	sum := sha256.Sum256([]byte("erased\x00main\x00s1\x00" + message.Fingerprint(said)))
	f.ingest(user("hello"), said, assistant("noted"))
	m := message.New(message.User, "")
	if err := f.store.Update(t.Context(), f.id.Scope(), f.entry(secret).ID, core.Change{
		Message: &m, Type: core.TypeErased, Fingerprint: "erased:" + hex.EncodeToString(sum[:12]), Key: "x:1", Meta: map[string]string{"erased": "r1"},
	}); err != nil {
		t.Fatal(err)
	}
	f.restart()
	if s := shown(f.assemble(1000, transcript("next", user("hello"), said, assistant("noted")))); s != "hello | noted" {
		t.Errorf("shown: %q", s)
	}
}

// A line that a host put in the place of what was erased is the host's own: it goes when the host shows again what stands around it.
func TestLineBehindWhatWasErased(t *testing.T) {
	f := newFixture(t)
	all := one(user("one"), user("two"))
	f.assemble(1000, transcript("now", all...))
	f.forget(engine.ForgetRequest{Scope: f.id.Scope(), Entries: []string{f.entry("one").ID}})
	if got, want := shown(f.assemble(1000, transcript("now", user("(cut)"), all[1]))), "(cut) | two"; got != want {
		t.Fatalf("window = %q, want %q: nothing is tested", got, want)
	}
	if got := shown(f.assemble(1000, transcript("now", all...))); got != "two" {
		t.Errorf("window = %q", got)
	}
}
