package core

import (
	"context"
	"time"

	"github.com/contextengine/contextengine/core/capability"
	"github.com/contextengine/contextengine/core/message"
	"github.com/contextengine/contextengine/core/window"
)

// ContextEngine is what a host drives. What follows below are its optional members; *Engine has all of them.
//
// Implementers: safe for concurrent use; calls for one session are serialised, sessions run in parallel. Every method returns soon after ctx ends. No error
// holds what a message says. What is returned belongs to the caller, and what was given is not kept or changed.
// Callers: one Dispose at the end, no call after it.
type ContextEngine interface {
	Info() Info
	// Ingest stores one message. Duplicates (same key) are no error.
	Ingest(ctx context.Context, req IngestRequest) (IngestResult, error)
	// Assemble returns what the model sees next.
	Assemble(ctx context.Context, req AssembleRequest) (AssembleResult, error)
	// Compact shrinks what is live of a session.
	Compact(ctx context.Context, req CompactRequest) (CompactResult, error)
}

// Bootstrapper is told that a session is about to be used. It may be called more than once per session.
type Bootstrapper interface {
	Bootstrap(ctx context.Context, req BootstrapRequest) (BootstrapResult, error)
}

// BatchIngester stores several messages atomically.
type BatchIngester interface {
	IngestBatch(ctx context.Context, req IngestBatchRequest) (IngestResult, error)
}

// TurnCommitter stores an accepted turn, once for each advancement key. A call that failed uses up no key: called again it stores the turn.
type TurnCommitter interface {
	CommitTurn(ctx context.Context, req CommitTurnRequest) (CommitTurnResult, error)
}

// AfterTurner is told that a turn ended, by hosts without CommitTurn. Messages that were ingested before are known by their key, id or time, the first of
// these that both have: a host that ingests them too sets one.
type AfterTurner interface {
	AfterTurn(ctx context.Context, req AfterTurnRequest) error
}

// Maintainer does what can wait: it is called off the reply path. Where there was something to do,
// that it failed or that ctx ended is an error, as of any call, not a Reason.
type Maintainer interface {
	Maintain(ctx context.Context, req MaintainRequest) (MaintainResult, error)
}

// SubagentHost prepares and ends the sessions of subagents.
type SubagentHost interface {
	// PrepareSubagentSpawn prepares a child session. A fork begins with what the parent shows; an isolated child begins empty. With a grant, either may recall and
	// search the parent's history, and the parent may search the child's, until the grant is over. What an isolated child
	// recalls was said before it was spawned: the turn that spawned it says the task again. A child that has ended reaches nothing more.
	PrepareSubagentSpawn(ctx context.Context, req SpawnRequest) (Spawn, error)
	// OnSubagentEnded puts the child's result into the parent's conversation and ends the child's access, whatever Reason says. Called again for the same
	// child and result it changes nothing; another result, and that of another child, is one more. What the child recalled of its parent leaves its prompts.
	OnSubagentEnded(ctx context.Context, req SubagentEnded) error
}

// Disposer releases what an engine holds. It waits for calls under way, as long as ctx lasts: nil says that they are over and all is released; where ctx ends
// first it returns ctx's error, and what is left is released when they are over. Later calls return ErrClosed.
type Disposer interface {
	Dispose(ctx context.Context) error
}

// Info describes an engine to a host.
type Info struct {
	ID             string `json:"id"`
	Name           string `json:"name"`
	Version        string `json:"version"`
	OwnsCompaction bool   `json:"ownsCompaction"`
	// TurnMaintenance is "background" or "foreground".
	TurnMaintenance string `json:"turnMaintenanceMode,omitempty"`
	// CurrentTurnFence and TurnIdempotency name the durable-turn contract the engine keeps.
	CurrentTurnFence string `json:"currentTurnFence,omitempty"`
	TurnIdempotency  string `json:"turnAdvancementIdempotency,omitempty"`
	// Requires lists, per operation, what the host must offer.
	Requires capability.Requirements `json:"hostRequirements,omitempty"`
	// Parts names what the engine is made of.
	Parts PartNames `json:"parts,omitzero"`
	// Health says what is wrong; empty when all is well.
	Health []Problem `json:"health,omitempty"`
}

// PartNames names the parts of an engine, as configured.
type PartNames struct {
	Store     string `json:"store"`
	Retriever string `json:"retriever"`
	Compactor string `json:"compactor"`
}

