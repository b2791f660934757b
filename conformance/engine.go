package conformance

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/engine"
)

// TestEngine plays generated sessions against one engine; see TestMatrix.
func TestEngine(t *testing.T, name string, open func(tb testing.TB, env Env) (core.ContextEngine, core.Store), count core.TokenCounter, opts ...Option) {
	t.Helper()
	TestMatrix(t, []Combination{{Name: name, Open: open}}, count, opts...)
}

// TestMatrix holds combinations of parts to the promises, one subtest for each: 100 generated sessions (20 under -short), each of
// which is held to all promises at once. count is the counter that engines are built with and prompts are recounted with; the promise is
// made for o200k.
func TestMatrix(t *testing.T, combinations []Combination, count core.TokenCounter, opts ...Option) {
	t.Helper()
	o := resolve(t, fewer(100), opts)
	t.Logf("conformance seed %d", o.seed)
	tokens := newTokenCache(count)
	for _, c := range combinations {
		t.Run(c.Name, func(t *testing.T) {
			o := o
			o.watch = newWatch(time.Duration(o.watch.limit.Load()))
			checks := applicable(t, c, tokens, o)
			known := map[string]bool{}
			for id := range knownOf(c, o) {
				known[id] = true
			}
			for _, f := range examineScripts(t, c, checks, tokens, o) {
				if link, ok := knownOf(c, o)[f.ID()]; ok {
					t.Logf("%s is known to fail, see %s: %s", f.ID(), link, f.Text)
					continue
				}
				report(t, f)
			}
			f, seen, found := examineSession(t, c, checks, tokens, o, known)
			if found {
				report(t, f)
			}
			o.close(t, t.Failed())
			for id, link := range knownOf(c, o) {
				if text, ok := seen[id]; ok {
					t.Logf("%s is known to fail, see %s: %s", id, link, text)
				} else if !found {
					t.Errorf("%s passes now: it is no longer a known failure (%s)", id, link)
				}
			}
		})
	}
}

// ExamineEngine is TestMatrix for tools and for one combination: it returns the broken rules, at most one finding for each.
func ExamineEngine(tb testing.TB, c Combination, count core.TokenCounter, opts ...Option) []Finding {
	tb.Helper()
	o := resolve(tb, fewer(100), opts)
	tokens := newTokenCache(count)
	checks := applicable(tb, c, tokens, o)
	out := examineScripts(tb, c, checks, tokens, o)
	if o.first && len(out) > 0 {
		return out
	}
	if !o.shrink {
		return append(out, examineSessions(tb, c, checks, tokens, o)...)
	}
	tolerated := map[string]bool{}
	for {
		f, _, found := examineSession(tb, c, checks, tokens, o, tolerated)
		if !found || tolerated[f.ID()] {
			return out
		}
		out = append(out, f)
		tolerated[f.ID()] = true
	}
}

// examineSessions plays every session once, through whatever breaks, and returns the rules broken with the first session that broke each.
func examineSessions(tb testing.TB, c Combination, checks map[string]Check, tokens *tokenCache, o options) []Finding {
	tb.Helper()
	const repeated = "deterministic.same-bytes"
	var out []Finding
	tolerated, seen := map[string]bool{}, map[string]string{}
	for id := range checks {
		tolerated[id] = id != repeated
	}
	n := 0
	forAll(seedFor(o.seed, c.Name), o.cases, false, genPlan, nil, func(p plan) string {
		n++
		id, text, first := playOnce(tb, c, p, checks, tokens, tolerated, seen, o.watch)
		if _, known := seen[repeated]; id == "" && n%4 == 0 && !known {
			id, text = deterministic(tb, c, p, checks, tokens, tolerated, first, o.watch)
		}
		if _, known := seen[id]; id != "" && !known {
			seen[id] = text
		}
		for _, id := range slices.Sorted(maps.Keys(seen)) {
			if !slices.ContainsFunc(out, func(f Finding) bool { return f.ID() == id }) {
				out = append(out, Finding{Check: checks[id], Text: seen[id], Case: p.String(), Seed: o.seed})
			}
			if slices.Contains(o.until, id) {
				text = id
			}
		}
		return text
	})
	return out
}

func knownOf(c Combination, o options) map[string]string {
	out := map[string]string{}
	maps.Copy(out, o.known)
	maps.Copy(out, c.Known)
	return out
}

