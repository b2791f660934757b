package injected_test

import (
	"fmt"

	"github.com/contextengine/contextengine/core/injected"
)

// What a client puts around what somebody says is cut away by rules: those of known clients, and one's own.
func ExampleNew() {
	own := injected.Rule{Client: "ours", Tag: "desk-note", In: injected.User}
	cutter, err := injected.New(append([]injected.Rule{own}, injected.Builtin()...))
	if err != nil {
		fmt.Println(err)
		return
	}
	text := "<desk-note>Ticket 12, second line</desk-note>\nThe printer is on fire."
	fmt.Println(injected.Without(text, cutter.Spans(injected.User, text)))
	// Output: The printer is on fire.
}
