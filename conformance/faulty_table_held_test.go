package conformance_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/engine"
	"github.com/contextengine/contextengine/core/message"
)

// tableWayBack are engines whose answers show what they must not, or too little, or count it wrongly.
func tableWayBack() []broken {
	var out []broken
	search := func(id, name string, f func(ctx context.Context, w *wrongEngine, req engine.SearchRequest) (engine.SearchResult, error)) {
		out = append(out, caughtBy(id, name, recalling(nil), func(w *wrongEngine) {
			w.search = func(ctx context.Context, req engine.SearchRequest) (engine.SearchResult, error) {
				return f(ctx, w, req)
			}
		}))
	}
	// stored finds what the store holds of a session and the view may not.
	stored := func(ctx context.Context, w *wrongEngine, id core.SessionID, is func(core.Entry) bool) (out []engine.Found) {
		for e, err := range core.All(context.WithoutCancel(ctx), w.Store(), id.Scope(), false) {
			if err == nil && is(e) {
				out = append(out, engine.Found{ID: e.ID, Session: e.Session, Turn: e.Turn, Seq: e.Seq, Role: e.Role, Type: e.Type, Time: e.Time, Tokens: e.Tokens, Excerpt: e.Text(), Whole: true})
			}
		}
		return out
	}
	search("contract.hidden", "what is hidden is found beside what is not", func(ctx context.Context, w *wrongEngine, req engine.SearchRequest) (engine.SearchResult, error) {
		res, err := w.Engine.Search(ctx, req)
		if err == nil && req.Offset == 0 {
			res.Found = append(res.Found, stored(ctx, w, req.Session, func(e core.Entry) bool {
				return strings.Contains(e.Text(), req.Query) && !slices.ContainsFunc(res.Found, func(f engine.Found) bool { return f.ID == e.ID })
			})...)
		}
		return res, err
	})
	for _, of := range []core.EntryType{core.TypeHeartbeat, core.TypeMessage} {
		search("contract.hidden", "where nothing is found what is hidden is, "+string(of), func(ctx context.Context, w *wrongEngine, req engine.SearchRequest) (engine.SearchResult, error) {
			res, err := w.Engine.Search(ctx, req)
			if err == nil && len(res.Found) == 0 {
				res.Found = stored(ctx, w, req.Session, func(e core.Entry) bool { return e.Type == of && strings.Contains(e.Text(), req.Query) })
			}
			return res, err
		})
	}
	search("contract.found", "searched for in lower case", func(ctx context.Context, w *wrongEngine, req engine.SearchRequest) (engine.SearchResult, error) {
		req.Query = strings.ToLower(req.Query)
		return w.Engine.Search(ctx, req)
	})
	search("contract.found", "as many as there are without a limit", func(ctx context.Context, w *wrongEngine, req engine.SearchRequest) (engine.SearchResult, error) {
		req.Limit = cmp.Or(req.Limit, engine.MaxFound)
		return w.Engine.Search(ctx, req)
	})
	search("contract.found", "as many tokens as there may be without a bound", func(ctx context.Context, w *wrongEngine, req engine.SearchRequest) (engine.SearchResult, error) {
		req.Tokens = cmp.Or(req.Tokens, engine.MaxAnswer)
		return w.Engine.Search(ctx, req)
	})
	search("contract.found", "a beginning needs an end", func(ctx context.Context, w *wrongEngine, req engine.SearchRequest) (engine.SearchResult, error) {
		if req.To.IsZero() {
			req.From = time.Time{}
		}
		return w.Engine.Search(ctx, req)
	})
	search("contract.back", "texts without citations", func(ctx context.Context, w *wrongEngine, req engine.SearchRequest) (engine.SearchResult, error) {
		res, err := w.Engine.Search(ctx, req)
		for _, f := range res.Found {
			res.Text = strings.ReplaceAll(res.Text, fmt.Sprintf("#%d]", f.Seq), "#]")
		}
		res.Tokens = cheap(res.Text)
		return res, err
	})
	expand := func(id, name string, f func(ctx context.Context, w *wrongEngine, req engine.ExpandRequest) (engine.ExpandResult, error)) {
		out = append(out, caughtBy(id, name, recalling(nil), func(w *wrongEngine) {
			w.expand = func(ctx context.Context, req engine.ExpandRequest) (engine.ExpandResult, error) {
				return f(ctx, w, req)
			}
		}))
	}
	expand("contract.back", "the length of the page", func(ctx context.Context, w *wrongEngine, req engine.ExpandRequest) (engine.ExpandResult, error) {
		res, err := w.Engine.Expand(ctx, req)
		if len(res.Found) == 1 && res.Next > 0 {
			res.Total = len(res.Found[0].Excerpt)
		}
		return res, err
	})
	expand("contract.neighbours", "five neighbours", func(ctx context.Context, w *wrongEngine, req engine.ExpandRequest) (engine.ExpandResult, error) {
		req.Before, req.After = min(req.Before, 5), min(req.After, 5)
		return w.Engine.Expand(ctx, req)
	})
	expand("contract.neighbours", "more neighbours than there are", func(ctx context.Context, w *wrongEngine, req engine.ExpandRequest) (engine.ExpandResult, error) {
		res, err := w.Engine.Expand(ctx, req)
		if err == nil && req.Before+req.After > 0 {
			res.Total = req.Before + req.After + 1
		}
		return res, err
	})
	expand("contract.neighbours", "as many neighbours as the page shows", func(ctx context.Context, w *wrongEngine, req engine.ExpandRequest) (engine.ExpandResult, error) {
		res, err := w.Engine.Expand(ctx, req)
		if req.Before+req.After > 0 {
			res.Total = len(res.Found)
		}
		return res, err
	})
	expand("contract.hidden", "what is hidden is expanded", func(ctx context.Context, w *wrongEngine, req engine.ExpandRequest) (engine.ExpandResult, error) {
		res, err := w.Engine.Expand(ctx, req)
		if errors.Is(err, core.ErrNotFound) {
			if found := stored(ctx, w, req.Session, func(e core.Entry) bool { return e.ID == req.ID }); len(found) > 0 {
				return engine.ExpandResult{Found: found, Total: len(found[0].Excerpt)}, nil
			}
		}
		return res, err
	})
	expand("contract.hidden", "neighbours that are hidden", func(ctx context.Context, w *wrongEngine, req engine.ExpandRequest) (engine.ExpandResult, error) {
		res, err := w.Engine.Expand(ctx, req)
		if err == nil && req.Before+req.After > 0 {
			res.Found = append(res.Found, stored(ctx, w, req.Session, func(e core.Entry) bool { return e.Type == core.TypeHeartbeat })...)
		}
		return res, err
	})
	expand("contract.covers", "the newest of a summary first", func(ctx context.Context, w *wrongEngine, req engine.ExpandRequest) (engine.ExpandResult, error) {
		res, err := w.Engine.Expand(ctx, req)
		if req.Before+req.After == 0 {
			slices.Reverse(res.Found)
		}
		return res, err
	})
	describe := func(id, name string, f func(w *wrongEngine, d *engine.DescribeResult)) {
		out = append(out, caughtBy(id, name, recalling(nil), func(w *wrongEngine) {
			w.after = func(_ string, res any) {
				if d, ok := res.(*engine.DescribeResult); ok {
					f(w, d)
				}
			}
		}))
	}
	describe("contract.covers", "the newest summary first", func(_ *wrongEngine, d *engine.DescribeResult) { slices.Reverse(d.Summaries) })
	out = append(out, caughtBy("contract.covers", "what comes behind a summary counted to it", recalling(nil), func(w *wrongEngine) {
		shown := 0
		w.before = func(_ string, req any) {
			if r, ok := req.(*core.AssembleRequest); ok && r.Transcript != nil {
				shown = max(shown, len(r.Transcript.Messages))
			}
		}
		w.after = func(_ string, res any) {
			if d, ok := res.(*engine.DescribeResult); ok && shown > 30 && len(d.Summaries) > 0 {
				n := min(6, d.Left)
				d.Summaries[0].Covers += n
				d.Left -= n
			}
		}
	}))
	describe("contract.hidden", "all that is stored is in force", func(w *wrongEngine, d *engine.DescribeResult) {
		d.Entries = len(stored(context.Background(), w, d.Session, func(core.Entry) bool { return true }))
	})
	return out
}

