package conformance

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/window"
)

func viewChecks() []Check {
	needs := []Need{NeedViewStore}
	return []Check{
		{ID: "view.roundtrip", Promise: 2, Suite: SuiteStore, store: viewRoundtrip, Needs: needs,
			Rule: "LoadView returns what SwapView stored, every field"},
		{ID: "view.large", Promise: 2, Suite: SuiteStore, store: viewLarge, Needs: needs, once: true,
			Rule: "a view comes back as it was stored, however long its texts and lists are and whatever they hold"},
		{ID: "view.many", Promise: 2, Suite: SuiteStore, store: viewMany, Needs: needs, once: true,
			Rule: "hundreds of sessions have views, and a list that is shorter than its limit is the last"},
		{ID: "view.missing", Suite: SuiteStore, store: viewMissing, Needs: needs,
			Rule: "LoadView of a session without a view is ErrNotFound; DeleteView of one is no error"},
		{ID: "view.conflict", Promise: 9, Suite: SuiteStore, store: viewConflict, Needs: needs,
			Rule: "SwapView stores a view only over the version before it, otherwise it is ErrConflict and nothing changes"},
		{ID: "view.race", Promise: 9, Suite: SuiteStore, store: viewRace, Needs: needs,
			Rule: "of several that swap the same version exactly one succeeds"},
		{ID: "view.delete", Promise: 2, Suite: SuiteStore, store: viewDelete, Needs: needs,
			Rule: "a deleted view is gone, those of other sessions stay, and the session can begin again"},
		{ID: "view.list", Suite: SuiteStore, store: viewList, Needs: needs,
			Rule: "ListViews names every session that has a view once, in order, page by page, and of one agent only when asked so"},
		{ID: "view.reopen", Promise: 2, Suite: SuiteStore, store: viewReopen, Needs: []Need{NeedViewStore, NeedReopen},
			Rule: "a published view is there after the store was closed and opened again, and listed in its place"},
	}
}

// richView returns a view of a session with every field in use.
func richView(id core.SessionID, version uint64) core.View {
	v := core.View{}
	filled(&v)
	enlarge(reflect.ValueOf(&v).Elem())
	v.Session, v.Version, v.Pinned = id, version, fmt.Sprint("pinned ", version)
	return v
}

func (r *storeRun) views() core.ViewStore {
	v, _ := core.As[core.ViewStore](r.store)
	return v
}

func sameView(got, want core.View) string {
	if d := differs(got, want); d != "" {
		return "the view's " + d
	}
	return ""
}

// publish stores versions 1 to n of a session's view.
func (r *storeRun) publish(id core.SessionID, n uint64) string {
	for v := uint64(1); v <= n; v++ {
		if err := r.views().SwapView(r.ctx(), richView(id, v)); err != nil {
			return fmt.Sprintf("SwapView of version %d: error %v, want none", v, err)
		}
	}
	return ""
}

// holds compares a session's view with version v.
func (r *storeRun) holds(id core.SessionID, v uint64) string {
	got, err := r.views().LoadView(r.ctx(), id)
	if err != nil {
		return fmt.Sprintf("LoadView(%s): error %v, want none", id, err)
	}
	return sameView(got, richView(id, v))
}

func viewRoundtrip(r *storeRun) string {
	for who := range 3 {
		id := sessionOf(who)
		if text := r.publish(id, uint64(len(r.steps))+1); text != "" {
			return text
		}
	}
	for who := range 3 {
		if text := r.holds(sessionOf(who), uint64(len(r.steps))+1); text != "" {
			return text
		}
	}
	return ""
}

