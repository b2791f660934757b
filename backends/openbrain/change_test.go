package openbrain_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/contextengine/contextengine/backends/openbrain"
	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/message"
	"github.com/contextengine/contextengine/internal/openbraintest"
)

func TestUpdate(t *testing.T) {
	for _, merges := range []bool{false, true} {
		srv := openbraintest.New(t, func(b *openbraintest.Behavior) { b.MergePatch = merges })
		s := open(t, srv)
		want := run("main", "s", 0, 3)
		want[1].Meta = map[string]string{"a": "1", "b": "2"}
		mustAppend(t, s, want...)
		th := srv.Thoughts()[1]
		srv.Insert(th.Content, th.Source, th.Metadata) // a copy, as a second delivery leaves it

		m := message.New(message.User, "[redacted]")
		want[1].Message, want[1].Tokens, want[1].Fingerprint = m, 7, message.Fingerprint(m)
		change := core.Change{Message: &m, Tokens: 7, Fingerprint: want[1].Fingerprint}
		if err := s.Update(t.Context(), want[1].SessionID().Scope(), want[1].ID, change); err != nil {
			t.Fatalf("Update: %v", err)
		}
		holds(t, srv, "main", want)
		for _, th := range srv.Thoughts() {
			if strings.Contains(th.Content, "word1") {
				t.Errorf("the server still has %q", th.Content)
			}
		}
		want[1].Meta = map[string]string{"c": "3"}
		if err := s.Update(t.Context(), agentScope("main"), want[1].ID, core.Change{Meta: want[1].Meta}); err != nil {
			t.Fatalf("Update: %v", err)
		}
		holds(t, srv, "main", want)
		for _, scope := range []core.Scope{{Agent: "main", Session: "other"}, {Agent: "other"}} {
			if err := s.Update(t.Context(), scope, want[1].ID, change); !errors.Is(err, core.ErrNotFound) {
				t.Errorf("Update in scope %v = %v, want ErrNotFound", scope, err)
			}
		}
	}
}

func TestUpdateKeepsMetadataOfOthers(t *testing.T) {
	srv := openbraintest.New(t)
	s := open(t, srv)
	e := entry("main", "s", 0, "x")
	mustAppend(t, s, e)
	th := srv.Thoughts()[0]
	th.Metadata["tags"] = []any{"mine"}
	srv.Remove(th.ID)
	srv.Insert(th.Content, th.Source, th.Metadata)
	if err := s.Update(t.Context(), agentScope("main"), e.ID, core.Change{Meta: map[string]string{"k": "v"}}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]any{"mine"}, srv.Thoughts()[0].Metadata["tags"]); diff != "" {
		t.Errorf("tags (-want +got):\n%s", diff)
	}
}

func TestDelete(t *testing.T) {
	for _, empty := range []bool{false, true} {
		srv := openbraintest.New(t, func(b *openbraintest.Behavior) { b.NoContentDelete = empty })
		s := open(t, srv)
		want := run("main", "s", 0, 6)
		mustAppend(t, s, want...)
		mustAppend(t, s, run("other", "s", 0, 1)...)
		del := func(scope core.Scope, n int, ids ...string) {
			t.Helper()
			got, err := s.Delete(t.Context(), scope, ids)
			if got != n || err != nil {
				t.Errorf("Delete(%v) = %d, %v; want %d", ids, got, err, n)
			}
		}
		del(core.Scope{Agent: "main", Session: "t"}, 0, want[0].ID)
		del(agentScope("other"), 0, want[0].ID, "unknown")
		holds(t, srv, "main", want)
		// The end of the batch, then the end that took its place, must not take the others along.
		del(agentScope("main"), 1, want[5].ID, "unknown", want[5].ID)
		holds(t, srv, "main", want[:5])
		del(agentScope("main"), 2, want[4].ID, want[0].ID)
		holds(t, srv, "main", want[1:4])
		del(agentScope("main"), 0, want[5].ID)
		del(agentScope("main"), 3, ids(want[1:4])...)
		if n := len(srv.Thoughts()); n != 1 {
			t.Errorf("server has %d thoughts, want the other agent's", n)
		}
		if _, err := s.Get(t.Context(), agentScope("main"), ids(want[:1])); !errors.Is(err, core.ErrNotFound) {
			t.Errorf("Get of an erased entry = %v, want ErrNotFound", err)
		}
		mustAppend(t, s, want...)
		holds(t, srv, "main", want)
	}
}

