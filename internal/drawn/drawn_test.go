package drawn_test

import (
	"fmt"
	"testing"

	"github.com/contextengine/contextengine/internal/drawn"
)

// told is a test that keeps what it is told.
type told struct{ said, fatal string }

func (*told) Helper()                             {}
func (r *told) Logf(format string, args ...any)   { r.said = fmt.Sprintf(format, args...) }
func (r *told) Fatalf(format string, args ...any) { r.fatal = fmt.Sprintf(format, args...) }

func TestSeed(t *testing.T) {
	t.Setenv(drawn.Variable, "")
	var r told
	first := drawn.Seed(&r)
	if again := drawn.Seed(t); again == first {
		t.Errorf("two seeds are both %d", first)
	}
	if want := fmt.Sprintf("DRAWN_SEED=%d repeats", first); len(r.said) < len(want) || r.said[:len(want)] != want {
		t.Errorf("a test with seed %d says %q", first, r.said)
	}
	t.Setenv(drawn.Variable, fmt.Sprint(first))
	if again := drawn.Seed(t); again != first {
		t.Errorf("DRAWN_SEED=%d gives %d", first, again)
	}
	if a, b := drawn.Rand(t).Uint64(), drawn.Rand(t).Uint64(); a != b {
		t.Errorf("one seed gives %d and %d", a, b)
	}
	t.Setenv(drawn.Variable, "twelve")
	if drawn.Seed(&r); r.fatal != `DRAWN_SEED="twelve": it must be a number from 0 to 2^64-1` {
		t.Errorf("a seed that is no number: %q", r.fatal)
	}
}
