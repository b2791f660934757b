package conformance

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/message"
	"github.com/contextengine/contextengine/core/vector"
)

// companionChecks hold the optional companions of a store to their contracts.
func companionChecks() []Check {
	return []Check{
		{ID: "feed.follows", Promise: 2, Suite: SuiteStore, store: feedFollows, Needs: []Need{NeedChangeFeed}, dear: true,
			Rule: "who follows the feed page by page, from the beginning or from a mark, knows what the agent's entries are, and of none twice, whatever field was changed, of whichever entry, and whatever became of earlier answers"},
		{ID: "feed.marks", Promise: 2, Suite: SuiteStore, store: feedMarks, Needs: []Need{NeedChangeFeed}, once: true,
			Rule: "a mark stays where nothing changed, one that the store cannot go on from is ErrNotFound, and from any other nothing is left out, however much followed and however long a page is"},
		{ID: "feed.reopen", Promise: 2, Suite: SuiteStore, store: feedReopen, Needs: []Need{NeedChangeFeed, NeedReopen}, once: true,
			Rule: "a mark is good after the store was closed and opened again, whatever was changed and deleted before that and after"},
		{ID: "vector.kept", Promise: 2, Suite: SuiteStore, store: vectorKept, Needs: []Need{NeedVectorStore}, once: true,
			Rule: "vectors come back whole, page by page, by space and agent, replaced by id and part, and none of an entry that is not there, or was not when they came; however many there are, and whatever is erased between two pages"},
		{ID: "vector.goes", Promise: 2, Suite: SuiteStore, store: vectorGoes, Needs: []Need{NeedVectorStore}, once: true,
			Rule: "vectors go with their entries, deleted or emptied, for good, and with their space, whose length stays as long as any agent has some in it"},
		{ID: "stats.counts", Suite: SuiteStore, store: statsCount, Needs: []Need{NeedStatter},
			Rule: "figures that a store tells are those of what it holds, also after changes and deletions"},
	}
}

// follower is one who follows a feed: what it knows of each entry.
type follower struct {
	r     *storeRun
	feed  core.ChangeFeed
	agent string
	limit int
	mark  core.Mark
	known map[string]core.Entry
}

func (r *storeRun) follower(agent string, limit int) *follower {
	f, _ := core.As[core.ChangeFeed](r.store)
	return &follower{r: r, feed: f, agent: agent, limit: limit, known: map[string]core.Entry{}}
}

// unsupported reports whether a decorator says that its store has no such companion.
func unsupported(err error) bool { return errors.Is(err, errors.ErrUnsupported) }

// follow reads the feed to its end.
func (f *follower) follow() string {
	for range f.r.pages() {
		page, err := f.feed.Changes(f.r.ctx(), core.ChangeQuery{Agent: f.agent, After: f.mark, Limit: f.limit})
		if unsupported(err) {
			return ""
		}
		if err != nil || len(page.Changes) > f.limit {
			return fmt.Sprintf("Changes of agent %q, limit %d: %d changes, error %v", f.agent, f.limit, len(page.Changes), err)
		}
		for _, c := range page.Changes {
			if c.Entry != nil {
				c.Entry = &cloneEntries([]core.Entry{*c.Entry})[0]
			}
			switch {
			case c.ID == "":
				return "a change names no entry"
			case c.Entry == nil:
				delete(f.known, c.ID)
			case c.Entry.ID != c.ID || c.Entry.Agent != f.agent:
				return fmt.Sprintf("the change of %q of agent %q holds entry %q of agent %q", c.ID, f.agent, c.Entry.ID, c.Entry.Agent)
			default:
				f.known[c.ID] = *c.Entry
			}
		}
		if !f.r.gentle {
			spoilt(page.Changes)
		}
		if page.Mark == f.mark && (page.More || len(page.Changes) > 0) {
			return fmt.Sprintf("the mark behind a page of %d changes is the one before it, more: %v", len(page.Changes), page.More)
		}
		f.mark = page.Mark
		if !page.More {
			return f.compare()
		}
	}
	return feedEndless
}

const feedEndless = "the feed does not end: More is always set"

