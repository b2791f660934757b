package conformance

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/message"
)

// oddChecks hold stores to data that is as odd as life.
func oddChecks() []Check {
	return []Check{
		{ID: "odd.names", Promise: 8, Suite: SuiteStore, store: oddNames, once: true,
			Rule: "agents and sessions whose names are alike (case, blanks, normalisation, where a separator stands, bytes that are no text) are kept apart, in entries and views, by searches, feeds and figures"},
		{ID: "odd.keys", Promise: 6, Suite: SuiteStore, store: oddKeys, once: true,
			Rule: "keys and ids that are alike are different ones, and each is recognised again"},
		{ID: "odd.positions", Promise: 5, Suite: SuiteStore, store: oddPositions, once: true,
			Rule: "positions may have gaps and come in any order: a scan is in order of Seq all the same, and a range means what it says"},
		{ID: "odd.fields", Promise: 2, Suite: SuiteStore, store: oddFields, once: true,
			Rule: "every field of an entry comes back as it was given, by Get and Scan: raw bytes that are no text, long texts, times far away"},
		{ID: "odd.reopen", Promise: 2, Suite: SuiteStore, store: oddReopen, Needs: []Need{NeedReopen}, once: true,
			Rule: "what is odd, in fields and names, comes back as it was given after the store was closed and opened again, and after an update once more"},
		{ID: "odd.batch", Promise: 2, Suite: SuiteStore, store: oddBatch, once: true, dear: true,
			Rule: "a batch, a page, a Get and a Delete may hold a thousand entries and more, also such as come twice, and an agent hundreds of sessions"},
		{ID: "odd.twice", Promise: 6, Suite: SuiteStore, store: oddTwice, once: true,
			Rule: "the same key twice in one batch is stored once; one id with two keys is ErrConflict, and nothing of that batch is stored"},
		{ID: "odd.stays", Promise: 2, Suite: SuiteStore, store: oddStays,
			Rule: "appending under a known key changes nothing of what is stored, whatever else it says, and what is new in the same batch is stored"},
	}
}

// plainEntry is an ordinary entry at a place of its own.
func plainEntry(n int, id core.SessionID, seq int64) core.Entry {
	e := entrySpec{Size: 3}.entry(n, seq)
	e.Agent, e.Session, e.ID, e.Key = id.Agent, id.Session, fmt.Sprintf("E-odd-%d", n), fmt.Sprintf("odd:%d", n)
	return e
}

func oddKeys(r *storeRun) string {
	id := sessionOf(0)
	keys := []string{"key", "Key", "KEY", "key ", " key", "key\n", "k", "ke", "key:1", "key:01", "key:1.0", "1", "01", "1.0", "caf\u00e9", "cafe\u0301", "cafe", "%", "_", "key%", "'", "\"", "\\", "0", "null",
		strings.Repeat("k", 400), strings.Repeat("k", 401), "key\u200b", "界", "会", "../key",
		"😀", "😁", "𝒜", "𝒝", "key😀", "key😁", "\ufffd", "?", "\xff", "\xfe", "key\xff", "key\xfe", "\x00", "\x00\x00", "key\x00", "key\x00a", "key\x00b"}
	names := []string{"E-a", "E-A", "e-a", "E_a", "E-a-", "E--a", "Ea", strings.Repeat("x", 63), strings.Repeat("x", 64), "1", "01", "0", "-", "_"}
	var batch []core.Entry
	for i, key := range keys {
		e := plainEntry(i, id, int64(i))
		e.Key = key
		batch = append(batch, e)
	}
	for i, name := range names {
		e := plainEntry(len(batch)+i, id, int64(len(batch)))
		e.ID = name
		batch = append(batch, e)
	}
	res, err := r.store.Append(r.ctx(), cloneEntries(batch))
	if err != nil || res.Duplicates != 0 {
		return fmt.Sprintf("Append of %d entries with different keys: %d duplicates, error %v, want none", len(batch), res.Duplicates, err)
	}
	r.remember(batch)
	if text := r.readAll(); text != "" {
		return text
	}
	for _, e := range batch {
		again := cloneEntries([]core.Entry{e})
		again[0].ID = "E-other"
		again[0].Seq += 1000
		if res, err := r.store.Append(r.ctx(), again); err != nil || res.Duplicates != 1 || len(res.IDs) != 1 || res.IDs[0] != e.ID {
			return fmt.Sprintf("Append under the known key %.20q: %+v, error %v, want a duplicate of %q", e.Key, res, err, e.ID)
		}
	}
	// An id means one entry whatever the session. A store that cannot look into those of other agents may keep one of theirs besides, but not in its place.
	for _, who := range []int{1, 2} {
		other := plainEntry(900, sessionOf(who), 0)
		other.ID = batch[0].ID
		_, err := r.store.Append(r.ctx(), cloneEntries([]core.Entry{other}))
		if err == nil && other.Agent != id.Agent {
			r.remember([]core.Entry{other})
		} else if !errors.Is(err, core.ErrConflict) {
			return fmt.Sprintf("Append of id %q, which an entry of session %s has, in %s: error %v, want ErrConflict", other.ID, id, other.SessionID(), err)
		}
	}
	if text := r.count(r.entries); text != "" {
		return text
	}
	return r.getAll()
}

