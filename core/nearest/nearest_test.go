package nearest

import (
	"strings"
	"testing"
)

func TestOf(t *testing.T) {
	known := []string{"memory", "openbrain", "sqlite", "db"}
	for _, c := range []struct {
		name, want string
	}{
		{"memroy", "memory"},
		{"Memory", "memory"},
		{"openbrian", "openbrain"},
		{"sqlit", "sqlite"},
		{"dv", "db"},
		{"postgres", ""},
		{"", ""},
		{strings.Repeat("memory", 1000), ""},
	} {
		got, ok := Of(c.name, known)
		if got != c.want || ok != (c.want != "") {
			t.Errorf("Of(%.20q) = %q, %v, want %q", c.name, got, ok, c.want)
		}
	}
}

func TestDistance(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{
		{"", "", 0}, {"abc", "", 3}, {"", "abc", 3}, {"kitten", "sitting", 3}, {"äöü", "äou", 2}, {"hihg", "high", 1}, {"ab", "ba", 1}, {"abc", "ca", 3},
	} {
		if got := distance(c.a, c.b); got != c.want {
			t.Errorf("distance(%q, %q) = %d, want %d", c.a, c.b, got, c.want)
		}
	}
}
