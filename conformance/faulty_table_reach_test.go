package conformance_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/engine"
	"github.com/contextengine/contextengine/core/message"
	"github.com/contextengine/contextengine/core/window"
)

// tableReach are engines whose way back leaves out what is no plain text, or much of it, or names what it does not find.
func tableReach() []broken {
	var out []broken
	expand := func(id, name string, f func(ctx context.Context, w *wrongEngine, req engine.ExpandRequest, res *engine.ExpandResult)) {
		out = append(out, caughtBy(id, name, recalling(nil), func(w *wrongEngine) {
			w.expand = func(ctx context.Context, req engine.ExpandRequest) (engine.ExpandResult, error) {
				res, err := w.Engine.Expand(ctx, req)
				if err == nil {
					f(ctx, w, req, &res)
				}
				return res, err
			}
		}))
	}
	stored := func(w *wrongEngine, id core.SessionID) (out []core.Entry) {
		for e, err := range core.All(context.Background(), w.Store(), id.Scope(), false) {
			if err == nil {
				out = append(out, e)
			}
		}
		return out
	}
	// without takes out of every excerpt what f finds in its entry.
	without := func(name string, f func(p message.Part, n int) string) {
		expand("contract.all-of", name, func(_ context.Context, w *wrongEngine, req engine.ExpandRequest, res *engine.ExpandResult) {
			for _, e := range stored(w, req.Session) {
				for i := range res.Found {
					for n, p := range e.Message.Parts {
						if says := f(p, n); says != "" && res.Found[i].ID == e.ID {
							res.Found[i].Excerpt = strings.ReplaceAll(res.Found[i].Excerpt, says, "")
						}
					}
				}
			}
		})
	}
	without("calls without their arguments", func(p message.Part, _ int) string { return p.Args })
	without("one call with its arguments", func(p message.Part, n int) string { return p.Args[:min(len(p.Args), len(p.Args)*(n-1)/2)] })
	without("calls without their names", func(p message.Part, _ int) string {
		if p.Kind == message.ToolCall {
			return p.Name
		}
		return ""
	})
	without("one result", func(p message.Part, n int) string {
		if p.Kind == message.ToolResult && n > 0 {
			return p.Text
		}
		return ""
	})
	// dense is how much of a text is dear.
	dense := func(s string) float64 { return 1 - float64(utf8.RuneCountInString(s))/float64(max(len(s), 1)) }
	for name, unlike := range map[string]func(page, whole float64) bool{
		"pages that are dearer than the whole lose their end": func(page, whole float64) bool { return page > whole+0.05 }, "cheaper ones do": func(page, whole float64) bool { return page < whole-0.05 },
	} {
		expand("contract.all-of", name, func(_ context.Context, w *wrongEngine, req engine.ExpandRequest, res *engine.ExpandResult) {
			if len(res.Found) != 1 || res.Next == 0 {
				return
			}
			f := &res.Found[0]
			for _, e := range stored(w, req.Session) {
				if e.ID == f.ID && unlike(dense(f.Excerpt), dense(e.Text())) {
					f.Excerpt = window.CutRune(f.Excerpt, len(f.Excerpt)*9/10)
				}
			}
		})
	}
	expand("contract.beside", "64 of what a summary stands for", func(_ context.Context, _ *wrongEngine, req engine.ExpandRequest, res *engine.ExpandResult) {
		if n := 64; req.Before+req.After == 0 && len(res.Found) > n {
			res.Found, res.Next = res.Found[:n], 0
		}
	})
	// Neighbours that are none.
	beside := func(id, name string, is func(w *wrongEngine, e core.Entry) bool) {
		expand(id, name, func(_ context.Context, w *wrongEngine, req engine.ExpandRequest, res *engine.ExpandResult) {
			if req.Before+req.After == 0 || len(res.Found) == 0 {
				return
			}
			at := res.Found[0].Seq
			for _, f := range res.Found {
				if f.ID == req.ID {
					at = f.Seq
				}
			}
			for _, e := range stored(w, req.Session) {
				near := e.Seq >= at-int64(req.Before) && e.Seq <= at+int64(req.After)
				if near && is(w, e) && !slices.ContainsFunc(res.Found, func(f engine.Found) bool { return f.ID == e.ID }) {
					res.Found = append(res.Found, engine.Found{ID: e.ID, Session: e.Session, Seq: e.Seq, Type: e.Type, Excerpt: e.Text()})
					res.Total++
				}
			}
		})
	}
	beside("contract.beside", "a summary is a neighbour", func(_ *wrongEngine, e core.Entry) bool { return e.Type == core.TypeSummary })
	beside("contract.hidden", "what was forked away is a neighbour", func(_ *wrongEngine, e core.Entry) bool { return e.Type == core.TypeMessage })
	expand("contract.beside", "a summary is counted as a neighbour", func(_ context.Context, w *wrongEngine, req engine.ExpandRequest, res *engine.ExpandResult) {
		if n := len(stored(w, req.Session)); req.Before+req.After > 0 && n > 130 {
			res.Total = min(req.Before+req.After+1, n)
		}
	})
	search := func(id, name string, f func(w *wrongEngine, req engine.SearchRequest, res *engine.SearchResult)) {
		out = append(out, caughtBy(id, name, recalling(nil), func(w *wrongEngine) {
			w.search = func(ctx context.Context, req engine.SearchRequest) (engine.SearchResult, error) {
				res, err := w.Engine.Search(ctx, req)
				if err == nil {
					f(w, req, &res)
				}
				return res, err
			}
		}))
	}
	search("contract.unseen", "what is shown first", func(_ *wrongEngine, _ engine.SearchRequest, res *engine.SearchResult) { slices.Reverse(res.Found) })
	search("contract.unseen", "the newest first", func(_ *wrongEngine, _ engine.SearchRequest, res *engine.SearchResult) {
		slices.SortStableFunc(res.Found, func(a, b engine.Found) int { return int(b.Seq - a.Seq) })
	})
	search("contract.cited", "positions in other sessions", func(_ *wrongEngine, _ engine.SearchRequest, res *engine.SearchResult) {
		for _, f := range res.Found {
			res.Text = strings.ReplaceAll(res.Text, "#"+f.ID+"]", fmt.Sprintf("#%d]", f.Seq))
		}
		res.Tokens = cheap(res.Text)
	})
	expand("contract.cited", "positions in the text of what is expanded", func(_ context.Context, _ *wrongEngine, _ engine.ExpandRequest, res *engine.ExpandResult) {
		for _, f := range res.Found {
			res.Text = strings.ReplaceAll(res.Text, "#"+f.ID+"]", fmt.Sprintf("#%d]", f.Seq))
		}
		res.Tokens = cheap(res.Text)
	})
	out = append(out, caughtBy("contract.covers", "system messages are not shown", recalling(nil), func(w *wrongEngine) {
		w.after = func(_ string, res any) {
			if d, ok := res.(*engine.DescribeResult); ok {
				for _, e := range stored(w, d.Session) {
					if e.Role == message.System {
						d.Shown--
					}
				}
			}
		}
	}))
	score := func(name string, change func(o *engine.Outcome)) {
		out = append(out, caughtBy("contract.score", name, recalling(nil), func(w *wrongEngine) {
			w.score = func(ctx context.Context, o engine.Outcome) error { change(&o); return w.Engine.Score(ctx, o) }
		}))
	}
	score("names of 65 bytes", func(o *engine.Outcome) { o.Name = o.Name[:min(len(o.Name), 64)] })
	score("names of 63 bytes", func(o *engine.Outcome) { o.Name += strings.Repeat("n", len(o.Name)/64) })
	return append(out, startAnew())
}

// startAnew seeks the beginning of a window once more after a restart: it costs little in entries that were shown short.
func startAnew() broken {
	return caughtBy("contract.start", "the window's beginning is sought anew", setup{compactor: "summary", retriever: words}, func(w *wrongEngine) {
		known := map[core.SessionID]bool{}
		w.around = func(ctx context.Context, method string, call func(context.Context) error) error {
			req, ok := ctx.Value(requested{}).(*core.AssembleRequest)
			if method != "Assemble" || !ok || known[req.Session] {
				return call(ctx)
			}
			known[req.Session] = true
			whole := 0
			for e, err := range core.All(ctx, w.Store(), req.Session.Scope(), true) {
				if whole += e.Tokens; err != nil || whole > req.Budget*3/2 {
					break
				}
			}
			// What does not fit whole is held to less.
			if whole > req.Budget*3/2 {
				req.Budget -= req.Budget / 4
			}
			return call(ctx)
		}
	})
}