// Problem is one thing that went wrong in a part.
type Problem struct {
	Part  string    `json:"part"`
	Op    string    `json:"op"`
	Text  string    `json:"text"`
	Since time.Time `json:"since"`
	Count int       `json:"count"`
	// Quarantined says that the engine no longer answers and legacy does, in the session that Text names, or in all.
	Quarantined bool `json:"quarantined,omitempty"`
}

// BootstrapRequest announces a session.
type BootstrapRequest struct {
	Session SessionID `json:"session"`
	// Transcript is what the host has; nil when it hands over none.
	Transcript      *Transcript     `json:"transcript,omitempty"`
	Settings        RuntimeSettings `json:"settings,omitzero"`
	TranscriptScope TranscriptScope `json:"transcriptScope,omitzero"`
}

// BootstrapResult says what Bootstrap did.
type BootstrapResult struct {
	Bootstrapped bool `json:"bootstrapped"`
	// Imported is the number of messages that were not stored before.
	Imported int `json:"imported"`
	// Known is the number of entries of the session that are in force.
	Known  int    `json:"known"`
	Reason string `json:"reason,omitempty"`
}

// IngestRequest carries one message.
type IngestRequest struct {
	Session   SessionID       `json:"session"`
	Message   message.Message `json:"message"`
	Heartbeat bool            `json:"heartbeat,omitempty"`
	// IdempotencyKey is IngestBatchRequest's.
	IdempotencyKey string `json:"idempotencyKey,omitempty"`
}

// IngestBatchRequest carries messages in order.
type IngestBatchRequest struct {
	Session SessionID `json:"session"`
	// Messages that say the same are as many messages.
	Messages  []message.Message `json:"messages"`
	Heartbeat bool              `json:"heartbeat,omitempty"`
	// IdempotencyKey names this call, at most 256 bytes: made again with the same key and messages, because its answer was lost, it stores nothing more. Without
	// one, messages that carry no id of their host's are stored again.
	IdempotencyKey string `json:"idempotencyKey,omitempty"`
}

// IngestResult says what was stored.
type IngestResult struct {
	// Ingested is the number of new entries, Duplicates that of known ones.
	Ingested   int `json:"ingested"`
	Duplicates int `json:"duplicates"`
	// IDs are the entries' ids, in the order of the messages; empty for a message.Filler, which is not stored.
	IDs []string `json:"ids"`
}

// CommitTurnRequest carries an accepted turn: the user's message to the final answer. What transcripts showed of it in the turn's Assemble calls is not stored again.
type CommitTurnRequest struct {
	Session SessionID `json:"session"`
	// AdvancementKey identifies the turn, to its last byte; never empty. Every engine takes one of 256 bytes.
	AdvancementKey  string            `json:"advancementKey"`
	Messages        []message.Message `json:"messages"`
	Heartbeat       bool              `json:"heartbeat,omitempty"`
	Settings        RuntimeSettings   `json:"settings,omitzero"`
	TranscriptScope TranscriptScope   `json:"transcriptScope,omitzero"`
}

// The statuses of a CommitTurnResult.
const (
	Committed = "committed"
	Duplicate = "duplicate"
)

// CommitTurnResult says whether the turn was new.
type CommitTurnResult struct {
	// Status is Committed or Duplicate.
	Status string `json:"status"`
	// IDs are those of IngestResult; a turn that is a duplicate may have none.
	IDs []string `json:"ids"`
}

// AfterTurnRequest carries a session's messages after a turn.
type AfterTurnRequest struct {
	Session SessionID `json:"session"`
	// Messages is all that the host has; the first PrePrompt of them were there before the turn.
	Messages        []message.Message `json:"messages"`
	PrePrompt       int               `json:"prePromptMessageCount"`
	Heartbeat       bool              `json:"heartbeat,omitempty"`
	Settings        RuntimeSettings   `json:"settings,omitzero"`
	TranscriptScope TranscriptScope   `json:"transcriptScope,omitzero"`
}

// MaintainRequest asks for work that can wait.
type MaintainRequest struct {
	Session SessionID `json:"session"`
	// Reason is "bootstrap", "turn" or "compaction".
	Reason string `json:"reason"`
	// Budget is the token budget of the session's prompts; 0 when unknown.
	Budget          int             `json:"budget,omitempty"`
	Settings        RuntimeSettings `json:"settings,omitzero"`
	TranscriptScope TranscriptScope `json:"transcriptScope,omitzero"`
}

// MaintainResult says what Maintain changed.
type MaintainResult struct {
	Changed bool   `json:"changed"`
	Reason  string `json:"reason,omitempty"`
}

