package outbox_test

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/contextengine/contextengine/backends/outbox"
	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/message"
)

// secretEntry says something that must not stay.
func secretEntry(n int) (core.Entry, []string) {
	e := entry(ann, n)
	e.Message = message.New(message.User, "the vault opens with heliotrope-47113")
	e.Message.Raw = []byte(`{"role":"user","content":"the vault opens with heliotrope-47113"}`)
	e.Key, e.Fingerprint = "key-carmine-90210", message.Fingerprint(e.Message)
	e.Meta = map[string]string{"note": "umbra-55501"}
	return e, []string{"heliotrope-47113", "key-carmine-90210", "umbra-55501", e.Fingerprint}
}

// TestErasedBeforeDelivery: nothing of an entry that was erased while it waited is in a file, nor ever at the remote.
func TestErasedBeforeDelivery(t *testing.T) {
	t.Parallel()
	for name, erase := range map[string]func(*testing.T, *outbox.Store, string){
		"update": func(t *testing.T, s *outbox.Store, id string) {
			t.Helper()
			if err := s.Update(t.Context(), ann.Scope(), id, erased(id)); err != nil {
				t.Fatal(err)
			}
		},
		"delete": func(t *testing.T, s *outbox.Store, id string) {
			t.Helper()
			if n, err := s.Delete(t.Context(), ann.Scope(), []string{id}); n != 1 || err != nil {
				t.Fatalf("Delete = %d, %v", n, err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			far := newRemote()
			var mu sync.Mutex
			up := false
			reached := map[string]bool{}
			far.fail = func(op string, ids []string, after bool) error {
				mu.Lock()
				defer mu.Unlock()
				if !up {
					return errDown
				}
				for _, id := range ids {
					reached[op+" "+id] = true
				}
				return nil
			}
			cfg := outbox.DefaultConfig()
			cfg.CloseTimeout = time.Millisecond
			s := open(t, cfg, openFile(t, filepath.Join(dir, "store.db")), far)
			secret, words := secretEntry(1)
			mustAppend(t, s, entry(ann, 0), secret, entry(ann, 2))
			erase(t, s, secret.ID)
			lacks(t, dir, words, "-outbox")
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			lacks(t, dir, words, "")
			mu.Lock()
			up = true
			mu.Unlock()
			s = open(t, outbox.DefaultConfig(), openFile(t, filepath.Join(dir, "store.db")), far)
			mustDrain(t, s)
			holds(t, "remote", far.Store, ann, all(t, s, ann.Scope()))
			if name == "delete" && reached["append "+secret.ID] {
				t.Error("an entry that was deleted before its delivery reached the remote")
			}
			for _, e := range all(t, far.Store, ann.Scope()) {
				if strings.Contains(e.Text()+string(e.Message.Raw)+e.Key, "heliotrope") {
					t.Errorf("the remote has %q", e.ID)
				}
			}
		})
	}
}

// lacks looks for words in the files of a folder whose names end like that.
func lacks(t *testing.T, dir string, words []string, suffix string) {
	t.Helper()
	files := 0
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, suffix) {
			return err
		}
		files++
		b, err := os.ReadFile(path)
		for _, w := range words {
			if bytes.Contains(b, []byte(w)) {
				t.Errorf("%s holds %q", filepath.Base(path), w)
			}
		}
		return err
	})
	if err != nil || files == 0 {
		t.Errorf("%d files were read: %v", files, err)
	}
}

// TestErasedAfterDelivery: an erasure follows its entry to the remote, also when that was delivered under another id.
func TestErasedAfterDelivery(t *testing.T) {
	t.Parallel()
	far := newRemote()
	known := entry(ann, 1)
	known.ID = "elsewhere"
	mustAppend(t, far.Store, known)
	local := openFile(t, filepath.Join(t.TempDir(), "store.db"))
	s := open(t, outbox.DefaultConfig(), local, far)
	mustAppend(t, s, entries(ann, 0, 4)...)
	mustDrain(t, s)
	// The key was there: it is one entry, under its older id.
	if got := all(t, far.Store, ann.Scope()); len(got) != 4 || got[1].ID != "elsewhere" {
		t.Fatalf("the remote has %v", ids(got))
	}
	if err := s.Update(t.Context(), ann.Scope(), entry(ann, 1).ID, core.Change{Meta: map[string]string{"changed": "yes"}}); err != nil {
		t.Fatal(err)
	}
	mustDrain(t, s)
	if got := all(t, far.Store, ann.Scope()); len(got) != 4 || got[1].ID != "elsewhere" || got[1].Meta["changed"] != "yes" {
		t.Fatalf("the remote has %+v", got)
	}
	if n, err := s.Delete(t.Context(), core.Scope{Agent: "ann"}, []string{entry(ann, 1).ID, entry(ann, 2).ID}); n != 2 || err != nil {
		t.Fatalf("Delete = %d, %v", n, err)
	}
	mustDrain(t, s)
	holds(t, "remote", far.Store, ann, []core.Entry{entry(ann, 0), entry(ann, 3)})
}

// TestDeleteOfUnknown: ids that are not here are erased there all the same, in the scope alone.
func TestDeleteOfUnknown(t *testing.T) {
	t.Parallel()
	far := newRemote()
	mustAppend(t, far.Store, entry(ann, 0), entry(two, 0))
	s := open(t, volatile(), openFile(t, filepath.Join(t.TempDir(), "store.db")), far)
	if n, err := s.Delete(t.Context(), ann.Scope(), []string{entry(ann, 0).ID, entry(two, 0).ID}); n != 0 || err != nil {
		t.Fatalf("Delete = %d, %v", n, err)
	}
	mustDrain(t, s)
	holds(t, "remote", far.Store, ann, nil)
	holds(t, "remote", far.Store, two, entries(two, 0, 1))
}
