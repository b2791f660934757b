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
