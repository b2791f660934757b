package conformance

import (
	"testing"

	"github.com/contextengine/contextengine/core"
)

// TestReservedNames: what the check of invalid calls asks with are the names that are reserved.
func TestReservedNames(t *testing.T) {
	for _, name := range reservedNames {
		if !core.Reserved(name) {
			t.Errorf("core.Reserved(%q) = false", name)
		}
	}
}
