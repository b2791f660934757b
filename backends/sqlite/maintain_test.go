package sqlite_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/contextengine/contextengine/backends/sqlite"
	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/message"
	"github.com/contextengine/contextengine/core/retain"
	"github.com/contextengine/contextengine/internal/datadir"
	"github.com/contextengine/contextengine/internal/needs"
)

func TestExportAndImport(t *testing.T) {
	t.Parallel()
	s := open(t, config(t))
	bob := core.SessionID{Agent: "bob", Session: "one"}
	odd := entry(bob, 3)
	odd.Message.Parts[0].Text, odd.Meta = "bad \xff\x00", map[string]string{"\xfe": "x"}
	odd.ID = "odd\xff"
	want := append(entries(ann, 0, 700), entry(bob, 0), chat(t, bob, 1), odd)
	mustAppend(t, s, want...)
	for v := range uint64(3) {
		if err := s.SwapView(t.Context(), viewOf(v+1)); err != nil {
			t.Fatal(err)
		}
	}
	var out bytes.Buffer
	var last sqlite.Progress
	if err := s.Export(t.Context(), &out, func(p sqlite.Progress) { last = p }); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(sqlite.Progress{Entries: 703, Views: 1}, last); diff != "" {
		t.Errorf("progress at the end (-want +got):\n%s", diff)
	}

	to := open(t, config(t))
	exported := out.String()
	cut := exported[:len(exported)*2/3]
	if _, err := to.Import(t.Context(), strings.NewReader(cut), nil); !errors.Is(err, core.ErrInvalid) {
		t.Errorf("Import of an export that was cut off = %v, want ErrInvalid", err)
	}
	got, err := to.Import(t.Context(), strings.NewReader(exported), nil)
	if err != nil || got.Entries != 703 || got.Duplicates == 0 || got.Views != 1 {
		t.Errorf("Import again = %+v, %v, want all entries, some of them duplicates", got, err)
	}
	for _, agent := range []string{"ann", "bob"} {
		if diff := cmp.Diff(all(t, s, core.Scope{Agent: agent}), all(t, to, core.Scope{Agent: agent})); diff != "" {
			t.Errorf("entries of %s after the import (-want +got):\n%s", agent, diff)
		}
	}
	v, err := to.LoadView(t.Context(), ann)
	if diff := cmp.Diff(viewOf(3), v); err != nil || diff != "" {
		t.Errorf("the view after the import: %v (-want +got):\n%s", err, diff)
	}
	if got, err := to.Import(t.Context(), strings.NewReader(exported), nil); err != nil || got.Duplicates != 703 || got.KeptViews != 1 {
		t.Errorf("Import of what is there = %+v, %v, want duplicates alone", got, err)
	}
	for name, text := range map[string]string{"empty": "", "no export": "{\"a\":1}\n", "no JSON": "hello\n", "newer": `{"header":{"format":"contextengine-export","version":99}}`} {
		if _, err := to.Import(t.Context(), strings.NewReader(text), nil); !errors.Is(err, core.ErrInvalid) || !strings.Contains(err.Error(), "line 1") {
			t.Errorf("Import of %s = %v, want ErrInvalid naming line 1", name, err)
		}
	}
}