// pages bounds the pages of a feed that ends: an entry may be named for each of its changes.
func (r *storeRun) pages() int { return 1000 + 40*len(r.all) }

// compare holds what the follower knows against what there is.
func (f *follower) compare() string {
	want := 0
	for _, e := range f.r.all {
		if e.Agent != f.agent {
			continue
		}
		want++
		got, ok := f.known[e.ID]
		if !ok {
			return fmt.Sprintf("who follows agent %q by %d does not know of %q", f.agent, f.limit, e.ID)
		}
		if d := sameEntry(got, e); d != "" {
			return fmt.Sprintf("who follows agent %q by %d: %s", f.agent, f.limit, d)
		}
	}
	if len(f.known) != want {
		return fmt.Sprintf("who follows agent %q by %d knows of %d entries, there are %d", f.agent, f.limit, len(f.known), want)
	}
	return ""
}

func (r *storeRun) followers() []*follower {
	return []*follower{r.follower("agent-a", 1), r.follower("agent-a", 3), r.follower("agent-a", core.MaxPage), r.follower("agent-b", 2)}
}

// everybody lets those who follow, and others who begin anew, read the feed of a store that has one.
func (r *storeRun) everybody(followers []*follower, after string) string {
	if !offers[core.ChangeFeed](r.store) {
		return ""
	}
	for _, f := range append(slices.Clone(followers), r.followers()...) {
		if text := f.follow(); text != "" {
			return "after " + after + ": " + text
		}
	}
	return ""
}

func feedFollows(r *storeRun) string {
	followers := r.followers()
	r.gentle = true
	everybody := func(after string) string { return r.everybody(followers, after) }
	if text := everybody("nothing"); text != "" {
		return text
	}
	if text := r.fill(); text != "" {
		return text
	}
	if text := everybody("appends"); text != "" {
		return text
	}
	if text := r.rework(); text != "" {
		return text
	}
	if text := everybody("updates"); text != "" {
		return text
	}
	r.gentle = false
	for i := len(r.all) - 1; i >= 0; i -= 3 {
		e := r.all[i]
		if n, err := r.store.Delete(r.ctx(), e.SessionID().Scope(), []string{e.ID}); err != nil || n != 1 {
			return fmt.Sprintf("Delete(%q): %d, error %v", e.ID, n, err)
		}
		r.all = slices.Delete(r.all, i, i+1)
	}
	if text := everybody("deletions"); text != "" {
		return text
	}
	if text := r.eachField(); text != "" {
		return text
	}
	if text := everybody("updates of one field each"); text != "" {
		return text
	}
	return r.newestAgain(followers)
}

// oneFieldEach are changes of one field alone, one for each.
func oneFieldEach() []core.Change {
	m := message.New(message.User, "changed once more")
	return []core.Change{
		{Meta: map[string]string{"alone": "yes"}}, {Key: "alone"}, {Message: &m, Tokens: 4, Fingerprint: "once more"}, {Type: core.TypeHeartbeat},
	}
}

// change updates an entry, and changes what is remembered of it.
func (r *storeRun) change(e *core.Entry, c core.Change) string {
	if err := r.store.Update(r.ctx(), e.SessionID().Scope(), e.ID, c); err != nil {
		return fmt.Sprintf("Update(%q): error %v, want none", e.ID, err)
	}
	if c.Message != nil {
		e.Message, e.Tokens, e.Fingerprint = *c.Message, c.Tokens, c.Fingerprint
	}
	if c.Meta != nil {
		e.Meta = c.Meta
	}
	e.Key, e.Type = cmp.Or(c.Key, e.Key), cmp.Or(c.Type, e.Type)
	return ""
}

// eachField updates one field of an entry, another one of the next.
func (r *storeRun) eachField() string {
	changes := oneFieldEach()
	for i := range min(len(r.all), len(changes)) {
		if text := r.change(&r.all[i], changes[i]); text != "" {
			return text
		}
	}
	return ""
}

