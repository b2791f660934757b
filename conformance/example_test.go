package conformance_test

import (
	"fmt"

	"github.com/contextengine/contextengine/conformance"
)

// Checks are data: what a test of TestStore, TestEngine and the others holds a part to can be read, and listed.
func ExampleChecks() {
	for _, c := range conformance.Checks() {
		if c.ID == "isolation.get" {
			fmt.Printf("%s, promise %d: %s\n", c.Suite, c.Promise, c.Rule)
		}
	}
	// Output: store, promise 8: ids outside the scope are ErrNotFound, whoever they belong to
}
