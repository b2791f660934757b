package conformance

import (
	"errors"
	"flag"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/contextengine/contextengine/core"
)

// The flags exist in every test binary that imports the package.
var (
	seedFlag  = flag.Int64("conformance.seed", 0, "base seed of the conformance suites; 0 is a random one")
	casesFlag = flag.Int("conformance.cases", 0, "generated cases for each conformance check; 0 is the suite's own number")
)

// The variables that adjust suites from outside.
const (
	envSeed  = "CONFORMANCE_SEED"
	envCases = "CONFORMANCE_CASES"
	envTimes = "CONFORMANCE_TIMES"
)

// Option adjusts a suite.
type Option func(*options)

type options struct {
	cases  int
	seed   int64
	bound  time.Duration
	reopen func(testing.TB, core.Store) core.Store
	known  map[string]string
	claims []string
	over   func(testing.TB, map[string]core.Searcher) core.Retriever
	shrink bool
	exact  bool
	// until are the checks with whose first finding an examination has found what it looks for.
	until []string
	// another opens what a store holds once more, while that stays open.
	another func(testing.TB, core.Store) core.Store
	// media is the folder that holds all that a store writes.
	media func(testing.TB, core.Store) string
	// nothing says that a retriever may find nothing in the suite's conversations.
	nothing bool
	// first ends an examination of a part with the first rule that breaks.
	first bool
	// watch looks after calls that do not return.
	watch *watch
	// reported is told what was done, and strict fails where something was not.
	reported func(Report)
	strict   bool
}

// WithCases sets the number of generated cases for each check, at least 1. With fewer than 10 an engine plays only a part of the scripts, others with another
// seed. The flag and the environment win.
func WithCases(n int) Option { return func(o *options) { o.cases = n } }

// WithSeed sets the base seed. The flag and the environment win.
func WithSeed(seed int64) Option { return func(o *options) { o.seed = seed } }

// WithReopen says how a durable store is closed and opened again over the same data. The function closes
// the store it is given, properly or not, and returns its successor. Where a process may die it is best left unclosed: what a store wrote only when it was closed is missed then.
func WithReopen(reopen func(tb testing.TB, old core.Store) core.Store) Option {
	return func(o *options) { o.reopen = reopen }
}

// WithSearchers says how a retriever that asks searchers is made over some. Each of them may be the only one.
func WithSearchers(over func(tb testing.TB, searchers map[string]core.Searcher) core.Retriever) Option {
	return func(o *options) { o.over = over }
}

// WithAnother says how what a store holds is opened once more while the first stays open, as another process would. The function registers the clean-up of
// what it returns. Without it the checks of several users share one handle.
func WithAnother(another func(tb testing.TB, first core.Store) core.Store) Option {
	return func(o *options) { o.another = another }
}

// WithMedia says in which file or folder a store keeps everything that it writes, so that the suite can look there for what should be gone after upkeep.Scrubber.
func WithMedia(path func(tb testing.TB, s core.Store) string) Option {
	return func(o *options) { o.media = path }
}

// WithEventual says that what was written may take up to bound until scans and searches show it.
func WithEventual(bound time.Duration) Option { return func(o *options) { o.bound = bound } }

// WithClaims restricts a suite to the checks of these ids or families; without it everything is claimed.
func WithClaims(names ...string) Option { return func(o *options) { o.claims = names } }

// Known lists a check that fails today, and where that is tracked. The suite fails when the check passes.
func Known(id, link string) Option {
	return func(o *options) {
		o.known = maps.Clone(o.known)
		if o.known == nil {
			o.known = map[string]string{}
		}
		o.known[id] = link
	}
}

// WithExactly sets the number of generated cases and the seed for good: neither the environment nor a flag changes them.
func WithExactly(cases int, seed int64) Option {
	return func(o *options) { o.cases, o.seed, o.exact = cases, seed, true }
}

// WithPatience says how long a part may take for one call before it is taken to hang; without it a minute.
func WithPatience(limit time.Duration) Option { return func(o *options) { o.watch = newWatch(limit) } }

// WithFindsNothing declares that a retriever finds nothing in ordinary conversations, as one does that looks for something else. What it would find is then not tested.
func WithFindsNothing() Option { return func(o *options) { o.nothing = true } }

// WithReport hands over what the suite did and what it did not, once it is done; for TestMatrix once for each combination. Reports are logged either way.
func WithReport(report func(Report)) Option { return func(o *options) { o.reported = report } }

// WithStrict fails a suite that leaves something untested although the part has what it takes: a rule that never had anything to look at, a fault that never
// struck, too few budgets that are refused. It needs the suite's own number of cases; what a part does not have, and what is not claimed, is not asked for.
func WithStrict() Option { return func(o *options) { o.strict = true } }

// WithFirst ends the examination of a part with the first rule that breaks.
func WithFirst() Option { return func(o *options) { o.first = true } }

// WithoutShrinking reports the first counter-example found instead of the smallest.
func WithoutShrinking() Option { return func(o *options) { o.shrink = false } }

// WithUntil ends the examination of an engine with the first session that breaks one of these checks. Every rule that the sessions up to
// there break is reported, none with its smallest case.
func WithUntil(ids ...string) Option { return func(o *options) { o.until, o.shrink = ids, false } }

// resolve applies opts, then the environment, then the flags.
func resolve(tb testing.TB, cases int, opts []Option) options {
	tb.Helper()
	o := options{cases: cases, shrink: true, watch: newWatch(patience)}
	for _, opt := range opts {
		opt(&o)
	}
	if o.exact {
		return o
	}
	if err := o.ask(os.Getenv); err != nil {
		tb.Fatal(err)
	}
	if *casesFlag > 0 {
		o.cases = *casesFlag
	}
	o.cases = max(o.cases, 1)
	if *seedFlag != 0 {
		o.seed = *seedFlag
	}
	for o.seed == 0 {
		o.seed = int64(rand.Uint32())
	}
	return o
}

// ask applies the environment. A value that cannot be read is an error: passed over, it would stand for a run that did not take place.
func (o *options) ask(getenv func(string) string) error {
	var errs []error
	wrong := func(name, want string) {
		errs = append(errs, fmt.Errorf("conformance: %s: %q is not %s: %w", name, getenv(name), want, core.ErrInvalid))
	}
	if text := getenv(envSeed); text != "" {
		if n, err := strconv.ParseInt(text, 10, 64); err != nil {
			wrong(envSeed, "a whole number")
		} else if n != 0 {
			o.seed = n
		}
	}
	if text := getenv(envCases); text != "" {
		if n, err := strconv.Atoi(text); err != nil || n < 1 {
			wrong(envCases, "a whole number of at least 1")
		} else {
			o.cases = n
		}
	}
	if text := getenv(envTimes); text != "" {
		if v, err := strconv.ParseFloat(text, 64); err != nil || !(v > 0) || math.IsInf(v, 0) {
			wrong(envTimes, "a number above 0, such as 25 or 0.5")
		} else {
			o.cases = max(int(math.Round(float64(o.cases)*v)), 1)
		}
	}
	return errors.Join(errs...)
}

// fewer returns n, or a fraction of it under -short.
func fewer(n int) int {
	if testing.Short() {
		return max(n/5, 3)
	}
	return n
}