// newestAgain changes the entry that was changed last, a field at a time, and then deletes it: who is at the end of the feed is told each time.
func (r *storeRun) newestAgain(followers []*follower) string {
	told := func(after string) string {
		for _, f := range followers {
			if text := f.follow(); text != "" {
				return fmt.Sprintf("at the end of the feed, after %s of the newest entry: %s", after, text)
			}
		}
		return ""
	}
	b := r.make(batch{Entries: []entrySpec{{}}})
	if _, err := r.store.Append(r.ctx(), cloneEntries(b)); err != nil {
		return fmt.Sprintf("Append: error %v, want none", err)
	}
	r.remember(b)
	if text := told("the append"); text != "" {
		return text
	}
	e := &r.all[len(r.all)-1]
	changes := oneFieldEach()
	changes[1].Key += " " + e.ID
	for _, c := range changes {
		if text := cmp.Or(r.change(e, c), told("an update")); text != "" {
			return text
		}
	}
	if n, err := r.store.Delete(r.ctx(), e.SessionID().Scope(), []string{e.ID}); err != nil || n != 1 {
		return fmt.Sprintf("Delete(%q): %d, error %v, want 1 and none", e.ID, n, err)
	}
	r.all = r.all[:len(r.all)-1]
	return told("the deletion")
}

func feedMarks(r *storeRun) string {
	f := r.follower("agent-a", core.MaxPage)
	if page, err := f.feed.Changes(r.ctx(), core.ChangeQuery{Agent: f.agent, Limit: 5}); !unsupported(err) && (err != nil || len(page.Changes) > 0 || page.Mark != "" || page.More) {
		return fmt.Sprintf("Changes of a store in which nothing is yet: %d changes, mark %q, more %v, error %v, want nothing and the empty mark", len(page.Changes), page.Mark, page.More, err)
	}
	r.steps = append(r.steps, ordinary(9))
	if text := r.fill(); text != "" {
		return text
	}
	if text := f.follow(); text != "" {
		return text
	}
	if f.mark == "" {
		return "" // it has no feed
	}
	again, err := f.feed.Changes(r.ctx(), core.ChangeQuery{Agent: "agent-a", After: f.mark, Limit: 5})
	if err != nil || len(again.Changes) > 0 || again.Mark != f.mark || again.More {
		return fmt.Sprintf("Changes where nothing changed: %d changes, mark %q after %q, more %v, error %v", len(again.Changes), again.Mark, f.mark, again.More, err)
	}
	for _, mark := range []core.Mark{"nonsense", "0", core.Mark(strings.Repeat("9", 60))} {
		if _, err := f.feed.Changes(r.ctx(), core.ChangeQuery{Agent: "agent-a", After: mark, Limit: 5}); !errors.Is(err, core.ErrNotFound) {
			return fmt.Sprintf("Changes after the mark %q, which is nobody's: error %v, want ErrNotFound", mark, err)
		}
	}
	if text := r.feedMany(); text != "" {
		return text
	}
	return r.marksApart(f)
}

// marksApart asks a store for what followed the mark of another one that holds the same.
func (r *storeRun) marksApart(f *follower) string {
	other := r.open(r.tb)
	feed, ok := core.As[core.ChangeFeed](other)
	if !ok {
		return ""
	}
	if _, err := other.Append(r.ctx(), cloneEntries(r.all)); err != nil {
		return fmt.Sprintf("Append to another store: error %v, want none", err)
	}
	got, err := feed.Changes(r.ctx(), core.ChangeQuery{Agent: "agent-a", After: f.mark, Limit: 5})
	if unsupported(err) {
		return ""
	}
	if !errors.Is(err, core.ErrNotFound) {
		return fmt.Sprintf("Changes after a mark of another store: %d changes, error %v, want ErrNotFound", len(got.Changes), err)
	}
	return ""
}

func feedReopen(r *storeRun) string {
	r.steps = append(r.steps, ordinary(9))
	if text := r.fill(); text != "" {
		return text
	}
	f := r.follower("agent-a", 2)
	if text := f.follow(); text != "" || f.mark == "" {
		return text
	}
	if text := r.eraseSome(); text != "" {
		return text
	}
	r.store = r.reopen(r.tb, r.store)
	f.feed, _ = core.As[core.ChangeFeed](r.store)
	if text := f.follow(); text != "" {
		return "after reopening, from a mark before changes and deletions: " + text
	}
	if text := r.rework(); text != "" {
		return text
	}
	if text := f.follow(); text != "" {
		return "after reopening: " + text
	}
	return ""
}

