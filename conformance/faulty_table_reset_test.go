package conformance_test

import (
	"context"
	"slices"
	"strings"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/engine"
	"github.com/contextengine/contextengine/core/message"
)

// tableReset are engines that recall what was taken back or is over, or let the names of speakers through.
func tableReset() []broken {
	var out []broken
	// anyway are engines that show, in front of the last message, what somebody said: of which session, and whether they do, which decides.
	anyway := func(id, name string, of func(w *wrongEngine, req core.AssembleRequest) (core.SessionID, bool)) {
		out = append(out, caughtBy(id, name, recalling(nil), func(w *wrongEngine) {
			var asked core.AssembleRequest
			w.before = func(_ string, req any) {
				if r, ok := req.(*core.AssembleRequest); ok {
					asked = *r
				}
			}
			w.after = func(_ string, res any) {
				a, ok := res.(*core.AssembleResult)
				if !ok || len(a.Messages) == 0 {
					return
				}
				from, does := of(w, asked)
				if !does {
					return
				}
				said := []string{"<recalled>"}
				for e, err := range core.All(context.Background(), w.Store(), from.Scope(), false) {
					if err == nil {
						said = append(said, "> "+strings.ReplaceAll(e.Text(), "\n", "\n> "))
					}
				}
				insert(a, len(a.Messages)-1, message.New(message.User, strings.Join(append(said, "</recalled>"), "\n")))
			}
		}))
	}
	anyway("contract.reset", "all of a session is recalled where a host appends its prompt", func(_ *wrongEngine, req core.AssembleRequest) (core.SessionID, bool) {
		return req.Session, req.Prompt != ""
	})
	anyway("contract.reset", "subagents recall all of their parent", func(_ *wrongEngine, req core.AssembleRequest) (core.SessionID, bool) {
		return core.SessionID{Agent: "agent-a", Session: "keeps 2"}, req.Session.Agent == "agent-c"
	})
	anyway("contract.over", "subagents recall all of their parent for ever", func(_ *wrongEngine, req core.AssembleRequest) (core.SessionID, bool) {
		return core.SessionID{Agent: "agent-a", Session: "main"}, req.Session.Agent == "agent-c"
	})
	ended := map[*wrongEngine]bool{}
	anyway("contract.over", "subagents recall of their parent once they have ended", func(w *wrongEngine, req core.AssembleRequest) (core.SessionID, bool) {
		w.ended = func(ctx context.Context, req core.SubagentEnded) error {
			ended[w] = true
			return w.Engine.OnSubagentEnded(ctx, req)
		}
		return core.SessionID{Agent: "agent-a", Session: "main"}, ended[w] && req.Session.Agent == "agent-c"
	})
	out = append(out, caughtBy("contract.reset", "subagents search what their parent took back", recalling(nil), func(w *wrongEngine) {
		w.search = func(ctx context.Context, req engine.SearchRequest) (engine.SearchResult, error) {
			res, err := w.Engine.Search(ctx, req)
			for _, parent := range []string{"keeps 0", "keeps 2"} {
				for e, bad := range core.All(ctx, w.Store(), core.Scope{Agent: "agent-a", Session: parent}, false) {
					if bad == nil && req.Session.Agent == "agent-c" && strings.Contains(e.Text(), req.Query) {
						res.Found = append(res.Found, engine.Found{ID: e.ID, Excerpt: e.Text()})
					}
				}
			}
			return res, err
		}
	}), caughtBy("contract.reset", "subagents expand what their parent took back", recalling(nil), func(w *wrongEngine) {
		w.expand = func(ctx context.Context, req engine.ExpandRequest) (engine.ExpandResult, error) {
			if req.Session.Agent == "agent-c" {
				if _, err := w.Store().Get(ctx, core.Scope{Agent: "agent-a"}, []string{req.ID}); err == nil {
					return engine.ExpandResult{}, nil
				}
			}
			return w.Engine.Expand(ctx, req)
		}
	}))
	// named puts the names of speakers into a text that quotes, as they are.
	named := func(text string, names []string) string {
		for _, name := range names {
			first, _, _ := strings.Cut(name, "\n")
			if at := strings.Index(text, strings.TrimSpace(first)); at >= 0 && first != "" {
				return text[:at] + name + text[at:]
			}
		}
		return strings.Replace(text, "#", strings.Join(names, " "), 1)
	}
	names := func(name string, change func(*wrongEngine, func(string) string)) {
		out = append(out, caughtBy("contract.speakers", name, recalling(nil), func(w *wrongEngine) {
			var all []string
			w.before = func(_ string, req any) {
				if r, ok := req.(*core.IngestRequest); ok && r.Message.Name != "" && !slices.Contains(all, r.Message.Name) {
					all = append(all, r.Message.Name)
				}
			}
			change(w, func(text string) string {
				if len(all) == 0 {
					return text
				}
				return named(text, all)
			})
		}))
	}
	names("names as they are in a recall block", func(w *wrongEngine, f func(string) string) {
		w.after = func(_ string, res any) {
			if a, ok := res.(*core.AssembleResult); ok && a.RecallLen > 0 {
				m := &a.Messages[a.RecallAt]
				*m = message.New(m.Role, f(m.Text()))
			}
		}
	})
	names("names as they are in what a search says", func(w *wrongEngine, f func(string) string) {
		w.after = func(_ string, res any) {
			if a, ok := res.(*engine.SearchResult); ok {
				a.Text = f(a.Text)
			}
		}
	})
	names("names as they are in what is expanded", func(w *wrongEngine, f func(string) string) {
		w.after = func(_ string, res any) {
			if a, ok := res.(*engine.ExpandResult); ok {
				a.Text = f(a.Text)
			}
		}
	})
	return out
}