func oddPositions(r *storeRun) string {
	id := sessionOf(0)
	for i, seq := range []int64{7, 3, 1 << 40, 0, 100, 99, 12, 1<<53 + 1, 1 << 53, 5, 101} {
		e := plainEntry(i, id, seq)
		if res, err := r.store.Append(r.ctx(), cloneEntries([]core.Entry{e})); err != nil || res.Duplicates != 0 {
			return fmt.Sprintf("Append at position %d: %d duplicates, error %v, want none", seq, res.Duplicates, err)
		}
		r.remember([]core.Entry{e})
	}
	bySeq := func(a, b core.Entry) int { return cmp.Compare(a.Seq, b.Seq) }
	slices.SortFunc(r.entries[id], bySeq)
	if text := r.readAll(); text != "" {
		return text
	}
	if t, ok := core.As[core.Tailer](r.store); ok {
		if got, err := t.Tail(r.ctx(), id); (err != nil || got.Next != 1<<53+2) && !errors.Is(err, errors.ErrUnsupported) {
			return fmt.Sprintf("Tail of a session that ends at position %d: %+v, error %v", int64(1<<53+1), got, err)
		}
	}
	for _, span := range [][2]int64{{0, 0}, {-4, 0}, {4, 12}, {5, 13}, {8, 0}, {0, 7}, {100, 102}, {1 << 40, 1 << 53}, {1<<53 + 1, 0}, {13, 99}, {0, -3}, {12, 12}, {50, 20}} {
		var want []string
		for _, e := range r.entries[id] {
			if e.Seq >= span[0] && (span[1] <= 0 || e.Seq < span[1]) {
				want = append(want, e.ID)
			}
		}
		for _, reverse := range []bool{false, true} {
			if reverse {
				slices.Reverse(want)
			}
			for _, limit := range []int{1, 3, core.MaxPage} {
				text := r.settled(func() string {
					got, text := r.scan(core.ScanQuery{Scope: id.Scope(), Limit: limit, FromSeq: span[0], ToSeq: span[1], Reverse: reverse})
					if text != "" {
						return text
					}
					return sameIDs(idsOf(got), want)
				})
				if text != "" {
					return fmt.Sprintf("scan from %d to %d, limit %d, reverse %v: %s", span[0], span[1], limit, reverse, text)
				}
			}
		}
	}
	return r.roundPositions(len(r.all))
}

