package conformance_test

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/engine"
)

// tableUpkeep are engines that are wrong at their end, in what can wait, or in what one process alone knows.
func tableUpkeep() []broken {
	return slices.Concat(tableEnds(), tableMaintain(), tableCached(), tableRefresh(), tablePages(), tableDueOnce())
}

// tableEnds are engines whose end is none.
func tableEnds() []broken {
	var out []broken
	// beside is given how many calls are under way.
	beside := func(name string, dispose func(ctx context.Context, w *wrongEngine, under int64) error) {
		out = append(out, caughtBy("contract.dispose", name, recalling(nil), func(w *wrongEngine) {
			var under atomic.Int64
			w.around = func(ctx context.Context, _ string, call func(context.Context) error) error {
				under.Add(1)
				defer under.Add(-1)
				return call(ctx)
			}
			w.dispose = func(ctx context.Context) error { return dispose(ctx, w, under.Load()) }
		}))
	}
	beside("an end beside a call ends nothing", func(ctx context.Context, w *wrongEngine, under int64) error {
		if under > 0 {
			return nil
		}
		return w.Engine.Dispose(ctx)
	})
	beside("an end beside a call ends nothing, and says so", func(ctx context.Context, w *wrongEngine, under int64) error {
		if under > 0 {
			return cmp.Or(ctx.Err(), context.DeadlineExceeded)
		}
		return w.Engine.Dispose(ctx)
	})
	beside("an end says that a call is over which is not", func(ctx context.Context, w *wrongEngine, _ int64) error {
		if err := w.Engine.Dispose(ctx); !errors.Is(err, ctx.Err()) {
			return err
		}
		return nil
	})
	beside("an end ends nothing where no call is under way", func(ctx context.Context, w *wrongEngine, under int64) error {
		if under > 0 {
			return w.Engine.Dispose(ctx)
		}
		return ctx.Err()
	})
	for _, m := range engineMethods {
		if m.name == "Maintain" || m.name == "Compact" {
			continue
		}
		out = append(out, caughtBy("contract.dispose", m.name+" behind the end says nothing", recalling(nil), func(w *wrongEngine) {
			w.around = func(ctx context.Context, method string, call func(context.Context) error) error {
				err := call(ctx)
				if method == m.name && errors.Is(err, core.ErrClosed) {
					return nil
				}
				return err
			}
		}))
	}
	return out
}

// tableMaintain are engines that hide what went wrong in what can wait.
func tableMaintain() []broken {
	var out []broken
	hides := func(name string, is func(err error) bool, res core.MaintainResult) {
		out = append(out, caughtBy("contract.maintain", name, recalling(nil), func(w *wrongEngine) {
			hidden := false
			w.around = func(ctx context.Context, method string, call func(context.Context) error) error {
				err := call(ctx)
				if hidden = method == "Maintain" && err != nil && is(err); hidden {
					return nil
				}
				return err
			}
			w.after = func(_ string, r any) {
				if m, ok := r.(*core.MaintainResult); ok && hidden {
					*m = res
				}
			}
		}))
	}
	stopped := func(err error) bool { return errors.Is(err, context.Canceled) }
	failed := func(err error) bool { return !stopped(err) }
	hides("what stops maintenance is its reason", stopped, core.MaintainResult{Reason: "context canceled"})
	hides("maintenance that is stopped has nothing to do", stopped, core.MaintainResult{Reason: core.ReasonBelowThreshold})
	hides("what fails in maintenance is its reason", failed, core.MaintainResult{Reason: "the store cannot be reached"})
	hides("maintenance that fails has nothing to do", failed, core.MaintainResult{Reason: "nothing to do"})
	hides("maintenance always works", func(error) bool { return true }, core.MaintainResult{})
	return out
}

