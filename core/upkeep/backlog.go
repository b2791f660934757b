package upkeep

import (
	"context"
	"time"
)

// Drainer is a store that delivers to another one in the background.
type Drainer interface {
	// Drain delivers what waits, as long as ctx lasts, and returns how many of these changes still wait. The error is why they do; it is nil when none does. It may
	// leave out what is written after the call. Between changes that it delivers one after the other it looks at ctx.
	Drain(ctx context.Context) (left int, err error)
}

// Backlog is what a Drainer has not delivered yet.
type Backlog struct {
	// Waiting counts the changes that are to be delivered, Bytes the content of the entries among them; Oldest is when the first was made.
	Waiting int       `json:"waiting"`
	Bytes   int64     `json:"bytes"`
	Oldest  time.Time `json:"oldest,omitzero"`
	// SetAside counts the changes that the other store refused for good.
	SetAside int `json:"setAside"`
	// Bare counts the messages that were copied from the other store with their text alone, see MetaTextOnly.
	Bare int `json:"bare,omitempty"`
	// Full is why nothing more is taken now; empty when there is room. LastError is what went wrong last.
	Full      string `json:"full,omitempty"`
	LastError string `json:"lastError,omitempty"`
}

// Backlogger is a Drainer that tells what waits, and whether the other store can be reached now.
type Backlogger interface {
	Backlog(ctx context.Context) (Backlog, error)
	CheckRemote(ctx context.Context) error
}

// MetaTextOnly is the key in Entry.Meta of a message that a store gives back with its text alone, since it never held more: tool calls, images, token counts
// and the host's own bytes are missing.
const MetaTextOnly = "textOnly"
