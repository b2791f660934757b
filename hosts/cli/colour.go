package cli

import (
	"fmt"
	"io"
	"slices"

	"github.com/contextengine/contextengine/internal/waiting"
)

// colour is how a word is shown on a terminal that has colours.
type colour string

// The colours, as numbers of ANSI escape sequences.
const (
	green  colour = "32"
	yellow colour = "33"
	red    colour = "31;1"
)

// colourModes are the values of --color.
var colourModes = []string{"auto", "always", "never"}

// checkColour says what is wrong with --color.
func (a *app) checkColour() error {
	if !slices.Contains(colourModes, a.colour) {
		return unknownName("value of --color", a.colour, colourModes)
	}
	return nil
}

// paint returns text in a colour if w shows colours: a terminal that is not dumb, unless NO_COLOR is set; or whatever it is with --color=always.
func (a *app) paint(w io.Writer, c colour, text string) string {
	shows := a.colour == "always"
	if a.colour == "auto" && a.getenv("NO_COLOR") == "" && a.getenv("TERM") != "dumb" {
		shows = waiting.Terminal(w)
	}
	if !shows {
		return text
	}
	return fmt.Sprintf("\x1b[%sm%s\x1b[0m", c, text)
}
