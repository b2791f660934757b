package survival_test

import (
	"fmt"

	"github.com/contextengine/contextengine/experiment/survival"
)

func ExampleIdentifiers() {
	fmt.Println(survival.Identifiers("Order ORD-7781 is in /var/spool; ask ana@example.com, not Ben."))
	// Output: [ORD-7781 /var/spool ana@example.com]
}