// roundPositions appends, from an entry's number on, entries at both sides of where a number gets longer, in decimal and in binary.
func (r *storeRun) roundPositions(n int) string {
	id := sessionOf(1)
	round := []int64{1 << 31, 1 << 32}
	for p := int64(10); p < 1<<53; p *= 10 {
		round = append(round, p)
	}
	var batch []core.Entry
	for _, p := range round {
		batch = append(batch, plainEntry(n+len(batch), id, p), plainEntry(n+len(batch)+1, id, p-1))
	}
	if res, err := r.store.Append(r.ctx(), cloneEntries(batch)); err != nil || res.Duplicates != 0 {
		return fmt.Sprintf("Append of %d entries at round positions: %d duplicates, error %v, want none", len(batch), res.Duplicates, err)
	}
	r.remember(batch)
	slices.SortFunc(batch, func(a, b core.Entry) int { return cmp.Compare(a.Seq, b.Seq) })
	for _, reverse := range []bool{false, true} {
		if reverse {
			slices.Reverse(batch)
		}
		for _, limit := range []int{5, core.MaxPage} {
			text := r.settled(func() string {
				got, text := r.scan(core.ScanQuery{Scope: id.Scope(), Limit: limit, Reverse: reverse})
				return cmp.Or(text, sameEntries(got, batch))
			})
			if text != "" {
				return fmt.Sprintf("scan of round positions, limit %d, reverse %v: %s", limit, reverse, text)
			}
		}
	}
	return ""
}

// oddTexts are texts that somebody may want to tidy or to shorten.
func oddTexts() []string {
	return []string{
		"", " leading and trailing ", "line\r\nline\r", "two  blanks", "\ufeffmarked", "nul\x00nul", "a\u0301 \u00e1", "\u2028\u2029\ufeff", "<&>'\"\\", "👩‍👩‍👧‍👦",
		strings.Repeat("界", 70<<10), strings.Repeat("x", 65535), strings.Repeat("x", 65537),
		"not \xff\xfe text \xc3(",
	}
}

// oddEntries are entries of which each is odd in one way.
func oddEntries(id core.SessionID) []core.Entry {
	var out []core.Entry
	next := func(change func(*core.Entry)) {
		e := fullEntry(len(out), id)
		change(&e)
		out = append(out, e)
	}
	next(func(*core.Entry) {})
	for _, raw := range []string{
		"{ \"role\" : \"user\",\n\t\"content\":\"\\u00e9\\/ \\ud83d\\ude00\" , \"n\": 1.0e+2, \"a\":[ ] }", `{"b":1,"a":2,"b":3}`, "{}", "null", "\"\"", " ", "\n", "\ufeff{}",
		"{\"a\":\"a\u0301  <b>&\"}\r\n", "\x00", "\xff\xfe\xfd", "{\"a\":\"\x00\xff\"}", strings.Repeat("\x00", 300), strings.Repeat("a\xff", 32<<10), strings.Repeat("0123456789abcdef", 64<<10),
	} {
		next(func(e *core.Entry) {
			e.Message.Raw, e.Message.Parts[5].Raw = []byte(raw), []byte(raw[:min(len(raw), 1<<16+1)])
		})
	}
	for _, text := range oddTexts() {
		next(func(e *core.Entry) {
			for i := range e.Message.Parts {
				if i == 2 || len(text) <= 1<<16 { // the largest is tried in one part
					e.Message.Parts[i].Text = text
				}
			}
			e.Message.Parts[2].Args = text
		})
	}
	for _, t := range []time.Time{
		epoch.Add(-time.Hour), epoch, epoch, time.Unix(0, 0).UTC(), time.Unix(-1, 5e6).UTC(), time.Date(1601, 1, 1, 0, 0, 0, 0, time.UTC),
		time.Date(2262, 4, 12, 0, 0, 0, 0, time.UTC), time.Date(9999, 12, 31, 23, 59, 59, 999e6, time.UTC), epoch.Add(123 * time.Millisecond),
	} {
		next(func(e *core.Entry) { e.Time, e.Message.Time = t, t })
	}
	next(func(e *core.Entry) { e.Message.Time = time.Time{} })
	for _, meta := range []map[string]string{nil, {}, {"": "empty key"}, {"k": ""}, {"k": " v \n", "t": "\tv  v"}, {"nul\x00": "\x00"}, {"a.b": "1", "a": "2", "A": "3", "a ": "4"}, {"big": strings.Repeat("m", 70<<10)}} {
		next(func(e *core.Entry) { e.Meta = meta })
	}
	for _, typ := range []core.EntryType{core.TypeHeartbeat, core.TypeSummary, core.TypeSubagent, core.TypeErased} {
		next(func(e *core.Entry) { e.Type = typ })
	}
	for _, role := range []message.Role{message.System, message.User, message.Tool} {
		next(func(e *core.Entry) { e.Role, e.Message.Role = role, role })
	}
	next(func(e *core.Entry) { e.Tokens, e.Turn = 0, 0 })
	next(func(e *core.Entry) { e.Tokens, e.Turn = 1<<31, 1<<40 })
	next(func(e *core.Entry) { e.Message.Parts, e.Message.Raw = nil, nil })
	next(func(e *core.Entry) { // a turn that called many tools
		e.Message.Parts = slices.Repeat(e.Message.Parts, 150/len(e.Message.Parts))
		for i := range e.Message.Parts {
			e.Message.Parts[i].Text = fmt.Sprint("part ", i)
		}
	})
	next(func(e *core.Entry) { e.Message.Edited, e.Message.Raw = false, nil })
	for _, kind := range []message.Kind{message.Text, message.ToolCall, message.ToolResult} {
		next(func(e *core.Entry) { // the same again, side by side and further on
			i := slices.IndexFunc(e.Message.Parts, func(p message.Part) bool { return p.Kind == kind })
			e.Message.Parts = append(slices.Insert(e.Message.Parts, i, e.Message.Parts[i]), e.Message.Parts[i])
		})
	}
	return out
}