// Call says where in a turn Assemble is called.
type Call string

// The two call kinds.
const (
	// CallPrompt comes once before the model is called for a user's prompt.
	CallPrompt Call = "prompt"
	// CallLoop comes before each further model call of the same turn. Transcript may be the engine's own last output.
	CallLoop Call = "loop"
)

// PromptMode says how much of its surroundings an agent is told: subagents often get less.
type PromptMode string

// The prompt modes.
const (
	// PromptFull recalls as configured.
	PromptFull PromptMode = "full"
	// PromptMinimal recalls from the session itself only, with half of the share.
	PromptMinimal PromptMode = "minimal"
	// PromptNone recalls nothing and adds nothing to the system prompt.
	PromptNone PromptMode = "none"
)

// AssembleRequest asks for the next prompt.
type AssembleRequest struct {
	Session SessionID `json:"session"`
	// Budget is the largest prompt in tokens, positive. What Settings say of a model's window and answers changes nothing about it.
	Budget int `json:"tokenBudget"`
	// Transcript is what the host says happened. When it is nil the store is the truth, and the result ends with the
	// newest ingested message; otherwise the result ends where the transcript does.
	Transcript *Transcript `json:"transcript,omitempty"`
	// Prompt is the text of a current user turn that the host appends itself. It steers recall and is never returned.
	Prompt string `json:"prompt,omitempty"`
	// Call is CallPrompt when empty.
	Call Call `json:"call,omitempty"`
	// PromptMode is PromptFull when empty; an engine may hold another one for the sessions of subagents.
	PromptMode      PromptMode      `json:"promptMode,omitempty"`
	Memory          MemoryPrompt    `json:"memory,omitzero"`
	Settings        RuntimeSettings `json:"settings,omitzero"`
	TranscriptScope TranscriptScope `json:"transcriptScope,omitzero"`
}

// Authority says which token count the host should trust before it sends the prompt.
type Authority string

// The authorities.
const (
	// AuthorityAssembled: the result fits; what the host counted on its own does not matter.
	AuthorityAssembled Authority = "assembled"
	// AuthorityHost: the result may exceed the budget; the host's own check holds.
	AuthorityHost Authority = "preassembly_may_overflow"
)

// AssembleResult is the next prompt.
type AssembleResult struct {
	Messages []message.Message `json:"messages"`
	// EstimatedTokens counts Messages and SystemPromptAddition; at most the budget.
	EstimatedTokens int `json:"estimatedTokens"`
	// SystemPromptAddition belongs behind the host's system prompt. The engine's own text is not there before something has left the window. It does not
	// change from call to call: only where Stepped is set it may come, be given up, because what must stay leaves no room for it, or come back, once what
	// must stay and the addition take no more than half of a budget.
	SystemPromptAddition string    `json:"systemPromptAddition,omitempty"`
	PromptAuthority      Authority `json:"promptAuthority"`
	// Epoch is the View's: as long as it stays, what was sent is a prefix of what is sent, the recall block and the newest turn left out.
	Epoch uint64 `json:"projectionEpoch"`
	// Stepped says that the window moved in this call.
	Stepped bool `json:"stepped,omitempty"`
	// CompactionDue says that enough history left the window for a compaction to be worth it. How much is enough is the engine's; many times the budget is.
	// It is said in every prompt until a compaction changed that.
	CompactionDue bool `json:"compactionDue,omitempty"`
	// RecallAt and RecallLen locate the recall block of the newest turn in Messages: RecallLen messages from index RecallAt on; both 0 when there is none, and where a rule
	// joined it with another message. Blocks of earlier turns that still stand are told by Choices alone.
	RecallAt  int `json:"recallAt,omitempty"`
	RecallLen int `json:"recallLen,omitempty"`
	// Choices says for every message of Messages why it is there, and for what was left out why it is not.
	Choices []window.Choice `json:"choices,omitempty"`
	// Warnings names parts that failed without stopping the call ("retriever: ...").
	Warnings []string `json:"warnings,omitempty"`
	// Degraded is empty, or says why legacy answered instead.
	Degraded string `json:"degraded,omitempty"`
}

// CompactionTarget says how far to shrink.
type CompactionTarget string

// The targets.
const (
	// TargetBudget: the next prompt must fit.
	TargetBudget CompactionTarget = "budget"
	// TargetThreshold: down to the share after which compaction is not due for a while.
	TargetThreshold CompactionTarget = "threshold"
)

