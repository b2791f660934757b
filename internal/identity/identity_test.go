package identity_test

import (
	"testing"

	"github.com/contextengine/contextengine/internal/identity"
)

type value struct {
	f     func()
	tags  []string
	inner any
}

// TestSame: a copy is the same; another one that looks alike is not.
func TestSame(t *testing.T) {
	f, tags, m := func() {}, []string{"a"}, map[string]int{}
	one := value{f, tags, m}
	other := 0
	for name, c := range map[string]struct {
		a, b any
		want bool
	}{
		"nothing":             {nil, nil, true},
		"nothing and a value": {nil, one, false},
		"a copy":              {one, one, true},
		"another function":    {one, value{func() { other++ }, tags, m}, false},
		"another slice":       {one, value{f, []string{"a"}, m}, false},
		"another map":         {one, value{f, tags, map[string]int{}}, false},
		"nothing inside":      {one, value{f, tags, nil}, false},
		"another type":        {1, "1", false},
		"pointers":            {&other, &other, true},
		"arrays":              {[1]any{f}, [1]any{f}, true},
	} {
		if got := identity.Same(c.a, c.b); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}
