package engine_test

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/capability"
	"github.com/contextengine/contextengine/core/engine"
	"github.com/contextengine/contextengine/core/history"
	"github.com/contextengine/contextengine/core/injected"
)

// TestConfigRanges: of every figure the smallest and the largest that are told are taken, and what lies beside them is refused, by the field's name.
func TestConfigRanges(t *testing.T) {
	whole := func(of func(*engine.Config) *int) func(*engine.Config, float64) {
		return func(c *engine.Config, v float64) { *of(c) = int(v) }
	}
	share := func(of func(*engine.Config) *float64) func(*engine.Config, float64) {
		return func(c *engine.Config, v float64) { *of(c) = v }
	}
	duration := func(of func(*engine.Config) *time.Duration) func(*engine.Config, float64) {
		return func(c *engine.Config, v float64) { *of(c) = time.Duration(v) }
	}
	provider := func(c *engine.Config, v float64) {
		n := int(v)
		c.History.Providers = map[string]engine.ProviderHistory{"some": {LimitTurns: &n}}
	}
	low := engine.DefaultConfig().Window.High - 0.01
	for _, f := range []struct {
		field   string
		set     func(*engine.Config, float64)
		lo, hi  float64
		integer bool
	}{
		{"window.high", share(func(c *engine.Config) *float64 { c.Window.Low = 0.1; return &c.Window.High }), 0.2, 1, false},
		{"window.low", share(func(c *engine.Config) *float64 { return &c.Window.Low }), 0.1, low, false},
		{"window.lowTokens", whole(func(c *engine.Config) *int { return &c.Window.LowTokens }), 0, 1e9, true},
		{"window.cachePrice", share(func(c *engine.Config) *float64 { return &c.Window.CachePrice }), 0, 1, false},
		{"window.reserve", share(func(c *engine.Config) *float64 { return &c.Window.Reserve }), 0, 0.5, false},
		{"window.clipShare", share(func(c *engine.Config) *float64 { return &c.Window.ClipShare }), 0.01, 1, false},
		{"window.clipTokens", whole(func(c *engine.Config) *int { return &c.Window.ClipTokens }), 0, 1e9, true},
		{"window.batchShare", share(func(c *engine.Config) *float64 { return &c.Window.BatchShare }), 0.05, 1, false},
		{"window.keepResults", whole(func(c *engine.Config) *int { return &c.Window.KeepResults }), 0, 1e9, true},
		{"window.memory", whole(func(c *engine.Config) *int { return &c.Window.Memory }), 1, 1 << 20, true},
		{"recall.share", share(func(c *engine.Config) *float64 { return &c.Recall.Share }), 0, 0.5, false},
		{"recall.floor", share(func(c *engine.Config) *float64 { return &c.Recall.Floor }), 0, 1, false},
		{"recall.tokens", whole(func(c *engine.Config) *int { return &c.Recall.Tokens }), 0, 1e9, true},
		{"recall.candidates", whole(func(c *engine.Config) *int { return &c.Recall.Candidates }), 1, 10000, true},
		{"recall.whole", whole(func(c *engine.Config) *int { return &c.Recall.Whole }), 0, 1e9, true},
		{"recall.resetMessages", whole(func(c *engine.Config) *int { return &c.Recall.ResetMessages }), 0, 1000, true},
		{"recall.quote", whole(func(c *engine.Config) *int { return &c.Recall.Quote }), 20, 1e9, true},
		{"recall.deadline", duration(func(c *engine.Config) *time.Duration { return &c.Recall.Deadline }), 1, math.Inf(1), true},
		{"compaction.due", share(func(c *engine.Config) *float64 { return &c.Compaction.Due }), 0.05, 1000, false},
		{"compaction.target", share(func(c *engine.Config) *float64 { return &c.Compaction.Target }), 0.1, 1, false},
		{"compaction.summaryShare", share(func(c *engine.Config) *float64 { return &c.Compaction.SummaryShare }), 0.01, 0.5, false},
		{"compaction.maxSummary", whole(func(c *engine.Config) *int { return &c.Compaction.MaxSummary }), 50, 1e9, true},
		{"compaction.deadline", duration(func(c *engine.Config) *time.Duration { return &c.Compaction.Deadline }), 1, math.Inf(1), true},
		{"recentMessages", whole(func(c *engine.Config) *int { return &c.RecentMessages }), 0, 100000, true},
		{"subagents.recentMessages", whole(func(c *engine.Config) *int { return &c.Subagents.RecentMessages }), 0, 100000, true},
		{"subagents.ttl", duration(func(c *engine.Config) *time.Duration { return &c.Subagents.TTL }), 1, math.Inf(1), true},
		{"history.limitTurns", whole(func(c *engine.Config) *int { return &c.History.LimitTurns }), 0, 1e9, true},
		{"history.providers.some.limitTurns", provider, 0, 1e9, true},
	} {
		t.Run(f.field, func(t *testing.T) {
			check := func(v float64, good bool) {
				t.Helper()
				c := engine.DefaultConfig()
				f.set(&c, v)
				err := c.Validate()
				if good && err != nil {
					t.Errorf("%v: %v", v, err)
				}
				if !good && (!errors.Is(err, core.ErrInvalid) || !strings.Contains(err.Error(), ": "+f.field+": ")) {
					t.Errorf("%v: error %v, want one that names %s", v, err, f.field)
				}
			}
			below, above := math.Nextafter(f.lo, -1), math.Nextafter(f.hi, math.Inf(1))
			if f.integer {
				below, above = f.lo-1, f.hi+1
			}
			check(f.lo, true)
			check(below, false)
			if !math.IsInf(f.hi, 1) {
				check(f.hi, true)
				check(above, false)
			}
			if !f.integer {
				check(math.NaN(), false)
			}
		})
	}
}