// tableForgotten are engines that take one erasure for another.
func tableForgotten() []broken {
	var out []broken
	forget := func(name string, f func(w *wrongEngine, req *engine.ForgetRequest) error) {
		out = append(out, caughtBy("contract.forgotten", name, recalling(nil), func(w *wrongEngine) {
			var refused error
			w.before = func(_ string, req any) {
				if r, ok := req.(*engine.ForgetRequest); ok {
					refused = f(w, r)
				}
			}
			w.around = func(ctx context.Context, method string, call func(context.Context) error) error {
				if method == "Forget" && refused != nil {
					return refused
				}
				return call(ctx)
			}
		}))
	}
	forget("all of a scope is a purge", func(_ *wrongEngine, r *engine.ForgetRequest) error {
		r.Purge = r.Purge || len(r.Entries) == 0 && r.From.IsZero() && r.To.IsZero()
		return nil
	})
	forget("a purge does not look at entries", func(_ *wrongEngine, r *engine.ForgetRequest) error {
		if r.Purge {
			r.Entries = nil
		}
		return nil
	})
	forget("a purge does not look at times", func(_ *wrongEngine, r *engine.ForgetRequest) error {
		if r.Purge {
			r.From, r.To = time.Time{}, time.Time{}
		}
		return nil
	})
	forget("with entries nothing is purged", func(_ *wrongEngine, r *engine.ForgetRequest) error {
		r.Purge = r.Purge && len(r.Entries) == 0
		return nil
	})
	forget("entries of an agent are refused", func(_ *wrongEngine, r *engine.ForgetRequest) error {
		if r.Scope.Session == "" && len(r.Entries) > 0 {
			return fmt.Errorf("broken: %w", core.ErrInvalid)
		}
		return nil
	})
	forget("no agent is purged", func(_ *wrongEngine, r *engine.ForgetRequest) error {
		r.Purge = r.Purge && r.Scope.Session != ""
		return nil
	})
	forget("ids are sorted where they stand", func(_ *wrongEngine, r *engine.ForgetRequest) error { slices.Sort(r.Entries); return nil })
	forget("known ids are erased beside unknown ones", func(w *wrongEngine, r *engine.ForgetRequest) error {
		var known []string
		for _, id := range r.Entries {
			if _, err := w.Store().Get(context.Background(), r.Scope, []string{id}); err == nil {
				known = append(known, id)
			}
		}
		if len(known) > 0 {
			r.Entries = known
		}
		return nil
	})
	out = append(out, caughtBy("contract.forgotten", "receipts without the reason", recalling(nil), func(w *wrongEngine) {
		w.after = func(_ string, res any) {
			if r, ok := res.(*engine.Receipt); ok {
				r.Request = engine.ForgetRequest{Scope: r.Request.Scope}
			}
		}
	}))
	return out
}