// CompactRequest asks for a compaction.
type CompactRequest struct {
	Session SessionID `json:"session"`
	// Budget is the token budget of the session's prompts; 0 takes that of the session's last Assemble.
	Budget int `json:"tokenBudget,omitempty"`
	// CurrentTokens is what the host believes the prompt costs; 0 when it does not know. The figures of a result are the engine's own.
	CurrentTokens int              `json:"currentTokenCount,omitempty"`
	Target        CompactionTarget `json:"compactionTarget,omitempty"`
	// Force compacts although none is due, and may take what the window still shows. Where the compactor does nothing and what is live costs more than the budget, the
	// oldest messages leave without a summary.
	Force bool `json:"force,omitempty"`
	// Instructions are a person's wishes for the summary.
	Instructions string `json:"customInstructions,omitempty"`
	// Trigger is the host's word: "manual", "budget", "overflow", "timeout_recovery", "maintain".
	Trigger         string          `json:"trigger,omitempty"`
	Transcript      *Transcript     `json:"transcript,omitempty"`
	Settings        RuntimeSettings `json:"settings,omitzero"`
	TranscriptScope TranscriptScope `json:"transcriptScope,omitzero"`
}

// Reasons that hosts take as benign when nothing was compacted. OpenClaw matches them as substrings.
const (
	ReasonBelowThreshold   = "below threshold"
	ReasonUnderTarget      = "already under target"
	ReasonAlreadyCompacted = "already compacted"
)

// CompactResult says what a compaction did.
type CompactResult struct {
	OK        bool `json:"ok"`
	Compacted bool `json:"compacted"`
	// Reason says why nothing was compacted, or why less than asked. Where OK holds and nothing was, it holds one of the reasons above.
	Reason string `json:"reason,omitempty"`
	// Summary is the newest text that stands for compacted history.
	Summary string `json:"summary,omitempty"`
	// FirstKept is the id of the oldest entry that is still live.
	FirstKept string `json:"firstKeptEntryId,omitempty"`
	// TokensBefore and TokensAfter cost everything live: summaries and the entries behind them. Where nothing was compacted they are the same.
	TokensBefore int `json:"tokensBefore"`
	TokensAfter  int `json:"tokensAfter"`
	// Successor is the session that continues this one; zero when it continues itself.
	Successor SessionID `json:"successor,omitzero"`
	// Delegated says that the runtime did it.
	Delegated bool `json:"delegated,omitempty"`
}

// SpawnMode says what a subagent starts from.
type SpawnMode string

// The spawn modes.
const (
	SpawnIsolated SpawnMode = "isolated"
	SpawnFork     SpawnMode = "fork"
)

// SpawnRequest announces a subagent.
type SpawnRequest struct {
	Parent SessionID `json:"parent"`
	Child  SessionID `json:"child"`
	// Mode is SpawnIsolated when empty.
	Mode SpawnMode `json:"contextMode,omitempty"`
	// TTL bounds the child's access to the parent's history; 0 takes the configured time.
	TTL time.Duration `json:"ttl,omitempty"`
	// The ids and files of both transcripts, as the host names them, for engines that want to look there; empty where it says nothing. A host that keeps
	// transcripts in a database may give the session's key for a file. The engines of this module go by Parent and Child, and store none of these.
	ParentSessionID   string `json:"parentSessionId,omitempty"`
	ParentSessionFile string `json:"parentSessionFile,omitempty"`
	ChildSessionID    string `json:"childSessionId,omitempty"`
	ChildSessionFile  string `json:"childSessionFile,omitempty"`
}

// Spawn is a prepared subagent.
type Spawn struct {
	// Rollback undoes the preparation when the launch failed: neither session opens anything to the other. A child that has stored something keeps its conversation,
	// a fork with what it began with. It may be called once; never nil.
	Rollback func(ctx context.Context) error `json:"-"`
	// GrantID names the grant the child got; empty when it got none.
	GrantID string `json:"grantId,omitempty"`
}

// SubagentEnded says that a subagent is done.
type SubagentEnded struct {
	// Parent is zero where the host does not say it: it is then the one that prepared the child, in this process or in an earlier one over the store.
	Parent SessionID `json:"parent,omitzero"`
	Child  SessionID `json:"child"`
	// Reason is the host's word ("completed", "error", ...).
	Reason string `json:"reason"`
	// Result is what the child handed back. Where it says nothing, because it is empty, blank or cannot be seen, the engine takes the child's last answer that
	// does. Prompts show it as a quotation, like what is recalled. Where a prompt recalled the same answer before, the next one does not, and is sent anew.
	Result string `json:"result,omitempty"`
}
