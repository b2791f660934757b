package conformance_test

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/contextengine/contextengine/backends/memory"
	"github.com/contextengine/contextengine/conformance"
	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/internal/needs"
)

// broken is one of many broken implementations of a class: most are made by an operator.
type broken struct {
	class, name string
	// find examines it. The options of only come last; those that claim a single check of their own may leave them out.
	find func(t *testing.T, only ...conformance.Option) []conformance.Finding
	// part is what is broken, for those that take part in an engine.
	part part
}

// part makes a broken retriever or a broken compactor; the other is nil.
type part struct {
	retriever func() core.Retriever
	compactor func(conformance.Env) (core.Compactor, error)
}

// TestFaultyTable shows how many broken implementations of each class are caught; all must be. Which check catches which is printed under -v.
func TestFaultyTable(t *testing.T) {
	if testing.Short() {
		t.Skip("some hundred broken implementations")
	}
	needs.NoRace(t)
	t.Parallel()
	all := slices.Concat(tableStores(), tableMemories(), knownByKeys(), freedKeys(), conflictsPassed(), blindToPages(), wholeStores(), tailStores(), viewlessStores(), longStores(), manyAsked(), nothingAsked(), tableViews(), afterGone(), tableReopened(), tableCompanions(t), tableHelpers(), tableRetrievers(), tableFound(), tableSearchers(), tableListeners(), tableRecollections(), tableBeside(), tableAnswering(), tableUnsaid(), tableShared(), tableMidway(), overtaken(), vectorsInShort(), forgetfulListeners(), deafIndexes(), tableCompactors(), tableHiddenParts(), tableSizes(), tableHanging(), tableEachCall(), tableEngines(), tableWindows(), tableTold(), tableHandedBack(), tableReset(), tablePrompts(), tableResults(), tableReturned(), tableGivenKept(), tableContract(), tableStrangers(), tableModels())
	type count struct{ number, caught int }
	counts := map[string]*count{}
	order := []string{}
	var mu sync.Mutex
	for _, b := range all {
		if counts[b.class] == nil {
			counts[b.class] = &count{}
			order = append(order, b.class)
		}
	}
	known := knownRules(t)
	t.Run("each", func(t *testing.T) {
		forEach(t, all, func(t *testing.T, b broken) {
			t.Helper()
			start := time.Now()
			found := known.examine(t, b)
			mu.Lock()
			defer mu.Unlock()
			counts[b.class].number++
			if len(found) == 0 {
				t.Error("caught by no check")
				return
			}
			counts[b.class].caught++
			first, _, _ := strings.Cut(found[0].Text, "\n")
			t.Logf("%s in %s: %.150s", found[0].ID(), time.Since(start).Round(time.Millisecond), first)
		})
	})
	var b strings.Builder
	sum := count{}
	for _, class := range order {
		fmt.Fprintf(&b, "\n%-28s %4d %4d", class, counts[class].number, counts[class].caught)
		sum.number, sum.caught = sum.number+counts[class].number, sum.caught+counts[class].caught
	}
	known.compare(t, all)
	t.Logf("\n%-28s %4s %4s%s\n%-28s %4d %4d", "class", "of", "caught", b.String(), "all", sum.number, sum.caught)
}

// early examines a part with one case for each check, and with all cases only if that finds nothing: most faults show in the first case of their check, and would
// otherwise wait for all cases of the checks before it. opts come behind those that every table has, and only behind all.
func early(cases int, only []conformance.Option, examine func(opts ...conformance.Option) []conformance.Finding, opts ...conformance.Option) []conformance.Finding {
	var found []conformance.Finding
	for _, n := range []int{1, cases} {
		if found = examine(slices.Concat([]conformance.Option{
			conformance.WithExactly(n, 20260301), conformance.WithoutShrinking(), conformance.WithFirst(), conformance.WithPatience(time.Second),
		}, opts, only)...); len(found) > 0 {
			break
		}
	}
	return found
}

// idle reports by its name whether a broken part is caught once a second or two have passed in which nothing is calculated. It says when a part is run, not how.
func idle(b broken) bool {
	return slices.ContainsFunc([]string{"hangs", "waits for", "never ends", "one lock for all", "a fallback alone"},
		func(word string) bool { return strings.Contains(b.name, word) })
}

// forEach runs f for each part in a subtest of its own: as many at once as there are processors, but more of those that do nothing but wait.
func forEach(t *testing.T, all []broken, f func(t *testing.T, b broken)) {
	t.Helper()
	const sleepers = 8 // for each processor
	waiting := make(chan broken)
	var wg sync.WaitGroup
	for range sleepers * runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for b := range waiting {
				t.Run(b.class+"/"+b.name, func(t *testing.T) { f(t, b) })
			}
		})
	}
	for _, b := range all {
		if idle(b) {
			waiting <- b
		}
	}
	close(waiting)
	wg.Wait()
	for _, b := range all {
		if !idle(b) {
			t.Run(b.class+"/"+b.name, func(t *testing.T) { t.Parallel(); f(t, b) })
		}
	}
}

// brokenStoreOf makes a broken store of a change to the memory store.
func brokenStoreOf(class, name string, change func(*brokenStore), opts ...conformance.Option) broken {
	return broken{class: class, name: name, find: func(t *testing.T, only ...conformance.Option) []conformance.Finding {
		t.Helper()
		return early(3, only, func(opts ...conformance.Option) []conformance.Finding {
			return conformance.ExamineStore(t, func(testing.TB) core.Store {
				s := &brokenStore{Store: memory.New()}
				change(s)
				return s
			}, opts...)
		}, opts...)
	}}
}

