package sqlite_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/contextengine/contextengine/backends/sqlite"
)

// TestLocksOutliveAnotherHandle: the locks of a file belong to a process, and the system drops them as soon as the process closes the file anywhere. A handle that
// comes and goes in the same process, or one that looks into the file by itself, must not cost the others their locks: the next process to close the file
// would take itself for the last one and remove the log that they write to.
func TestLocksOutliveAnotherHandle(t *testing.T) {
	t.Parallel()
	for name, look := range map[string]func(testing.TB, *sqlite.Store, sqlite.Config){
		"opened again": func(tb testing.TB, _ *sqlite.Store, cfg sqlite.Config) {
			tb.Helper()
			for range 3 {
				s, err := sqlite.Open(tb.Context(), cfg)
				if err != nil {
					tb.Fatal(err)
				}
				if err := s.Close(); err != nil {
					tb.Fatal(err)
				}
			}
		},
		"copied": func(tb testing.TB, s *sqlite.Store, cfg sqlite.Config) {
			tb.Helper()
			if err := s.Backup(tb.Context(), cfg.Path+".copy"); err != nil {
				tb.Fatal(err)
			}
		},
		"looked at": func(tb testing.TB, s *sqlite.Store, _ sqlite.Config) {
			tb.Helper()
			s.LookAtIndex(tb)
			s.LookAtLength(tb)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := config(t)
			s := open(t, cfg)
			mustAppend(t, s, entries(ann, 0, 50)...)
			look(t, s, cfg)
			mustAppend(t, s, entries(ann, 50, 60)...)
			once := func(n, want int) {
				t.Helper()
				out, err := child(t, "once", cfg.Path, n, 0).Output()
				if err != nil || !strings.Contains(string(out), fmt.Sprintf("holds %d\n", want)) {
					t.Errorf("another process: %v\n%swant it to hold %d", err, out, want)
				}
			}
			once(100, 61)
			mustAppend(t, s, entries(ann, 60, 90)...)
			once(101, 92)
			if got := all(t, s, ann.Scope()); len(got) != 92 {
				t.Errorf("this process sees %d, want 92", len(got))
			}
		})
	}
}
