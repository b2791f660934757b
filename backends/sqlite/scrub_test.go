package sqlite_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/contextengine/contextengine/backends/sqlite"
	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/message"
	"github.com/contextengine/contextengine/internal/drawn"
)

// needle is a text that stands nowhere but in entry n.
func needle(n int) string { return "needle" + digest(n+1<<20) }

// planted is an entry that says needle n in its text, metadata and key, between bytes that do not compress.
func planted(r *rand.Rand, id core.SessionID, n int) core.Entry {
	e := entry(id, n)
	noise := make([]byte, r.Intn(6000))
	r.Read(noise)
	e.Message = message.New(message.User, needle(n)+" said in short")
	if n%3 == 0 {
		e.Message.Raw = fmt.Appendf(nil, "%s%s%s", noise, needle(n), noise)
	}
	e.Meta, e.Key = map[string]string{"note": needle(n)}, "k:"+needle(n)
	return e
}

// found returns which needles stand in the files of a store, and where.
func found(t *testing.T, path string, needles map[int]bool) map[string][]int {
	t.Helper()
	names, err := filepath.Glob(path + "*")
	if err != nil {
		t.Fatal(err)
	}
	out := map[string][]int{}
	for _, name := range names {
		if info, err := os.Stat(name); err != nil || info.IsDir() {
			continue
		}
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for n := range needles {
			if bytes.Contains(b, []byte(needle(n))) {
				out[filepath.Base(name)] = append(out[filepath.Base(name)], n)
			}
		}
	}
	return out
}

// TestScrubLeavesNoByte appends, erases, deletes and archives in random order, and then searches the raw files.
func TestScrubLeavesNoByte(t *testing.T) {
	t.Parallel()
	base := int64(drawn.Seed(t))
	for seed := range int64(4) {
		r := rand.New(rand.NewSource(base + seed))
		cfg := config(t)
		cfg.Insecure = seed%2 == 1 // what was erased under it goes too
		s := open(t, cfg)
		live, gone := map[int]bool{}, map[int]bool{}
		n := 0
		for range 80 {
			session := core.SessionID{Agent: "ann", Session: fmt.Sprint(r.Intn(3))}
			var batch []core.Entry
			for range 1 + r.Intn(8) {
				batch = append(batch, planted(r, session, n))
				live[n] = true
				n++
			}
			mustAppend(t, s, batch...)
			e := batch[r.Intn(len(batch))]
			at := int(e.Seq)
			switch r.Intn(3) {
			case 0:
				m := message.New(message.User, "")
				err := s.Update(t.Context(), session.Scope(), e.ID,
					core.Change{Message: &m, Type: core.TypeErased, Key: "x:" + e.ID, Fingerprint: "erased", Meta: map[string]string{}})
				if err != nil {
					t.Fatal(err)
				}
			case 1:
				if _, err := s.Delete(t.Context(), session.Scope(), []string{e.ID}); err != nil {
					t.Fatal(err)
				}
			default:
				// A summary that is replaced.
				v := core.View{Session: session, Version: 1, Summaries: []core.Summary{{ID: "s", Text: needle(-n)}}}
				if old, err := s.LoadView(t.Context(), session); err == nil {
					v.Version = old.Version + 1
				}
				if err := s.SwapView(t.Context(), v); err != nil {
					t.Fatal(err)
				}
				v.Version++
				v.Summaries[0].Text = "erased"
				if err := s.SwapView(t.Context(), v); err != nil {
					t.Fatal(err)
				}
				gone[-n] = true
				continue
			}
			delete(live, at)
			gone[at] = true
		}
		if left := found(t, cfg.Path, live); len(left) == 0 {
			t.Fatal("what was not erased is not found either: the search is broken")
		}
		t.Logf("seed %d, before Scrub: %d needles, found %v", seed, len(gone), found(t, cfg.Path, gone))
		if err := s.Scrub(t.Context()); err != nil {
			t.Fatal(err)
		}
		if left := found(t, cfg.Path, gone); len(left) > 0 {
			t.Errorf("seed %d: after Scrub the files still say %v", seed, left)
		}
		if err := s.Verify(t.Context()); err != nil {
			t.Error(err)
		}
		for at := range live {
			e := core.Entry{ID: fmt.Sprint(at)}
			for session := range 3 {
				e = entry(core.SessionID{Agent: "ann", Session: fmt.Sprint(session)}, at)
				if _, err := s.Get(t.Context(), core.Scope{Agent: "ann"}, []string{e.ID}); err == nil {
					e.ID = ""
					break
				}
			}
			if e.ID != "" {
				t.Errorf("seed %d: entry %d was not erased and is not there", seed, at)
			}
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if left := found(t, cfg.Path, gone); len(left) > 0 {
			t.Errorf("seed %d: after Close the files say %v again", seed, left)
		}
	}
}

// TestScrubWaitsForReaders has an export that takes long: it needs the log.
func TestScrubWaitsForReaders(t *testing.T) {
	t.Parallel()
	cfg := config(t)
	cfg.BusyTimeout = 30 * time.Millisecond
	s := open(t, cfg)
	mustAppend(t, s, entries(ann, 0, 2000)...)
	reading, goOn := make(chan struct{}), make(chan struct{})
	done := make(chan error, 1)
	go func() {
		first := true
		done <- s.Export(context.WithoutCancel(t.Context()), &bytes.Buffer{}, func(sqlite.Progress) {
			if first {
				first = false
				close(reading)
				<-goOn
			}
		})
	}()
	<-reading
	if _, err := s.Delete(t.Context(), ann.Scope(), []string{"ann-one-7"}); err != nil {
		t.Error(err)
	}
	if err := s.Scrub(t.Context()); !errors.Is(err, core.ErrUnavailable) || !strings.Contains(err.Error(), "reader") {
		t.Errorf("Scrub while a reader needs the log = %v, want ErrUnavailable", err)
	}
	close(goOn)
	if err := <-done; err != nil {
		t.Error(err)
	}
	if err := s.Scrub(t.Context()); err != nil {
		t.Errorf("Scrub after the reader ended = %v", err)
	}
}