// leaf is the way to a field that holds no further ones, through structs, pointers, slices and maps.
type leaf struct {
	path  string
	steps []int
}

// leaves lists the leaves of a type.
func leaves(t reflect.Type, path string, steps []int) []leaf {
	switch {
	case t == reflect.TypeFor[time.Time](), t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Uint8:
		return []leaf{{path, steps}}
	case t.Kind() == reflect.Struct:
		var out []leaf
		for i := range t.NumField() {
			if f := t.Field(i); f.IsExported() && f.Tag.Get("json") != "-" {
				out = append(out, leaves(f.Type, path+"."+f.Name, append(slices.Clone(steps), i))...)
			}
		}
		return out
	case t.Kind() == reflect.Pointer, t.Kind() == reflect.Slice:
		return leaves(t.Elem(), path, steps)
	}
	return []leaf{{path, steps}}
}

// clear sets a leaf to its zero, wherever it is reached.
func (l leaf) clear(v reflect.Value) { clearLeaf(v, l.steps) }

func clearLeaf(v reflect.Value, steps []int) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			clearLeaf(v.Elem(), steps)
		}
		return
	case reflect.Slice:
		if v.Type().Elem().Kind() != reflect.Uint8 {
			for i := range v.Len() {
				clearLeaf(v.Index(i), steps)
			}
			return
		}
	}
	if len(steps) > 0 && v.Kind() == reflect.Struct {
		clearLeaf(v.Field(steps[0]), steps[1:])
		return
	}
	v.SetZero()
}

// entryLeaves are the fields of an entry that do not say which it is.
func entryLeaves() []leaf {
	return slices.DeleteFunc(leaves(reflect.TypeFor[core.Entry](), "", nil), func(l leaf) bool {
		return slices.Contains([]string{".ID", ".Agent", ".Session"}, l.path)
	})
}

// entriesOf copies entries so that a fault can change them.
func entriesOf(in []core.Entry, change func(*core.Entry)) []core.Entry {
	out := slices.Clone(in)
	for i := range out {
		out[i].Meta = maps.Clone(out[i].Meta)
		out[i].Message.Parts = slices.Clone(out[i].Message.Parts)
		if change != nil {
			change(&out[i])
		}
	}
	return out
}

// onAppend, onGet and onScan change entries on their way.
func onAppend(change func(*core.Entry)) func(*brokenStore) {
	return func(s *brokenStore) {
		s.append = func(ctx context.Context, e []core.Entry) (core.AppendResult, error) {
			return s.Store.Append(ctx, entriesOf(e, change))
		}
	}
}

func onGet(change func(*core.Entry)) func(*brokenStore) {
	return func(s *brokenStore) {
		s.get = func(ctx context.Context, scope core.Scope, ids []string) ([]core.Entry, error) {
			got, err := s.Store.Get(ctx, scope, ids)
			return entriesOf(got, change), err
		}
	}
}

func onScan(change func(*core.Entry)) func(*brokenStore) {
	return func(s *brokenStore) {
		s.scan = func(ctx context.Context, q core.ScanQuery) (core.Page, error) {
			p, err := s.Store.Scan(ctx, q)
			p.Entries = entriesOf(p.Entries, change)
			return p, err
		}
	}
}

// onPage changes a page, onQuery a query of a scan.
func onPage(change func(q core.ScanQuery, p *core.Page)) func(*brokenStore) {
	return func(s *brokenStore) {
		s.scan = func(ctx context.Context, q core.ScanQuery) (core.Page, error) {
			p, err := s.Store.Scan(ctx, q)
			if err == nil {
				change(q, &p)
			}
			return p, err
		}
	}
}

func onQuery(change func(*core.ScanQuery)) func(*brokenStore) {
	return func(s *brokenStore) {
		s.scan = func(ctx context.Context, q core.ScanQuery) (core.Page, error) {
			change(&q)
			return s.Store.Scan(ctx, q)
		}
	}
}

// onUpdate changes what an update does, onDelete what is deleted.
func onUpdate(change func(s *brokenStore, ctx context.Context, scope core.Scope, id string, c *core.Change) error) func(*brokenStore) {
	return func(s *brokenStore) {
		s.update = func(ctx context.Context, scope core.Scope, id string, c core.Change) error {
			if err := change(s, ctx, scope, id, &c); err != nil {
				return err
			}
			return s.Store.Update(ctx, scope, id, c)
		}
	}
}

// older returns what is stored of an entry, if anything.
func older(ctx context.Context, s *brokenStore, scope core.Scope, id string) core.Entry {
	got, err := s.Store.Get(context.WithoutCancel(ctx), scope, []string{id})
	if err != nil {
		return core.Entry{}
	}
	return got[0]
}

// cached remembers, per id, what was read first.
type cached struct {
	mu sync.Mutex
	m  map[string]core.Entry
}

func (c *cached) first(e core.Entry) core.Entry {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.m == nil {
		c.m = map[string]core.Entry{}
	}
	if old, ok := c.m[e.ID]; ok {
		return entriesOf([]core.Entry{old}, nil)[0]
	}
	c.m[e.ID] = entriesOf([]core.Entry{e}, nil)[0]
	return e
}

// leavesOfView are the fields of a view that do not say which it is.
func leavesOfView() []leaf {
	return slices.DeleteFunc(leaves(reflect.TypeFor[core.View](), "", nil), func(l leaf) bool {
		return slices.Contains([]string{".Session.Agent", ".Session.Session"}, l.path)
	})
}

func clearView(l leaf, v *core.View) { l.clear(reflect.ValueOf(v).Elem()) }
