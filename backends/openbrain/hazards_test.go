package openbrain_test

import (
	"encoding/base64"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/contextengine/contextengine/backends/openbrain"
	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/message"
	"github.com/contextengine/contextengine/internal/needs"
	"github.com/contextengine/contextengine/internal/openbraintest"
)

// Writers at once whose answers come late and in any order: every entry is there, once.
func TestParallelWritesWithDelayedAnswers(t *testing.T) {
	srv := openbraintest.New(t)
	srv.Inject(openbraintest.Fault{Times: -1, Do: func(w http.ResponseWriter, r *http.Request, serve http.HandlerFunc) {
		time.Sleep(rand.N(3 * time.Millisecond))
		if rand.N(10) == 0 {
			openbraintest.Then(openbraintest.Reset)(w, r, serve)
			return
		}
		serve(w, r)
		time.Sleep(rand.N(3 * time.Millisecond))
	}})
	tries := func(c *openbrain.Config) { c.MaxRetries = 20 }
	stores := []*openbrain.Store{open(t, srv, tries), open(t, srv, tries), open(t, srv, tries)}
	var want []core.Entry
	var wg sync.WaitGroup
	for i := range 6 {
		session := fmt.Sprint("s", i)
		entries := run("main", session, 0, 5)
		want = append(want, entries...)
		wg.Go(func() {
			for _, part := range [][]core.Entry{entries[:1], entries[1:3], entries[1:4], entries[4:]} { // a part of it again
				if _, err := stores[i%3].Append(t.Context(), part); err != nil {
					t.Errorf("Append: %v", err)
				}
			}
		})
	}
	wg.Wait()
	srv.Heal()
	holds(t, srv, "main", want)
}

// A copy may be the end of another batch: that must not go with it.
func TestUpdateKeepsTheBatchOfACopy(t *testing.T) {
	for _, changed := range []int{0, 1} {
		srv := openbraintest.New(t)
		s := open(t, srv)
		want := run("main", "s", 0, 3)
		mustAppend(t, s, want[0])
		first := srv.Thoughts()[0]
		srv.Remove(first.ID) // another writer that did not see it
		mustAppend(t, open(t, srv), want[1], want[2], want[0])
		second := srv.Thoughts()
		for _, th := range second {
			srv.Remove(th.ID)
		}
		srv.Insert(first.Content, first.Source, first.Metadata)
		for _, th := range second {
			srv.Insert(th.Content, th.Source, th.Metadata)
		}
		holds(t, srv, "main", want)
		want[changed].Meta = map[string]string{"k": "v"}
		if err := s.Update(t.Context(), agentScope("main"), want[changed].ID, core.Change{Meta: want[changed].Meta}); err != nil {
			t.Fatalf("Update: %v", err)
		}
		holds(t, srv, "main", want)
	}
}

// A late copy may have become the end of its batch, and then be erased.
func TestUpdateTakesTheEndOver(t *testing.T) {
	srv := openbraintest.New(t)
	s := open(t, srv)
	want := run("main", "s", 0, 2)
	mustAppend(t, s, want...)
	th := srv.Thoughts()[0]
	srv.Insert(th.Content, th.Source, th.Metadata)
	if n, err := s.Delete(t.Context(), agentScope("main"), ids(want[1:])); n != 1 || err != nil {
		t.Fatalf("Delete = %d, %v; want 1", n, err)
	}
	want[0].Meta = map[string]string{"k": "v"}
	if err := s.Update(t.Context(), agentScope("main"), want[0].ID, core.Change{Meta: want[0].Meta}); err != nil {
		t.Fatalf("Update: %v", err)
	}
	holds(t, srv, "main", want[:1])
	if n := len(srv.Thoughts()); n != 1 {
		t.Errorf("server has %d thoughts, want 1: the copy is erased", n)
	}
}

// What was seen of a batch that somebody began is looked for again before it is built upon.
func TestStaleHalfOfABatch(t *testing.T) {
	srv := openbraintest.New(t)
	s, other := open(t, srv), open(t, srv, noRetries)
	mustAppend(t, s, entry("main", "t", 0, "x"))
	batch := run("main", "s", 0, 3)
	srv.Inject(openbraintest.Fault{Method: "POST", Skip: 2, Do: openbraintest.Reset})
	if _, err := other.Append(t.Context(), batch); err == nil {
		t.Fatal("Append succeeded through a fault")
	}
	mustAppend(t, s, entry("main", "t", 1, "x")) // sees the half
	if _, err := other.Delete(t.Context(), agentScope("main"), ids(batch)); err != nil {
		t.Fatal(err)
	}
	mustAppend(t, s, batch...)
	holds(t, srv, "main", append(batch, entry("main", "t", 0, "x"), entry("main", "t", 1, "x")))
}

