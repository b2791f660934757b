package conformance

import (
	"os"
	"testing"
)

// caseTB is the testing.TB of one generated case: what it registers is cleaned up at the end of the case, not of the
// test, so that thousands of cases do not pile up files and connections.
type caseTB struct {
	testing.TB
	cleanups []func()
}

// Cleanup registers f for the end of the case.
func (c *caseTB) Cleanup(f func()) { c.cleanups = append(c.cleanups, f) }

// TempDir returns a directory that is removed at the end of the case.
func (c *caseTB) TempDir() string {
	c.Helper()
	dir, err := os.MkdirTemp(c.TB.TempDir(), "case")
	if err != nil {
		c.Fatalf("conformance: temporary directory: %v", err)
	}
	c.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

func (c *caseTB) end() {
	for len(c.cleanups) > 0 {
		last := c.cleanups[len(c.cleanups)-1]
		c.cleanups = c.cleanups[:len(c.cleanups)-1]
		last()
	}
}
