package core

import (
	"context"
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

// RuntimeSettings is what a host says about the model run at hand. Zero values mean unknown: a host that writes null where it does not know leaves the field
// out here. Words are the host's own, and those named below are OpenClaw's; one that is not is no error.
type RuntimeSettings struct {
	// SchemaVersion is that of the host's settings, 1 for all that are known.
	SchemaVersion int    `json:"schemaVersion,omitempty"`
	Provider      string `json:"provider,omitempty"`
	// Model is the model of the run as far as it is known: ResolvedModel, or else RequestedModel.
	Model string `json:"model,omitempty"`
	// ModelFamily is what the model is a version of.
	ModelFamily string `json:"modelFamily,omitempty"`
	// RequestedModel was asked for, ResolvedModel answers; they differ after a fallback.
	RequestedModel string `json:"requestedModel,omitempty"`
	ResolvedModel  string `json:"resolvedModel,omitempty"`
	// ContextWindow and MaxOutputTokens are tokens.
	ContextWindow   int `json:"contextWindow,omitempty"`
	MaxOutputTokens int `json:"maxOutputTokens,omitempty"`
	// PromptTokenBudget is the largest prompt, in tokens.
	PromptTokenBudget int `json:"promptTokenBudget,omitempty"`
	// Mode is "normal", "fallback" (another model than the one asked for) or "degraded".
	Mode string `json:"mode,omitempty"`
	// FallbackReason and DegradedReason say why: "provider_timeout", "provider_unavailable", "rate_limited", "context_overflow", "runtime_unavailable" or
	// "unknown".
	FallbackReason string `json:"fallbackReason,omitempty"`
	DegradedReason string `json:"degradedReason,omitempty"`
	// Host is the runtime ("openclaw"), HarnessID and RuntimeID what runs the agent in it.
	Host      string `json:"host,omitempty"`
	HarnessID string `json:"harnessId,omitempty"`
	RuntimeID string `json:"runtimeId,omitempty"`
	// EngineSelection says how the host came to this engine, ExecutionHost which part of the host calls.
	EngineSelection EngineSelection `json:"contextEngineSelection,omitzero"`
	ExecutionHost   ExecutionHost   `json:"executionHost,omitzero"`
	// Format names the message format the host wants synthetic messages in, see message.Formats.
	Format string `json:"format,omitempty"`
}

// EngineSelection is a host's choice of a context engine.
type EngineSelection struct {
	SelectedID string `json:"selectedId,omitempty"`
	// Source is "configured", "default" or "unknown".
	Source string `json:"source,omitempty"`
}

// ExecutionHost is the part of a host that makes a call: its command line, say, or what runs agents inside it.
type ExecutionHost struct {
	ID    string `json:"id,omitempty"`
	Label string `json:"label,omitempty"`
}

// TranscriptScope says where a host keeps the transcript that a call is about, as the host says it. What is unknown is empty. Engines of this module know a
// session by its SessionID and read no transcript themselves: it is for parts and engines that want to look at the host's own.
type TranscriptScope struct {
	AgentID string `json:"agentId,omitempty"`
	// SessionID is the transcript's own id: a host may begin another one under the same key.
	SessionID string `json:"sessionId,omitempty"`
	// Path is the file that holds it, or that the host finds it by: OpenClaw 2026.9.6 names its list of sessions at bootstrap and compact, the agent's database after a turn.
	Path string `json:"path,omitempty"`
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
	return CompactResult{}, &capability.RequirementError{Operation: "compact", Missing: []capability.Name{capability.DelegateHost}}
}

// Complete fails: there is no runtime with a model.
func (NoHost) Complete(context.Context, CompletionRequest) (Completion, error) {
	return Completion{}, &capability.RequirementError{Operation: "complete", Missing: []capability.Name{capability.Complete}}
}

// Now returns the system time.
func (NoHost) Now() time.Time { return time.Now() }

// Transcript is what a host says happened in a session before the current turn.
//
// Where it begins is no statement: hosts hand over what fits, and put lines of their own in front of it. System messages at its beginning stand in front
// from then on, instead of those that did. What the engine knows in front of the first message that it recognises is only not shown, and stays in
// force, also with Whole; if unknown messages stand there, they are new to it. Without Whole the same holds for what it knows between a first message and a
// later one that it recognises next, where the host shows nothing there, or other than as many new messages as it leaves out: hosts that cut a list keep its
// first message, or put a line of their own there. Known messages there that stood elsewhere are an edit. A host that deletes has to declare whole transcripts
// for that to be seen.
//
// A list that is nothing but what the session began with is a rewind to it, also where it ended as it began. Where the host shows new messages behind such a list, it
// is one with Whole, and else what was said at the end. What the host calls the messages (Key, ID, Time) counts for more than both.
// Where it has no names, the ids of calls count, unless it uses them again; a result is another one where the call in front of it is.
//
// What says something else than a known message is another one, whatever it is called. What says the same is that one; under another name and beside nothing that
// stood beside it, it is another one, also where both are the first. Messages that say nothing do not tell where a list was cut.
//
// A host that hands over all it has can say so with Whole. Messages of type message.Filler are not looked at. All of this holds for every call that takes a
// transcript; a compaction that is passed on passes it on.
type Transcript struct {
	// Skipped is the number of messages before Messages that the host does not repeat, and Digest is message.DigestOf
	// them. An engine that cannot match them answers ErrNeedTranscript; the host then repeats the call with all messages.
	Skipped int            `json:"skipped,omitempty"`
	Digest  message.Digest `json:"digest,omitempty"`
	// Messages are the host's messages, oldest first: in its order, whatever their times are, and those that say the same are as many messages,
	// also with one id or key.
	Messages []message.Message `json:"messages"`
	// Whole says that Messages, with those skipped, are all that the host has: unknown messages at the beginning then replace what the engine knows
	// from before the first message that it recognises.
	Whole bool `json:"whole,omitempty"`
}