func oddFields(r *storeRun) string {
	return inTurn(r.appendOdd, r.readAll, r.updateOdd, r.readAll)
}

// appendOdd appends entries of which each is odd, one by one.
func (r *storeRun) appendOdd() string {
	odd := oddEntries(sessionOf(0))
	for _, e := range odd {
		if _, err := r.store.Append(r.ctx(), cloneEntries([]core.Entry{e})); err != nil {
			return fmt.Sprintf("Append of an entry (raw %.30q, text %.30q): error %v, want none", e.Message.Raw, e.Text(), err)
		}
	}
	r.remember(odd)
	return ""
}

// updateOdd gives each of them the contents of the next one.
func (r *storeRun) updateOdd() string {
	odd := oddEntries(sessionOf(0))
	for i := range odd {
		from := odd[(i+1)%len(odd)]
		m := from.Message
		if text := r.change(&r.all[i], core.Change{Message: &m, Tokens: from.Tokens, Fingerprint: from.Fingerprint, Meta: nonNil(from.Meta)}); text != "" {
			return fmt.Sprintf("to raw %.30q: %s", m.Raw, text)
		}
	}
	return ""
}

func oddReopen(r *storeRun) string {
	if text := r.appendOdd(); text != "" {
		return text
	}
	names := alikeNames()
	for i, id := range names {
		e := plainEntry(1000+i, id, 0)
		if _, err := r.store.Append(r.ctx(), cloneEntries([]core.Entry{e})); err != nil {
			return fmt.Sprintf("Append into session %q of agent %q: error %v, want none", id.Session, id.Agent, err)
		}
		r.remember([]core.Entry{e})
	}
	reopened := func() string {
		r.store = r.reopen(r.tb, r.store)
		if text := r.readAll(); text != "" {
			return "after reopening: " + text
		}
		return ""
	}
	return inTurn(reopened, r.updateOdd, reopened)
}

func nonNil(m map[string]string) map[string]string {
	if m == nil {
		return map[string]string{}
	}
	return m
}

