// Package drawn gives tests random numbers that are others in each run: a fixed seed would try the same few cases for ever. A test that fails prints its seed.
package drawn

import (
	"math/rand/v2"
	"os"
	"strconv"
)

// Variable is the environment variable that repeats a seed.
const Variable = "DRAWN_SEED"

// TB is the part of testing.TB that this package needs.
type TB interface {
	Helper()
	Logf(format string, args ...any)
	Fatalf(format string, args ...any)
}

// Seed draws a seed, or takes the one that Variable holds, and logs it, which the test runner shows of tests that fail.
func Seed(tb TB) uint64 {
	tb.Helper()
	seed := rand.Uint64()
	if s := os.Getenv(Variable); s != "" {
		var err error
		if seed, err = strconv.ParseUint(s, 10, 64); err != nil {
			tb.Fatalf("%s=%q: it must be a number from 0 to 2^64-1", Variable, s)
		}
	}
	tb.Logf("%s=%d repeats the numbers that were drawn", Variable, seed)
	return seed
}

// Rand returns random numbers whose seed was drawn, see Seed.
func Rand(tb TB) *rand.Rand {
	tb.Helper()
	return rand.New(rand.NewPCG(Seed(tb), 0)) //nolint:gosec // for tests, no secret
}
