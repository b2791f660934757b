package engine

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/capability"
	"github.com/contextengine/contextengine/core/history"
	"github.com/contextengine/contextengine/core/injected"
)

// Config is everything an operator sets about an Engine. The tags are the keys of configuration files.
type Config struct {
	// RecentMessages is the number of newest messages that compaction never touches, and that a step keeps as far as the low mark allows.
	RecentMessages int `koanf:"recentMessages"`
	// Failure is FailDegrade or FailStrict.
	Failure    FailurePolicy    `koanf:"failure"`
	Window     WindowConfig     `koanf:"window"`
	Recall     RecallConfig     `koanf:"recall"`
	Compaction CompactionConfig `koanf:"compaction"`
	History    HistoryConfig    `koanf:"history"`
	Subagents  SubagentConfig   `koanf:"subagents"`
	// Requires is what operations need of the host: an engine is not made on a host that lacks it.
	Requires capability.Requirements `koanf:"requires"`
	// Redact lists what is never stored, see RedactRule; empty by default.
	Redact []RedactRule `koanf:"redact"`
	// Injected lists what clients put into messages besides what is known of them, see package injected: it is stored and shown, but never looked for, recalled
	// nor part of a question. These rules go before the known ones.
	Injected []injected.Rule `koanf:"injected"`
}

// FailurePolicy says what happens when a part fails in a way that a retry does not mend.
type FailurePolicy string

// The failure policies.
const (
	// FailDegrade lets legacy answer where Assemble fails, loudly: in the log, in Info.Health and in the result. Faults in a row set the engine aside, see Retrier.
	FailDegrade FailurePolicy = "degrade"
	// FailStrict returns the error to the caller.
	FailStrict FailurePolicy = "strict"
)

// WindowConfig shapes the window. Shares are shares of the token budget.
type WindowConfig struct {
	// High is the share of the budget at which the window steps. How deep a step goes is decided by what it costs; Low, a share of the budget, and
	// LowTokens bound it: the smaller of the two stays at least.
	High      float64 `koanf:"high"`
	Low       float64 `koanf:"low"`
	LowTokens int     `koanf:"lowTokens"`
	// CachePrice is what a token costs that the provider has cached, relative to one that it has not, 0 to 1.
	CachePrice float64 `koanf:"cachePrice"`
	// Reserve is the share that is never filled: it covers what a provider counts differently.
	Reserve float64 `koanf:"reserve"`
	// ClipShare and ClipTokens bound a single tool result: the larger of the two holds. BatchShare bounds all results of one group.
	ClipShare  float64 `koanf:"clipShare"`
	ClipTokens int     `koanf:"clipTokens"`
	BatchShare float64 `koanf:"batchShare"`
	// KeepResults is the number of newest tool results that are never masked.
	KeepResults int `koanf:"keepResults"`
	// Note adds a line that says how many earlier messages are not shown.
	Note bool `koanf:"note"`
	// Memory bounds what the windows of all sessions may take in memory, in MiB, 1 to 1048576; the least recently used one is let go, and read again when needed.
	Memory int `koanf:"memory"`
}

// RecallConfig shapes the recall block.
type RecallConfig struct {
	// Share is the share of the budget that recalled entries may take in a turn that asks for something, 0 to 0.5; 0 turns recall off. A retriever that is
	// a Sharer decides itself. Where all of a session is shown, half of what is free may be taken if that is more.
	Share float64 `koanf:"share"`
	// Tokens bounds what they may take in turns of which that is not certain, which get half of the share; the window leaves so much room in every turn.
	Tokens int `koanf:"tokens"`
	// Floor is the share of the best candidate's score, 0 to 1, below which a candidate is not recalled. In windows of more than 64,000 tokens it falls with the
	// cube root of the budget: 0.15 is 0.12 at 128,000.
	Floor float64 `koanf:"floor"`
	// Gate recalls only for turns that ask for something, see asksFor; without it every turn recalls.
	Gate bool `koanf:"gate"`
	// Candidates bounds how many candidates are asked for; it follows the allowance.
	Candidates int `koanf:"candidates"`
	// Deadline bounds a retriever's work; what comes later is left out.
	Deadline time.Duration `koanf:"deadline"`
	// AcrossSessions lets recall reach the agent's other sessions.
	AcrossSessions bool `koanf:"acrossSessions"`
	// ResetHistory lets recall bring back what was reset inside its own session, or forked away from it.
	ResetHistory bool `koanf:"resetHistory"`
	// ResetMessages is how many of the newest messages from before a reset the first turn after it is given, 0 to 1000, together with the newest summary.
	ResetMessages int `koanf:"resetMessages"`
	// Quote is the largest cost of one recalled entry, in tokens; longer ones are clipped.
	Quote int `koanf:"quote"`
	// Whole is up to which cost in tokens an entry is quoted whole where the retriever proposes a passage of it: a line in front of a quotation costs
	// as much as a short message.
	Whole int `koanf:"whole"`
}