// tableLoud are engines that say nothing of a failure, or too much.
func tableLoud() []broken {
	var out []broken
	for _, of := range []string{"Ingest", "IngestBatch", "CommitTurn", "AfterTurn", "PrepareSubagentSpawn", "OnSubagentEnded"} {
		out = append(out, caughtBy("contract.loud", "no errors of "+of, recalling(nil), func(w *wrongEngine) {
			w.around = func(ctx context.Context, method string, call func(context.Context) error) error {
				if err := call(ctx); method != of || !errors.Is(err, core.ErrUnavailable) {
					return err
				}
				return nil
			}
			w.after = func(_ string, res any) {
				if s, ok := res.(*core.Spawn); ok && s.Rollback == nil {
					s.Rollback = func(context.Context) error { return nil }
				}
			}
		}), caughtBy("contract.loud", "done as soon as it was tried, "+of, recalling(nil), func(w *wrongEngine) {
			var mu sync.Mutex
			failed := 0
			w.around = func(ctx context.Context, method string, call func(context.Context) error) error {
				mu.Lock()
				defer mu.Unlock()
				if method != of {
					return call(ctx)
				}
				if failed > 0 {
					failed = 0
					return nil
				}
				err := call(ctx)
				if err != nil {
					failed++
				}
				return err
			}
		}))
	}
	// What a call says that is no message yet, or no longer.
	for of, f := range map[string]func(req any) string{
		"Assemble": func(req any) string {
			if r, ok := req.(*core.AssembleRequest); ok {
				return r.Prompt
			}
			return ""
		},
		"OnSubagentEnded": func(req any) string {
			if r, ok := req.(*core.SubagentEnded); ok {
				return r.Result
			}
			return ""
		},
	} {
		out = append(out, quotes("contract.invalid", of, f))
	}
	out = append(out, quotes("failure.quotes", "CommitTurn", func(req any) string {
		if r, ok := req.(*core.CommitTurnRequest); ok && len(r.Messages) > 0 {
			return r.Messages[0].Text()
		}
		return ""
	}))
	given := func(name string, f func(t *core.Transcript)) {
		out = append(out, caughtBy("contract.given", name, recalling(nil), func(w *wrongEngine) {
			w.before = func(_ string, req any) {
				if r, ok := req.(*core.AssembleRequest); ok && r.Transcript != nil && len(r.Transcript.Messages) > 0 {
					f(r.Transcript)
				}
			}
		}))
	}
	given("entries are written into the transcript", func(t *core.Transcript) {
		for i := range t.Messages {
			t.Messages[i].Entry = "seen"
		}
	})
	given("the transcript loses its first message", func(t *core.Transcript) { t.Messages = t.Messages[1:] })
	given("the transcript is whole from now on", func(t *core.Transcript) { t.Whole = true })
	outcomes := func(name string, f func(a, b engine.Outcome) int) {
		out = append(out, caughtBy("contract.score", name, recalling(nil), func(w *wrongEngine) {
			w.outcomes = func(ctx context.Context, agent string) ([]engine.Outcome, error) {
				got, err := w.Engine.Outcomes(ctx, agent)
				slices.SortStableFunc(got, f)
				return got, err
			}
		}))
	}
	outcomes("outcomes by name", func(a, b engine.Outcome) int { return strings.Compare(a.Name, b.Name) })
	outcomes("outcomes by time", func(a, b engine.Outcome) int { return a.Time.Compare(b.Time) })
	outcomes("outcomes by session and turn", func(a, b engine.Outcome) int {
		return cmp.Or(strings.Compare(a.Session.Session, b.Session.Session), cmp.Compare(a.Turn, b.Turn))
	})
	score := func(name string, f func(o *engine.Outcome)) {
		out = append(out, caughtBy("contract.score", name, recalling(nil), func(w *wrongEngine) {
			w.score = func(ctx context.Context, o engine.Outcome) error { f(&o); return w.Engine.Score(ctx, o) }
		}))
	}
	score("outcomes of the time of the machine", func(o *engine.Outcome) { o.Time = time.Now() })
	score("outcomes of the time of the host, always", func(o *engine.Outcome) { o.Time = time.Time{} })
	out = append(out, caughtBy("contract.arm", "arms in lower case", recalling(nil), func(w *wrongEngine) {
		w.arm = func(ctx context.Context, id core.SessionID, choose func(string) string) (string, error) {
			return w.Engine.Arm(ctx, id, func(was string) string { return strings.ToLower(choose(was)) })
		}
	}))
	// The answer of a child that hands back nothing.
	for name, pick := range map[string]func(e core.Entry, has bool) bool{
		"the first answer of a child": func(_ core.Entry, has bool) bool { return !has },
		"the last message of a child": func(core.Entry, bool) bool { return true },
	} {
		out = append(out, caughtBy("contract.subagent", name, recalling(nil), func(w *wrongEngine) {
			w.ended = func(ctx context.Context, req core.SubagentEnded) error {
				if req.Result == "" {
					for e, err := range core.All(ctx, w.Store(), req.Child.Scope(), false) {
						if err == nil && strings.TrimSpace(e.Text()) != "" && (e.Role == message.Assistant || name != "the first answer of a child") && pick(e, req.Result != "") {
							req.Result = e.Text()
						}
					}
				}
				return w.Engine.OnSubagentEnded(ctx, req)
			}
		}))
	}
	return out
}

// quotes is an engine whose errors of a method hold what f finds in the request.
func quotes(id, of string, f func(req any) string) broken {
	return caughtBy(id, "errors of "+of+" quote what they were given", recalling(nil), func(w *wrongEngine) {
		var mu sync.Mutex
		text := ""
		w.before = func(method string, req any) {
			mu.Lock()
			defer mu.Unlock()
			if method == of {
				text = f(req)
			}
		}
		w.around = func(ctx context.Context, method string, call func(context.Context) error) error {
			err := call(ctx)
			mu.Lock()
			defer mu.Unlock()
			if err != nil && method == of {
				return fmt.Errorf("broken: %q: %w", text, err)
			}
			return err
		}
	})
}