func oddBatch(r *storeRun) string {
	const many = core.MaxPage + 203
	r.watch.patient(3 * time.Minute) // a request for each entry is allowed
	id := sessionOf(0)
	batch := make([]core.Entry, many)
	for i := range batch {
		batch[i] = plainEntry(i, id, int64(i))
	}
	if text := r.manySessions(many); text != "" {
		return text
	}
	res, err := r.store.Append(r.ctx(), cloneEntries(batch))
	if err != nil {
		return fmt.Sprintf("Append of %d entries: error %v, want none", many, err)
	}
	if d := sameIDs(res.IDs, idsOf(batch)); d != "" {
		return fmt.Sprintf("Append of %d entries: %s", many, d)
	}
	r.remember(batch)
	for _, limit := range []int{core.MaxPage, core.MaxPage - 1, 100} {
		for _, reverse := range []bool{false, true} {
			want := idsOf(batch)
			if reverse {
				slices.Reverse(want)
			}
			text := r.settled(func() string {
				got, text := r.scan(core.ScanQuery{Scope: id.Scope(), Limit: limit, Reverse: reverse})
				if text != "" {
					return text
				}
				return sameIDs(idsOf(got), want)
			})
			if text != "" {
				return fmt.Sprintf("scan of %d entries, limit %d, reverse %v: %s", many, limit, reverse, text)
			}
		}
	}
	if text := r.getMany(id, idsOf(batch)); text != "" {
		return text
	}
	gone := eachTwice(idsOf(batch[1:]))
	if n, err := r.store.Delete(r.ctx(), id.Scope(), gone); err != nil || n != many-1 {
		return fmt.Sprintf("Delete of %d ids, each of them twice: %d, error %v, want %d and none", many-1, n, err, many-1)
	}
	r.all, r.entries[id] = r.all[:1], r.entries[id][:1]
	if text := r.refusedWhole(id); text != "" {
		return text
	}
	return r.readAll()
}

// getMany asks for a thousand ids: the last first, drawn ones twice, each twice in a row, and with one that is not there.
func (r *storeRun) getMany(id core.SessionID, ids []string) string {
	twice := reversed(ids)
	for _, i := range r.drawn(len(ids)/4, len(ids)) {
		twice = append(twice, ids[i])
	}
	for what, asked := range map[string][]string{"": reversed(ids), ", some of them twice": twice, ", each of them twice": eachTwice(ids)} {
		got, err := r.store.Get(r.ctx(), id.Scope(), slices.Clone(asked))
		if err != nil {
			return fmt.Sprintf("Get of %d ids%s: error %v, want none", len(asked), what, err)
		}
		if d := sameIDs(idsOf(got), asked); d != "" {
			return fmt.Sprintf("Get of %d ids%s: %s", len(asked), what, d)
		}
	}
	missing := slices.Clone(ids)
	missing[r.drawn(1, len(ids))[0]] = "E-none"
	if got, err := r.store.Get(r.ctx(), id.Scope(), missing); !errors.Is(err, core.ErrNotFound) || len(got) > 0 {
		return fmt.Sprintf("Get of %d ids, one of which is unknown: %d entries, error %v, want none and ErrNotFound", len(ids), len(got), err)
	}
	return ""
}

// refusedWhole appends thousands of entries, of which the last cannot be stored: none of them is.
func (r *storeRun) refusedWhole(id core.SessionID) string {
	const many = 6007
	r.watch.beat()
	batch := make([]core.Entry, many)
	for i := range batch {
		batch[i] = plainEntry(10_000+i, id, int64(10_000+i))
	}
	batch[many-1].Seq = r.all[0].Seq
	if _, err := r.store.Append(r.ctx(), cloneEntries(batch)); !errors.Is(err, core.ErrConflict) {
		return fmt.Sprintf("Append of %d entries, the last at a position that is taken: error %v, want ErrConflict", many, err)
	}
	for _, i := range []int{0, many / 2, many - 2} {
		if _, err := r.store.Get(r.ctx(), id.Scope(), []string{batch[i].ID}); !errors.Is(err, core.ErrNotFound) {
			return fmt.Sprintf("Append of %d entries was refused, and Get of number %d of them: error %v, want ErrNotFound", many, i+1, err)
		}
	}
	return ""
}

// manySessions appends entries, from number n on, to more sessions of one agent than somebody may have thought of, and scans them all.
func (r *storeRun) manySessions(n int) string {
	const sessions = 1100 // more than a page
	agent := core.Scope{Agent: "many"}
	batch := make([]core.Entry, sessions)
	for i := range batch {
		batch[i] = plainEntry(n+i, core.SessionID{Agent: agent.Agent, Session: fmt.Sprint("one of many ", i)}, 0)
	}
	if _, err := r.store.Append(r.ctx(), cloneEntries(batch)); err != nil {
		return fmt.Sprintf("Append to %d sessions: error %v, want none", sessions, err)
	}
	r.remember(batch)
	defer func() { r.all, r.entries = nil, nil }()
	for _, reverse := range []bool{false, true} {
		for _, limit := range []int{64, core.MaxPage} {
			text := r.settled(func() string { return r.sameSet(core.ScanQuery{Scope: agent, Limit: limit, Reverse: reverse}) })
			if text != "" {
				return fmt.Sprintf("scan of an agent with %d sessions, limit %d, reverse %v: %s", sessions, limit, reverse, text)
			}
		}
	}
	return ""
}