// CompactionConfig says when and how far to compact.
type CompactionConfig struct {
	// Due is how much history, as a share of the budget, may leave the window before a compaction is due.
	Due float64 `koanf:"due"`
	// Target is the share of the budget that live history should cost after a compaction.
	Target float64 `koanf:"target"`
	// SummaryShare is the largest share of the budget that one summary takes, and MaxSummary its largest cost in tokens.
	SummaryShare float64 `koanf:"summaryShare"`
	MaxSummary   int     `koanf:"maxSummary"`
	// Deadline bounds a whole compaction.
	Deadline time.Duration `koanf:"deadline"`
	// Proactive compacts in Maintain when it is due.
	Proactive bool `koanf:"proactive"`
}

// HistoryConfig selects the rules applied to history before it is shown.
type HistoryConfig struct {
	// Provider names the family whose turn rules hold, see history.PolicyFor; empty takes the host's word for it.
	Provider string `koanf:"provider"`
	// LimitTurns is the largest number of user turns shown; 0 means no limit.
	LimitTurns int `koanf:"limitTurns"`
	// Limits sets limits per channel, direct message and user; they go before LimitTurns.
	Limits history.Limits `koanf:"limits"`
	// Providers holds what is otherwise while a provider serves the model, by the host's name of it in lower case.
	Providers map[string]ProviderHistory `koanf:"providers"`
}

// ProviderHistory is what a HistoryConfig has otherwise for a provider. What is not set is as it is there.
type ProviderHistory struct {
	Provider   string         `koanf:"provider"`
	LimitTurns *int           `koanf:"limitTurns"`
	Limits     history.Limits `koanf:"limits"`
}

// of returns what holds while a provider serves the model.
func (h HistoryConfig) of(provider string) HistoryConfig {
	p, ok := h.Providers[strings.ToLower(provider)]
	if !ok {
		return h
	}
	h.Provider, h.Limits = cmp.Or(p.Provider, h.Provider), p.Limits.Over(h.Limits)
	if p.LimitTurns != nil {
		h.LimitTurns = *p.LimitTurns
	}
	return h
}

// check names what is wrong with what is set for providers.
func (h HistoryConfig) check() (errs []error) {
	for _, name := range slices.Sorted(maps.Keys(h.Providers)) {
		p, at := h.Providers[name], "history.providers."+name
		if name == "" || name != strings.ToLower(name) {
			errs = append(errs, invalid("config", at, "must be the host's name of a provider, in lower case"))
		}
		if _, err := history.PolicyFor(p.Provider); err != nil {
			errs = append(errs, fmt.Errorf("core: config: %s.provider: %w: %w", at, err, core.ErrInvalid))
		}
		if n := p.LimitTurns; n != nil && (*n < 0 || *n > 1e9) {
			errs = append(errs, invalid("config", at+".limitTurns", "must be 0 to 1e+09"))
		}
	}
	return errs
}

// SubagentConfig says what subagents may see.
type SubagentConfig struct {
	// TTL is how long a child may reach its parent's history, and the parent the child's.
	TTL time.Duration `koanf:"ttl"`
	// Recall lets an isolated child recall and search its parent's history, and the parent search the child's; a fork may always.
	Recall bool `koanf:"recall"`
	// PromptMode holds in the sessions of subagents where the host names none.
	PromptMode core.PromptMode `koanf:"promptMode"`
	// RecentMessages is RecentMessages for the sessions of subagents.
	RecentMessages int `koanf:"recentMessages"`
}

