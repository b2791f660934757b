package homepath_test

import (
	"errors"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/internal/homepath"
)

func TestExpand(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("not run: homes are found otherwise there")
	}
	t.Setenv("HOME", "/home/ann")
	for path, want := range map[string]string{
		"": "", "a/b": "a/b", "/a": "/a", "a/~/b": "a/~/b", "./~": "./~", "$HOMEPAGE/x": "$HOMEPAGE/x", "$OTHER/x": "$OTHER/x",
		"~": "/home/ann", "~/": "/home/ann", "~/a/b.db": "/home/ann/a/b.db", "$HOME": "/home/ann", "$HOME/a": "/home/ann/a", "${HOME}/a": "/home/ann/a",
	} {
		if got, err := homepath.Expand(path); err != nil || got != filepath.FromSlash(want) {
			t.Errorf("Expand(%q) = %q, %v, want %q", path, got, err, want)
		}
	}
	if _, err := homepath.Expand("~bob/x"); !errors.Is(err, core.ErrInvalid) {
		t.Errorf("Expand of another's home: %v, want core.ErrInvalid", err)
	}
	t.Setenv("HOME", "")
	if _, err := homepath.Expand("~/x"); !errors.Is(err, core.ErrInvalid) {
		t.Errorf("Expand without a home: %v, want core.ErrInvalid", err)
	}
}