// tableCached are engines that know in one process, or by half a name, what they have to know of a session.
func tableCached() []broken {
	var out []broken
	for what, key := range map[string]func(id core.SessionID) string{
		"its name": func(id core.SessionID) string { return id.Session }, "its agent": func(id core.SessionID) string { return id.Agent },
		"both names joined": func(id core.SessionID) string { return id.Agent + "/" + id.Session },
	} {
		out = append(out, caughtBy("contract.arm", "the arm of a session is looked up by "+what, recalling(nil), func(w *wrongEngine) {
			arms := map[string]string{}
			w.arm = func(ctx context.Context, id core.SessionID, choose func(string) string) (string, error) {
				if arm, ok := arms[key(id)]; ok && choose(arm) == arm {
					return arm, ctx.Err()
				}
				arm, err := w.Engine.Arm(ctx, id, choose)
				if err == nil {
					arms[key(id)] = arm
				}
				return arm, err
			}
		}))
	}
	for what, key := range map[string]func(core.SessionID) string{
		"of its name": func(id core.SessionID) string { return id.Session }, "of its agent": func(id core.SessionID) string { return id.Agent },
	} {
		out = append(out, caughtBy("contract.arm", "a session without an arm is handed the last one "+what, recalling(nil), func(w *wrongEngine) {
			arms := map[string]string{}
			w.arm = func(ctx context.Context, id core.SessionID, choose func(string) string) (string, error) {
				arm, err := w.Engine.Arm(ctx, id, func(recorded string) string { return choose(cmp.Or(recorded, arms[key(id)])) })
				if err == nil {
					arms[key(id)] = arm
				}
				return arm, err
			}
		}))
	}
	out = append(out, tableDescribed()...)
	parents := func(name string, of func(w *wrongEngine, parents map[core.SessionID]core.SessionID, req core.SubagentEnded) (core.SubagentEnded, bool)) {
		out = append(out, caughtBy("contract.ended", name, recalling(nil), func(w *wrongEngine) {
			prepared := map[core.SessionID]core.SessionID{}
			w.before = func(_ string, req any) {
				if r, ok := req.(*core.SpawnRequest); ok {
					prepared[r.Child] = r.Parent
				}
			}
			w.ended = func(ctx context.Context, req core.SubagentEnded) error {
				req, ok := of(w, prepared, req)
				if !ok {
					return ctx.Err()
				}
				return w.Engine.OnSubagentEnded(ctx, req)
			}
		}))
	}
	parents("the parent of a subagent is known to the process that prepared it", func(_ *wrongEngine, prepared map[core.SessionID]core.SessionID, req core.SubagentEnded) (core.SubagentEnded, bool) {
		req.Parent = cmp.Or(req.Parent, prepared[req.Child])
		return req, req.Parent != core.SessionID{}
	})
	parents("a subagent that another process prepared is its own parent", func(_ *wrongEngine, prepared map[core.SessionID]core.SessionID, req core.SubagentEnded) (core.SubagentEnded, bool) {
		req.Parent = cmp.Or(req.Parent, prepared[req.Child], req.Child)
		return req, true
	})
	parents("what a subagent said is known to the process that prepared it", func(_ *wrongEngine, prepared map[core.SessionID]core.SessionID, req core.SubagentEnded) (core.SubagentEnded, bool) {
		return req, req.Result != "" || prepared[req.Child] != core.SessionID{}
	})
	return out
}

// tableDescribed are engines that describe a session as it was, until one of some calls.
func tableDescribed() []broken {
	var out []broken
	described := func(name string, ends ...string) {
		out = append(out, caughtBy("contract.back", name, recalling(nil), func(w *wrongEngine) {
			known := map[core.SessionID]engine.DescribeResult{}
			var asked core.SessionID
			w.arm = func(ctx context.Context, id core.SessionID, choose func(string) string) (string, error) {
				w.before("Arm", nil)
				return w.Engine.Arm(ctx, id, choose)
			}
			w.before = func(method string, req any) {
				if r, ok := req.(*engine.DescribeRequest); ok {
					asked = r.Session
				} else if slices.Contains(ends, method) {
					clear(known)
				}
			}
			w.after = func(_ string, res any) {
				d, ok := res.(*engine.DescribeResult)
				if !ok {
					return
				}
				if had, ok := known[asked]; ok {
					*d = had
				}
				known[asked] = *d
			}
		}))
	}
	described("a session is described as it was first")
	described("a session is described anew after prompts alone", "Assemble", "Bootstrap", "Compact", "Forget")
	all := []string{"Ingest", "IngestBatch", "Bootstrap", "CommitTurn", "AfterTurn", "Assemble", "OnSubagentEnded", "Forget", "Arm"}
	for i, without := range all {
		described("a session is described as it was before "+without, slices.Delete(slices.Clone(all), i, i+1)...)
	}
	return out
}