func TestStatsAndVacuum(t *testing.T) {
	t.Parallel()
	s := open(t, config(t))
	mustAppend(t, s, append(entries(ann, 0, 2000), entry(core.SessionID{Agent: "bob", Session: "b"}, 0))...)
	before, err := s.Stats(t.Context())
	if err != nil || before.Entries != 2001 || before.Agents != 2 || before.Sessions != 2 || before.Bytes == 0 {
		t.Fatalf("Stats = %+v, %v", before, err)
	}
	if n, err := s.Delete(t.Context(), ann.Scope(), ids(entries(ann, 0, 1900))); err != nil || n != 1900 {
		t.Fatalf("Delete = %d, %v", n, err)
	}
	if err := s.Vacuum(t.Context()); err != nil {
		t.Fatal(err)
	}
	after, err := s.Stats(t.Context())
	if err != nil || after.Bytes > before.Bytes/2 {
		t.Errorf("after deleting most: %d bytes, before %d (%v)", after.Bytes, before.Bytes, err)
	}
	if d, err := s.Details(t.Context()); err != nil || d.Free != 0 || d.Changes != 1900 || d.Path != s.Path() {
		t.Errorf("after Vacuum: %+v, %v, want nothing free and 1900 changes", d, err)
	}
	if !after.Oldest.Equal(time.Unix(0, 0)) || !after.Newest.Equal(time.Unix(1999, 0)) {
		t.Errorf("the oldest entry is of %v, the newest of %v", after.Oldest, after.Newest)
	}
	if diff := cmp.Diff(entries(ann, 1900, 2000), all(t, s, ann.Scope())); diff != "" {
		t.Errorf("entries after Vacuum (-want +got):\n%s", diff)
	}
	if n, err := s.Delete(t.Context(), core.Scope{Agent: "bob"}, []string{"bob-b-0"}); err != nil || n != 1 {
		t.Fatalf("Delete = %d, %v", n, err)
	}
	if st, err := s.Stats(t.Context()); err != nil || st.Sessions != 1 {
		t.Errorf("a session without entries is still there: %+v, %v", st, err)
	}
}

func TestRetain(t *testing.T) {
	t.Parallel()
	now := time.Unix(1000, 0)
	two := core.SessionID{Agent: "ann", Session: "two"}
	fill := func(t *testing.T) *sqlite.Store {
		t.Helper()
		s, err := sqlite.Open(t.Context(), config(t), sqlite.WithClock(func() time.Time { return now }))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close() })
		// Entry n is from second n.
		mustAppend(t, s, append(entries(ann, 900, 1000), entries(two, 950, 1000)...)...)
		return s
	}
	for name, tc := range map[string]struct {
		policy  retain.Policy
		one     int
		another int
	}{
		"nothing":           {retain.Policy{}, 100, 50},
		"age":               {retain.Policy{MaxAge: 60 * time.Second}, 60, 50},
		"count per session": {retain.Policy{MaxEntries: 30}, 30, 30},
		"count per agent":   {retain.Policy{MaxEntries: 60, PerAgent: true}, 30, 30},
		"bytes":             {retain.Policy{MaxBytes: 1}, 0, 0},
		"age and count":     {retain.Policy{MaxAge: 60 * time.Second, MaxEntries: 55}, 55, 50},
	} {
		t.Run(name, func(t *testing.T) {
			s := fill(t)
			foretold, err := s.WouldRetain(t.Context(), tc.policy)
			if err != nil {
				t.Fatal(err)
			}
			report, err := s.Retain(t.Context(), tc.policy)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(report, foretold); diff != "" {
				t.Errorf("what was done and what was foretold (-done +foretold):\n%s", diff)
			}
			if want := int64(150 - tc.one - tc.another); report.Deleted != want {
				t.Errorf("Retain deleted %d, want %d", report.Deleted, want)
			}
			if diff := cmp.Diff(ids(entries(ann, 1000-tc.one, 1000)), ids(all(t, s, ann.Scope()))); diff != "" {
				t.Errorf("session one (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(ids(entries(two, 1000-tc.another, 1000)), ids(all(t, s, two.Scope()))); diff != "" {
				t.Errorf("session two (-want +got):\n%s", diff)
			}
		})
	}
	t.Run("window", func(t *testing.T) {
		s := fill(t)
		v := core.View{Session: two, Version: 1, Path: []core.Span{{Session: &ann, From: 900, To: 905}, {From: 990, To: 1000}}, Start: 3, Frontier: 3}
		if err := s.SwapView(t.Context(), v); err != nil {
			t.Fatal(err)
		}
		report, err := s.Retain(t.Context(), retain.Policy{MaxEntries: 1})
		if err != nil || report.Kept != 11 || report.Emptied != 3 || report.Deleted != 134 {
			t.Errorf("Retain = %+v, %v, want 11 kept for the view and 3 emptied", report, err)
		}
		want := append(append(entries(ann, 900, 905), entry(ann, 999)), entries(two, 990, 1000)...)
		for i := range 3 {
			// The view counts on them, though it does not show them.
			want[i].Message, want[i].Tokens = message.Message{Role: message.User}, 0
			want[i].Type, want[i].Meta = core.TypeErased, map[string]string{"retained": "place"}
		}
		if diff := cmp.Diff(want, all(t, s, core.Scope{Agent: "ann"})); diff != "" {
			t.Errorf("what is left (-want +got):\n%s", diff)
		}
		if report, err := s.Retain(t.Context(), retain.Policy{MaxEntries: 1}); err != nil || report.Deleted+report.Emptied != 0 {
			t.Errorf("Retain again = %+v, %v, want nothing removed", report, err)
		}
	})
	t.Run("archive", func(t *testing.T) {
		s := fill(t)
		var archive bytes.Buffer
		deleted := 0
		for range 2 {
			_, err := s.Retain(t.Context(), retain.Policy{MaxEntries: int64(40 - deleted/10), Archive: &archive,
				Deleted: func(_ context.Context, _ core.Scope, ids []string) error { deleted += len(ids); return nil }})
			if err != nil {
				t.Fatal(err)
			}
		}
		left := len(all(t, s, core.Scope{Agent: "ann"}))
		to := open(t, config(t))
		got, err := to.Import(t.Context(), &archive, nil)
		if err != nil || int(got.Entries) != deleted || left+deleted != 150 {
			t.Fatalf("Import of the archive = %+v, %v; %d were deleted, %d are left", got, err, deleted, left)
		}
		mustAppend(t, to, all(t, s, core.Scope{Agent: "ann"})...)
		if diff := cmp.Diff(entries(ann, 900, 1000), all(t, to, ann.Scope())); diff != "" {
			t.Errorf("archive and rest (-want +got):\n%s", diff)
		}
		if _, err := s.Retain(t.Context(), retain.Policy{MaxEntries: 1, Archive: failing{}}); err == nil {
			t.Error("Retain with an archive that fails returned no error")
		}
		if n := len(all(t, s, core.Scope{Agent: "ann"})); n != left {
			t.Errorf("the archive failed and %d of %d entries are left", n, left)
		}
	})
}