// vectorsOf reads all vectors of an agent in a space.
func (r *storeRun) vectorsOf(v vector.Store, space, agent string, limit int) ([]vector.Vector, string) {
	var out []vector.Vector
	q := vector.Query{Space: space, Agent: agent, Limit: limit}
	for range 200 {
		page, err := v.ScanVectors(r.ctx(), q)
		if err != nil || len(page.Vectors) > limit {
			return nil, fmt.Sprintf("ScanVectors(%+v): %d vectors, error %v", q, len(page.Vectors), err)
		}
		out = append(out, page.Vectors...)
		if q.Cursor = page.Next; page.Next == "" {
			slices.SortFunc(out, func(a, b vector.Vector) int {
				if n := strings.Compare(a.ID, b.ID); n != 0 {
					return n
				}
				return a.Part - b.Part
			})
			return out, ""
		}
	}
	return nil, "ScanVectors does not end"
}

// unknownID is that of vectors whose entry is not there.
const unknownID = "E-nobody"

// embedded stores some vectors for every entry, and returns them in order.
func (r *storeRun) embedded(v vector.Store, space string) ([]vector.Vector, string) {
	var out []vector.Vector
	for i, e := range r.all {
		for part := range 1 + (i+i/4)%2 {
			out = append(out, vector.Vector{ID: e.ID, Part: part, Start: part * 3, End: part*3 + 5, Hash: 1<<63 + uint64(i), Values: []float32{float32(i) + 0.1, -float32(len(space)), float32(part)}})
		}
	}
	if len(out) > 0 {
		out[0].Values = []float32{float32(math.Copysign(0, -1)), math.SmallestNonzeroFloat32, math.MaxFloat32}
	}
	unknown := vector.Vector{ID: unknownID, Values: []float32{1, 2, 3}}
	given := append(slices.Insert(slices.Clone(out), 0, unknown), unknown)
	for i := range given {
		given[i].Values = slices.Clone(given[i].Values)
	}
	if err := v.PutVectors(r.ctx(), space, given); err != nil {
		return nil, fmt.Sprintf("PutVectors of %d: error %v, want none", len(given), err)
	}
	spoilt(given)
	slices.SortFunc(out, func(a, b vector.Vector) int {
		if n := strings.Compare(a.ID, b.ID); n != 0 {
			return n
		}
		return a.Part - b.Part
	})
	return out, ""
}

// agentsVectors are those of an agent's entries.
func (r *storeRun) agentsVectors(all []vector.Vector, agent string) []vector.Vector {
	return slices.DeleteFunc(slices.Clone(all), func(v vector.Vector) bool {
		return !slices.ContainsFunc(r.all, func(e core.Entry) bool { return e.ID == v.ID && e.Agent == agent })
	})
}

func (r *storeRun) vectorsHold(v vector.Store, space string, all []vector.Vector) string {
	for _, agent := range []string{"agent-a", "agent-b"} {
		want := r.agentsVectors(all, agent)
		entries := map[string]bool{}
		for _, w := range want {
			entries[w.ID] = true
		}
		for _, limit := range []int{1, 3, core.MaxPage} {
			got, text := r.vectorsOf(v, space, agent, limit)
			if text != "" {
				return text
			}
			if d := differs(got, want); d != "" {
				return fmt.Sprintf("vectors of agent %q in pages of %d: %s", agent, limit, d)
			}
			spoilt(got)
		}
		spaces, err := v.VectorSpaces(r.ctx(), agent)
		if err != nil {
			return fmt.Sprintf("VectorSpaces: error %v", err)
		}
		at := slices.IndexFunc(spaces, func(s vector.Space) bool { return s.Name == space })
		if len(want) > 0 && (at < 0 || spaces[at].Entries != len(entries) || spaces[at].Dimensions != 3) || len(want) == 0 && at >= 0 && spaces[at].Entries > 0 {
			return fmt.Sprintf("VectorSpaces of agent %q: %+v, want %q with 3 dimensions and %d entries", agent, spaces, space, len(entries))
		}
	}
	return cmp.Or(r.spaceCounts(v, space, all), r.lengthHolds(v, space, all))
}

