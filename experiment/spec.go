package experiment

import (
	"context"
	"fmt"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/engine"
	"github.com/contextengine/contextengine/core/message"
	"github.com/contextengine/contextengine/experiment/dataset"
)

// Subject is an engine under test with what a replay needs to know of it.
type Subject struct {
	Engine core.ContextEngine
	// Store is where the engine keeps its entries. When it is nil and the engine has a method Store() core.Store, that one's result is
	// used; without either nothing can be read back, which the report says.
	Store core.Store
	// Close releases both; it may be nil.
	Close func(context.Context) error
}

// Arm is one configuration.
type Arm struct {
	// Name is shown in reports.
	Name string
	// Open makes the engine for one replay on a host. Engines of different replays may share what they like, but not a session.
	Open func(ctx context.Context, host core.Host, session core.SessionID) (Subject, error)
	// Window is the policy that bounds the number of steps; the zero value means the default.
	Window engine.WindowConfig
	// Lasting says that the store outlives a replay. Sessions then get names of their own in every replay, and are erased at the end.
	Lasting bool
	// Redact is what the engine makes of a message before it stores it; nil when it changes nothing. The replay expects no other.
	Redact func(message.Message) message.Message
}

// Options shape a replay. The zero value verifies everything.
type Options struct {
	// Jitter varies the budget of every call by up to this share (0.03 for 3 %), the same way for the same Seed.
	Jitter float64
	Seed   uint64
	// CachePrice is what a cached token costs relative to one that is not, 0.1 when it is 0.
	CachePrice float64
	// Sample is how many calls lie between two that are repeated to see whether the result is the same: 16 when it is 0, negative for never.
	Sample int
	// Agent owns the sessions, "replay" when empty.
	Agent string
	// Keep leaves the entries in a lasting store; otherwise a replay erases what it stored.
	Keep bool
	// Watch is called after every model call with what the engine answered. A false result ends the replay there.
	Watch func(Call) bool
}

// Call is one model call of a replay.
type Call struct {
	// Number counts from 1, Turn the user messages in front of the call, Behind the messages.
	Number, Turn, Behind int
	Budget               int
	// Tokens is the prompt's cost, recounted from its bytes.
	Tokens int
	Result core.AssembleResult
	// Err is set when the engine returned none.
	Err error
	// IDs holds the entry ids of the messages so far; nil when the engine takes them from a transcript.
	IDs []string
}

// Spec is one replay: a conversation, an engine and a budget.
type Spec struct {
	Session dataset.Session
	Arm     Arm
	// Budget is the largest prompt in tokens.
	Budget int
	// Counter recounts prompts. It should be o200k_base, whatever the engine counts with.
	Counter core.TokenCounter
	Options
}

func (s *Spec) complete() error {
	switch {
	case s.Budget <= 0:
		return fmt.Errorf("experiment: budget must be positive: %w", core.ErrInvalid)
	case s.Counter == nil:
		return fmt.Errorf("experiment: counter is missing, use models/tiktoken: %w", core.ErrInvalid)
	case s.Arm.Open == nil:
		return fmt.Errorf("experiment: arm %q opens nothing: %w", s.Arm.Name, core.ErrInvalid)
	case s.Jitter < 0 || s.Jitter >= 1:
		return fmt.Errorf("experiment: jitter must be 0 to 1: %w", core.ErrInvalid)
	}
	if s.CachePrice == 0 {
		s.CachePrice = 0.1
	}
	if s.Sample == 0 {
		s.Sample = 16
	}
	if s.Agent == "" {
		s.Agent = "replay"
	}
	if s.Arm.Window == (engine.WindowConfig{}) {
		s.Arm.Window = engine.DefaultConfig().Window
	}
	return nil
}
