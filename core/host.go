package core

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/contextengine/contextengine/core/capability"
	"github.com/contextengine/contextengine/core/message"
)

// Host is what the runtime around an engine offers. It is given to New and outlives the engine; NoHost stands
// for a runtime that offers nothing.
//
// Implementers: safe for concurrent use; a capability that is listed works. Callers: Compact and Complete are called only
// when listed.
type Host interface {
	// Name identifies the runtime in messages and logs.
	Name() string
	Capabilities() []capability.Name
	// Compact runs the runtime's own compaction. It needs capability.DelegateHost.
	Compact(ctx context.Context, req CompactRequest) (CompactResult, error)
	// Complete asks the runtime's model. It needs capability.Complete.
	Complete(ctx context.Context, req CompletionRequest) (Completion, error)
	// Now is the runtime's clock.
	Now() time.Time
}

// RuntimeSettings is what a host says about the model run at hand. Zero values mean unknown.
type RuntimeSettings struct {
	Provider string `json:"provider,omitempty"`
	Model    string `json:"model,omitempty"`
	// ContextWindow and MaxOutputTokens are tokens.
	ContextWindow   int `json:"contextWindow,omitempty"`
	MaxOutputTokens int `json:"maxOutputTokens,omitempty"`
	// PromptTokenBudget is the largest prompt, in tokens.
	PromptTokenBudget int `json:"promptTokenBudget,omitempty"`
	// Mode is "normal" or "degraded"; DegradedReason says why.
	Mode           string `json:"mode,omitempty"`
	DegradedReason string `json:"degradedReason,omitempty"`
	// Format names the message format the host wants synthetic messages in, see message.Formats.
	Format string `json:"format,omitempty"`
}

// MemoryPrompt is a section of the host's own that belongs behind the engine's system prompt addition: which memory
// tools exist, and how to cite from memory.
type MemoryPrompt struct {
	// AvailableTools are the names of the tools the model may call in this turn.
	AvailableTools []string `json:"availableTools,omitempty"`
	// CitationMode is the host's setting: "auto", "on" or "off".
	CitationMode string `json:"citationMode,omitempty"`
	// Sections are ready texts that the host wants to be passed through.
	Sections []string `json:"sections,omitempty"`
}

// NoHost is a runtime that offers nothing but the system clock.
type NoHost struct{}

var _ Host = NoHost{}

// Name returns "standalone".
func (NoHost) Name() string { return "standalone" }

// Capabilities returns what needs no runtime: the caller drives the lifecycle itself.
func (NoHost) Capabilities() []capability.Name {
	return []capability.Name{capability.Bootstrap, capability.Assemble, capability.AfterTurn, capability.Maintain, capability.Compact, capability.CommitTurn, capability.SpawnSubagents}
}

// Compact fails: there is no runtime to delegate to.
func (NoHost) Compact(context.Context, CompactRequest) (CompactResult, error) {
	return CompactResult{}, &RequirementError{Operation: "compact", Missing: []capability.Name{capability.DelegateHost}}
}

// Complete fails: there is no runtime with a model.
func (NoHost) Complete(context.Context, CompletionRequest) (Completion, error) {
	return Completion{}, &RequirementError{Operation: "complete", Missing: []capability.Name{capability.Complete}}
}

// Now returns the system time.
func (NoHost) Now() time.Time { return time.Now() }

// Transcript is what a host says happened in a session before the current turn.
//
// Where it begins is no statement: hosts hand over what fits, and put lines of their own in front of it. System messages at its beginning stand in front
// from then on, instead of those that did. What the engine knows in front of the first message that it recognises is only not shown, and stays in
// force; if unknown messages stand there, they are new to it. A host that hands over all it has can say so with Whole. Messages of type
// message.Filler are not looked at.
type Transcript struct {
	// Skipped is the number of messages before Messages that the host does not repeat, and Digest is message.DigestOf
	// them. An engine that cannot match them answers ErrNeedTranscript; the host then repeats the call with all messages.
	Skipped int            `json:"skipped,omitempty"`
	Digest  message.Digest `json:"digest,omitempty"`
	// Messages are the host's messages, oldest first.
	Messages []message.Message `json:"messages"`
	// Whole says that Messages, with those skipped, are all that the host has: unknown messages at the beginning then replace what the engine knows
	// from before the first message that it recognises.
	Whole bool `json:"whole,omitempty"`
}

// Requirement is what an operation needs of the host.
type Requirement struct {
	Capabilities []capability.Name `json:"requiredCapabilities" koanf:"capabilities"`
	// Unsupported is told to the person whose host lacks one of them: what to do about it.
	Unsupported string `json:"unsupportedMessage,omitempty" koanf:"message"`
}

// Requirements are what operations need of the host, by operation: one of the host's ("agent-run"), or a method of an engine ("compact").
type Requirements map[string]Requirement

// Requirer is a part that needs something of the host. An engine with it is not made on a host that lacks it.
type Requirer interface {
	Requires() Requirements
}

// Check returns a RequirementError for the first operation, by name, for which host lacks something.
func (r Requirements) Check(host Host, engine string) error {
	for _, op := range slices.Sorted(maps.Keys(r)) {
		if err := Require(host, engine, op, r[op]); err != nil {
			return err
		}
	}
	return nil
}

// Require returns a RequirementError naming the capabilities in need that host does not offer.
func Require(host Host, engine, operation string, need Requirement) error {
	have := host.Capabilities()
	missing := slices.DeleteFunc(slices.Clone(need.Capabilities), func(n capability.Name) bool { return slices.Contains(have, n) })
	if len(missing) == 0 {
		return nil
	}
	return &RequirementError{Engine: engine, Operation: operation, Missing: missing, Have: have, Unsupported: need.Unsupported}
}