// applicable returns the checks a combination is held to.
func applicable(tb testing.TB, c Combination, tokens *tokenCache, o options) map[string]Check {
	tb.Helper()
	scope := &caseTB{TB: tb}
	defer scope.end()
	d := newDriver(scope, c, plan{}, nil, tokens, nil)
	_, sub := d.engine.(core.SubagentHost)
	_, turns := d.engine.(core.TurnCommitter)
	_, back := d.engine.(engine.Recaller)
	_, scores := d.engine.(engine.Scorer)
	_, arms := d.engine.(engine.Armed)
	_, retries := d.engine.(engine.Retrier)
	_, refreshes := d.engine.(engine.Refresher)
	_, pings := d.engine.(core.Pinger)
	owns := d.engine.Info().OwnsCompaction
	have := map[Need]bool{NeedOwner: owns, NeedDelegate: !owns, NeedSubagents: sub, NeedTurns: turns, NeedRecaller: back, NeedScorer: scores, NeedArmed: arms, NeedRetrier: retries, NeedRefresher: refreshes, NeedPinger: pings}
	d.dispose()
	checks := map[string]Check{}
	for _, check := range engineChecks() {
		claimed := (c.Claims == nil || matches(check, c.Claims)) && (o.claims == nil || matches(check, o.claims))
		if m := missing(check, have); len(m) > 0 || !claimed {
			o.watch.tally.left(check, m)
			continue
		}
		checks[check.ID] = check
		o.watch.tally.saw(check.ID, 0)
	}
	return checks
}

// examineSession plays sessions until a rule breaks. seen holds what was seen of tolerated ones.
func examineSession(
	tb testing.TB, c Combination, checks map[string]Check, tokens *tokenCache, o options, tolerated map[string]bool,
) (f Finding, seen map[string]string, found bool) {
	tb.Helper()
	seen = map[string]string{}
	broken := ""
	var also []string
	n := 0
	check := func(p plan) string {
		n++
		id, text, out := playOnce(tb, c, p, checks, tokens, tolerated, seen, o.watch)
		if id == "" && n%4 == 0 {
			id, text = deterministic(tb, c, p, checks, tokens, tolerated, out, o.watch)
		}
		if id == "" || broken != "" && id != broken {
			return ""
		}
		broken, also = id, nil
		for _, other := range slices.Sorted(maps.Keys(out.broke)) {
			if other != id && !tolerated[other] {
				also = append(also, other)
			}
		}
		return text
	}
	text, smallest, found := forAll(seedFor(o.seed, c.Name), o.cases, o.shrink, genPlan, planShrinker(), check)
	if !found {
		return Finding{}, seen, false
	}
	return Finding{Check: checks[broken], Text: text, Also: also, Case: smallest.String(), Seed: o.seed}, seen, true
}

// played is what a session left behind.
type played struct {
	outputs  uint64
	parallel bool
	// broke holds what was seen of every rule that broke.
	broke map[string]string
}

// playOnce plays one session with an engine of its own.
func playOnce(
	tb testing.TB, c Combination, p plan, checks map[string]Check, tokens *tokenCache, tolerated map[string]bool, seen map[string]string, watch *watch,
) (id, text string, out played) {
	tb.Helper()
	scope := &caseTB{TB: tb}
	defer (&watched{watch: watch}).finish(scope)
	var d *driver
	w := watched{watch: watch}
	panicked := w.run(scope, func() string {
		d = newDriver(scope, c, p, checks, tokens, tolerated)
		d.watch = watch
		id, text = d.play()
		return ""
	})
	if w.hung != "" {
		return "failure.hangs", w.hung, out
	}
	if panicked != "" {
		return "failure.spurious", panicked, out
	}
	for id, text := range d.seen {
		if _, ok := seen[id]; !ok {
			seen[id] = text
		}
	}
	return id, text, played{outputs: d.outputs.Sum64(), parallel: d.parallel, broke: d.seen}
}

// deterministic plays the session a second time and compares all bytes that were sent.
func deterministic(
	tb testing.TB, c Combination, p plan, checks map[string]Check, tokens *tokenCache, tolerated map[string]bool, first played, watch *watch,
) (id, text string) {
	tb.Helper()
	const rule = "deterministic.same-bytes"
	if _, ok := checks[rule]; !ok || tolerated[rule] || first.parallel || p.hangs() {
		return "", ""
	}
	watch.tally.saw(rule, 1)
	_, _, second := playOnce(tb, c, p, checks, tokens, tolerated, map[string]string{}, watch)
	if second.outputs != first.outputs {
		return rule, "the same session played twice sends different bytes"
	}
	return "", ""
}

