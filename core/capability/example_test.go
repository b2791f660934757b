package capability_test

import (
	"errors"
	"fmt"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/capability"
)

// What needs a runtime asks for it by name, and is told what is missing.
func Example() {
	err := capability.Require(core.NoHost{}, "mine", "compact", capability.Requirement{Capabilities: []capability.Name{capability.Compact, capability.DelegateHost}})
	missing, _ := errors.AsType[*capability.RequirementError](err)
	fmt.Println(missing.Missing)
	// Output: [delegated-compaction]
}
