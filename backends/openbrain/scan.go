package openbrain

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"sort"
	"strconv"
	"strings"
	"sync"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/message"
)

// maxSnapshots is how many scans may be under way before the one that was idle longest has to list again.
const maxSnapshots = 8

// Scan implements core.Store. The first page lists the agent's thoughts, or only the newest of them where those are what is asked for; the following pages come
// from what was listed then, or, if that had to make room for other scans, from a new listing at the same place.
func (s *Store) Scan(ctx context.Context, q core.ScanQuery) (core.Page, error) {
	if err := s.ready(ctx, "scan"); err != nil {
		return core.Page{}, err
	}
	if err := q.Check("openbrain: scan"); err != nil {
		return core.Page{}, err
	}
	var from *cursor
	if q.Cursor != "" {
		c, err := parseCursor(q)
		if err != nil {
			return core.Page{}, failed("scan", "", err)
		}
		from = &c
	}
	var records []record
	name, there := "", false
	if from != nil {
		name = from.Snapshot
		records, there = s.scans.get(name, from.Query)
	}
	if !there {
		var err error
		if records, err = s.scanned(ctx, q); err != nil {
			return core.Page{}, failed("scan", "", err)
		}
	}
	start := 0
	if from != nil {
		start = after(records, from.Place, q.Reverse)
	}
	end := min(start+q.Limit, len(records))
	page := core.Page{Entries: make([]core.Entry, 0, end-start)}
	for _, r := range records[start:end] {
		page.Entries = append(page.Entries, r.entry.Clone())
	}
	if end == len(records) {
		s.scans.remove(name)
		return page, nil
	}
	if !there {
		name = s.scans.put(snapshot{agent: q.Scope.Agent, query: fingerprint(q), records: records})
	}
	page.Next = cursor{Snapshot: name, Query: fingerprint(q), Place: records[end-1].place()}.text()
	return page, nil
}

// selected returns the records a query asks for, in its order, of visible ones in theirs. The list may be a part of the one given.
func selected(visible []record, q core.ScanQuery) []record {
	if q.Scope.Session != "" {
		begin := sort.Search(len(visible), func(i int) bool {
			e := &visible[i].entry
			return cmp.Or(strings.Compare(e.Session, q.Scope.Session), cmp.Compare(e.Seq, q.FromSeq)) >= 0
		})
		visible = visible[begin:]
		visible = visible[:sort.Search(len(visible), func(i int) bool {
			e := &visible[i].entry
			return e.Session != q.Scope.Session || q.ToSeq > 0 && e.Seq >= q.ToSeq
		})]
	}
	if q.Type == "" && !q.Reverse {
		return slices.Clip(visible)
	}
	var out []record
	for i := range visible {
		if q.Type == "" || visible[i].entry.Type == q.Type {
			out = append(out, visible[i])
		}
	}
	if q.Reverse {
		slices.Reverse(out)
	}
	return out
}

// maxPlaces bounds how many positions are filled in.
const maxPlaces = 100_000

// withPlaces fills the positions that a query names and a server that shows its newest thoughts only does not show: who knows that there is
// something finds its place. Such entries are hidden, as erased ones are. Behind an entry that is visible there is nothing that is not.
func withPlaces(records, visible []record, q core.ScanQuery) []record {
	if q.Scope.Session == "" || q.Type != "" || q.ToSeq <= 0 || q.ToSeq-q.FromSeq > maxPlaces {
		return records
	}
	if all := selected(visible, core.ScanQuery{Scope: q.Scope}); len(all) > 0 {
		q.ToSeq = min(q.ToSeq, all[len(all)-1].entry.Seq)
	}
	known := make(map[int64]bool, len(records))
	for _, r := range records {
		known[r.entry.Seq] = true
	}
	for seq := q.FromSeq; seq < q.ToSeq; seq++ {
		if known[seq] {
			continue
		}
		id := sessionMark(q.Scope.Session) + "-" + strconv.FormatInt(seq, 10)
		e := core.Entry{
			ID: "unseen-" + hex.EncodeToString([]byte(id)), Agent: q.Scope.Agent, Session: q.Scope.Session, Seq: seq, Role: message.User, Type: core.TypeErased,
			Key: "unseen:" + id, Message: message.New(message.User, ""), Meta: map[string]string{"unseen": "true"},
		}
		e.Fingerprint = "unseen:" + id
		records = append(records, record{entry: e})
	}
	slices.SortFunc(records, record.compare)
	if q.Reverse {
		slices.Reverse(records)
	}
	return records
}

// after returns the index of the first record behind a place.
func after(records []record, p place, reverse bool) int {
	i, found := slices.BinarySearchFunc(records, p, func(r record, p place) int {
		if reverse {
			return p.compare(r.place())
		}
		return r.place().compare(p)
	})
	if found {
		i++
	}
	return i
}

// cursor is a place in a scan.
type cursor struct {
	Snapshot string `json:"n"`
	// Query is the fingerprint of the query that the cursor belongs to.
	Query string `json:"h"`
	Place place  `json:"p"`
}

func (c cursor) text() core.Cursor {
	c.Place.Session = pack(c.Place.Session)
	b, _ := json.Marshal(c) // strings and integers: cannot fail
	return core.Cursor(base64.RawURLEncoding.EncodeToString(b))
}

func parseCursor(q core.ScanQuery) (cursor, error) {
	var c cursor
	b, err := base64.RawURLEncoding.DecodeString(string(q.Cursor))
	if err == nil {
		err = json.Unmarshal(b, &c)
	}
	if err == nil {
		c.Place.Session, err = unpack(c.Place.Session)
	}
	if err != nil || c.Query != fingerprint(q) {
		return cursor{}, fmt.Errorf("cursor: is not of this scope and direction; begin with an empty one: %w", core.ErrInvalid)
	}
	return c, nil
}

// fingerprint tells queries apart that need different cursors.
func fingerprint(q core.ScanQuery) string {
	if q.Scope.Session == "" {
		q.FromSeq, q.ToSeq = 0, 0
	}
	return string(message.Digest("").Add(fmt.Sprintf("%q %q %t %d %d %q", q.Scope.Agent, q.Scope.Session, q.Reverse, q.FromSeq, q.ToSeq, q.Type)))
}

// snapshots keeps what scans under way have listed.
type snapshots struct {
	mu   sync.Mutex
	next uint64
	list []snapshot // longest idle first
}

type snapshot struct {
	name, agent, query string
	records            []record
}

func (s *snapshots) put(x snapshot) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.next++
	x.name = strconv.FormatUint(s.next, 36)
	if len(s.list) >= maxSnapshots {
		s.list = slices.Delete(s.list, 0, 1)
	}
	s.list = append(s.list, x)
	return x.name
}

// get returns a snapshot of that name and query. Names alone may be those of another store's cursors.
func (s *snapshots) get(name, query string) ([]record, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.IndexFunc(s.list, func(x snapshot) bool { return x.name == name && x.query == query })
	if i < 0 {
		return nil, false
	}
	found := s.list[i]
	s.list = append(slices.Delete(s.list, i, i+1), found)
	return found.records, true
}

func (s *snapshots) remove(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.list = slices.DeleteFunc(s.list, func(x snapshot) bool { return x.name == name })
}

// outdate drops an agent's snapshots: they may hold what was erased or changed.
func (s *snapshots) outdate(agent string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.list = slices.DeleteFunc(s.list, func(x snapshot) bool { return x.agent == agent })
}

func (s *snapshots) drop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.list = nil
}
