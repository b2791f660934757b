package conformance_test

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/message"
	"github.com/contextengine/contextengine/core/window"
)

// unpin takes the message that is pinned in front out of a prompt.
func unpin(a *core.AssembleResult) {
	for _, c := range a.Choices {
		if c.Reason == window.ReasonPinned && c.Message >= 0 {
			remove(a, c.Message)
			return
		}
	}
}

// tablePrompts are engines whose prompts end where they should not, obey another provider, or cost more than they may.
func tablePrompts() []broken {
	var out []broken
	// asked is a broken engine that looks at the request, and at the result that came of it.
	asked := func(id, name string, before func(*core.AssembleRequest), after func(core.AssembleRequest, *core.AssembleResult)) {
		out = append(out, caughtBy(id, name, recalling(nil), func(w *wrongEngine) {
			var req core.AssembleRequest
			w.before = func(_ string, r any) {
				if r, ok := r.(*core.AssembleRequest); ok {
					if req = *r; before != nil {
						before(r)
					}
				}
			}
			w.after = func(_ string, res any) {
				if a, ok := res.(*core.AssembleResult); ok && after != nil {
					after(req, a)
				}
			}
		}))
	}
	asked("contract.unsent", "the host's prompt is appended without a transcript", nil, func(req core.AssembleRequest, a *core.AssembleResult) {
		if req.Prompt != "" && req.Transcript == nil {
			insert(a, len(a.Messages), message.New(message.User, req.Prompt))
		}
	})
	asked("contract.question", "what a turn began with leaves with its first calls", nil, func(_ core.AssembleRequest, a *core.AssembleResult) {
		unpin(a)
	})
	out = append(out, caughtBy("contract.question", "what left for a long call does not come back", recalling(nil), func(w *wrongEngine) {
		long, id := map[core.SessionID]bool{}, core.SessionID{}
		w.before = func(_ string, r any) {
			switch r := r.(type) {
			case *core.IngestRequest:
				long[r.Session] = long[r.Session] || slices.ContainsFunc(r.Message.Calls(), func(p message.Part) bool { return len(p.Args) > 300 })
			case *core.AssembleRequest:
				id = r.Session
			}
		}
		w.after = func(_ string, res any) {
			if a, ok := res.(*core.AssembleResult); ok && long[id] {
				unpin(a)
			}
		}
	}))
	out = append(out, on("contract.question", "what was typed beside a result is no part of it", recalling(nil), func(r *core.IngestRequest) {
		if r.Message.HasResults() {
			r.Message.Parts = r.Message.Results()
		}
	}))
	asked("contract.unsent", "the host's prompt stands in the addition", nil, func(req core.AssembleRequest, a *core.AssembleResult) {
		if req.Prompt != "" && req.Call == core.CallLoop {
			a.SystemPromptAddition += "They ask: " + req.Prompt
		}
	})
	asked("contract.unsent", "the host's prompt heads what is recalled", nil, func(req core.AssembleRequest, a *core.AssembleResult) {
		if req.Prompt != "" && a.RecallLen > 0 {
			m := &a.Messages[a.RecallAt]
			*m = message.New(m.Role, strings.Replace(m.Text(), "\n", "\nAsked: "+req.Prompt+"\n", 1))
		}
	})
	asked("contract.unsent", "what is recalled ends the prompt", nil, func(_ core.AssembleRequest, a *core.AssembleResult) {
		if a.RecallLen == 1 {
			m := a.Messages[a.RecallAt]
			a.Messages = append(slices.Delete(a.Messages, a.RecallAt, a.RecallAt+1), m)
			a.RecallAt = len(a.Messages) - 1
		}
	})
	asked("contract.unsent", "an answer at the end is left out", nil, func(req core.AssembleRequest, a *core.AssembleResult) {
		if last := len(a.Messages) - 1; last > 0 && req.Transcript == nil && a.Messages[last].Role == message.Assistant {
			remove(a, last)
		}
	})
	out = append(out, caughtBy("contract.rewound", "shorter transcripts are not looked at", recalling(nil), func(w *wrongEngine) {
		longest := map[core.SessionID][]message.Message{}
		w.before = func(_ string, r any) {
			if r, ok := r.(*core.AssembleRequest); ok && r.Transcript != nil {
				if known := longest[r.Session]; len(known) > len(r.Transcript.Messages) && slices.EqualFunc(r.Transcript.Messages, known[:len(r.Transcript.Messages)], sameText) {
					r.Transcript = &core.Transcript{Messages: known, Whole: r.Transcript.Whole}
				}
				longest[r.Session] = r.Transcript.Messages
			}
		}
	}), caughtBy("contract.rewound", "a transcript that says what was said at the end shows the end alone", recalling(nil), func(w *wrongEngine) {
		known := map[core.SessionID][]message.Message{}
		w.before = func(_ string, r any) {
			if r, ok := r.(*core.AssembleRequest); ok && r.Transcript != nil {
				all, list := known[r.Session], r.Transcript.Messages
				if n := len(all) - len(list); n > 0 && len(list) > 0 && slices.EqualFunc(list, all[n:], sameText) {
					r.Transcript = &core.Transcript{Messages: all, Whole: r.Transcript.Whole}
				}
				known[r.Session] = r.Transcript.Messages
			}
		}
	}), caughtBy("contract.rewound", "shorter transcripts with a prompt are not looked at", recalling(nil), func(w *wrongEngine) {
		longest := 0
		w.before = func(_ string, r any) {
			if r, ok := r.(*core.AssembleRequest); ok && r.Transcript != nil && r.Prompt != "" {
				if len(r.Transcript.Messages) < longest {
					r.Transcript = nil
					return
				}
				longest = len(r.Transcript.Messages)
			}
		}
	}), caughtBy("contract.rewound", "what comes back stands behind what is new", recalling(nil), returning(func(a *core.AssembleResult, _ message.Message) {
		slices.Reverse(a.Messages[max(len(a.Messages)-2, 0):])
	})), caughtBy("contract.rewound", "a system message that comes back is shown at the end too", recalling(nil), returning(func(a *core.AssembleResult, first message.Message) {
		if first.Role == message.System {
			a.Messages = append(a.Messages, a.Messages[0])
		}
	})))
	for name, keep := range map[string]func(known, now string) string{
		"the provider of the first call stays": func(known, now string) string {
			if known != "" {
				return known
			}
			return now
		},
		"every provider is openai":        func(string, string) string { return "openai" },
		"every provider is no provider":   func(string, string) string { return "" },
		"the provider of the call before": func(known, _ string) string { return known },
	} {
		known := ""
		out = append(out, caughtBy("contract.provider", name, recalling(nil), func(w *wrongEngine) {
			w.before = func(_ string, r any) {
				if r, ok := r.(*core.AssembleRequest); ok && r.Settings.Provider != "" {
					now := r.Settings.Provider
					r.Settings.Provider = keep(known, now)
					known = now
				}
			}
		}))
	}
	asked("contract.provider", "a note of the user's in front of all", nil, func(_ core.AssembleRequest, a *core.AssembleResult) {
		if len(a.Messages) > 0 && a.Messages[0].Role == message.User && slices.ContainsFunc(a.Choices, left) {
			insert(a, 0, message.New(message.User, "[earlier messages are left out]"))
		}
	})
	for name, takes := range map[string]func(core.RuntimeSettings) int{
		"the model's window is the budget in loops":        func(s core.RuntimeSettings) int { return s.ContextWindow - s.MaxOutputTokens },
		"the model's prompt budget is the budget in loops": func(s core.RuntimeSettings) int { return s.PromptTokenBudget },
	} {
		asked("contract.budget", name, func(r *core.AssembleRequest) {
			if r.Call == core.CallLoop {
				r.Budget = max(r.Budget, takes(r.Settings))
			}
		}, nil)
	}
	out = append(out, caughtBy("contract.tiny", "sections must stay", recalling(nil), func(w *wrongEngine) {
		w.around = sectionsStay
	}))
	first := map[core.SessionID]string{}
	asked("contract.steered", "the first prompt of a session steers it for good", func(r *core.AssembleRequest) {
		if first[r.Session] == "" {
			first[r.Session] = r.Prompt
		}
		if r.Prompt != "" {
			r.Prompt = first[r.Session]
		}
	}, nil)
	for _, reason := range []string{"nothing to do", "only the newest messages are left", "Already compacted"} {
		out = append(out, caughtBy("compact.progress", "nothing compacted, because: "+reason, setup{compactor: "archive"}, func(w *wrongEngine) {
			w.after = func(_ string, res any) {
				if c, ok := res.(*core.CompactResult); ok && c.OK && !c.Compacted {
					c.Reason = reason
				}
			}
		}))
	}
	for _, id := range []string{"contract.ingest", "ids.form"} {
		s := recalling(nil)
		s.ids = func(next func() string) func() string {
			return func() string { return strings.TrimPrefix(next(), "id") }
		}
		out = append(out, caughtBy(id, "ids of digits alone", s, func(*wrongEngine) {}))
	}
	return out
}

