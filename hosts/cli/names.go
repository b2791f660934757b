package cli

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/nearest"
	"github.com/contextengine/contextengine/internal/columns"
)

// unknownName is the error for a name that is not one of those known, which stay in their order.
func unknownName(what, name string, known []string) error {
	known = slices.Sorted(slices.Values(known))
	text := fmt.Sprintf("unknown %s %q", what, name)
	if best, ok := nearest.Of(name, known); ok {
		text += fmt.Sprintf(", did you mean %q?", best)
	}
	return fmt.Errorf("%s (known: %s): %w", text, strings.Join(known, ", "), core.ErrInvalid)
}

// tokens reads a number of tokens: "8000", "8k" (8,000) or "1m" (1,000,000).
func tokens(s string) (int, error) {
	text, unit := strings.ToLower(strings.TrimSpace(s)), 1.0
	switch {
	case strings.HasSuffix(text, "k"):
		unit = 1e3
	case strings.HasSuffix(text, "m"):
		unit = 1e6
	}
	n, err := strconv.ParseFloat(strings.TrimRight(text, "km"), 64)
	if err != nil || n*unit < 1 || n*unit > 1e9 {
		return 0, fmt.Errorf("budget %q: want a positive number of tokens, such as 8000 or 8k: %w", s, core.ErrInvalid)
	}
	return int(n * unit), nil
}

// allTokens reads several numbers of tokens, each once, in the order given.
func allTokens(list []string) ([]int, error) {
	var out []int
	for _, s := range list {
		n, err := tokens(s)
		if err != nil {
			return nil, err
		}
		if !slices.Contains(out, n) {
			out = append(out, n)
		}
	}
	return out, nil
}

// short writes a number of tokens in at most five characters.
func short(n float64) string {
	switch {
	case n >= 1e6:
		return strconv.FormatFloat(n/1e6, 'f', 1, 64) + "M"
	case n >= 1e5:
		return strconv.FormatFloat(n/1e3, 'f', 0, 64) + "k"
	case n >= 1e3:
		return strconv.FormatFloat(n/1e3, 'f', 1, 64) + "k"
	}
	return strconv.FormatFloat(n, 'f', 0, 64)
}

// wideFlag adds --wide to a command that prints tables.
func (a *app) wideFlag(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&a.wide, "wide", false, "print all columns, in lines as long as they are, instead of what fits 80 characters")
}

// fit is the width of tables: that of a terminal, whatever it is, so that a file holds what was seen.
func (a *app) fit() int {
	if a.wide {
		return columns.All
	}
	return columns.Fit
}

// count writes a number with its noun.
func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return strconv.Itoa(n) + " " + noun + "s"
}