// failing is an archive on a full disk.
type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, errors.New("no room") }

// TestSizeOnDisk compares the file with the JSON that it holds.
func TestSizeOnDisk(t *testing.T) {
	needs.NoRace(t) // one goroutine, and long
	t.Parallel()
	t.Run("turns", func(t *testing.T) { sizeOnDisk(t, chats(t, 0, 5000)) })
	t.Run("transcript", func(t *testing.T) { sizeOnDisk(t, transcript(t)) })
}

func sizeOnDisk(t *testing.T, corpus []core.Entry) {
	t.Helper()
	cfg := config(t)
	s := open(t, cfg)
	raw := int64(0)
	for i := 0; i < len(corpus); i += 3 {
		mustAppend(t, s, corpus[i:min(i+3, len(corpus))]...)
	}
	for i := range corpus {
		raw += int64(len(corpus[i].Message.Raw))
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(cfg.Path)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d entries, %d bytes of JSON, %d in the file: %.2f", len(corpus), raw, info.Size(), float64(info.Size())/float64(raw))
	if info.Size() > 2*raw {
		t.Errorf("the file has %d bytes for %d of JSON, want at most twice as many", info.Size(), raw)
	}
}

// transcript returns the entries of a real session.
func transcript(t *testing.T) []core.Entry {
	t.Helper()
	f, err := os.Open(datadir.File(t, "pi/large-session.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	conversations, err := message.Read(f, message.ReadOptions{Name: f.Name(), KeepGoing: true})
	if err != nil {
		t.Fatal(err)
	}
	var out []core.Entry
	for _, c := range conversations {
		for _, m := range c.Messages {
			n := len(out)
			out = append(out, core.Entry{
				ID: chatID(n), Agent: "ann", Session: "real", Seq: int64(n), Role: m.Role, Type: core.TypeMessage, Time: m.Time, Tokens: 9,
				Key: fmt.Sprintf("i:%s:%s", m.ID, digest(-n)), Fingerprint: message.Fingerprint(m), Message: m,
			})
		}
	}
	return out
}