func viewLarge(r *storeRun) string {
	const many = 400
	id := sessionOf(0)
	for version, n := range []int{many, 0} { // a smaller one follows
		v := richView(id, uint64(version)+1)
		for i, text := range oddTexts()[:min(n, len(oddTexts()))] {
			sum := v.Summaries[0]
			sum.ID, sum.Text = fmt.Sprint("E-large-", i), text
			v.Summaries = append(v.Summaries, sum)
			v.Commits = append(v.Commits, text)
			v.Stubs[fmt.Sprint("E-odd-", i)] = window.Stub{Kind: window.Clipped, Texts: map[int]string{0: text}}
		}
		for i := range n {
			span, stub := v.Path[0], v.Stubs[slices.Sorted(maps.Keys(v.Stubs))[0]]
			span.From, span.To = int64(2*i), int64(2*i+1)
			v.Path = append(v.Path, span)
			v.Stubs[fmt.Sprint("E-large-", i)] = stub
			v.Commits = append(v.Commits, fmt.Sprint("commit ", i))
			v.Heirs = append(v.Heirs, core.SessionID{Agent: id.Agent, Session: fmt.Sprint("heir ", i)})
		}
		given := v.Clone()
		if err := r.views().SwapView(r.ctx(), given); err != nil {
			return fmt.Sprintf("SwapView of a view with %d summaries and %d spans: error %v, want none", len(v.Summaries), len(v.Path), err)
		}
		got, err := r.views().LoadView(r.ctx(), id)
		if err != nil {
			return fmt.Sprintf("LoadView of a view with %d summaries and %d spans: error %v, want none", len(v.Summaries), len(v.Path), err)
		}
		if text := sameView(got, v); text != "" {
			return text
		}
	}
	return ""
}

func viewMany(r *storeRun) string {
	const many = 540 // more than a page of anybody's own
	var all []core.SessionID
	for i := range many {
		id := core.SessionID{Agent: "agent-a", Session: fmt.Sprintf("one of many %03d", i)}
		if err := r.views().SwapView(r.ctx(), core.View{Session: id, Version: 1}); err != nil {
			return fmt.Sprintf("SwapView of the first view of session %s: error %v, want none", id, err)
		}
		all = append(all, id)
	}
	for _, agent := range []string{"", "agent-a"} {
		for _, limit := range []int{core.MaxPage, 90} {
			if text := r.listed(agent, limit, all); text != "" {
				return text
			}
		}
	}
	return ""
}

func viewMissing(r *storeRun) string {
	id := sessionOf(0)
	if _, err := r.views().LoadView(r.ctx(), id); !errors.Is(err, core.ErrNotFound) {
		return fmt.Sprintf("LoadView of a new session: error %v, want ErrNotFound", err)
	}
	if err := r.views().DeleteView(r.ctx(), id); err != nil {
		return fmt.Sprintf("DeleteView of a new session: error %v, want none", err)
	}
	return ""
}

func viewConflict(r *storeRun) string {
	id, n := sessionOf(0), uint64(len(r.steps))+1
	if err := r.views().SwapView(r.ctx(), richView(id, 2)); !errors.Is(err, core.ErrConflict) {
		return fmt.Sprintf("SwapView of version 2 where none is stored: error %v, want ErrConflict", err)
	}
	if text := r.publish(id, n); text != "" {
		return text
	}
	for _, v := range []uint64{1, n, n + 2} {
		wrong := richView(id, v)
		wrong.Pinned = "wrong"
		if err := r.views().SwapView(r.ctx(), wrong); !errors.Is(err, core.ErrConflict) {
			return fmt.Sprintf("SwapView of version %d over version %d: error %v, want ErrConflict", v, n, err)
		}
		if text := r.holds(id, n); text != "" {
			return "after a conflict: " + text
		}
	}
	return ""
}

func viewRace(r *storeRun) string {
	id := sessionOf(0)
	for v := uint64(1); v <= uint64(len(r.steps)); v++ {
		var won, odd atomic.Int32
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				switch err := r.views().SwapView(r.ctx(), richView(id, v)); {
				case err == nil:
					won.Add(1)
				case !errors.Is(err, core.ErrConflict):
					odd.Add(1)
				}
			})
		}
		wg.Wait()
		if won.Load() != 1 || odd.Load() != 0 {
			return fmt.Sprintf("4 swaps to version %d: %d succeed and %d fail with another error than ErrConflict, want 1 and 0",
				v, won.Load(), odd.Load())
		}
	}
	return ""
}

