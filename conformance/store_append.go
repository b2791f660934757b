package conformance

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/upkeep"
	"github.com/contextengine/contextengine/core/vector"
)

func storeChecks() []Check {
	return []Check{
		{ID: "append.ids", Suite: SuiteStore, store: appendIDs,
			Rule: "Append names, for each entry given, the id under which it is stored"},
		{ID: "append.idempotent", Promise: 6, Suite: SuiteStore, store: appendIdempotent,
			Rule: "an entry whose key is known in its session is not stored again, and the result names the id it has"},
		{ID: "append.conflict", Suite: SuiteStore, store: appendConflict,
			Rule: "the same id with another key, or in another session of its agent, is ErrConflict"},
		{ID: "append.atomic", Promise: 9, Suite: SuiteStore, store: appendAtomic,
			Rule: "Append stores all of the entries, or none when it returns an error"},
		{ID: "append.race", Promise: 6, Suite: SuiteStore, store: appendRace,
			Rule: "concurrent appends lose nothing and store each key once"},
		{ID: "lost.bytes", Promise: 2, Suite: SuiteStore, store: lostBytes,
			Rule: "what was appended comes back unchanged, raw bytes byte for byte, NUL and invalid UTF-8 included"},
		{ID: "lost.reopen", Promise: 2, Suite: SuiteStore, store: lostReopen, Needs: []Need{NeedReopen},
			Rule: "what Append acknowledged is there after the store was closed and opened again"},
		{ID: "scan.order", Promise: 5, Suite: SuiteStore, store: scanOrder,
			Rule: "within a session a scan is in order of Seq"},
		{ID: "scan.reverse", Promise: 5, Suite: SuiteStore, store: scanReverse,
			Rule: "a reverse scan goes from the newest entry to the oldest, and across sessions it is the other scan turned round"},
		{ID: "scan.once", Promise: 2, Suite: SuiteStore, store: scanOnce,
			Rule: "following Next to the end visits every entry that was there exactly once, for every limit, in both directions"},
		{ID: "scan.range", Suite: SuiteStore, store: scanRange,
			Rule: "FromSeq skips smaller positions, a positive ToSeq its position and those above, in scans of a session alone"},
		{ID: "isolation.scan", Promise: 8, Suite: SuiteStore, store: isolationScan,
			Rule: "a scan returns the entries of its scope and no other"},
		{ID: "get.order", Suite: SuiteStore, store: getOrder,
			Rule: "Get returns the entries in the order asked for, and one that is named twice twice"},
		{ID: "get.missing", Suite: SuiteStore, store: getMissing,
			Rule: "ids that are not there are ErrNotFound, and then nothing is returned"},
		{ID: "isolation.get", Promise: 8, Suite: SuiteStore, store: isolationGet,
			Rule: "ids outside the scope are ErrNotFound, whoever they belong to"},
		{ID: "update.changes", Suite: SuiteStore, store: updateChanges,
			Rule: "Update changes the fields that are set, and nothing else"},
		{ID: "update.missing", Promise: 8, Suite: SuiteStore, store: updateMissing,
			Rule: "Update of an entry outside the scope is ErrNotFound and changes nothing"},
		{ID: "update.erase", Promise: 2, Suite: SuiteStore, store: updateErase,
			Rule: "one Update empties an entry for good: another type and key, its place kept, its old key free again"},
		{ID: "delete.gone", Promise: 2, Suite: SuiteStore, store: deleteGone,
			Rule: "deleted entries are gone for Get and Scan, all others stay, and the count is that of entries deleted"},
		{ID: "delete.scope", Promise: 8, Suite: SuiteStore, store: deleteScope,
			Rule: "Delete touches no entry outside its scope; unknown ids are no error"},
		{ID: "copy.owned", Suite: SuiteStore, store: copyOwned,
			Rule: "what a call returned belongs to the caller, and what it was given is not kept"},
		{ID: "cancel.store", Promise: 9, Suite: SuiteStore, store: cancelStore,
			Rule: "a call with an ended context returns the context's error and changes nothing, also where there is nothing to do"},
		{ID: "close.closed", Suite: SuiteStore, store: closeClosed,
			Rule: "after Close every method returns ErrClosed, also where there is nothing to do, and a second Close returns nil"},
	}
}

