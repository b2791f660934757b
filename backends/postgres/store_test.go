package postgres_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/contextengine/contextengine/backends/postgres"
	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/message"
	"github.com/contextengine/contextengine/core/upkeep"
	"github.com/contextengine/contextengine/internal/drawn"
)

// TestIsolation keeps a thousand agents in one store, all with the same words, and asks each for what belongs to others.
func TestIsolation(t *testing.T) {
	t.Parallel()
	const agents = 1000
	s := open(t, fresh(t))
	rnd := drawn.Rand(t)
	scope := func(n int) core.Scope { return core.Scope{Agent: fmt.Sprintf("agent%d", n)} }
	var whole []core.Entry
	for n := range agents {
		for i := range 3 {
			e := entry(core.SessionID{Agent: scope(n).Agent, Session: fmt.Sprint("s", i%2)}, i)
			e.Message = message.New(message.User, "the kestrel budget moved")
			whole = append(whole, e)
		}
	}
	rnd.Shuffle(len(whole), func(i, j int) { whole[i], whole[j] = whole[j], whole[i] })
	for batch := range slices.Chunk(whole, 100) {
		mustAppend(t, s, batch...)
	}
	for range 150 {
		mine, other := rnd.IntN(agents), rnd.IntN(agents)
		if mine == other {
			continue
		}
		own := func(what string, e core.Entry) {
			if e.Agent != scope(mine).Agent {
				t.Errorf("%s of %s returns %q of %s", what, scope(mine).Agent, e.ID, e.Agent)
			}
		}
		page, err := s.Scan(t.Context(), core.ScanQuery{Scope: scope(mine), Limit: core.MaxPage, Reverse: mine%2 == 0})
		if err != nil || len(page.Entries) != 3 {
			t.Fatalf("Scan: %d entries, %v, want 3", len(page.Entries), err)
		}
		for _, e := range page.Entries {
			own("Scan", e)
		}
		hits, err := s.Search(t.Context(), core.SearchQuery{Scope: scope(mine), Text: "budget kestrel", Limit: 50})
		if err != nil || len(hits) != 3 {
			t.Fatalf("Search: %d hits, %v, want 3", len(hits), err)
		}
		for _, h := range hits {
			own("Search", h.Entry)
		}
		changes, err := s.Changes(t.Context(), core.ChangeQuery{Agent: scope(mine).Agent, Limit: 50})
		if err != nil || len(changes.Changes) != 3 {
			t.Fatalf("Changes: %d, %v, want 3", len(changes.Changes), err)
		}
		for _, c := range changes.Changes {
			own("Changes", *c.Entry)
		}
		theirs := fmt.Sprintf("%s-s0-0", scope(other).Agent)
		if _, err := s.Get(t.Context(), scope(mine), []string{theirs}); !errors.Is(err, core.ErrNotFound) {
			t.Errorf("Get of another agent's entry: %v, want ErrNotFound", err)
		}
		if err := s.Update(t.Context(), scope(mine), theirs, core.Change{Meta: map[string]string{}}); !errors.Is(err, core.ErrNotFound) {
			t.Errorf("Update of another agent's entry: %v, want ErrNotFound", err)
		}
		if n, err := s.Delete(t.Context(), scope(mine), []string{theirs}); n != 0 || err != nil {
			t.Errorf("Delete of another agent's entry: %d, %v, want 0 and none", n, err)
		}
		if _, err := s.Changes(t.Context(), core.ChangeQuery{Agent: scope(agents + other).Agent, After: changes.Mark, Limit: 5}); !errors.Is(err, core.ErrNotFound) {
			t.Errorf("Changes of another agent after a mark: %v, want ErrNotFound", err)
		}
	}
	stolen := entry(core.SessionID{Agent: "thief", Session: "s0"}, 0)
	stolen.ID = "agent1-s0-0"
	if _, err := s.Append(t.Context(), []core.Entry{stolen}); !errors.Is(err, core.ErrConflict) {
		t.Errorf("Append under another agent's id: %v, want ErrConflict", err)
	}
}