// tableRefresh are engines that do not do, or do not say, what somebody asks who looks after them.
func tableRefresh() []broken {
	refresh := func(name string, change func(w *wrongEngine)) broken {
		return caughtBy("contract.refresh", name, recalling(nil), change)
	}
	ping := func(name string, ping func(ctx context.Context, w *wrongEngine) error) broken {
		return caughtBy("contract.ping", name, recalling(nil), func(w *wrongEngine) {
			w.ping = func(ctx context.Context) error { return ping(ctx, w) }
		})
	}
	return []broken{
		refresh("nothing is read anew", func(w *wrongEngine) { w.refresh = func(ctx context.Context) error { return ctx.Err() } }),
		refresh("all is read anew once", func(w *wrongEngine) {
			again := false
			w.refresh = func(ctx context.Context) error {
				if again {
					return ctx.Err()
				}
				again = true
				return w.Engine.Refresh(ctx)
			}
		}),
		refresh("what is read anew has another beginning", func(w *wrongEngine) {
			var anew sync.Map
			w.refresh = func(ctx context.Context) error {
				anew.Store("all", true)
				return w.Engine.Refresh(ctx)
			}
			w.after = func(_ string, res any) {
				if a, ok := res.(*core.AssembleResult); ok && len(a.Messages) > 6 {
					if _, ok := anew.Load("all"); ok {
						remove(a, 0)
					}
				}
			}
		}),
		refresh("a session of a name is read anew for one agent", func(w *wrongEngine) {
			// What was sent last of a session is sent again as long as nothing is new.
			last, fresh := map[core.SessionID]core.AssembleResult{}, map[core.SessionID]int{}
			var asked core.SessionID
			w.before = func(_ string, req any) {
				if r, ok := req.(*core.AssembleRequest); ok {
					asked = r.Session
				}
			}
			w.after = func(_ string, res any) {
				a, ok := res.(*core.AssembleResult)
				if !ok {
					return
				}
				if had, ok := last[asked]; ok && asked.Agent == "agent-b" && fresh[asked] == len(a.Messages) {
					*a = had
				}
				last[asked], fresh[asked] = *a, len(a.Messages)
			}
		}),
		ping("a ping is always answered", func(ctx context.Context, _ *wrongEngine) error { return ctx.Err() }),
		ping("a ping is never answered", func(context.Context, *wrongEngine) error { return core.ErrUnavailable }),
		caughtBy("contract.ping", "the first ping was answered", recalling(nil), func(w *wrongEngine) {
			answered := false
			w.ping = func(ctx context.Context) error {
				if answered {
					return ctx.Err()
				}
				err := w.Engine.Ping(ctx)
				answered = err == nil
				return err
			}
		}),
	}
}

// tablePages are engines whose pages do not lead to the end.
func tablePages() []broken {
	var out []broken
	pages := func(name string, change func(req engine.SearchRequest, res *engine.SearchResult)) {
		out = append(out, caughtBy("contract.found", name, recalling(nil), func(w *wrongEngine) {
			w.search = func(ctx context.Context, req engine.SearchRequest) (engine.SearchResult, error) {
				res, err := w.Engine.Search(ctx, req)
				if err == nil {
					change(req, &res)
				}
				return res, err
			}
		}))
	}
	short := func(req engine.SearchRequest, res *engine.SearchResult) bool {
		return len(res.Found) < cmp.Or(req.Limit, engine.DefaultFound)
	}
	pages("a page that is not full is the last", func(req engine.SearchRequest, res *engine.SearchResult) {
		if short(req, res) {
			res.Next = 0
		}
	})
	pages("behind a page that is not full comes the next by number", func(req engine.SearchRequest, res *engine.SearchResult) {
		if res.Next > 0 {
			res.Next = req.Offset + cmp.Or(req.Limit, engine.DefaultFound)
		}
	})
	pages("the entry that a page had no room for is left out", func(req engine.SearchRequest, res *engine.SearchResult) {
		if res.Next > 0 && short(req, res) {
			res.Next++
		}
	})
	pages("the last entry of a page without room comes again", func(req engine.SearchRequest, res *engine.SearchResult) {
		if res.Next > 1 && len(res.Found) > 1 && short(req, res) {
			res.Next--
		}
	})
	pages("the second page is the last", func(req engine.SearchRequest, res *engine.SearchResult) {
		if req.Offset > 0 {
			res.Next = 0
		}
	})
	return out
}

// tableDueOnce are engines that do not say again that a compaction is due.
func tableDueOnce() []broken {
	var out []broken
	due := func(name string, says func(said int) bool, ends func(req any) bool) {
		out = append(out, caughtBy("contract.due", name, recalling(nil), func(w *wrongEngine) {
			said := map[core.SessionID]int{}
			var asked core.SessionID
			w.before = func(_ string, req any) {
				if r, ok := req.(*core.AssembleRequest); ok {
					asked = r.Session
				}
				if ends(req) {
					clear(said)
				}
			}
			w.after = func(_ string, res any) {
				if a, ok := res.(*core.AssembleResult); ok && a.CompactionDue {
					a.CompactionDue = says(said[asked])
					said[asked]++
				}
			}
		}))
	}
	compacted := func(req any) bool { _, ok := req.(*core.CompactRequest); return ok }
	stored := func(req any) bool { _, ok := req.(*core.IngestRequest); return ok || compacted(req) }
	once := func(said int) bool { return said == 0 }
	due("that a compaction is due is said once", once, func(any) bool { return false })
	due("that a compaction is due is said once until there is one", once, compacted)
	due("that a compaction is due is said once for each message", once, stored)
	due("that a compaction is due is said in every other prompt", func(said int) bool { return said%2 == 0 }, compacted)
	return out
}