func appendIDs(r *storeRun) string {
	for _, b := range r.steps {
		batch := r.make(b)
		if len(batch) == 0 {
			continue
		}
		got, err := r.store.Append(r.ctx(), cloneEntries(batch))
		if err != nil {
			return fmt.Sprintf("Append: error %v, want none", err)
		}
		if d := sameIDs(got.IDs, idsOf(batch)); d != "" {
			return "AppendResult.IDs: " + d
		}
		if got.Duplicates != 0 {
			return fmt.Sprintf("AppendResult.Duplicates = %d for new entries, want 0", got.Duplicates)
		}
	}
	return ""
}

// appendIdempotent appends everything again, under the ids it has and under new ones, together with something new.
func appendIdempotent(r *storeRun) string {
	if text := r.fill(); text != "" || len(r.all) == 0 {
		return text
	}
	for name, rename := range map[string]bool{"the same entries": false, "the same keys under new ids": true} {
		again := cloneEntries(r.all)
		if rename {
			for i := range again {
				again[i].ID += "-again"
			}
		}
		got, err := r.store.Append(r.ctx(), again)
		if err != nil {
			return fmt.Sprintf("Append of %s: error %v, want none", name, err)
		}
		if d := sameIDs(got.IDs, idsOf(r.all)); d != "" {
			return fmt.Sprintf("Append of %s: %s", name, d)
		}
		if got.Duplicates != len(r.all) {
			return fmt.Sprintf("Append of %s: Duplicates = %d, want %d", name, got.Duplicates, len(r.all))
		}
	}
	// A key is known in its own session only.
	twin := cloneEntries(r.all[:1])
	twin[0].ID, twin[0].Session = "E-twin", "elsewhere"
	if got, err := r.store.Append(r.ctx(), twin); err != nil || got.Duplicates != 0 {
		return fmt.Sprintf("Append of a known key in another session: %d duplicates, error %v, want 0 and none", got.Duplicates, err)
	}
	return r.count(r.entries)
}

// count compares how many entries each session holds.
func (r *storeRun) count(want map[core.SessionID][]core.Entry) string {
	return r.settled(func() string {
		for id, entries := range want {
			got, text := r.scan(core.ScanQuery{Scope: id.Scope(), Limit: core.MaxPage})
			if text != "" {
				return text
			}
			if len(got) != len(entries) {
				return fmt.Sprintf("session %s holds %d entries, want %d", id, len(got), len(entries))
			}
		}
		return ""
	})
}

func appendConflict(r *storeRun) string {
	if text := r.fill(); text != "" || len(r.all) == 0 {
		return text
	}
	last := r.all[len(r.all)-1]
	fresh := last
	fresh.ID, fresh.Key = last.ID+"-new", last.Key+" new"
	for _, of := range []core.Entry{last, fresh} { // fresh is stored by the same call that names its id twice
		for _, elsewhere := range []bool{false, true} {
			e := of
			e.Seq, e.Key = of.Seq+2000, "another"
			if elsewhere {
				e.Session, e.Key = of.Session+" elsewhere", of.Key
			}
			batch := []core.Entry{e}
			if of.ID == fresh.ID {
				first := of
				first.Seq += 1000
				batch = []core.Entry{first, e}
			}
			if _, err := r.store.Append(r.ctx(), cloneEntries(batch)); !errors.Is(err, core.ErrConflict) {
				return fmt.Sprintf("Append of id %q with another key, in another session: %v, in one batch with the first: %v: error %v, want ErrConflict", e.ID, elsewhere, len(batch) > 1, err)
			}
		}
	}
	return ""
}

// appendAtomic spoils the last entry of a batch.
func appendAtomic(r *storeRun) string {
	if text := r.fill(); text != "" || len(r.all) == 0 {
		return text
	}
	batch := r.make(batch{Entries: []entrySpec{{Who: 0}, {Who: 1}, {Who: 2}}})
	bad := cloneEntries(r.all[:1])[0]
	bad.Key = "another"
	if _, err := r.store.Append(r.ctx(), append(cloneEntries(batch), bad)); err == nil {
		return "Append of a batch with a conflicting entry at its end: no error, want ErrConflict"
	}
	for _, e := range batch {
		if _, err := r.store.Get(r.ctx(), e.SessionID().Scope(), []string{e.ID}); err == nil {
			return fmt.Sprintf("after a failed Append entry %q of the batch is stored", e.ID)
		}
	}
	if _, err := r.store.Append(r.ctx(), cloneEntries(batch)); err != nil {
		return fmt.Sprintf("the same entries without the conflicting one: error %v, want none", err)
	}
	return ""
}

