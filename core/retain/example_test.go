package retain_test

import (
	"fmt"
	"time"

	"github.com/contextengine/contextengine/core/retain"
)

// A policy bounds what a store keeps; the zero one keeps everything.
func ExamplePolicy() {
	fmt.Println(retain.Policy{MaxAge: 90 * 24 * time.Hour, MaxEntries: 100_000}.Validate())
	fmt.Println(retain.Policy{MaxEntries: -1}.Validate())
	// Output:
	// <nil>
	// core: retain: maxEntries: must not be negative: invalid
}