// TestConfigChoices: what is chosen by name is one of the known names, and everything that is wrong is told at once.
func TestConfigChoices(t *testing.T) {
	need := func(names ...capability.Name) func(*engine.Config) {
		return func(c *engine.Config) { c.Requires = capability.Requirements{"compact": {Capabilities: names}} }
	}
	all := engine.DefaultConfig()
	all.Window.High = -1
	for _, tc := range []struct {
		field string // "" where it is right
		set   func(*engine.Config)
	}{
		{"failure", func(c *engine.Config) { c.Failure = "sometimes" }},
		{"", func(c *engine.Config) { c.Failure = engine.FailStrict }},
		{"subagents.promptMode", func(c *engine.Config) { c.Subagents.PromptMode = "some" }},
		{"", func(c *engine.Config) { c.Subagents.PromptMode = core.PromptFull }},
		{"", func(c *engine.Config) { c.Subagents.PromptMode = core.PromptNone }},
		{"requires.compact.capabilities", need("no such thing")},
		{"requires.compact.capabilities", need()},
		{"", need(capability.DelegateHost)},
		{"redact[1].name", func(c *engine.Config) {
			c.Redact = []engine.RedactRule{{Name: "a", Pattern: "x"}, {Name: "b c", Pattern: "x"}}
		}},
		{"injected[0].", func(c *engine.Config) { c.Injected = []injected.Rule{{}} }},
		{"", func(c *engine.Config) { c.History.Provider = history.Providers()[0] }},
		{"history.providers.Some", func(c *engine.Config) { c.History.Providers = map[string]engine.ProviderHistory{"Some": {}} }},
		{"history.providers.", func(c *engine.Config) { c.History.Providers = map[string]engine.ProviderHistory{"": {}} }},
		{"history.providers.some.provider", func(c *engine.Config) {
			c.History.Providers = map[string]engine.ProviderHistory{"some": {Provider: "nobody"}}
		}},
	} {
		c := engine.DefaultConfig()
		tc.set(&c)
		err := c.Validate()
		if tc.field == "" {
			if err != nil {
				t.Errorf("%v", err)
			}
			continue
		}
		if !errors.Is(err, core.ErrInvalid) || !strings.Contains(err.Error(), " "+tc.field) {
			t.Errorf("error %v, want one that names %s", err, tc.field)
		}
		tc.set(&all)
		if err := all.Validate(); err == nil || !strings.Contains(err.Error(), " "+tc.field) || !strings.Contains(err.Error(), " window.high: ") {
			t.Errorf("with a share out of range: error %v, want both named", err)
		}
	}
	c := engine.DefaultConfig()
	c.History.Provider = "nobody"
	if err := c.Validate(); err == nil || !strings.Contains(err.Error(), `"nobody"`) {
		t.Errorf("a provider whose rules are not known: %v", err)
	}
}

// TestDefaultConfig: the defaults are figures that were measured, and operators know them: one that changes is changed here too.
func TestDefaultConfig(t *testing.T) {
	want := engine.Config{
		RecentMessages: 20,
		Failure:        engine.FailDegrade,
		Window: engine.WindowConfig{
			High: 0.90, Low: 0.585, LowTokens: 20000, Reserve: 0.01, CachePrice: 0.1,
			ClipShare: 0.10, ClipTokens: 600, BatchShare: 0.40, KeepResults: 10, Note: true, Memory: 512,
		},
		Recall: engine.RecallConfig{Share: 0.3, Tokens: 1200, Floor: 0.15, Gate: true, Candidates: 400, Deadline: 2 * time.Second, Quote: 400, Whole: 200},
		Compaction: engine.CompactionConfig{
			Due: 0.5, Target: 0.6, SummaryShare: 0.2, MaxSummary: 4000, Deadline: 150 * time.Second, Proactive: true,
		},
		Subagents: engine.SubagentConfig{TTL: time.Hour, Recall: true, PromptMode: core.PromptMinimal, RecentMessages: 8},
	}
	if diff := cmp.Diff(want, engine.DefaultConfig()); diff != "" {
		t.Error(diff)
	}
}
