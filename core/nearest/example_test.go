package nearest_test

import (
	"fmt"

	"github.com/contextengine/contextengine/core/nearest"
)

func Example() {
	stores := []string{"memory", "sqlite", "postgres"}
	if name, ok := nearest.Of("postgers", stores); ok {
		fmt.Printf("did you mean %q?\n", name)
	}
	// Output: did you mean "postgres"?
}