func oddTwice(r *storeRun) string {
	id := sessionOf(0)
	a, b, c := plainEntry(0, id, 0), plainEntry(1, id, 1), plainEntry(2, id, 2)
	again := a
	again.ID, again.Seq = "E-again", 9
	same := a
	res, err := r.store.Append(r.ctx(), cloneEntries([]core.Entry{a, b, again, same, c}))
	if err != nil || res.Duplicates != 2 {
		return fmt.Sprintf("Append of 5 entries with 3 keys: %d duplicates, error %v, want 2 and none", res.Duplicates, err)
	}
	if d := sameIDs(res.IDs, []string{a.ID, b.ID, a.ID, a.ID, c.ID}); d != "" {
		return "Append of 5 entries with 3 keys: " + d
	}
	r.remember([]core.Entry{a, b, c})
	if text := r.readAll(); text != "" {
		return text
	}
	d, e := plainEntry(3, id, 3), plainEntry(4, id, 4)
	e.ID = d.ID
	if _, err := r.store.Append(r.ctx(), cloneEntries([]core.Entry{d, e})); !errors.Is(err, core.ErrConflict) {
		return fmt.Sprintf("Append of two entries with one id and two keys: error %v, want ErrConflict", err)
	}
	if _, err := r.store.Get(r.ctx(), id.Scope(), []string{d.ID}); !errors.Is(err, core.ErrNotFound) {
		return fmt.Sprintf("Get of an entry of a refused batch: error %v, want ErrNotFound", err)
	}
	if res, err := r.store.Append(r.ctx(), nil); err != nil || len(res.IDs) != 0 {
		return fmt.Sprintf("Append of nothing: %d ids, error %v, want none", len(res.IDs), err)
	}
	if n, err := r.store.Delete(r.ctx(), id.Scope(), nil); err != nil || n != 0 {
		return fmt.Sprintf("Delete of nothing: %d, error %v, want none", n, err)
	}
	if got, err := r.store.Get(r.ctx(), id.Scope(), []string{b.ID, a.ID, b.ID}); err != nil || sameIDs(idsOf(got), []string{b.ID, a.ID, b.ID}) != "" {
		return fmt.Sprintf("Get of an id twice: %q, error %v", idsOf(got), err)
	}
	return r.readAll()
}

func oddStays(r *storeRun) string {
	if text := r.fill(); text != "" || len(r.all) == 0 {
		return text
	}
	for i, e := range r.all {
		other := entrySpec{Who: 0, Size: 5, Shape: 1}.entry(5000+i, e.Seq+2000)
		other.Agent, other.Session, other.Key, other.ID = e.Agent, e.Session, e.Key, e.ID
		if i%2 == 1 {
			other.ID = fmt.Sprintf("E-stays-%d", i)
		}
		if own := r.entries[e.SessionID()]; i%4 < 2 {
			other.Seq = own[len(own)-1].Seq // another entry's, unless this is the last
			if other.Seq == e.Seq {
				other.Seq = own[0].Seq
			}
		}
		fresh := r.make(batch{Entries: []entrySpec{{Who: i % 3}}})[0]
		given := []core.Entry{other, fresh}
		if i%3 == 0 {
			slices.Reverse(given)
		}
		res, err := r.store.Append(r.ctx(), cloneEntries(given))
		if err != nil || res.Duplicates != 1 || len(res.IDs) != 2 {
			return fmt.Sprintf("Append of a known key and a new one: %+v, error %v, want one duplicate", res, err)
		}
		if want := map[bool][]string{true: {fresh.ID, e.ID}, false: {e.ID, fresh.ID}}[i%3 == 0]; sameIDs(res.IDs, want) != "" {
			return fmt.Sprintf("Append of a known key and a new one: ids %q, want %q", res.IDs, want)
		}
		r.remember([]core.Entry{fresh})
	}
	return r.readAll()
}