// TestOddNames stores names that text columns cannot hold.
func TestOddNames(t *testing.T) {
	t.Parallel()
	s := open(t, fresh(t))
	var sessions []core.SessionID
	for _, name := range []string{"z", "a\x00b", "\xff\xfe", "数据", "A", `"'\`} {
		id := core.SessionID{Agent: name, Session: name}
		sessions = append(sessions, id)
		e := entry(id, 0)
		e.ID, e.Key = "id"+fmt.Sprint(len(sessions)), name
		mustAppend(t, s, e)
		if diff := cmp.Diff([]core.Entry{e}, all(t, s, id.Scope())); diff != "" {
			t.Errorf("%q (-want +got):\n%s", name, diff)
		}
		if err := s.SwapView(t.Context(), core.View{Session: id, Version: 1}); err != nil {
			t.Errorf("%q: SwapView: %v", name, err)
		}
	}
	slices.SortFunc(sessions, core.SessionID.Compare)
	var got []core.SessionID
	for {
		q := core.ViewQuery{Limit: 2}
		if len(got) > 0 {
			q.After = got[len(got)-1]
		}
		page, err := s.ListViews(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, page...)
		if len(page) < q.Limit {
			break
		}
	}
	if diff := cmp.Diff(sessions, got); diff != "" {
		t.Errorf("ListViews (-want +got):\n%s", diff)
	}
	long := entry(ann, 0)
	long.Key = strings.Repeat("x", 801)
	if _, err := s.Append(t.Context(), []core.Entry{long}); !errors.Is(err, core.ErrInvalid) {
		t.Errorf("Append of a key of 801 bytes: %v, want ErrInvalid", err)
	}
}

func TestUpdateMakesTombstones(t *testing.T) {
	t.Parallel()
	s := open(t, fresh(t))
	mustAppend(t, s, entries(ann, 0, 3)...)
	gone := message.Message{Role: message.User}
	change := core.Change{Message: &gone, Fingerprint: "x", Type: core.TypeErased, Key: "other", Meta: map[string]string{}}
	if err := s.Update(t.Context(), ann.Scope(), "ann-one-1", change); err != nil {
		t.Fatal(err)
	}
	want := entries(ann, 0, 3)
	want[1].Message, want[1].Tokens, want[1].Fingerprint, want[1].Type, want[1].Key, want[1].Meta = gone, 0, "x", core.TypeErased, "other", nil
	if diff := cmp.Diff(want, all(t, s, ann.Scope())); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	hits, err := s.Search(t.Context(), core.SearchQuery{Scope: ann.Scope(), Text: "text of ann", Limit: 9})
	if err != nil || len(hits) != 2 {
		t.Errorf("Search: %d hits, %v, want the 2 that were not erased", len(hits), err)
	}
	if err := s.Update(t.Context(), ann.Scope(), "ann-one-0", core.Change{Key: "other"}); !errors.Is(err, core.ErrConflict) {
		t.Errorf("Update to a key that is taken: %v, want ErrConflict", err)
	}
	// A heartbeat that turns out to be a message is found, with the words it always had.
	if err := s.Update(t.Context(), ann.Scope(), "ann-one-0", core.Change{Type: core.TypeHeartbeat}); err != nil {
		t.Fatal(err)
	}
	if err := s.Update(t.Context(), ann.Scope(), "ann-one-0", core.Change{Type: core.TypeMessage}); err != nil {
		t.Fatal(err)
	}
	if hits, err = s.Search(t.Context(), core.SearchQuery{Scope: ann.Scope(), Text: "text of ann", Limit: 9}); err != nil || len(hits) != 2 {
		t.Errorf("Search: %d hits, %v, want 2", len(hits), err)
	}
}

func TestSearchTakesExcludedIntoAccount(t *testing.T) {
	t.Parallel()
	s := open(t, fresh(t))
	mustAppend(t, s, entries(ann, 0, 200)...)
	hits, err := s.Search(t.Context(), core.SearchQuery{Scope: ann.Scope(), Text: "text", Limit: 3, Exclude: func(id string) bool {
		return id != "ann-one-7" && id != "ann-one-150"
	}})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, h := range hits {
		got = append(got, h.Entry.ID)
	}
	slices.Sort(got)
	if diff := cmp.Diff([]string{"ann-one-150", "ann-one-7"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	// Times are compared to the nanosecond, although the column has microseconds.
	at := entry(ann, 5).Time
	hits, err = s.Search(t.Context(), core.SearchQuery{Scope: ann.Scope(), Text: "text", Limit: 9, From: at, To: at.Add(time.Nanosecond)})
	if err != nil || len(hits) != 1 || hits[0].Entry.ID != "ann-one-5" {
		t.Errorf("Search of one nanosecond: %d hits, %v, want that of the moment", len(hits), err)
	}
	hits, err = s.Search(t.Context(), core.SearchQuery{Scope: ann.Scope(), Text: "text", Limit: 9, From: at.Add(time.Nanosecond), To: at.Add(time.Second)})
	if err != nil || len(hits) != 0 {
		t.Errorf("Search behind it: %d hits, %v, want none", len(hits), err)
	}
}

// TestSearchFindsChinese shows what pairs of characters can do and cannot.
func TestSearchFindsChinese(t *testing.T) {
	t.Parallel()
	s := open(t, fresh(t))
	texts := []string{"我们明天讨论数据库迁移的预算", "会议改到星期五", "設定を確認しました", "서버를 배포했습니다"}
	for i, text := range texts {
		e := entry(ann, i*10)
		e.Message = message.New(message.User, text)
		mustAppend(t, s, e)
	}
	for query, want := range map[string]int{"数据库": 0, "预算是多少": 0, "星期五的会议": 1, "確認": 2, "배포": 3, "資料庫": -1, "库": -1} {
		hits, err := s.Search(t.Context(), core.SearchQuery{Scope: ann.Scope(), Text: query, Limit: 1})
		if err != nil {
			t.Fatal(err)
		}
		switch {
		case want < 0 && len(hits) > 0, want >= 0 && (len(hits) == 0 || hits[0].Entry.Text() != texts[want]):
			t.Errorf("Search(%q) = %d hits, want text %d", query, len(hits), want)
		}
	}
}

func TestFixedAtTheBeginning(t *testing.T) {
	t.Parallel()
	cfg := fresh(t)
	if err := open(t, cfg).Close(); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*postgres.Config){
		"language":   func(c *postgres.Config) { c.Language = "simple" },
		"partitions": func(c *postgres.Config) { c.Partitions = 3 },
	} {
		other := cfg
		change(&other)
		if _, err := postgres.Open(t.Context(), other); !errors.Is(err, postgres.ErrSchema) || !strings.Contains(err.Error(), name) {
			t.Errorf("Open with another %s: %v, want ErrSchema that names it", name, err)
		}
	}
	words := func(change string) {
		servers.Plain(t).Exec(t, cfg.DSN, "UPDATE "+cfg.Schema+".settings SET value = (value::integer "+change+")::text WHERE name = 'words'")
	}
	words("# 1")
	if _, err := postgres.Open(t.Context(), cfg); !errors.Is(err, postgres.ErrSchema) || !strings.Contains(err.Error(), "words") {
		t.Errorf("Open of tables whose words have other numbers: %v, want ErrSchema that says so", err)
	}
	words("# 1")
	newer := cfg
	servers.Plain(t).Exec(t, cfg.DSN, "INSERT INTO "+cfg.Schema+".schema_version (part, version, name) SELECT part, max(version) + 1, 'of tomorrow' FROM "+cfg.Schema+".schema_version WHERE part = 'base' GROUP BY part")
	if _, err := postgres.Open(t.Context(), newer); !errors.Is(err, postgres.ErrSchema) {
		t.Errorf("Open of a newer schema: %v, want ErrSchema", err)
	}
	foreign := cfg
	foreign.Schema = cfg.Schema + "x"
	servers.Plain(t).Exec(t, cfg.DSN, "CREATE SCHEMA "+foreign.Schema+"; CREATE TABLE "+foreign.Schema+".entries (n int)")
	if _, err := postgres.Open(t.Context(), foreign); !errors.Is(err, postgres.ErrSchema) {
		t.Errorf("Open of another program's schema: %v, want ErrSchema", err)
	}
}

func TestDamageIsNamed(t *testing.T) {
	t.Parallel()
	cfg := fresh(t)
	s := open(t, cfg)
	mustAppend(t, s, entries(ann, 0, 2)...)
	servers.Plain(t).Exec(t, cfg.DSN, "UPDATE "+cfg.Schema+".entries SET body = set_byte(body, 20, 1 + get_byte(body, 20) % 100) WHERE id = 'ann-one-1'")
	if _, err := s.Get(t.Context(), ann.Scope(), []string{"ann-one-0"}); err != nil {
		t.Errorf("Get of the sound entry: %v", err)
	}
	_, err := s.Scan(t.Context(), core.ScanQuery{Scope: ann.Scope(), Limit: 5})
	if !errors.Is(err, postgres.ErrDamaged) || !strings.Contains(err.Error(), "ann-one-1") {
		t.Errorf("Scan over a damaged entry: %v, want ErrDamaged that names it", err)
	}
	servers.Plain(t).Exec(t, cfg.DSN, "DROP TABLE "+cfg.Schema+".views")
	if _, err := s.LoadView(t.Context(), ann); !errors.Is(err, postgres.ErrSchema) {
		t.Errorf("LoadView without the table: %v, want ErrSchema", err)
	}
}

func TestStats(t *testing.T) {
	t.Parallel()
	s := open(t, fresh(t))
	if st, err := s.Stats(t.Context()); err != nil || st.Entries != 0 || !st.Oldest.IsZero() {
		t.Errorf("Stats of an empty store = %+v, %v", st, err)
	}
	mustAppend(t, s, append(entries(ann, 0, 3), entry(core.SessionID{Agent: "bob", Session: "x"}, 9))...)
	st, err := s.Stats(t.Context())
	if err != nil || st.Bytes < 1 {
		t.Fatalf("Stats: %+v, %v", st, err)
	}
	st.Bytes = 0
	want := upkeep.Stats{Agents: 2, Sessions: 2, Entries: 4, RawBytes: st.RawBytes, Oldest: entry(ann, 0).Time.Truncate(time.Microsecond), Newest: entry(ann, 9).Time.Truncate(time.Microsecond)}
	if diff := cmp.Diff(want, st); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
