package registry

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"reflect"

	"github.com/contextengine/contextengine/core/engine"
)

// The names a configuration means when it says nothing.
const (
	DefaultEngine    = "composed"
	DefaultTokenizer = "o200k_base"
	// LegacyEngine is what a host's configuration selects when its slot is empty.
	LegacyEngine = "legacy"
)

// Config says which engine answers and what it is made of. Treat it as a value: a Config that was handed out shares its maps.
// It prints without secrets.
type Config struct {
	Engine    Choice    `koanf:"engine" kind:"engine" doc:"which engine answers"`
	Store     Choice    `koanf:"store" kind:"store" doc:"where every message is kept"`
	Retriever Choice    `koanf:"retriever" kind:"retriever" doc:"what proposes older messages worth recalling"`
	Compactor Choice    `koanf:"compactor" kind:"compactor" doc:"what may stand for history that has to go"`
	Searchers Searchers `koanf:"searchers" kind:"searcher" doc:"indexes that retrievers can ask, besides the store's own search"`
	Model     Choice    `koanf:"model" kind:"model" doc:"the model that writes summaries; without one the host's is asked"`
	Embedder  Choice    `koanf:"embedder" kind:"model" doc:"the model that turns text into vectors"`
	Tokenizer string    `koanf:"tokenizer" doc:"how tokens are counted"`
	// Core holds the engine's own settings; in a file its keys stand beside the ones above.
	Core engine.Config `koanf:",squash"`
	// Agents changes any of the keys above for one agent, merged over them.
	Agents map[string]Override `koanf:"agents" doc:"changes for single agents, by agent id; any key above, merged over it"`
	// Arms are the arms of an experiment; each session belongs to one.
	Arms []Arm `koanf:"arms" doc:"arms of an experiment; a session keeps its arm for ever"`
	// Ignored says what of a host's file cannot be used and was left out, see HostLimits. Build logs it.
	Ignored []string `koanf:"-"`
}

// Choice selects a part by name and sets its options. In a file it is an object with the key "type", or just the name.
// Choosing another type drops the options of the one before.
type Choice struct {
	Type    string
	Options map[string]any
}

// Searchers holds the options of the chosen searchers by name. In a file it is an object, or a list of names. Nil leaves
// the choice to the engine; empty means none.
type Searchers map[string]map[string]any

// Override holds keys of a configuration file that replace those of the configuration it is laid over.
type Override map[string]any

// Arm is a variant of the configuration that a share of the sessions gets.
type Arm struct {
	Name string `koanf:"name" doc:"name in reports"`
	// Weight is the arm's share, relative to the other arms that take the same agent; 0 gives it no session. In a file it is 1 unless set.
	Weight float64 `koanf:"weight" doc:"share of sessions, relative to the other arms"`
	// Agents limits the arm to these agents; empty means all.
	Agents []string `koanf:"agents" doc:"agents that take part; all when empty"`
	// Sessions limits the arm to sessions of these names, in which * stands for any text; empty means all. Arms that name none do not take these sessions.
	Sessions []string `koanf:"sessions" doc:"sessions that take part, by the host's names, in which * stands for any text; arms that name none do not take these; all when empty"`
	// Providers limits the arm to sessions that begin with a model of one of these, by the host's names in lower case; empty means all.
	Providers []string `koanf:"providers" doc:"providers that a session begins with; all when empty"`
	Override  Override `koanf:"override" doc:"what differs, as under agents"`
}

// DefaultConfig returns the configuration that holds where nobody chose: engine composed, with the parts it was registered with. Load
// starts from it.
func DefaultConfig() Config {
	return Config{Tokenizer: DefaultTokenizer, Core: engine.DefaultConfig()}
}

// Redacted returns the configuration as a file would hold it, secrets replaced by "***".
func (c Config) Redacted() map[string]any {
	return redactMap(c.tree())
}

// String returns Redacted as JSON.
func (c Config) String() string { return text(c.Redacted()) }

// GoString is String: secrets stay hidden in every format.
func (c Config) GoString() string { return c.String() }

// MarshalJSON returns Redacted as JSON.
func (c Config) MarshalJSON() ([]byte, error) { return json.Marshal(c.Redacted()) }

// LogValue is String for slog.
func (c Config) LogValue() slog.Value { return slog.StringValue(c.String()) }

// String returns the choice as JSON, secrets replaced by "***".
func (c Choice) String() string { return text(redactMap(c.tree())) }

// GoString is String: secrets stay hidden in every format.
func (c Choice) GoString() string { return c.String() }

// MarshalJSON returns String.
func (c Choice) MarshalJSON() ([]byte, error) { return []byte(c.String()), nil }

// String returns the options as JSON, secrets replaced by "***".
func (s Searchers) String() string { return text(redact("", encodeAny(s))) }

// GoString is String: secrets stay hidden in every format.
func (s Searchers) GoString() string { return s.String() }

// MarshalJSON returns String.
func (s Searchers) MarshalJSON() ([]byte, error) { return []byte(s.String()), nil }

// String returns the keys as JSON, secrets replaced by "***".
func (o Override) String() string { return text(redact("", encodeAny(o))) }

// GoString is String: secrets stay hidden in every format.
func (o Override) GoString() string { return o.String() }

// MarshalJSON returns String.
func (o Override) MarshalJSON() ([]byte, error) { return []byte(o.String()), nil }

// tree returns c as a file would hold it.
func (c Choice) tree() map[string]any {
	out := make(map[string]any, len(c.Options)+1)
	for k, v := range c.Options {
		out[k] = encodeAny(v)
	}
	if c.Type != "" {
		out["type"] = c.Type
	}
	return out
}

// clone returns a Choice whose options may be changed.
func (c Choice) clone() Choice {
	return Choice{Type: c.Type, Options: maps.Clone(c.Options)}
}

func text(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprintf("unprintable configuration (%T)", v)
	}
	return string(b)
}

// ChoiceOf returns the Choice of a part with all options set as in cfg, for programs that write configurations.
func ChoiceOf[C any](name string, cfg C) Choice {
	v := settable(cfg)
	if v.Kind() != reflect.Struct {
		return Choice{Type: name}
	}
	return Choice{Type: name, Options: encode(v)}
}