func viewDelete(r *storeRun) string {
	for who := range 3 {
		if text := r.publish(sessionOf(who), 2); text != "" {
			return text
		}
	}
	id := sessionOf(0)
	if err := r.views().DeleteView(r.ctx(), id); err != nil {
		return fmt.Sprintf("DeleteView: error %v, want none", err)
	}
	if _, err := r.views().LoadView(r.ctx(), id); !errors.Is(err, core.ErrNotFound) {
		return fmt.Sprintf("LoadView after DeleteView: error %v, want ErrNotFound", err)
	}
	for who := 1; who < 3; who++ {
		if text := r.holds(sessionOf(who), 2); text != "" {
			return "another session's view after DeleteView: " + text
		}
	}
	return r.publish(id, 1)
}

func viewList(r *storeRun) string {
	for who := range 3 {
		if text := r.publish(sessionOf(who), 1); text != "" {
			return text
		}
	}
	all := []core.SessionID{sessionOf(0), sessionOf(1), sessionOf(2)}
	slices.SortFunc(all, core.SessionID.Compare)
	for agent, want := range map[string][]core.SessionID{"": all, "agent-a": all[:2], "agent-b": all[2:], "nobody": nil} {
		for limit := 1; limit <= 4; limit++ {
			if text := r.listed(agent, limit, want); text != "" {
				return text
			}
		}
	}
	return r.listsBehind(all)
}

// listsBehind continues behind sessions that have no view: some never had one, and each of the listed loses its own after its page.
func (r *storeRun) listsBehind(all []core.SessionID) string {
	behind := func(agent string, after core.SessionID) string {
		var want []core.SessionID
		for _, id := range all {
			if (agent == "" || agent == id.Agent) && id.Compare(after) > 0 {
				want = append(want, id)
			}
		}
		got, err := r.views().ListViews(r.ctx(), core.ViewQuery{Agent: agent, After: after, Limit: core.MaxPage})
		if err != nil || !slices.Equal(got, want) {
			return fmt.Sprintf("ListViews of agent %q behind %s, which has no view: %v, error %v, want %v", agent, after, got, err, want)
		}
		return ""
	}
	for _, session := range []string{"a", "main ", "n", "zz"} {
		for _, agent := range []string{"", "agent-a"} {
			if text := behind(agent, core.SessionID{Agent: "agent-a", Session: session}); text != "" {
				return text
			}
		}
	}
	for _, after := range []core.SessionID{{Agent: "agent", Session: "zz"}, {Agent: "agent-aa"}, {Agent: "agent-c", Session: "a"}, {Agent: "agent-c"}} {
		for _, agent := range []string{"agent-a", "agent-b"} {
			if text := behind(agent, after); text != "" {
				return text
			}
		}
	}
	for len(all) > 0 {
		gone := all[0]
		all = all[1:]
		if err := r.views().DeleteView(r.ctx(), gone); err != nil {
			return fmt.Sprintf("DeleteView: error %v, want none", err)
		}
		for _, agent := range []string{"", gone.Agent} {
			if text := behind(agent, gone); text != "" {
				return text
			}
		}
	}
	return ""
}

func viewReopen(r *storeRun) string {
	id := sessionOf(0)
	if text := r.publish(id, 3); text != "" {
		return text
	}
	all := []core.SessionID{id}
	for _, name := range []string{"b", "C", "a", "D"} { // their order is that of bytes
		all = append(all, core.SessionID{Agent: id.Agent, Session: name})
		if text := r.publish(all[len(all)-1], 1); text != "" {
			return text
		}
	}
	r.store = r.reopen(r.tb, r.store)
	if text := r.holds(id, 3); text != "" {
		return "after reopening: " + text
	}
	if text := r.listed("", core.MaxPage, sortedSessions(all...)); text != "" {
		return "after reopening: " + text
	}
	return ""
}
