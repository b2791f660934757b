package rpc

import (
	"encoding/json"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/capability"
)

// Deadline is part of the parameters of every engine method.
type Deadline struct {
	// DeadlineMs is the time the call may take from its arrival, in milliseconds; 0 is the longest the server allows.
	DeadlineMs int64 `json:"deadlineMs,omitempty"`
}

func (d Deadline) limit() int64 { return d.DeadlineMs }

// Program names a program and its version.
type Program struct {
	Name    string `json:"name"`
	Version string `json:"version,omitempty"`
}

// InitializeParams open a connection.
type InitializeParams struct {
	Deadline
	// ProtocolVersions are those the client speaks, best first.
	ProtocolVersions []string `json:"protocolVersions"`
	Client           Program  `json:"client"`
	// Host is the runtime behind the client; zero when there is none.
	Host         Program           `json:"host,omitzero"`
	Capabilities []capability.Name `json:"capabilities,omitempty"`
	// Format is the message format of calls that name none.
	Format string `json:"format,omitempty"`
	// Session says whose engine the answer describes; nil for that of the base configuration.
	Session *core.SessionID `json:"session,omitempty"`
	// Factory is what the host knows when it makes that engine. It holds for agents that nothing else is said of, see MethodFactory.
	Factory *Facts `json:"factory,omitempty"`
	// Log is "off" (when empty), "warn" or "info".
	Log string `json:"log,omitempty"`
}

// TranscriptParams say what happened before the current turn.
type TranscriptParams struct {
	// Skipped is the number of leading messages that are not repeated, Prefix the client's digest of them.
	Skipped int    `json:"skipped,omitempty"`
	Prefix  string `json:"prefix,omitempty"`
	// Messages are the rest, in the host's own JSON.
	Messages []json.RawMessage `json:"messages"`
	// Digest is the client's digest of all messages; empty when it has none.
	Digest string `json:"digest,omitempty"`
	// Whole says that the messages, with those skipped, are all that the host has, see core.Transcript.
	Whole bool `json:"whole,omitempty"`
}

// Advance says where the messages of a call stand in the client's transcript.
type Advance struct {
	Count  int    `json:"count"`
	Prefix string `json:"prefix,omitempty"`
	Digest string `json:"digest"`
}

// InfoParams ask for the description of an engine.
type InfoParams struct {
	Session *core.SessionID `json:"session,omitempty"`
	Deadline
}

// FactoryParams say what the host knows about an agent when it makes an engine.
type FactoryParams struct {
	Agent string `json:"agent"`
	Facts
	Deadline
}

// Facts are what a host knows when it makes an engine. Fields that it does not know are empty.
type Facts struct {
	// AgentDir and WorkspaceDir are absolute paths on the server's machine.
	AgentDir     string `json:"agentDir,omitempty"`
	WorkspaceDir string `json:"workspaceDir,omitempty"`
	// Channels is what the host's own section of channels says of limits of history, and nothing else of it.
	Channels map[string]any `json:"channels,omitempty"`
}

// BootstrapParams announce a session.
type BootstrapParams struct {
	Session         core.SessionID       `json:"session"`
	Transcript      *TranscriptParams    `json:"transcript,omitempty"`
	Settings        Settings             `json:"settings,omitzero"`
	TranscriptScope core.TranscriptScope `json:"transcriptScope,omitzero"`
	Format          string               `json:"format,omitempty"`
	Deadline
}

// IngestParams carry one message.
type IngestParams struct {
	Session   core.SessionID  `json:"session"`
	Message   json.RawMessage `json:"message"`
	Heartbeat bool            `json:"heartbeat,omitempty"`
	// IdempotencyKey names the call, at most 256 bytes: made again with the same key it stores nothing more.
	IdempotencyKey string `json:"idempotencyKey,omitempty"`
	Format         string `json:"format,omitempty"`
	Deadline
}

// IngestBatchParams carry messages in order.
type IngestBatchParams struct {
	Session   core.SessionID    `json:"session"`
	Messages  []json.RawMessage `json:"messages"`
	Heartbeat bool              `json:"heartbeat,omitempty"`
	// IdempotencyKey names the call, at most 256 bytes: made again with the same key it stores nothing more.
	IdempotencyKey string   `json:"idempotencyKey,omitempty"`
	Advance        *Advance `json:"advance,omitempty"`
	Format         string   `json:"format,omitempty"`
	Deadline
}

// CommitTurnParams carry an accepted turn.
type CommitTurnParams struct {
	Session         core.SessionID       `json:"session"`
	AdvancementKey  string               `json:"advancementKey"`
	Messages        []json.RawMessage    `json:"messages"`
	Heartbeat       bool                 `json:"heartbeat,omitempty"`
	Settings        Settings             `json:"settings,omitzero"`
	TranscriptScope core.TranscriptScope `json:"transcriptScope,omitzero"`
	Advance         *Advance             `json:"advance,omitempty"`
	Format          string               `json:"format,omitempty"`
	Deadline
}

// AfterTurnParams carry the messages of a turn, from hosts that do not commit turns.
type AfterTurnParams struct {
	Session  core.SessionID    `json:"session"`
	Messages []json.RawMessage `json:"messages"`
	// PrePrompt is the number of leading messages that were there before the turn.
	PrePrompt       int                  `json:"prePromptMessageCount,omitempty"`
	Heartbeat       bool                 `json:"heartbeat,omitempty"`
	Settings        Settings             `json:"settings,omitzero"`
	TranscriptScope core.TranscriptScope `json:"transcriptScope,omitzero"`
	Advance         *Advance             `json:"advance,omitempty"`
	Format          string               `json:"format,omitempty"`
	Deadline
}