// What is erased stays erased when a request from before arrives: not in a scan, not in a search, not by its id.
func TestLateCopyOfAnErasedEntry(t *testing.T) {
	srv := openbraintest.New(t, func(b *openbraintest.Behavior) { b.MergePatch = true })
	s := open(t, srv)
	want := run("main", "s", 0, 3)
	mustAppend(t, s, want...)
	th := srv.Thoughts()[1]
	th.Metadata["topics"] = "derived from it"
	srv.Remove(th.ID)
	copied := srv.Insert(th.Content, th.Source, th.Metadata)

	e := &want[1]
	e.Message, e.Tokens, e.Fingerprint = message.New(message.User, ""), 0, "none"
	e.Type, e.Key, e.Meta = core.TypeErased, "erased:1", map[string]string{}
	change := core.Change{Message: &e.Message, Fingerprint: "none", Type: e.Type, Key: e.Key, Meta: e.Meta}
	if err := s.Update(t.Context(), agentScope("main"), e.ID, change); err != nil {
		t.Fatalf("Update: %v", err)
	}
	holds(t, srv, "main", want)
	for _, th := range srv.Thoughts() {
		text := fmt.Sprint(th.Content, th.Metadata)
		if th.ID == copied && (strings.Contains(text, "word1") || strings.Contains(text, "derived") || strings.Contains(text, "key-1")) {
			t.Errorf("of the erased entry is left: %s", text)
		}
	}

	srv.Insert(th.Content, th.Source, th.Metadata)
	holds(t, srv, "main", want)
	for _, store := range []*openbrain.Store{s, open(t, srv)} {
		hits, err := store.Search(t.Context(), core.SearchQuery{Scope: agentScope("main"), Text: "word1 shared", Limit: 10})
		if err != nil || len(hits) != 2 {
			t.Errorf("Search = %v, %v; want the two others", hitIDs(hits), err)
		}
		mustAppend(t, store, entry("main", "t", len(all(t, store, agentScope("main"), false, 10)), "x")) // takes the news in
		got, err := store.Get(t.Context(), agentScope("main"), []string{e.ID})
		if diff := cmp.Diff([]core.Entry{*e}, got); diff != "" || err != nil {
			t.Errorf("Get: %v (-want +got):\n%s", err, diff)
		}
	}
}

func TestUpdateOfKeyAndType(t *testing.T) {
	srv := openbraintest.New(t)
	s := open(t, srv)
	want := run("main", "s", 0, 3)
	mustAppend(t, s, want...)
	if err := s.Update(t.Context(), agentScope("main"), want[1].ID, core.Change{Key: want[2].Key}); !errors.Is(err, core.ErrConflict) {
		t.Errorf("Update to a key that is taken = %v, want ErrConflict", err)
	}
	again := want[1]
	again.ID, again.Seq = "again", 9
	want[1].Key, want[1].Type = "other", core.TypeHeartbeat
	if err := s.Update(t.Context(), agentScope("main"), want[1].ID, core.Change{Key: "other", Type: core.TypeHeartbeat}); err != nil {
		t.Fatalf("Update: %v", err)
	}
	holds(t, srv, "main", want)
	if res := mustAppend(t, s, again); res.Duplicates != 0 {
		t.Error("the key from before is still taken")
	}
	again.ID, again.Key = "third", "other"
	if res := mustAppend(t, s, again); res.Duplicates != 1 || res.IDs[0] != want[1].ID {
		t.Errorf("Append under the new key = %+v, want the entry", res)
	}
}

// noise is text that cannot be compressed much.
func noise(n int) string {
	b := make([]byte, n*3/4)
	_, _ = rand.NewChaCha8([32]byte{}).Read(b) // never fails
	return base64.StdEncoding.EncodeToString(b)
}

// What could not be read back is refused before it is sent.
func TestEntryTooLarge(t *testing.T) {
	needs.NoRace(t)
	srv := openbraintest.New(t)
	s := open(t, srv)
	_, err := s.Append(t.Context(), []core.Entry{entry("main", "s", 0, "small"), entry("main", "s", 1, noise(26<<20))})
	if !errors.Is(err, core.ErrInvalid) || !strings.Contains(err.Error(), "main-s-1") || !strings.Contains(err.Error(), "too large") {
		t.Errorf("Append = %v, want ErrInvalid that names the entry", err)
	}
	if n := len(srv.Thoughts()); n != 0 {
		t.Errorf("server has %d thoughts, want 0: the batch is none", n)
	}
}

func TestOddIDs(t *testing.T) {
	srv := openbraintest.New(t, func(b *openbraintest.Behavior) { b.OddIDs = true })
	s := open(t, srv)
	want := run("main", "s", 0, 4)
	mustAppend(t, s, want...)
	got, err := s.Get(t.Context(), agentScope("main"), ids(want))
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("Get: %v (-want +got):\n%s", err, diff)
	}
	want[2].Meta = map[string]string{"a": "b"}
	if err := s.Update(t.Context(), agentScope("main"), want[2].ID, core.Change{Meta: want[2].Meta}); err != nil {
		t.Errorf("Update: %v", err)
	}
	if n, err := s.Delete(t.Context(), agentScope("main"), ids(want[3:])); n != 1 || err != nil {
		t.Errorf("Delete = %d, %v; want 1", n, err)
	}
	holds(t, srv, "main", want[:3])
}

// Another process that writes batches does not make every append list everything.
func TestBatchesOfOthersCostOneLook(t *testing.T) {
	srv := openbraintest.New(t)
	s, other := open(t, srv), open(t, srv)
	var want []core.Entry
	for i := 0; i < 40; i += 4 {
		mustAppend(t, s, run("main", "s", i, i+2)...)
		mustAppend(t, other, run("main", "s", i+2, i+4)...)
		want = append(want, run("main", "s", i, i+4)...)
		if i > 0 {
			for _, r := range srv.Requests() {
				if r.Method == http.MethodGet && r.Path == "/v1/thoughts" {
					t.Fatalf("entry %d: everything was listed", i)
				}
			}
		}
		srv.Forget()
	}
	if res := mustAppend(t, s, want...); res.Duplicates != 40 {
		t.Errorf("%d duplicates, want 40", res.Duplicates)
	}
	holds(t, srv, "main", want)
}
