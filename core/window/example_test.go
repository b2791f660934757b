package window_test

import (
	"fmt"
	"strings"

	"github.com/contextengine/contextengine/core/window"
)

func ExampleClip() {
	words := func(text string) int { return len(strings.Fields(text)) }
	text := strings.Repeat("one line of a long listing\n", 20)
	short := window.Clip(text, words(text), 30, "\n[…]\n", words)
	fmt.Println(words(text), words(short) <= 30, strings.Contains(short, "[…]"))
	// Output: 120 true true
}