// DefaultConfig returns the configuration that holds where nobody chose. The window's figures are those of the policy that
// measured best on coding sessions, tool agents and chats.
func DefaultConfig() Config {
	return Config{
		RecentMessages: 20,
		Failure:        FailDegrade,
		Window: WindowConfig{
			High: 0.90, Low: 0.585, LowTokens: 20000, Reserve: 0.01, CachePrice: 0.1,
			ClipShare: 0.10, ClipTokens: 600, BatchShare: 0.40, KeepResults: 10, Note: true, Memory: 512,
		},
		Recall: RecallConfig{Share: 0.3, Tokens: 1200, Floor: 0.15, Gate: true, Candidates: 400, Deadline: 2 * time.Second, Quote: 400, Whole: 200},
		Compaction: CompactionConfig{
			Due: 0.5, Target: 0.6, SummaryShare: 0.2, MaxSummary: 4000, Deadline: 150 * time.Second, Proactive: true,
		},
		Subagents: SubagentConfig{TTL: time.Hour, Recall: true, PromptMode: core.PromptMinimal, RecentMessages: 8},
	}
}

// Validate returns an ErrInvalid that names every field out of range, and the range: what is wrong with several is joined (errors.Join).
func (c Config) Validate() error {
	share := func(field string, v, lo, hi float64) error {
		if !(v >= lo && v <= hi) { // so that NaN fails too
			return invalid("config", field, "must be "+ftoa(lo)+" to "+ftoa(hi))
		}
		return nil
	}
	positive := func(field string, d time.Duration, such string) error {
		if d <= 0 {
			return invalid("config", field, "must be positive, such as "+such)
		}
		return nil
	}
	_, provider := history.PolicyFor(c.History.Provider)
	_, redact := newRedactor(c.Redact)
	_, cut := c.cutter()
	checks := []error{
		share("window.high", c.Window.High, 0.2, 1),
		share("window.low", c.Window.Low, 0.1, min(max(c.Window.High, 0.2), 1)-0.01),
		share("window.lowTokens", float64(c.Window.LowTokens), 0, 1e9),
		share("window.cachePrice", c.Window.CachePrice, 0, 1),
		share("window.reserve", c.Window.Reserve, 0, 0.5),
		share("window.clipShare", c.Window.ClipShare, 0.01, 1),
		share("window.batchShare", c.Window.BatchShare, 0.05, 1),
		share("recall.share", c.Recall.Share, 0, 0.5),
		share("recall.floor", c.Recall.Floor, 0, 1),
		share("recall.tokens", float64(c.Recall.Tokens), 0, 1e9),
		share("compaction.due", c.Compaction.Due, 0.05, 1000),
		share("compaction.target", c.Compaction.Target, 0.1, 1),
		share("compaction.summaryShare", c.Compaction.SummaryShare, 0.01, 0.5),
		share("recentMessages", float64(c.RecentMessages), 0, 100000),
		share("subagents.recentMessages", float64(c.Subagents.RecentMessages), 0, 100000),
		share("window.clipTokens", float64(c.Window.ClipTokens), 0, 1e9),
		share("window.keepResults", float64(c.Window.KeepResults), 0, 1e9),
		share("window.memory", float64(c.Window.Memory), 1, 1<<20),
		share("recall.candidates", float64(c.Recall.Candidates), 1, 10000),
		share("recall.whole", float64(c.Recall.Whole), 0, 1e9),
		share("recall.resetMessages", float64(c.Recall.ResetMessages), 0, 1000),
		share("recall.quote", float64(c.Recall.Quote), 20, 1e9),
		share("compaction.maxSummary", float64(c.Compaction.MaxSummary), 50, 1e9),
		share("history.limitTurns", float64(c.History.LimitTurns), 0, 1e9),
		positive("recall.deadline", c.Recall.Deadline, `"2s"`),
		positive("compaction.deadline", c.Compaction.Deadline, `"150s"`),
		positive("subagents.ttl", c.Subagents.TTL, `"1h"`),
		provider, redact, cut,
	}
	checks = append(checks, c.History.check()...)
	if c.Failure != FailDegrade && c.Failure != FailStrict {
		checks = append(checks, invalid("config", "failure", `must be "degrade" or "strict"`))
	}
	for op, need := range c.Requires {
		for _, n := range need.Capabilities {
			if !slices.Contains(capability.All(), n) {
				checks = append(checks, invalid("config", "requires."+op+".capabilities", fmt.Sprintf("must be one of %v, not %q", capability.All(), n)))
			}
		}
		if len(need.Capabilities) == 0 {
			checks = append(checks, invalid("config", "requires."+op+".capabilities", "must name a capability"))
		}
	}
	if m := c.Subagents.PromptMode; m != core.PromptFull && m != core.PromptMinimal && m != core.PromptNone {
		checks = append(checks, invalid("config", "subagents.promptMode", `must be "full", "minimal" or "none"`))
	}
	return errors.Join(checks...)
}