func (r *storeRun) vectorStore() vector.Store {
	r.steps = append(r.steps, ordinary(9))
	v, _ := core.As[vector.Store](r.store)
	if _, err := v.VectorSpaces(r.ctx(), ""); unsupported(err) {
		return nil
	}
	return v
}

func vectorKept(r *storeRun) string {
	v := r.vectorStore()
	if v == nil {
		return ""
	}
	if text := r.fill(); text != "" {
		return text
	}
	all, text := r.embedded(v, "one/3")
	if text != "" {
		return text
	}
	others, text := r.embedded(v, "another/3")
	if text == "" {
		text = r.vectorsHold(v, "another/3", others)
	}
	if text != "" {
		return text
	}
	if text := r.vectorsHold(v, "one/3", all); text != "" {
		return text
	}
	all[0].Values, all[0].Hash, all[0].End = []float32{9, 9, 9}, 7, 99
	if err := v.PutVectors(r.ctx(), "one/3", []vector.Vector{all[0]}); err != nil {
		return fmt.Sprintf("PutVectors of a part that is there: error %v", err)
	}
	if text := r.vectorsHold(v, "one/3", all); text != "" {
		return "after a vector was replaced: " + text
	}
	// One whose text is the same may be of another passage, or by another model of the same name.
	for _, one := range []struct {
		field  string
		change func()
	}{
		{"values", func() { all[0].Values = []float32{9, 8, 9} }}, {"hash", func() { all[0].Hash++ }},
		{"start", func() { all[0].Start++ }}, {"end", func() { all[0].End++ }},
	} {
		one.change()
		given := all[0]
		given.Values = slices.Clone(given.Values)
		if err := v.PutVectors(r.ctx(), "one/3", []vector.Vector{given}); err != nil {
			return fmt.Sprintf("PutVectors of one that differs by its %s: error %v", one.field, err)
		}
		if text := r.vectorsHold(v, "one/3", all); text != "" {
			return fmt.Sprintf("after a vector was replaced by one that differs by its %s: %s", one.field, text)
		}
	}
	for _, wrong := range [][]vector.Vector{{{ID: all[0].ID, Values: []float32{1, 2}}}, {{ID: all[0].ID, Values: []float32{1, 2, 3}}, {ID: all[1].ID, Values: []float32{1}}}} {
		if err := v.PutVectors(r.ctx(), "one/3", wrong); !errors.Is(err, core.ErrInvalid) {
			return fmt.Sprintf("PutVectors of another length: error %v, want ErrInvalid", err)
		}
	}
	if text := r.vectorsHold(v, "one/3", all); text != "" {
		return "after vectors that were refused: " + text
	}
	mixed := []vector.Vector{{ID: all[0].ID, Values: []float32{1, 2}}, {ID: all[0].ID, Part: 1, Values: []float32{1}}}
	if err := v.PutVectors(r.ctx(), "mixed/2", mixed); !errors.Is(err, core.ErrInvalid) {
		return fmt.Sprintf("PutVectors of two lengths into a new space: error %v, want ErrInvalid", err)
	}
	if spaces, err := v.VectorSpaces(r.ctx(), "nobody"); err != nil || len(spaces) > 0 {
		return fmt.Sprintf("VectorSpaces of an agent without vectors: %+v, error %v, want none", spaces, err)
	}
	// Vectors of an id that was not there were passed over, and do not wait for it.
	nobody := plainEntry(0, sessionOf(0), 1000)
	nobody.ID = unknownID
	if _, err := r.store.Append(r.ctx(), cloneEntries([]core.Entry{nobody})); err != nil {
		return fmt.Sprintf("Append: error %v, want none", err)
	}
	r.remember([]core.Entry{nobody})
	text = r.vectorsHold(v, "one/3", all)
	if text == "" {
		text = r.vectorsHold(v, "another/3", others)
	}
	if text != "" {
		return "after an entry came whose vectors had come before it: " + text
	}
	// The order of names is neither that of numbers, up or down, nor that in which the spaces were made.
	for space, vectors := range map[string][]vector.Vector{"one/3": {{ID: unknownID, Values: []float32{1, 2, 3}}}, "between/2": {{ID: all[0].ID, Values: []float32{1, 2}}}} {
		if err := v.PutVectors(r.ctx(), space, vectors); err != nil {
			return fmt.Sprintf("PutVectors: error %v, want none", err)
		}
	}
	for _, agent := range []string{"", "agent-a"} {
		spaces, err := v.VectorSpaces(r.ctx(), agent)
		var names []string
		for _, s := range spaces {
			names = append(names, s.Name)
		}
		want := []string{"another/3", "between/2", "one/3"}
		if agent != "" && !slices.Contains(idsOf(r.in(core.Scope{Agent: agent})), all[0].ID) {
			want = []string{"another/3", "one/3"}
		}
		if err != nil || !slices.Equal(names, want) {
			return fmt.Sprintf("VectorSpaces of agent %q: %+v, error %v, want %q, by name", agent, spaces, err, want)
		}
	}
	return inTurn(func() string { return r.vectorsMoving(v) }, func() string { return r.vectorsMany(v) }, func() string { return r.vectorsExact(v) })
}