// engineChecks lists the checks of engines: those of prompts and compactions, and those that the driver reports itself.
func engineChecks() []Check {
	return slices.Concat(promptChecks, resultChecks, compactChecks, backChecks, headChecks, scripts(), []Check{
		{ID: "budget.refused", Promise: 1, Suite: SuiteEngine,
			Rule: "a typed error says that system prompt and newest group alone do not fit, and only then"},
		{ID: "lost.readback", Promise: 2, Suite: SuiteEngine, final: lostReadback,
			Rule: "every ingested message stays readable byte for byte after any number of compactions, crashes and restarts"},
		{ID: "twice.stored", Promise: 6, Suite: SuiteEngine, final: twiceStored,
			Rule: "what was handed over once, or again with its key, is stored once"},
		{ID: "ids.form", Suite: SuiteEngine, final: idsForm,
			Rule: "ids of entries are letters, digits, \"-\" and \"_\", at most 64 of them, and not digits alone"},
		{ID: "erase.stored", Promise: 2, Suite: SuiteEngine, final: eraseStored,
			Rule: "an erasure reaches the entries, the summaries that stand for them and the views"},
		{ID: "compact.converges", Promise: 4, Suite: SuiteEngine, Needs: []Need{NeedOwner},
			Rule: "repeated compactions each begin where the one before ended, and come to an end"},
		{ID: "deterministic.same-bytes", Promise: 6, Suite: SuiteEngine,
			Rule: "the same session played twice sends the same bytes"},
		{ID: "idempotent.repeat", Promise: 6, Suite: SuiteEngine,
			Rule: "the same request twice in a row gives the same bytes"},
		{ID: "idempotent.own-output", Promise: 6, Suite: SuiteEngine,
			Rule: "feeding an engine its own output changes nothing, also one that was started after it was sent"},
		{ID: "idempotent.key", Promise: 6, Suite: SuiteEngine,
			Rule: "a message is ingested once for each key, and the result says so"},
		{ID: "idempotent.commit", Promise: 6, Suite: SuiteEngine, Needs: []Need{NeedTurns},
			Rule: "a turn is committed once for each advancement key"},
		{ID: "failure.no-half", Promise: 9, Suite: SuiteEngine,
			Rule: "a failed call leaves no half-published unit"},
		{ID: "failure.loud", Promise: 9, Suite: SuiteEngine,
			Rule: "what was not done is reported: as an error, in the result, or in Info.Health"},
		{ID: "failure.spurious", Promise: 9, Suite: SuiteEngine,
			Rule: "a legal call fails only when a part failed, and then works when it is repeated"},
		{ID: "failure.quotes", Promise: 9, Suite: SuiteEngine,
			Rule: "no error holds what a message says"},
		{ID: "failure.hangs", Promise: 9, Suite: SuiteEngine,
			Rule: "every call returns"},
		{ID: "cancel.stops", Promise: 9, Suite: SuiteEngine,
			Rule: "cancelled means stopped, with the context's error"},
	})
}

// final runs the checks of what a session leaves behind: after a last restart.
func (d *driver) final() {
	d.pendingCancel, d.pendingFault = false, faultNone
	d.restart(true)
	for _, t := range d.tracks {
		if t == nil {
			continue
		}
		if d.plan.Managed {
			d.endTurn(t, op{N: 1}, true)
		}
		d.assemble(t, op{N: 3})
	}
	for _, c := range engineChecks() {
		if _, ok := d.checks[c.ID]; ok && c.final != nil && d.failed == "" {
			if c.ID != "erase.stored" || len(d.erased) > 0 {
				d.saw(c.ID)
			}
			if text := c.final(d); text != "" {
				d.fail(c.ID, "%s", text)
			}
		}
	}
}

func lostReadback(d *driver) string {
	return d.compareStored(func(have, want int) bool { return have < want })
}

// entryIDs are the ids that an entry may have.
var entryIDs = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

func oddID(id string) string {
	if !entryIDs.MatchString(id) || strings.Trim(id, "0123456789") == "" {
		return fmt.Sprintf("an entry has the id %q, want 1 to 64 letters, digits, \"-\" and \"_\", and not digits alone", id)
	}
	return ""
}

func idsForm(d *driver) string {
	for _, t := range d.tracks {
		if t == nil {
			continue
		}
		for e, err := range core.All(context.WithoutCancel(d.tb.Context()), d.store, t.id.Scope(), false) {
			if err != nil {
				return fmt.Sprintf("reading session %s: error %v", t.id, err)
			}
			if text := oddID(e.ID); text != "" {
				return fmt.Sprintf("session %s, a %s: %s", t.id, e.Type, text)
			}
		}
	}
	return ""
}

func twiceStored(d *driver) string {
	return d.compareStored(func(have, want int) bool { return have > want })
}
