package conformance

import (
	"cmp"
	"slices"
	"strings"
)

// Suite says what a Check examines.
type Suite string

// The suites.
const (
	SuiteStore     Suite = "store"
	SuiteRetriever Suite = "retriever"
	SuiteCompactor Suite = "compactor"
	SuiteEngine    Suite = "engine"
	SuiteCounter   Suite = "counter"
	SuiteEmbedder  Suite = "embedder"
	SuiteCompleter Suite = "completer"
)

// Need is something a check cannot run without. A check whose needs are not met is skipped, and says so.
type Need string

// The needs.
const (
	// NeedSearcher: core.As finds a core.Searcher in the store.
	NeedSearcher Need = "core.Searcher"
	// NeedViewStore: core.As finds a core.ViewStore in the store.
	NeedViewStore Need = "core.ViewStore"
	// NeedNoViews: core.As finds no core.ViewStore in the store.
	NeedNoViews Need = "no core.ViewStore"
	// NeedTailer: core.As finds a core.Tailer in the store.
	NeedTailer Need = "core.Tailer"
	// NeedChangeFeed: core.As finds a core.ChangeFeed in the store.
	NeedChangeFeed Need = "core.ChangeFeed"
	// NeedVectorStore: core.As finds a vector.Store in the store.
	NeedVectorStore Need = "vector.Store"
	// NeedStatter: core.As finds an upkeep.Statter in the store.
	NeedStatter Need = "upkeep.Statter"
	// NeedVectorSearcher: core.As finds a vector.Searcher and a vector.Store in the store.
	NeedVectorSearcher Need = "vector.Searcher"
	// NeedBeside: core.As finds a core.Beside in the store.
	NeedBeside Need = "core.Beside"
	// NeedScrubber: core.As finds an upkeep.Scrubber in the store, or the retriever is one.
	NeedScrubber Need = "upkeep.Scrubber"
	// NeedSessionEraser: core.As finds a core.SessionEraser in the store.
	NeedSessionEraser Need = "core.SessionEraser"
	// NeedRecogniser: core.As finds a core.Recogniser in the store.
	NeedRecogniser Need = "core.Recogniser"
	// NeedDrainer: core.As finds an upkeep.Drainer in the store.
	NeedDrainer Need = "upkeep.Drainer"
	// NeedLateSearcher: core.As finds a core.LateSearcher and a core.Searcher in the store.
	NeedLateSearcher Need = "core.LateSearcher"
	// NeedRepairer: core.As finds an upkeep.Repairer in the store.
	NeedRepairer Need = "upkeep.Repairer"
	// NeedMedia: the suite was given WithMedia.
	NeedMedia Need = "WithMedia"
	// NeedReopen: the suite was given WithReopen.
	NeedReopen Need = "WithReopen"
	// NeedAnother: the suite was given WithAnother.
	NeedAnother Need = "WithAnother"
	// NeedOwner: the engine or compactor owns compaction.
	NeedOwner Need = "an owner of compaction"
	// NeedDelegate: the engine or compactor passes compaction on to the host.
	NeedDelegate Need = "a delegate of compaction"
	// NeedSharer: the retriever is a core.Sharer.
	NeedSharer Need = "core.Sharer"
	// NeedSearchers: the suite was given WithSearchers.
	NeedSearchers Need = "WithSearchers"
	// NeedLateRetriever: the retriever is a core.LateRetriever.
	NeedLateRetriever Need = "core.LateRetriever"
	// NeedAttacher: the retriever is a core.Attacher.
	NeedAttacher Need = "core.Attacher"
	// NeedObserver: the retriever is a core.Observer.
	NeedObserver Need = "core.Observer"
	// NeedSubagents: the engine is a core.SubagentHost.
	NeedSubagents Need = "core.SubagentHost"
	// NeedTurns: the engine is a core.TurnCommitter.
	NeedTurns Need = "core.TurnCommitter"
	// NeedRecaller: the engine is an engine.Recaller.
	NeedRecaller Need = "engine.Recaller"
	// NeedScorer: the engine is an engine.Scorer.
	NeedScorer Need = "engine.Scorer"
	// NeedArmed: the engine is an engine.Armed.
	NeedArmed Need = "engine.Armed"
	// NeedRetrier: the engine is an engine.Retrier.
	NeedRetrier Need = "engine.Retrier"
	// NeedRefresher: the engine is an engine.Refresher.
	NeedRefresher Need = "engine.Refresher"
	// NeedPinger: the engine is a core.Pinger.
	NeedPinger Need = "core.Pinger"
)

// Check is one rule and the property that examines it.
type Check struct {
	// ID names the check; it never changes once released. The part before the dot is its family.
	ID string
	// Promise is the number of the framework's promise that the check belongs to, 1 to 10; 0 for rules of a part's own contract.
	Promise int
	Suite   Suite
	// Rule is the sentence an implementation is held to.
	Rule string
	// Needs are all required.
	Needs []Need
	// Provisional marks a new check: its failure is logged and does not fail the test.
	Provisional bool

	// dear checks play a fifth of the cases: each of theirs is many calls.
	dear bool
	// once checks build all they need themselves: one case says everything.
	once bool
	// plain checks use no generated entries: there is no smaller case to look for.
	plain bool

	// Exactly one of these is set for checks of parts.
	store     func(*storeRun) string
	retriever func(*retrieverRun) string
	compactor func(*compactorRun) string
	model     func(*modelRun) string
	// Engine checks look at every prompt, at every compaction, or are reported by the driver itself when all are nil.
	prompt  func(*prompt) string
	compact func(*compaction) string
	final   func(*driver) string
	script  func(*script) string
}

// Family returns the part of the id before the dot.
func (c Check) Family() string {
	family, _, _ := strings.Cut(c.ID, ".")
	return family
}

// Checks lists all checks, by suite and id.
func Checks() []Check {
	all := slices.Concat(storeSuite(), retrieverChecks(), compactorChecks(), modelChecks(), engineChecks())
	slices.SortStableFunc(all, func(a, b Check) int {
		return cmp.Or(cmp.Compare(a.Suite, b.Suite), cmp.Compare(a.ID, b.ID))
	})
	return all
}

// matches reports whether a list of ids and families names the check.
func matches(c Check, names []string) bool {
	return slices.Contains(names, c.ID) || slices.Contains(names, c.Family())
}

// missing returns the needs of c that have does not hold.
func missing(c Check, have map[Need]bool) []Need {
	var out []Need
	for _, n := range c.Needs {
		if !have[n] {
			out = append(out, n)
		}
	}
	return out
}

// inTurn runs steps of a check up to the first that says what is wrong, and returns that.
func inTurn(steps ...func() string) string {
	for _, step := range steps {
		if text := step(); text != "" {
			return text
		}
	}
	return ""
}
