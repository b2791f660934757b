package conformance_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"regexp"
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

// tableAtOnce are engines that are wrong when they are called more than once at the same time.
func tableAtOnce() []broken {
	var out []broken
	for _, refuses := range []string{"", "Ingest", "IngestBatch", "Assemble", "Search", "PrepareSubagentSpawn"} {
		out = append(out, caughtBy("contract.at-once", "a session in use refuses "+cmp.Or(refuses, "everything"), recalling(nil), func(w *wrongEngine) {
			var busy sync.Map
			w.around = func(ctx context.Context, method string, call func(context.Context) error) error {
				id := sessionIn(ctx.Value(requested{}))
				if _, was := busy.LoadOrStore(id, true); was {
					if refuses == "" || refuses == method {
						return fmt.Errorf("broken: busy: %w", core.ErrConflict)
					}
					return call(ctx)
				}
				defer busy.Delete(id)
				return call(ctx)
			}
		}))
	}
	shared := func(name string, before, after func(v any)) {
		out = append(out, caughtBy("contract.at-once", name, recalling(nil), func(w *wrongEngine) {
			w.before, w.after = func(_ string, req any) { before(req) }, func(_ string, res any) { after(res) }
		}))
	}
	nothing := func(any) {}
	shared("one request for all ingests", oneForAll[core.IngestRequest](), nothing)
	shared("one request for all batches", oneForAll[core.IngestBatchRequest](), nothing)
	shared("one request for all commits", oneForAll[core.CommitTurnRequest](), nothing)
	shared("one request for all turns", oneForAll[core.AfterTurnRequest](), nothing)
	shared("one transcript for all", oneForAll[core.AssembleRequest](), nothing)
	shared("one result for all ingests", nothing, oneForAll[core.IngestResult]())
	shared("one result for all commits", nothing, oneForAll[core.CommitTurnResult]())
	return out
}

// oneForAll keeps what each call brings in one place, and takes it from there a little later.
func oneForAll[T any]() func(v any) {
	var mu sync.Mutex
	var one T
	return func(v any) {
		p, ok := v.(*T)
		if !ok {
			return
		}
		mu.Lock()
		one = *p
		mu.Unlock()
		time.Sleep(20 * time.Microsecond)
		mu.Lock()
		defer mu.Unlock()
		*p = one
	}
}

// sessionIn is the session that a request is about.
func sessionIn(req any) core.SessionID {
	v := reflect.ValueOf(req).Elem()
	for _, field := range []string{"Session", "Parent", "Scope"} {
		if f := v.FieldByName(field); f.IsValid() {
			return f.Convert(reflect.TypeFor[core.SessionID]()).Interface().(core.SessionID)
		}
	}
	return core.SessionID{}
}

