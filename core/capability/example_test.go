package capability_test

import (
	"errors"
	"fmt"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/capability"
)

// What needs a runtime asks for it by name, and is told what is missing.
func Example() {
	err := core.Require(core.NoHost{}, "mine", "compact", core.Requirement{Capabilities: []capability.Name{capability.Compact, capability.DelegateHost}})
	missing, _ := errors.AsType[*core.RequirementError](err)
	fmt.Println(missing.Missing)
	// Output: [delegated-compaction]
}