// left is a choice of what has left the window.
func left(c window.Choice) bool { return c.Message < 0 }

// returning does something to the results of a transcript of which something was known before and not in the one before it.
func returning(do func(a *core.AssembleResult, first message.Message)) func(*wrongEngine) {
	return func(w *wrongEngine) {
		known, last, back := map[string]bool{}, []message.Message(nil), false
		w.before = func(_ string, r any) {
			back = false
			if r, ok := r.(*core.AssembleRequest); ok && r.Transcript != nil {
				for _, m := range r.Transcript.Messages {
					back = back || m.ID != "" && known[m.ID] && !slices.ContainsFunc(last, func(l message.Message) bool { return l.ID == m.ID })
					known[m.ID] = true
				}
				last = r.Transcript.Messages
			}
		}
		w.after = func(_ string, res any) {
			if a, ok := res.(*core.AssembleResult); ok && back {
				do(a, last[0])
			}
		}
	}
}

func sameText(a, b message.Message) bool { return a.Text() == b.Text() }

// sectionsStay refuses what the host's sections alone exceed.
func sectionsStay(ctx context.Context, _ string, call func(context.Context) error) error {
	if r, ok := ctx.Value(requested{}).(*core.AssembleRequest); ok {
		n := 0
		for _, section := range r.Memory.Sections {
			n += cheap(section)
		}
		if n > r.Budget {
			return fmt.Errorf("broken: %w", &core.BudgetError{Budget: r.Budget, Needed: n, System: n})
		}
	}
	return call(ctx)
}