func appendRace(r *storeRun) string {
	const writers = 4
	var batches [][]core.Entry
	for _, b := range r.steps {
		if made := r.make(b); len(made) > 0 {
			batches = append(batches, made)
		}
	}
	errs := make([]error, writers)
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			order := slices.Clone(batches)
			if w%2 == 1 {
				slices.Reverse(order)
			}
			for _, b := range order {
				mine := cloneEntries(b)
				for i := range mine {
					mine[i].ID = fmt.Sprintf("%s-w%d", mine[i].ID, w)
				}
				if _, err := r.store.Append(r.ctx(), mine); err != nil {
					errs[w] = err
				}
			}
		})
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return fmt.Sprintf("concurrent Append: error %v, want none", err)
		}
	}
	want := map[core.SessionID][]core.Entry{}
	for _, b := range batches {
		for _, e := range b {
			want[e.SessionID()] = append(want[e.SessionID()], e)
		}
	}
	return r.count(want)
}

func lostBytes(r *storeRun) string {
	return inTurn(r.fill, r.getAll)
}

// getAll reads every entry by id and compares it whole.
func (r *storeRun) getAll() string {
	for _, e := range r.all {
		for _, scope := range scopesOf(e.SessionID()) {
			got, err := r.store.Get(r.ctx(), scope, []string{e.ID})
			if err != nil {
				return fmt.Sprintf("Get(%q) in %+v: error %v, want none", e.ID, scope, err)
			}
			if d := sameEntries(got, []core.Entry{e}); d != "" {
				return fmt.Sprintf("Get(%q) in %+v: %s", e.ID, scope, d)
			}
		}
	}
	return ""
}

// scopesOf are the scopes that hold a session: its own, and its agent's.
func scopesOf(id core.SessionID) []core.Scope { return []core.Scope{id.Scope(), {Agent: id.Agent}} }

// readAll is getAll, and scans in both directions besides.
func (r *storeRun) readAll() string {
	if text := r.getAll(); text != "" {
		return text
	}
	want := map[core.SessionID][]core.Entry{}
	for _, e := range r.all {
		want[e.SessionID()] = append(want[e.SessionID()], e)
	}
	for id, entries := range want {
		slices.SortStableFunc(entries, func(a, b core.Entry) int { return cmp.Compare(a.Seq, b.Seq) })
		for _, reverse := range []bool{false, true} {
			if reverse {
				slices.Reverse(entries)
			}
			text := r.settled(func() string {
				got, text := r.scan(core.ScanQuery{Scope: id.Scope(), Limit: core.MaxPage, Reverse: reverse})
				if text != "" {
					return text
				}
				return sameEntries(got, entries)
			})
			if text != "" {
				return fmt.Sprintf("scan of session %s, reverse %v: %s", id, reverse, text)
			}
		}
	}
	return ""
}

func lostReopen(r *storeRun) string {
	if text := r.fill(); text != "" {
		return text
	}
	r.store = r.reopen(r.tb, r.store)
	if text := r.getAll(); text != "" {
		return "after reopening: " + text
	}
	return ""
}

// three makes a batch of an entry: a store that is stopped must not have stored its beginning.
func three(e core.Entry) []core.Entry {
	out := []core.Entry{e, claim(e, "second"), claim(e, "third")}
	out[1].Seq, out[2].Seq = e.Seq+1, e.Seq+2
	return out
}

