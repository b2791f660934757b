package conformance

import (
	"fmt"
	"math/rand"

	"github.com/leanovate/gopter"
	"github.com/leanovate/gopter/gen"
	"github.com/leanovate/gopter/prop"
)

// forAll looks for a value that holds a broken rule: cases values of make, starting from seed. It returns the text of
// check for the smallest value found, that value, and whether there is one. check returns "" for a value that holds.
func forAll[T any](seed int64, cases int, shrink bool, build func(*rand.Rand) T, smaller gopter.Shrinker, check func(T) string) (string, T, bool) {
	var zero T
	params := gopter.DefaultTestParametersWithSeed(seed)
	params.MinSuccessfulTests = cases
	params.MaxShrinkCount = 400
	if !shrink {
		smaller = gopter.NoShrinker
	}
	values := gopter.Gen(func(p *gopter.GenParameters) *gopter.GenResult {
		return gopter.NewGenResult(build(p.Rng), smaller)
	})
	result := prop.ForAll(func(v T) string { return check(v) }, values).Check(params)
	if result.Passed() {
		return "", zero, false
	}
	if result.Error != nil {
		return fmt.Sprintf("%v\n%s", result.Error, result.ErrorStack), zero, true
	}
	smallest := zero
	if n := len(result.Args); n > 0 {
		if v, ok := result.Args[n-1].Arg.(T); ok {
			smallest = v
		}
	}
	if !shrink && len(result.Labels) > 0 { // the value is the first that was found, whose text this is
		return result.Labels[0], smallest, true
	}
	// The text belongs to the smallest value: the property is run once more for it.
	text := check(smallest)
	if text == "" && len(result.Labels) > 0 {
		text = result.Labels[0] + " (not every time: it depends on timing, or on what was asked before)"
	}
	return text, smallest, true
}

// sliceShrinker makes a slice smaller: without a part of its elements, or with smaller ones.
func sliceShrinker[T any](element func(T) []T) gopter.Shrinker {
	one := gopter.Shrinker(func(v any) gopter.Shrink {
		t, ok := v.(T)
		if !ok {
			return gopter.NoShrink
		}
		return listShrink(element(t))
	})
	inner := gen.SliceShrinker(one)
	return func(v any) gopter.Shrink {
		s, ok := v.([]T)
		if !ok || len(s) == 0 {
			return gopter.NoShrink
		}
		if len(s) == 1 {
			return gopter.ConcatShrinks(listShrink([][]T{{}}), inner(v))
		}
		return inner(v)
	}
}

// listShrink offers the values one by one.
func listShrink[T any](values []T) gopter.Shrink {
	i := 0
	return func() (any, bool) {
		if i >= len(values) {
			return nil, false
		}
		i++
		return values[i-1], true
	}
}
