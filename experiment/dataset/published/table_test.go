package published_test

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/contextengine/contextengine/experiment/dataset/published"
	"github.com/contextengine/contextengine/internal/datadir"
)

// The table names revisions that do not move, and figures that exist.
func TestTable(t *testing.T) {
	sets, err := published.Sets()
	if err != nil || len(sets) == 0 {
		t.Fatalf("%d sets, %v", len(sets), err)
	}
	pinned := regexp.MustCompile(`^https://[^?]+/[0-9a-f]{40}/$`)
	for _, s := range sets {
		for _, base := range s.Bases {
			if !pinned.MatchString(base) {
				t.Errorf("%s: %s names no revision", s.Name, base)
			}
		}
		if len(s.Figures) == 0 {
			t.Errorf("%s: no figures are measured on it", s.Name)
		}
		for _, name := range s.Figures {
			if _, err := os.Stat(filepath.Join("..", "..", "..", filepath.FromSlash(name))); err != nil {
				t.Errorf("%s: figures: %v", s.Name, err)
			}
		}
	}
}

// The data folder, where there is one, holds what was published; a set that it lacks is named as not run.
func TestDataFolder(t *testing.T) {
	sets, err := published.Sets()
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range sets {
		t.Run(s.Name, func(t *testing.T) {
			for _, f := range s.Files {
				datadir.File(t, f.Path) // a fetch that was interrupted leaves a part
			}
			list, err := published.Verify(datadir.Dir(os.Getenv), s)
			if state := published.StateOf(list, s); err != nil || state != published.Present {
				t.Errorf("the set is %s: %v", state, err)
			}
		})
	}
}