// Where not all thoughts can be listed, an id of another session that the call names stays known: it is neither erased nor given again.
func TestDeleteElsewhereOnAServerWithoutLists(t *testing.T) {
	srv := openbraintest.New(t, func(b *openbraintest.Behavior) { b.NoList, b.NoOffset, b.NoStats = true, true, true })
	s := open(t, srv)
	kept := entry("main", "other", 0, "kept")
	mustAppend(t, s, kept)
	for i := range 19 { // with a round number there may be more
		mustAppend(t, s, entry("main", "long", i, "more"))
	}
	if n, err := s.Delete(t.Context(), core.Scope{Agent: "main", Session: "s"}, ids([]core.Entry{kept})); n != 0 || err != nil {
		t.Fatalf("Delete = %d, %v; want 0", n, err)
	}
	again := entry("main", "s", 0, "new")
	again.ID = kept.ID
	if _, err := s.Append(t.Context(), []core.Entry{again}); !errors.Is(err, core.ErrConflict) {
		t.Errorf("Append under an id that is taken: %v, want ErrConflict", err)
	}
}

func TestDeleteReachesHiddenEntries(t *testing.T) {
	srv := openbraintest.New(t)
	s := open(t, srv, noRetries)
	srv.Inject(openbraintest.Fault{Method: "POST", Path: "=/v1/thoughts", Skip: 2, Do: openbraintest.Reset})
	batch := run("main", "s", 0, 3)
	if _, err := s.Append(t.Context(), batch); err == nil {
		t.Fatal("Append succeeded through a fault")
	}
	if n, err := s.Delete(t.Context(), agentScope("main"), ids(batch)); n != 0 || err != nil {
		t.Errorf("Delete = %d, %v; want 0, they were never there", n, err)
	}
	if n := len(srv.Thoughts()); n != 0 {
		t.Errorf("server has %d thoughts, want 0", n)
	}
}

func TestGet(t *testing.T) {
	srv := openbraintest.New(t)
	s := open(t, srv)
	want := run("main", "s", 0, 20)
	mustAppend(t, s, want...)
	for _, store := range []*openbrain.Store{s, open(t, srv)} {
		got, err := store.Get(t.Context(), agentScope("main"), []string{want[3].ID, want[1].ID, want[3].ID})
		if diff := cmp.Diff([]core.Entry{want[3], want[1], want[3]}, got); diff != "" || err != nil {
			t.Errorf("Get: %v (-want +got):\n%s", err, diff)
		}
		if got, err := store.Get(t.Context(), agentScope("main"), ids(want)); err != nil || len(got) != 20 {
			t.Errorf("Get of all = %d, %v", len(got), err)
		}
		for _, scope := range []core.Scope{{Agent: "main", Session: "t"}, {Agent: "other"}} {
			if got, err := store.Get(t.Context(), scope, ids(want[:2])); !errors.Is(err, core.ErrNotFound) || got != nil {
				t.Errorf("Get in scope %v = %v, %v; want ErrNotFound", scope, got, err)
			}
		}
		got, err = store.Get(t.Context(), agentScope("main"), []string{want[0].ID, "unknown"})
		if !errors.Is(err, core.ErrNotFound) || got != nil {
			t.Errorf("Get with an unknown id = %v, %v; want nothing and ErrNotFound", got, err)
		}
	}
	// What a caller does to a result does not reach the next one.
	got, err := s.Get(t.Context(), agentScope("main"), ids(want[:1]))
	if err != nil {
		t.Fatal(err)
	}
	got[0].Message.Parts[0].Text = "changed"
	holds(t, srv, "main", want)
}