// tableFurther are further engines of these classes.
func tableFurther() []broken {
	var out []broken
	add := func(id, name string, change func(w *wrongEngine)) {
		out = append(out, caughtBy(id, name, recalling(nil), change))
	}
	search := func(name string, f func(r *engine.SearchRequest) error) {
		add("contract.found", name, func(w *wrongEngine) {
			w.search = func(ctx context.Context, req engine.SearchRequest) (engine.SearchResult, error) {
				if err := f(&req); err != nil {
					return engine.SearchResult{}, err
				}
				return w.Engine.Search(ctx, req)
			}
		})
	}
	search("queries are patterns", func(r *engine.SearchRequest) error {
		_, err := regexp.Compile(r.Query)
		return err
	})
	search("queries lose their marks", func(r *engine.SearchRequest) error {
		r.Query = regexp.MustCompile(`[^\p{L}\p{N}]+`).ReplaceAllString(r.Query, " ")
		return nil
	})
	search("an end needs a beginning", func(r *engine.SearchRequest) error {
		if r.From.IsZero() {
			r.To = time.Time{}
		}
		return nil
	})
	search("times end with what was asked for", func(r *engine.SearchRequest) error {
		if !r.To.IsZero() {
			r.To = r.To.Add(1)
		}
		return nil
	})
	add("contract.found", "results of tools are not found", func(w *wrongEngine) {
		w.after = func(_ string, res any) {
			if r, ok := res.(*engine.SearchResult); ok {
				r.Found = slices.DeleteFunc(r.Found, func(f engine.Found) bool { return f.Role == message.Tool })
			}
		}
	})
	add("contract.hidden", "what was taken back is known as long as the process runs", func(w *wrongEngine) {
		known := map[core.SessionID]bool{}
		w.before = func(_ string, req any) {
			if r, ok := req.(*core.AssembleRequest); ok {
				known[r.Session] = true
			}
		}
		w.search = func(ctx context.Context, req engine.SearchRequest) (engine.SearchResult, error) {
			res, err := w.Engine.Search(ctx, req)
			if err == nil && !known[req.Session] && len(res.Found) == 0 {
				for e, err := range core.All(ctx, w.Store(), req.Session.Scope(), false) {
					if err == nil && !e.Type.Hidden() && strings.Contains(e.Text(), req.Query) {
						res.Found = append(res.Found, engine.Found{ID: e.ID, Excerpt: e.Text()})
					}
				}
			}
			return res, err
		}
	})
	add("contract.neighbours", "all of an entry without a bound", func(w *wrongEngine) {
		w.before = func(_ string, req any) {
			if r, ok := req.(*engine.ExpandRequest); ok {
				r.Tokens = cmp.Or(r.Tokens, engine.MaxAnswer)
			}
		}
	})
	forget := func(name string, f func(r *engine.ForgetRequest)) {
		add("contract.forgotten", name, func(w *wrongEngine) {
			w.before = func(_ string, req any) {
				if r, ok := req.(*engine.ForgetRequest); ok {
					f(r)
				}
			}
		})
	}
	forget("a beginning needs an end, to erase", func(r *engine.ForgetRequest) {
		if r.To.IsZero() {
			r.From = time.Time{}
		}
	})
	forget("an end needs a beginning, to erase", func(r *engine.ForgetRequest) {
		if r.From.IsZero() {
			r.To = time.Time{}
		}
	})
	forget("an agent's time is one session's", func(r *engine.ForgetRequest) {
		if r.Scope.Session == "" && !r.From.IsZero() {
			r.Scope.Session = "main"
		}
	})
	add("contract.forgotten", "receipts go with a purge of the agent", func(w *wrongEngine) {
		w.receipts = func(ctx context.Context, agent string) ([]engine.Receipt, error) {
			got, err := w.Engine.Receipts(ctx, agent)
			purged := func(r engine.Receipt) bool { return r.Request.Purge && r.Request.Scope.Session == "" }
			if i := slices.IndexFunc(got, purged); i >= 0 {
				got = got[i:]
			}
			return got, err
		}
	})
	for _, of := range []string{"IngestBatch", "PrepareSubagentSpawn", "Forget"} {
		add("contract.loud", "errors of "+of+" that say nothing to a program", func(w *wrongEngine) {
			w.around = func(ctx context.Context, method string, call func(context.Context) error) error {
				err := call(ctx)
				if err != nil && method == of {
					return errors.New("broken: " + err.Error())
				}
				return err
			}
		})
	}
	add("contract.at-once", "who waits for a session waits for ever", func(w *wrongEngine) {
		var mu sync.Mutex
		locks := map[core.SessionID]*sync.Mutex{}
		w.around = func(ctx context.Context, _ string, call func(context.Context) error) error {
			id := sessionIn(ctx.Value(requested{}))
			mu.Lock()
			if locks[id] == nil {
				locks[id] = new(sync.Mutex)
			}
			lock := locks[id]
			mu.Unlock()
			lock.Lock()
			defer lock.Unlock()
			return call(ctx)
		}
	})
	score := func(name string, f func(o *engine.Outcome)) {
		add("contract.score", name, func(w *wrongEngine) {
			w.score = func(ctx context.Context, o engine.Outcome) error {
				if o.Session.Agent != "" {
					f(&o)
				}
				return w.Engine.Score(ctx, o)
			}
		})
	}
	score("values in 32 bits", func(o *engine.Outcome) { o.Value = float64(float32(o.Value)) })
	score("names in lower case", func(o *engine.Outcome) { o.Name = strings.ToLower(o.Name) })
	score("outcomes of the session as a whole", func(o *engine.Outcome) { o.Turn = min(o.Turn, 0) })
	return out
}
