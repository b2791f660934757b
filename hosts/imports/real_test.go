package imports_test

import (
	"bytes"
	"os"
	"testing"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/message"
	"github.com/contextengine/contextengine/hosts/imports"
	"github.com/contextengine/contextengine/internal/datadir"
)

// Every message of a real file is stored, byte for byte, and what is stored is exported and restored.
func TestRealFiles(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"pi/large-session.jsonl", "tau-bench/airline-dev.json"} {
		t.Run(name, func(t *testing.T) {
			file := datadir.File(t, name)
			f, err := os.Open(file)
			if err != nil {
				t.Fatal(err)
			}
			conversations, err := message.Read(f, message.ReadOptions{Name: file})
			if err := f.Close(); err != nil {
				t.Fatal(err)
			}
			if err != nil {
				t.Fatal(err)
			}
			s := memorySink(t)
			r := importFile(t, s, file, imports.Options{Agent: "ann", Branches: true})
			raws := make(map[string]int)
			n := 0
			for _, c := range conversations {
				for _, m := range c.Messages {
					raws[string(m.Raw)]++
					n++
				}
			}
			for _, e := range s.stored(t, "ann", "") {
				raws[string(e.Message.Raw)]--
			}
			for raw, left := range raws {
				if left != 0 {
					t.Errorf("%s: a message of %d bytes is stored %d times too few", file, len(raw), left)
				}
			}
			if r.Imported != n {
				t.Errorf("%s: %s, want %d imported", file, counts(r), n)
			}
			var b bytes.Buffer
			if _, err := imports.Export(t.Context(), s.store, &b, core.Scope{}, nil); err != nil {
				t.Fatal(err)
			}
			other := memorySink(t)
			if done, err := imports.Restore(t.Context(), other.store, &b, nil); err != nil || int(done.Entries) != n {
				t.Errorf("%s: restored %+v, %v", file, done, err)
			}
			if got := importFile(t, other, file, imports.Options{Agent: "ann", Branches: true}); got.Imported != 0 {
				t.Errorf("%s into its own copy: %s", file, counts(got))
			}
		})
	}
}
