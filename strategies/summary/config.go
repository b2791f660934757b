package summary

import (
	"fmt"
	"time"

	"github.com/contextengine/contextengine/core"
)

// Config is what an operator sets about the compactor. The tags are the keys of configuration files.
type Config struct {
	// Model overrides the name of the completer's own model; empty keeps it.
	Model string `koanf:"model" doc:"name of another model at the same endpoint; empty keeps the model's own"`
	// ChunkTokens is the largest source of one model call, in tokens, 500 to 1000000.
	ChunkTokens int `koanf:"chunkTokens" doc:"largest source of one model call, in tokens, 500 to 1000000"`
	// Ratio is the share of its source that a summary may cost, 0.02 to 0.7. Small sources may keep more.
	Ratio float64 `koanf:"ratio" doc:"share of its source that a summary may cost, 0.02 to 0.7"`
	// Parallel is the number of model calls at the same time, 1 to 32.
	Parallel int `koanf:"parallel" doc:"model calls at the same time, 1 to 32"`
	// CallTimeout bounds one model call, positive.
	CallTimeout time.Duration `koanf:"callTimeout" doc:"bounds one model call"`
	// Failures is the number of failed chunks in a row after which the rest of a compaction does without a model, at least 1.
	Failures int `koanf:"failures" doc:"failed chunks in a row after which no model is asked any more, at least 1"`
	// MaxSummaries is the number of summaries a session may have before the earlier ones are condensed, 2 to 100.
	MaxSummaries int `koanf:"maxSummaries" doc:"summaries before the earlier ones are condensed, 2 to 100"`
	// TextTokens and ResultTokens are what the model sees of one message text and of one tool call's arguments or
	// result, in tokens, at least 50; longer ones keep head and tail.
	TextTokens   int `koanf:"textTokens" doc:"what the model sees of one message, in tokens, at least 50"`
	ResultTokens int `koanf:"resultTokens" doc:"what it sees of one call's arguments or result, in tokens, at least 50"`
	// Fanout is the number of neighbouring summaries that are condensed into one, 2 to 32; fewer, but at least two, where ChunkTokens has no room for them.
	Fanout int `koanf:"fanout" doc:"neighbouring summaries that are condensed into one, 2 to 32"`
	// Cooldown is how long no model is asked after Failures failures in a row, in later compactions too; 0 asks again in the next one.
	Cooldown time.Duration `koanf:"cooldown" doc:"how long no model is asked after that many failures; 0 asks again in the next compaction"`
	// Spend limits what model calls may cost.
	Spend Spend `koanf:"spend"`
	// Prompts replaces the built-in prompts.
	Prompts Prompts `koanf:"prompts"`
}

// Prompts names what is used instead of the built-in prompts: a text where one is set, otherwise the file system.md,
// chunk.md or combine.md in Dir where it exists. Chunk and combine are templates (text/template) with the fields .Source, .Words, .Tokens
// and .Instructions; .Source must appear. A first line "version: x" names the version that is recorded with each summary.
type Prompts struct {
	Dir     string `koanf:"dir" file:"" doc:"folder with system.md, chunk.md, combine.md instead of the built-in prompts"`
	System  string `koanf:"system" doc:"text instead of the file"`
	Chunk   string `koanf:"chunk" doc:"text instead of the file; a template with .Source, .Words, .Tokens, .Instructions"`
	Combine string `koanf:"combine" doc:"the same, for joining summaries"`
}

// DefaultConfig returns the configuration that holds where nobody chose.
func DefaultConfig() Config {
	return Config{
		ChunkTokens: 12000, Ratio: 0.25, Parallel: 2, CallTimeout: time.Minute, Failures: 3, MaxSummaries: 6,
		TextTokens: 3000, ResultTokens: 600, Fanout: 4, Cooldown: time.Minute,
		Spend: Spend{Calls: 120, SessionCalls: 240, Per: 10 * time.Minute},
	}
}

// Validate returns a core.ErrInvalid that names the first field out of range, and the range.
func (c Config) Validate() error {
	for _, f := range []struct {
		name   string
		ok     bool
		wanted string
	}{
		{"chunkTokens", c.ChunkTokens >= 500 && c.ChunkTokens <= 1_000_000, "must be 500 to 1000000"},
		{"ratio", c.Ratio >= 0.02 && c.Ratio <= 0.7, "must be 0.02 to 0.7"},
		{"parallel", c.Parallel >= 1 && c.Parallel <= 32, "must be 1 to 32"},
		{"callTimeout", c.CallTimeout > 0, `must be positive, such as "60s"`},
		{"failures", c.Failures >= 1, "must be at least 1"},
		{"maxSummaries", c.MaxSummaries >= 2 && c.MaxSummaries <= 100, "must be 2 to 100"},
		{"fanout", c.Fanout >= 2 && c.Fanout <= 32, "must be 2 to 32"},
		{"cooldown", c.Cooldown >= 0, "must not be negative"},
		{"spend", min(c.Spend.Calls, c.Spend.Tokens, c.Spend.SessionCalls, c.Spend.SessionTokens) >= 0, "limits must not be negative"},
		{"spend.per", c.Spend.Per > 0 || c.Spend.SessionCalls == 0 && c.Spend.SessionTokens == 0, `must be positive, such as "10m"`},
		{"textTokens", c.TextTokens >= 50, "must be at least 50"},
		{"resultTokens", c.ResultTokens >= 50, "must be at least 50"},
	} {
		if !f.ok {
			return fmt.Errorf("summary: config: %s: %s: %w", f.name, f.wanted, core.ErrInvalid)
		}
	}
	return nil
}