func vectorGoes(r *storeRun) string {
	v := r.vectorStore()
	if v == nil {
		return ""
	}
	if text := r.fill(); text != "" {
		return text
	}
	all, text := r.embedded(v, "one/3")
	if text != "" {
		return text
	}
	spaces := map[string][]vector.Vector{"another/3": nil, "one/30": nil, "one": nil, "ONE/3": nil, "one/3 ": nil} // beside the one that is dropped
	for name := range spaces {
		if spaces[name], text = r.embedded(v, name); text != "" {
			return text
		}
	}
	var deleted core.Entry
	for i := len(r.all) - 1; i >= 0; i -= 2 {
		e := r.all[i]
		scope := e.SessionID().Scope()
		if i%4 > 1 {
			if text := r.empty(e); text != "" {
				return text
			}
		} else if _, err := r.store.Delete(r.ctx(), scope, []string{e.ID}); err != nil {
			return fmt.Sprintf("Delete(%q): error %v", e.ID, err)
		} else {
			deleted = e
		}
		r.all = slices.Delete(r.all, i, i+1)
	}
	if text := r.vectorsHold(v, "one/3", all); text != "" {
		return "after every second entry was deleted or emptied: " + text
	}
	if _, err := r.store.Append(r.ctx(), cloneEntries([]core.Entry{deleted})); err != nil {
		return fmt.Sprintf("Append of an entry that was deleted: error %v, want none", err)
	}
	if text := r.vectorsHold(v, "one/3", all); text != "" {
		return "after an entry that was deleted was appended again: " + text
	}
	if err := v.DropVectors(r.ctx(), "one/3", "agent-b"); err != nil {
		return fmt.Sprintf("DropVectors: error %v", err)
	}
	if text := r.vectorsHold(v, "one/3", r.agentsVectors(all, "agent-a")); text != "" {
		return "after those of one agent were dropped: " + text
	}
	for _, name := range []string{"one/3", "_n%", "one*", ""} { // all but the first name no space
		if err := v.DropVectors(r.ctx(), name, ""); err != nil && name != "" {
			return fmt.Sprintf("DropVectors of space %q: error %v", name, err)
		}
	}
	if text := r.vectorsHold(v, "one/3", nil); text != "" {
		return "after all were dropped: " + text
	}
	if len(r.all) > 0 {
		if err := v.PutVectors(r.ctx(), "one/3", []vector.Vector{{ID: r.all[0].ID, End: 2, Values: []float32{1, 2}}}); err != nil {
			return fmt.Sprintf("PutVectors of another length, after all of the space were dropped: error %v, want none", err)
		}
	}
	for name, others := range spaces {
		if text := r.vectorsHold(v, name, others); text != "" {
			return fmt.Sprintf("after those of another space than %q were dropped: %s", name, text)
		}
	}
	return r.lengthFree(v)
}
