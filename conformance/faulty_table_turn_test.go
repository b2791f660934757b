package conformance_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/engine"
	"github.com/contextengine/contextengine/core/message"
)

// tableTurns are engines that take what they were shown of a turn for another one, or another one for it.
func tableTurns() []broken {
	var out []broken
	type turned = func(core.SessionID, []message.Message) []message.Message
	committed := func(w *wrongEngine, change turned) {
		w.commit = func(ctx context.Context, req core.CommitTurnRequest) (core.CommitTurnResult, error) {
			req.Messages = change(req.Session, slices.Clone(req.Messages))
			return w.Engine.CommitTurn(ctx, req)
		}
	}
	afterwards := func(w *wrongEngine, change turned) {
		w.turn = func(ctx context.Context, req core.AfterTurnRequest) error {
			req.Messages = slices.Concat(req.Messages[:req.PrePrompt], change(req.Session, slices.Clone(req.Messages[req.PrePrompt:])))
			return w.Engine.AfterTurn(ctx, req)
		}
	}
	n := 0
	again := func(_ core.SessionID, turn []message.Message) []message.Message {
		for i := range turn {
			n++
			turn[i].ID = fmt.Sprint("another ", n)
		}
		return turn
	}
	turn := func(name string, change func(w *wrongEngine)) {
		out = append(out, caughtBy("contract.turn", name, recalling(nil), change))
	}
	type which func(id core.SessionID, turn []message.Message, i int) bool
	// stored stores again what some messages of a turn say.
	stored := func(w *wrongEngine, by func(*wrongEngine, turned), of which) {
		by(w, func(id core.SessionID, turn []message.Message) []message.Message {
			for i := range turn {
				if of(id, turn, i) {
					m := again(id, []message.Message{turn[i]})[0]
					_, _ = w.Engine.Ingest(context.Background(), core.IngestRequest{Session: id, Message: m}) // it is found in the store
				}
			}
			return turn
		})
	}
	both := func(w *wrongEngine, change turned) { committed(w, change); afterwards(w, change) }
	all := func(core.SessionID, []message.Message, int) bool { return true }
	// The same call is taken for the one that was made last.
	calls := func(name string, takes func(asked, was string) bool) {
		out = append(out, caughtBy("contract.tries", name, recalling(nil), func(w *wrongEngine) {
			last := make(map[string]string)
			w.before = func(_ string, req any) {
				r, ok := req.(*core.AssembleRequest)
				if !ok || r.Transcript == nil {
					return
				}
				list := slices.Clone(r.Transcript.Messages)
				for i := range list {
					list[i].Parts = slices.Clone(list[i].Parts)
					for n := range list[i].Parts {
						p := &list[i].Parts[n]
						if p.Kind != message.ToolCall {
							continue
						}
						says := r.Session.Session + p.Name + p.Args + list[i].Text()
						if was := last[says]; was != "" && takes(p.CallID, was) {
							p.CallID = was
						} else {
							last[says] = p.CallID
						}
					}
				}
				r.Transcript = &core.Transcript{Messages: list, Whole: r.Transcript.Whole, Skipped: r.Transcript.Skipped}
			}
		}))
	}
	calls("a call that is made again is the first one", func(string, string) bool { return true })
	calls("a call is the longest one that said the same", func(asked, was string) bool { return len(was) > len(asked) })
	turn("what was shown is stored again when it is committed", func(w *wrongEngine) { stored(w, committed, all) })
	turn("what was shown is stored again when it is told afterwards", func(w *wrongEngine) { stored(w, afterwards, all) })
	turn("what is known by its time is stored again", func(w *wrongEngine) {
		stored(w, both, func(_ core.SessionID, turn []message.Message, i int) bool { return !turn[i].Time.IsZero() })
	})
	turn("what a turn before said is left out", func(w *wrongEngine) {
		known := map[string]bool{}
		once := func(id core.SessionID, turn []message.Message) []message.Message {
			return slices.DeleteFunc(turn, func(m message.Message) bool {
				key := id.String() + m.Text()
				was := known[key] && m.Role == message.User
				known[key] = true
				return was
			})
		}
		both(w, once)
	})
	turn("what some of a turn are known by is not looked at", func(w *wrongEngine) {
		stored(w, both, func(_ core.SessionID, turn []message.Message, i int) bool {
			return !turn[i].Time.IsZero() && slices.ContainsFunc(turn, func(m message.Message) bool { return m.Time.IsZero() })
		})
	})
	// renamed stores again what is accepted under another name than it was shown by.
	renamed := func(w *wrongEngine, name func(message.Message) string) {
		var shown sync.Map
		w.before = func(_ string, req any) {
			if r, ok := req.(*core.AssembleRequest); ok && r.Transcript != nil {
				for _, m := range r.Transcript.Messages {
					shown.Store(r.Session.String()+message.Fingerprint(m), name(m))
				}
			}
		}
		stored(w, both, func(id core.SessionID, turn []message.Message, i int) bool {
			was, ok := shown.Load(id.String() + message.Fingerprint(turn[i]))
			return ok && was != name(turn[i])
		})
	}
	turn("calls under other ids than those shown are others", func(w *wrongEngine) { renamed(w, usesOf) })
	turn("what is accepted under another name than it was shown by is another message", func(w *wrongEngine) { renamed(w, nameOf) })
	// erasing stores again what was erased, once something says it under another name for so many times.
	erasing := func(w *wrongEngine, times int, name func(message.Message) string) turned {
		var gone, seen sync.Map
		w.forget = func(ctx context.Context, req engine.ForgetRequest) (engine.Receipt, error) {
			if got, err := w.Store().Get(ctx, req.Scope, req.Entries); err == nil {
				for _, e := range got {
					gone.Store(e.SessionID().String()+e.Fingerprint, name(e.Message))
				}
			}
			return w.Engine.Forget(ctx, req)
		}
		return func(id core.SessionID, said []message.Message) []message.Message {
			for _, m := range said {
				of := id.String() + message.Fingerprint(m)
				was, ok := gone.Load(of)
				if !ok || was == name(m) {
					continue
				}
				before, _ := seen.Swap(of, 1)
				if n, _ := before.(int); n+1 < times {
					continue
				}
				gone.Delete(of)
				m.Time = time.Unix(0, 0)
				_, _ = w.Engine.Ingest(context.Background(), core.IngestRequest{Session: id, Message: again(id, []message.Message{m})[0]}) // as above
			}
			return said
		}
	}
	listed := func(w *wrongEngine, times int, name func(message.Message) string) {
		back := erasing(w, times, name)
		w.before = func(_ string, req any) {
			if r, ok := req.(*core.AssembleRequest); ok && r.Transcript != nil {
				back(r.Session, r.Transcript.Messages)
			}
		}
	}
	turn("what is erased comes back under a name that it got later", func(w *wrongEngine) { listed(w, 1, nameOf) })
	turn("what is erased comes back in the second list that has another id for its call", func(w *wrongEngine) { listed(w, 2, usesOf) })
	turn("what is erased comes back once its turn is accepted under another name", func(w *wrongEngine) { both(w, erasing(w, 1, nameOf)) })
	// forgotten takes what is said in the words of something erased, under another name, for that one, once so much was erased.
	forgotten := func(name string, times int, names func(message.Message) string) {
		var gone, erasures sync.Map // it knows them behind a restart, too
		out = append(out, caughtBy("contract.said-again", name, recalling(nil), func(w *wrongEngine) {
			w.forget = func(ctx context.Context, req engine.ForgetRequest) (engine.Receipt, error) {
				if got, err := w.Store().Get(ctx, req.Scope, req.Entries); err == nil {
					for _, e := range got {
						n, _ := erasures.Load(e.SessionID().String())
						before, _ := n.(int)
						erasures.Store(e.SessionID().String(), before+1)
						gone.Store(e.SessionID().String()+e.Fingerprint, names(e.Message))
					}
				}
				return w.Engine.Forget(ctx, req)
			}
			drop := func(id core.SessionID, said []message.Message) []message.Message {
				n, _ := erasures.Load(id.String())
				if many, _ := n.(int); many < times {
					return said
				}
				return slices.DeleteFunc(slices.Clone(said), func(m message.Message) bool {
					was, ok := gone.Load(id.String() + message.Fingerprint(m))
					return ok && was != names(m)
				})
			}
			w.before = func(_ string, req any) {
				if r, ok := req.(*core.AssembleRequest); ok && r.Transcript != nil {
					t := *r.Transcript
					t.Messages, r.Transcript = drop(r.Session, t.Messages), &t
				}
			}
			both(w, drop)
		}))
	}
	forgotten("what is said in the words of something erased is taken for it", 1, nameOf)
	forgotten("a call that is made again is taken for one that was erased", 1, usesOf)
	forgotten("behind many erasures what is said again is taken for one of them", 33, nameOf)
	turn("behind an output a call that says what an earlier one did is known", func(w *wrongEngine) {
		var said sync.Map
		w.before = func(_ string, req any) {
			r, ok := req.(*core.AssembleRequest)
			if !ok || r.Transcript == nil {
				return
			}
			t := *r.Transcript
			t.Messages = slices.DeleteFunc(slices.Clone(t.Messages), func(m message.Message) bool {
				print, uses := r.Session.String()+message.Fingerprint(m), usesOf(m)
				if uses == "" {
					return false
				}
				first, _ := said.LoadOrStore(print, uses)
				return r.Call == core.CallLoop && first != uses
			})
			r.Transcript = &t
		}
	})
	return out
}

// nameOf returns by what a host knows a message.
func nameOf(m message.Message) string { return m.Key + " " + m.ID + " " + m.Time.String() }

// usesOf returns the ids of the calls that a message makes or answers.
func usesOf(m message.Message) string {
	var out strings.Builder
	for _, p := range m.Parts {
		out.WriteString(p.CallID)
	}
	return out.String()
}