// calls are all calls of a store and of the companions that tell of sessions, with a context.
func (r *storeRun) calls(e core.Entry) map[string]func(context.Context) error {
	id := e.SessionID()
	m := e.Message
	out := map[string]func(context.Context) error{
		"Append": func(ctx context.Context) error {
			_, err := r.store.Append(ctx, cloneEntries(three(e)))
			return err
		},
		"Get": func(ctx context.Context) error {
			_, err := r.store.Get(ctx, id.Scope(), []string{e.ID})
			return err
		},
		"Scan": func(ctx context.Context) error {
			_, err := r.store.Scan(ctx, core.ScanQuery{Scope: id.Scope(), Limit: 10})
			return err
		},
		"Delete": func(ctx context.Context) error {
			_, err := r.store.Delete(ctx, id.Scope(), idsOf(append(r.entries[id], e)))
			return err
		},
		"Update": func(ctx context.Context) error {
			for _, old := range r.entries[id] {
				return r.store.Update(ctx, id.Scope(), old.ID, core.Change{Message: &m, Tokens: 77, Fingerprint: "not to be", Key: "not to be " + e.Key})
			}
			return r.store.Update(ctx, id.Scope(), e.ID, core.Change{Meta: map[string]string{}})
		},
	}
	// What there is nothing to do for is refused all the same.
	out["Append of nothing"] = func(ctx context.Context) error {
		_, err := r.store.Append(ctx, nil)
		return err
	}
	out["Get of nothing"] = func(ctx context.Context) error {
		_, err := r.store.Get(ctx, id.Scope(), nil)
		return err
	}
	out["Delete of nothing"] = func(ctx context.Context) error {
		_, err := r.store.Delete(ctx, id.Scope(), nil)
		return err
	}
	if views := r.views(); views != nil {
		out["LoadView"] = func(ctx context.Context) error {
			_, err := views.LoadView(ctx, id)
			return err
		}
		out["SwapView"] = func(ctx context.Context) error { return views.SwapView(ctx, richView(id, 2)) }
		out["DeleteView"] = func(ctx context.Context) error { return views.DeleteView(ctx, id) }
		out["ListViews"] = func(ctx context.Context) error {
			_, err := views.ListViews(ctx, core.ViewQuery{Limit: 10})
			return err
		}
	}
	if t, ok := core.As[core.Tailer](r.store); ok {
		out["Tail"] = func(ctx context.Context) error {
			_, err := t.Tail(ctx, id)
			return err
		}
	}
	if s, ok := core.As[core.Searcher](r.store); ok {
		out["Search"] = func(ctx context.Context) error {
			_, err := s.Search(ctx, core.SearchQuery{Scope: id.Scope(), Text: "budget", Limit: 3})
			return err
		}
		out["Search for nothing"] = func(ctx context.Context) error {
			_, err := s.Search(ctx, core.SearchQuery{Scope: id.Scope(), Limit: 3})
			return err
		}
	}
	if f, ok := core.As[core.ChangeFeed](r.store); ok {
		out["Changes"] = func(ctx context.Context) error {
			_, err := f.Changes(ctx, core.ChangeQuery{Agent: id.Agent, Limit: 3})
			return err
		}
	}
	if v, ok := core.As[vector.Store](r.store); ok {
		out["ScanVectors"] = func(ctx context.Context) error {
			_, err := v.ScanVectors(ctx, vector.Query{Space: "space/2", Agent: id.Agent, Limit: 3})
			return err
		}
		out["PutVectors"] = func(ctx context.Context) error {
			return v.PutVectors(ctx, "space/2", []vector.Vector{{ID: e.ID, Values: []float32{1, 0}}})
		}
		out["PutVectors of nothing"] = func(ctx context.Context) error { return v.PutVectors(ctx, "space/2", nil) }
		out["VectorSpaces"] = func(ctx context.Context) error {
			_, err := v.VectorSpaces(ctx, id.Agent)
			return err
		}
		out["DropVectors"] = func(ctx context.Context) error { return v.DropVectors(ctx, "space/2", id.Agent) }
	}
	r.helperCalls(e, out)
	if s, ok := core.As[upkeep.Statter](r.store); ok {
		out["Stats"] = func(ctx context.Context) error {
			_, err := s.Stats(ctx)
			return err
		}
	}
	return out
}

func cancelStore(r *storeRun) string {
	if text := r.fill(); text != "" {
		return text
	}
	e := r.make(batch{Entries: []entrySpec{{}}})[0]
	calls := r.calls(e)
	if r.views() != nil {
		if text := r.publish(e.SessionID(), 1); text != "" {
			return text
		}
	}
	over, done := context.WithDeadline(r.ctx(), time.Unix(1, 0))
	defer done()
	ctx, cancel := cancellable(r.ctx())
	cancel()
	for _, name := range slices.Sorted(maps.Keys(calls)) {
		for c, want := range map[context.Context]error{ctx: context.Canceled, over: context.DeadlineExceeded} {
			if err := calls[name](r.watch.calling(c)); !errors.Is(err, want) && !errors.Is(err, errors.ErrUnsupported) {
				return fmt.Sprintf("%s with an ended context: error %v, want %v", name, err, want)
			}
		}
	}
	for i, given := range three(e) {
		if _, err := r.store.Get(r.ctx(), given.SessionID().Scope(), []string{given.ID}); err == nil {
			return fmt.Sprintf("Append of three entries with an ended context stored number %d", i+1)
		}
	}
	if r.views() != nil {
		if text := r.holds(e.SessionID(), 1); text != "" {
			return "after calls with an ended context: " + text
		}
	}
	// Where a store cannot say all that it holds, what was stored and not answered is recognised when it comes again.
	if !offers[core.Recogniser](r.store) {
		if text := r.endsMidway(); text != "" {
			return text
		}
	}
	return r.getAll()
}
