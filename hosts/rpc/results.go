package rpc

import (
	"encoding/json"
	"fmt"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/window"
)

// Limits are what the server allows.
type Limits struct {
	MaxFrameBytes         int   `json:"maxFrameBytes"`
	MaxInFlight           int   `json:"maxInFlight"`
	MaxCallMs             int64 `json:"maxCallMs"`
	MaxTranscriptMessages int   `json:"maxTranscriptMessages"`
}

// InitializeResult answers initialize.
type InitializeResult struct {
	ProtocolVersion string   `json:"protocolVersion"`
	Server          Program  `json:"server"`
	Methods         []string `json:"methods"`
	Formats         []string `json:"formats"`
	Limits          Limits   `json:"limits"`
	// Engine describes the engine asked about; nil when it cannot be made, and EngineError says why.
	Engine      *core.Info   `json:"engine,omitempty"`
	EngineError *EngineError `json:"engineError,omitempty"`
	// Ignored is that of a FactoryResult.
	Ignored []string `json:"ignored,omitempty"`
}

// EngineError says why an engine cannot be made.
type EngineError struct {
	Code    int    `json:"code"`
	Kind    string `json:"kind"`
	Message string `json:"message"`
}

// Arm says which configuration a session was given.
type Arm struct {
	// Name is the arm's; empty when the session belongs to none.
	Name string `json:"name,omitempty"`
	// Share is the share of the agent's sessions that the arm gets, 0 to 1.
	Share float64 `json:"share"`
	// Config identifies the configuration.
	Config string `json:"config,omitempty"`
}

// InfoResult describes the engine of a session.
type InfoResult struct {
	Engine core.Info `json:"engine"`
	Arm    Arm       `json:"arm"`
}

// FactoryResult says what of Facts.Channels cannot be used, and was left out.
type FactoryResult struct {
	Ignored []string `json:"ignored,omitempty"`
}

// HealthResult says how the server is.
type HealthResult struct {
	// Status is "ok", "problems" or "stopping".
	Status      string         `json:"status"`
	Version     string         `json:"version"`
	UptimeMs    int64          `json:"uptimeMs"`
	Connections int            `json:"connections"`
	InFlight    int            `json:"inFlight"`
	Sessions    int            `json:"sessions"`
	Problems    []core.Problem `json:"problems"`
}

// Item is one message of an assembled prompt, or a run of messages that the client has: those from From to To-1 of its full list.
type Item struct {
	From    int             `json:"from,omitempty"`
	To      int             `json:"to,omitempty"`
	Message json.RawMessage `json:"message,omitempty"`
}

// MarshalJSON writes from even when it is 0.
func (i Item) MarshalJSON() ([]byte, error) { return i.appendTo(nil), nil }

func (i Item) appendTo(b []byte) []byte {
	if i.Message != nil {
		b = append(append(b, `{"message":`...), i.Message...)
		return append(b, '}')
	}
	return fmt.Appendf(b, `{"from":%d,"to":%d}`, i.From, i.To)
}

// Expand returns the messages that items stand for, given the client's full list. An item that points outside the list is an
// error that wraps core.ErrInvalid.
func Expand(items []Item, list []json.RawMessage) ([]json.RawMessage, error) {
	var out []json.RawMessage
	for n, it := range items {
		if it.Message != nil {
			out = append(out, it.Message)
			continue
		}
		if it.From < 0 || it.To > len(list) || it.From >= it.To {
			return nil, fmt.Errorf("rpc: expand: items[%d]: %d to %d of a list of %d: %w", n, it.From, it.To, len(list), core.ErrInvalid)
		}
		out = append(out, list[it.From:it.To]...)
	}
	return out, nil
}

// Checkpoint names a list of messages by count and digest.
type Checkpoint struct {
	Count  int    `json:"count"`
	Digest string `json:"digest"`
}

// AssembleResult is the next prompt; see core.AssembleResult.
type AssembleResult struct {
	// Messages, or Items when references were asked for.
	Messages []json.RawMessage `json:"messages,omitempty"`
	Items    []Item            `json:"items,omitempty"`

	EstimatedTokens      int            `json:"estimatedTokens"`
	SystemPromptAddition string         `json:"systemPromptAddition,omitempty"`
	PromptAuthority      core.Authority `json:"promptAuthority"`
	Epoch                uint64         `json:"projectionEpoch"`
	// Output names this result, should the host hand it back as a transcript.
	Output        Checkpoint      `json:"output"`
	Stepped       bool            `json:"stepped,omitempty"`
	CompactionDue bool            `json:"compactionDue,omitempty"`
	RecallAt      int             `json:"recallAt,omitempty"`
	RecallLen     int             `json:"recallLen,omitempty"`
	Choices       []window.Choice `json:"choices,omitempty"`
	Warnings      []string        `json:"warnings,omitempty"`
	Degraded      string          `json:"degraded,omitempty"`
}

// SpawnResult names a prepared subagent.
type SpawnResult struct {
	SpawnID string `json:"spawnId"`
	GrantID string `json:"grantId,omitempty"`
}

// NoResult is the result of methods that have none.
type NoResult struct{}
