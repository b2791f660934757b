package cli_test

import (
	"os"
	"testing"
)

// TestMain gives the process a place for state of its own: the default store is a file there.
func TestMain(m *testing.M) {
	os.Exit(func() int {
		dir, err := os.MkdirTemp("", "contextengine-cli")
		if err != nil {
			panic(err)
		}
		defer func() { _ = os.RemoveAll(dir) }()
		if err := os.Setenv("XDG_STATE_HOME", dir); err != nil {
			panic(err)
		}
		return m.Run()
	}())
}
