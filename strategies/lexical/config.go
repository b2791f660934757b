package lexical

import (
	"fmt"
	"log/slog"

	"github.com/contextengine/contextengine/core"
)

// Config is everything an operator sets about an Index. The defaults are what measured best on long conversations between people
// and on chats with long answers of an assistant alike; K1 to LengthPower rarely need another value.
type Config struct {
	// PassageWords is the largest passage, in words, 10 to 400.
	PassageWords int `koanf:"passageWords" doc:"largest passage, in words, 10 to 400"`
	// MaxPassages bounds the passages of one message, 4 to 10000; of longer ones the beginning and the end are indexed.
	MaxPassages int `koanf:"maxPassages" doc:"passages of one message, 4 to 10000"`
	// K1 and B are BM25's: how soon a repeated term stops counting (0 to 10), and how much length counts (0 to 1).
	K1 float64 `koanf:"k1" doc:"BM25: how soon a repeated term stops counting, 0 to 10"`
	B  float64 `koanf:"b" doc:"BM25: how much length counts, 0 to 1"`
	// Before and After are the shares of a term that a passage inherits from the passage before and the one after it in the
	// session, 0 to 1. Each further step, up to five, passes on Decay of that, 0 to 1.
	Before float64 `koanf:"before" doc:"share of a term inherited from the passage before, 0 to 1"`
	After  float64 `koanf:"after" doc:"and from the one after, 0 to 1"`
	Decay  float64 `koanf:"decay" doc:"what each further step, up to five, passes on, 0 to 1"`
	// AnswerBoost multiplies Before when a question is looked for, for what follows a message that ends with a question, 0 to 10;
	// QuestionDamp multiplies the score of such a message, 0.01 to 1: one who asks is not looking for others who asked.
	AnswerBoost  float64 `koanf:"answerBoost" doc:"factor for before in what follows a message that ends with a question, when the query is a question, 0 to 10"`
	QuestionDamp float64 `koanf:"questionDamp" doc:"factor for messages that ask, when the query is a question, 0.01 to 1"`
	// TimeBoost multiplies the score of passages that speak of a time when a question asks for one, 1 to 10.
	TimeBoost float64 `koanf:"timeBoost" doc:"factor for passages that speak of a time, when the query asks for one, 1 to 10"`
	// NamedBoost multiplies the score of passages whose speaker the query names, 1 to 10; 1 turns it off.
	NamedBoost float64 `koanf:"namedBoost" doc:"factor for passages whose speaker the query names, 1 to 10"`
	// SideDamp multiplies the score of what an assistant said when the query speaks of what its writer said or did ("I", "my"), and of what a person said when
	// it speaks of what the assistant said ("did you", "your advice"), 0.01 to 1; where speakers have no names.
	SideDamp float64 `koanf:"sideDamp" doc:"factor for the side that the query does not speak of, where speakers have no names, 0.01 to 1"`
	// RuleBoost multiplies the score of a short message that says what is to be done from now on ("Always ...", "From now on ..."), WishBoost that of a person's message that
	// says what they prefer, 1 to 10: they hold for more than the words they share with a query.
	RuleBoost float64 `koanf:"ruleBoost" doc:"factor for messages that say what is to be done always or never, 1 to 10"`
	WishBoost float64 `koanf:"wishBoost" doc:"factor for messages of a person that say what they prefer, 1 to 10"`
	// KinWeight is what a word counts that has the beginning of a word of the query and not its stem ("photographer" for "photograph"), 0 to 1.
	KinWeight float64 `koanf:"kinWeight" doc:"what words count that begin like a word of the query, 0 to 1"`
	// LengthTerms and LengthPower damp long messages: scores are divided by max(1, terms/LengthTerms)^LengthPower; more than 1024 terms count as 1024. LengthTerms is
	// 1 to 100000, LengthPower 0 to 2.
	LengthTerms int     `koanf:"lengthTerms" doc:"messages longer than this are damped, in terms, 1 to 100000"`
	LengthPower float64 `koanf:"lengthPower" doc:"how much they are damped, 0 to 2"`
	// MaxBytes bounds the memory of the index, 1048576 to 2^50, about: of the agents that are in memory the least recently searched ones are
	// let go, and read again when needed. The agent searched last always stays.
	MaxBytes int64 `koanf:"maxBytes" doc:"about how much memory the index may take, in bytes, 1048576 to 2^50; the agents searched longest ago are let go, and read again when needed"`
}

// DefaultConfig returns the configuration that holds where nobody chose.
func DefaultConfig() Config {
	return Config{
		PassageWords: 40, MaxPassages: 200,
		K1: 0.9, B: 0.4,
		Before: 0.4, After: 0.3, Decay: 0.75,
		AnswerBoost: 1.5, QuestionDamp: 0.75, TimeBoost: 1.2,
		NamedBoost: 1.5, SideDamp: 0.7, RuleBoost: 2, WishBoost: 1.2, KinWeight: 0.3,
		LengthTerms: 32, LengthPower: 0.4,
		MaxBytes: 4 << 30,
	}
}

// Validate returns an error that wraps core.ErrInvalid and names the first field out of range, and the range.
func (c Config) Validate() error {
	checks := []struct {
		field     string
		v, lo, hi float64
	}{
		{"passageWords", float64(c.PassageWords), 10, 400},
		{"maxPassages", float64(c.MaxPassages), 4, 10000},
		{"k1", c.K1, 0, 10},
		{"b", c.B, 0, 1},
		{"before", c.Before, 0, 1},
		{"after", c.After, 0, 1},
		{"decay", c.Decay, 0, 1},
		{"answerBoost", c.AnswerBoost, 0, 10},
		{"questionDamp", c.QuestionDamp, 0.01, 1},
		{"timeBoost", c.TimeBoost, 1, 10},
		{"namedBoost", c.NamedBoost, 1, 10},
		{"sideDamp", c.SideDamp, 0.01, 1},
		{"ruleBoost", c.RuleBoost, 1, 10},
		{"wishBoost", c.WishBoost, 1, 10},
		{"kinWeight", c.KinWeight, 0, 1},
		{"lengthTerms", float64(c.LengthTerms), 1, 100000},
		{"lengthPower", c.LengthPower, 0, 2},
		{"maxBytes", float64(c.MaxBytes), 1 << 20, 1 << 50},
	}
	for _, k := range checks {
		if !(k.v >= k.lo && k.v <= k.hi) { // written so that NaN fails
			return fmt.Errorf("lexical: config: %s: must be %g to %g: %w", k.field, k.lo, k.hi, core.ErrInvalid)
		}
	}
	return nil
}

// Option sets what no configuration file can hold.
type Option func(*Index)

// WithLogger sets the logger; without it nothing is logged. Contents of entries and queries are never logged.
func WithLogger(l *slog.Logger) Option {
	return func(x *Index) {
		if l != nil {
			x.log = l
		}
	}
}
