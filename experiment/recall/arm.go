package recall

import (
	"context"
	"time"

	"github.com/contextengine/contextengine/core"
)

// Arm is one configuration.
type Arm struct {
	// Name is shown in reports; each arm has its own.
	Name string
	// Digest identifies the configuration, so that a result can be taken up again. Empty means that it never is.
	Digest string
	// Parts and Searchers say what it is made of.
	Parts     core.PartNames
	Searchers []string
	// Settings are what a sweep set, by key; nil otherwise.
	Settings map[string]string
	// Open makes the subject. It is called once for each measurement.
	Open func(ctx context.Context) (Subject, error)
}

// Subject is an engine under test, taken apart as far as a measurement needs. Nobody else uses its store while it is measured, or at least not the agents.
type Subject struct {
	// Engine takes the conversations in, Retriever is the engine's own; nil recalls nothing.
	Engine    core.BatchIngester
	Retriever core.Retriever
	// Store is where the engine keeps its entries; its companion upkeep.Statter tells how large it is. It may be nil.
	Store core.Store
	// Agent makes the name of the agent that owns a conversation; nil uses the conversation's id. In a store that is shared it must be a name that
	// nobody else has.
	Agent func(conversation string) string
	// Prepare is called for every agent once its conversation is stored: to embed what is pending. It may be nil. An error is
	// reported as a warning.
	Prepare func(ctx context.Context, agent string) error
	// Lasting says that the store outlives the measurement: what was stored is deleted at the end.
	Lasting bool
	// Deadline is how long the engine would wait for the retriever; calls that take longer are counted, not cut. 0 is for ever.
	Deadline time.Duration
	// Limit is how many candidates the engine asks for; calls of that kind are timed. 0 times those of the measurement.
	Limit int
	// Warnings are what the parts log; nil when nobody listens.
	Warnings *Warnings
	// Close releases everything; it may be nil.
	Close func(ctx context.Context) error
}
