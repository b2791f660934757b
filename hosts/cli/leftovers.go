package cli

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/internal/files"
)

// leftovers are the temporary files beside a store whose processes were ended before they were done with them: copies, exports, images of an index.
func leftovers(s core.Store) (out []string, err error) {
	at, ok := core.As[interface{ Path() string }](s)
	if !ok || at.Path() == "" {
		return nil, nil
	}
	folders := []string{filepath.Dir(at.Path())}
	beside, err := os.ReadDir(at.Path() + ".d")
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for _, use := range beside {
		if use.IsDir() {
			folders = append(folders, filepath.Join(at.Path()+".d", use.Name()))
		}
	}
	for _, folder := range folders {
		found, err := files.Abandoned(folder, time.Now())
		if err != nil {
			return nil, err
		}
		out = append(out, found...)
	}
	return out, nil
}

// removeLeft removes those of the files that nobody uses by now, either.
func removeLeft(s core.Store, left []string) (string, error) {
	now, err := leftovers(s)
	n := 0
	for _, path := range left {
		if !slices.Contains(now, path) {
			continue
		}
		if rerr := os.RemoveAll(path); rerr != nil {
			err = errors.Join(err, rerr)
		} else {
			n++
		}
	}
	return count(n, "temporary file") + " removed", err
}

func leftText(left []string) string {
	return count(len(left), "temporary file") + " of processes that were ended before they were done: " + strings.Join(left, ", ")
}

// leftFinding says what is left beside a store.
func leftFinding(s core.Store) (finding, bool) {
	f := finding{Name: "leftovers", Status: "note", Do: `run "contextengine doctor --fix"; they are in nobody's way`}
	left, err := leftovers(s)
	if err != nil {
		f.Text, f.Do = err.Error(), ""
	} else if len(left) > 0 {
		f.Text = leftText(left)
	}
	return f, f.Text != ""
}