// AssembleParams ask for the next prompt; see core.AssembleRequest.
type AssembleParams struct {
	Session         core.SessionID       `json:"session"`
	Budget          int                  `json:"tokenBudget"`
	Transcript      *TranscriptParams    `json:"transcript,omitempty"`
	Prompt          string               `json:"prompt,omitempty"`
	Call            core.Call            `json:"call,omitempty"`
	PromptMode      core.PromptMode      `json:"promptMode,omitempty"`
	Memory          core.MemoryPrompt    `json:"memory,omitzero"`
	Settings        Settings             `json:"settings,omitzero"`
	TranscriptScope core.TranscriptScope `json:"transcriptScope,omitzero"`
	// References asks for Items instead of Messages.
	References bool `json:"references,omitempty"`
	// Explain asks for Choices.
	Explain bool   `json:"explain,omitempty"`
	Format  string `json:"format,omitempty"`
	Deadline
}

// CompactParams ask for a compaction; see core.CompactRequest.
type CompactParams struct {
	Session         core.SessionID        `json:"session"`
	Budget          int                   `json:"tokenBudget,omitempty"`
	CurrentTokens   int                   `json:"currentTokenCount,omitempty"`
	Target          core.CompactionTarget `json:"compactionTarget,omitempty"`
	Force           bool                  `json:"force,omitempty"`
	Instructions    string                `json:"customInstructions,omitempty"`
	Trigger         string                `json:"trigger,omitempty"`
	Transcript      *TranscriptParams     `json:"transcript,omitempty"`
	Settings        Settings              `json:"settings,omitzero"`
	TranscriptScope core.TranscriptScope  `json:"transcriptScope,omitzero"`
	Format          string                `json:"format,omitempty"`
	Deadline
}

// MaintainParams ask for work that can wait.
type MaintainParams struct {
	Session core.SessionID `json:"session"`
	// Reason is "bootstrap", "turn" or "compaction".
	Reason          string               `json:"reason"`
	Budget          int                  `json:"tokenBudget,omitempty"`
	Settings        Settings             `json:"settings,omitzero"`
	TranscriptScope core.TranscriptScope `json:"transcriptScope,omitzero"`
	Deadline
}

// SpawnParams announce a subagent.
type SpawnParams struct {
	Parent core.SessionID `json:"parent"`
	Child  core.SessionID `json:"child"`
	Mode   core.SpawnMode `json:"contextMode,omitempty"`
	// TTLMs bounds the child's access to its parent's history, in milliseconds; 0 takes the configured time.
	TTLMs int64 `json:"ttlMs,omitempty"`
	// The ids and files of the transcripts, see core.SpawnRequest.
	ParentSessionID   string `json:"parentSessionId,omitempty"`
	ParentSessionFile string `json:"parentSessionFile,omitempty"`
	ChildSessionID    string `json:"childSessionId,omitempty"`
	ChildSessionFile  string `json:"childSessionFile,omitempty"`
	Deadline
}

// RollbackParams undo a prepared spawn.
type RollbackParams struct {
	SpawnID string `json:"spawnId"`
	Deadline
}

// SubagentEndedParams say that a subagent is done.
type SubagentEndedParams struct {
	Child  core.SessionID  `json:"child"`
	Parent *core.SessionID `json:"parent,omitempty"`
	Reason string          `json:"reason"`
	Result string          `json:"result,omitempty"`
	Deadline
}

// DisposeParams name a session that is not used for a while.
type DisposeParams struct {
	Session core.SessionID `json:"session"`
	Deadline
}

// RetryParams name a session whose engine was set aside.
type RetryParams struct {
	Session core.SessionID `json:"session"`
	Deadline
}

// NoParams are the parameters of methods that have none.
type NoParams struct{ Deadline }

// cancelParams name a request of the client.
type cancelParams struct {
	ID json.RawMessage `json:"id"`
}

// HostCompactParams ask the client's runtime for its own compaction.
type HostCompactParams struct {
	RequestID string `json:"requestId"`
	// Call is the id of the client's request that needs it.
	Call          json.RawMessage       `json:"call"`
	Session       core.SessionID        `json:"session"`
	DeadlineMs    int64                 `json:"deadlineMs,omitempty"`
	Budget        int                   `json:"tokenBudget,omitempty"`
	CurrentTokens int                   `json:"currentTokenCount,omitempty"`
	Target        core.CompactionTarget `json:"compactionTarget,omitempty"`
	Force         bool                  `json:"force,omitempty"`
	Instructions  string                `json:"customInstructions,omitempty"`
	Trigger       string                `json:"trigger,omitempty"`
}

// HostCompleteParams ask the client's model.
type HostCompleteParams struct {
	RequestID  string          `json:"requestId"`
	Call       json.RawMessage `json:"call"`
	DeadlineMs int64           `json:"deadlineMs,omitempty"`
	System     string          `json:"system,omitempty"`
	Prompt     string          `json:"prompt"`
	MaxTokens  int             `json:"maxTokens,omitempty"`
	Purpose    string          `json:"purpose,omitempty"`
	Model      string          `json:"model,omitempty"`
}

// HostCompleteResult is the model's answer.
type HostCompleteResult struct {
	Text         string `json:"text"`
	Model        string `json:"model,omitempty"`
	InputTokens  int    `json:"inputTokens,omitempty"`
	OutputTokens int    `json:"outputTokens,omitempty"`
	StopReason   string `json:"stopReason,omitempty"`
}

// HostCancelParams name a request of the server whose answer is not wanted any more.
type HostCancelParams struct {
	RequestID string `json:"requestId"`
}

// LogParams are a notification to the client's operator.
type LogParams struct {
	Level      string            `json:"level"`
	Message    string            `json:"message"`
	Attributes map[string]string `json:"attributes,omitempty"`
}