// cutter compiles Injected together with what is known of clients.
func (c Config) cutter() (*injected.Cutter, error) {
	if len(c.Injected) == 0 {
		return injected.Known(), nil
	}
	cutter, err := injected.New(slices.Concat(c.Injected, injected.Builtin()))
	if wrong, ok := errors.AsType[*injected.RuleError](err); ok {
		return nil, invalid("config", fmt.Sprintf("injected[%d].%s", wrong.Index, wrong.Field), wrong.Text)
	}
	return cutter, err
}

// Parts is what an Engine is made of.
type Parts struct {
	// Store is required. The engine does not close it unless OwnStore is set.
	Store core.Store
	// Views keeps the sessions' views where Store is no ViewStore itself. Without either they last as long as the engine and are rebuilt
	// from the entries, which knows nothing of resets and forks.
	Views core.ViewStore
	// Retriever may be nil: nothing is recalled.
	Retriever core.Retriever
	// Searcher answers Engine.Search; the store's own search when nil, and without that entries are read one by one.
	Searcher core.Searcher
	// Compactor is required.
	Compactor core.Compactor
	// Counter is required; models/tiktoken has the usual ones.
	Counter core.TokenCounter
	// Host is NoHost when nil.
	Host core.Host
	// Observers are told about every append, update and erasure, besides the parts above that are Observers themselves.
	Observers []core.Observer
	// Names are shown by Info.
	Names core.PartNames
	// OwnStore makes Dispose close the store.
	OwnStore bool
}

// Option sets what no configuration file can hold.
type Option func(*Engine)

// WithLogger sets the logger; without it nothing is logged. Contents of messages are never logged.
func WithLogger(l *slog.Logger) Option {
	return func(e *Engine) { e.log = l }
}

// WithInfo sets the id, name and version that Info reports.
func WithInfo(id, name, version string) Option {
	return func(e *Engine) { e.info.ID, e.info.Name, e.info.Version = id, name, version }
}

// WithRequirements sets what the host must have, per operation, besides what the configuration and the parts need. New fails when one is missing.
func WithRequirements(req capability.Requirements) Option {
	return func(e *Engine) { e.info.Requires = req }
}

// requirements is what the options, the configuration and the parts need of the host.
func (e *Engine) requirements() capability.Requirements {
	all := []capability.Requirements{e.info.Requires, e.cfg.Requires}
	if r, ok := core.As[capability.Requirer](e.store); ok {
		all = append(all, r.Requires())
	}
	for _, part := range []any{e.retriever, e.compactor} {
		if r, ok := part.(capability.Requirer); ok {
			all = append(all, r.Requires())
		}
	}
	out := capability.Requirements{}
	for _, more := range all {
		for op, need := range more {
			had := out[op]
			if had.Unsupported != "" && need.Unsupported != "" {
				had.Unsupported += " "
			}
			out[op] = capability.Requirement{Capabilities: append(slices.Clone(had.Capabilities), need.Capabilities...), Unsupported: had.Unsupported + need.Unsupported}
		}
	}
	return out
}

// WithIDs sets the source of entry ids; the default is random. Tests use it to make runs repeatable.
func WithIDs(next func() string) Option {
	return func(e *Engine) { e.newID = next }
}

// WithTelemetry has the Engine tell t what it does.
func WithTelemetry(t core.Telemetry) Option {
	return func(e *Engine) { e.telemetry = t }
}
