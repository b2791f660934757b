package rpc

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"slices"
	"sync"

	"github.com/contextengine/contextengine/core"
)

// Conversation sends the transcripts of one session without repeating what the server knows, and puts the server's references together
// again. It is safe for concurrent use; calls run one at a time.
type Conversation struct {
	client  *Client
	session core.SessionID
	format  string

	mu sync.Mutex
	// ids are hashes of the messages of the last list, sums the running digests: sums[i] is that of the first i.
	ids  [][sha256.Size]byte
	sums []string
	// acked are counts at which the server knows the digest, of the list that ids describe.
	acked []int
}

// NewConversation returns a conversation about a session, whose messages are in the named format; empty for that of Initialize.
func NewConversation(c *Client, session core.SessionID, format string) *Conversation {
	return &Conversation{client: c, session: session, format: format, sums: []string{""}}
}

// Bootstrap announces the session with its messages.
func (v *Conversation) Bootstrap(ctx context.Context, messages []json.RawMessage) (core.BootstrapResult, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	var res core.BootstrapResult
	err := v.with(messages, func(t *TranscriptParams) error {
		var err error
		res, err = v.client.Bootstrap(ctx, BootstrapParams{Session: v.session, Transcript: t, Format: v.format})
		return err
	})
	return res, err
}

// Assemble returns the next prompt for a transcript: its messages, whole, and the rest of the result. Session, Transcript, References
// and Format of p are set here.
func (v *Conversation) Assemble(ctx context.Context, messages []json.RawMessage, p AssembleParams) ([]json.RawMessage, AssembleResult, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	var res AssembleResult
	err := v.with(messages, func(t *TranscriptParams) error {
		p.Session, p.Transcript, p.References, p.Format = v.session, t, true, v.format
		var err error
		res, err = v.client.Assemble(ctx, p)
		return err
	})
	if err != nil {
		return nil, res, err
	}
	out, err := Expand(res.Items, messages)
	return out, res, err
}

// CommitTurn stores a turn that the transcript will go on with after the messages of the last call.
func (v *Conversation) CommitTurn(ctx context.Context, key string, turn []json.RawMessage) (core.CommitTurnResult, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	p := CommitTurnParams{Session: v.session, AdvancementKey: key, Messages: turn, Format: v.format}
	count := len(v.ids)
	v.extend(turn)
	p.Advance = &Advance{Count: count, Prefix: v.sums[count], Digest: v.sums[len(v.ids)]}
	res, err := v.client.CommitTurn(ctx, p)
	if err == nil {
		v.ack(len(v.ids))
	}
	return res, err
}

// with makes a call with a transcript: first the tail behind what the server should know, and, should it not, everything.
func (v *Conversation) with(messages []json.RawMessage, call func(*TranscriptParams) error) error {
	same := 0
	for same < min(len(messages), len(v.ids)) && sha256.Sum256(messages[same]) == v.ids[same] {
		same++
	}
	v.ids, v.sums = v.ids[:same], v.sums[:same+1]
	v.acked = slices.DeleteFunc(v.acked, func(n int) bool { return n > same })
	v.extend(messages[same:])
	skipped := 0
	if n := len(v.acked); n > 0 {
		skipped = v.acked[n-1]
	}
	for {
		err := call(&TranscriptParams{
			Skipped: skipped, Prefix: v.sums[skipped], Messages: messages[skipped:], Digest: v.sums[len(messages)],
		})
		if err == nil {
			v.ack(len(messages))
			return nil
		}
		e, ok := errors.AsType[*Error](err)
		if skipped == 0 || !ok || e.Code != CodeNeedTranscript {
			return err
		}
		skipped, v.acked = v.shared(e, skipped), nil
	}
}

// shared returns the longest beginning, shorter than before, that both sides know.
func (v *Conversation) shared(e *Error, before int) int {
	if e.Data.Known != nil {
		for _, k := range *e.Data.Known {
			if k.Count < before && k.Count < len(v.sums) && v.sums[k.Count] == k.Digest {
				return k.Count
			}
		}
	}
	return 0
}

func (v *Conversation) extend(messages []json.RawMessage) {
	for _, m := range messages {
		id := sha256.Sum256(m)
		sum := sha256.Sum256(append([]byte(v.sums[len(v.sums)-1]), id[:]...))
		v.ids = append(v.ids, id)
		v.sums = append(v.sums, hex.EncodeToString(sum[:16]))
	}
}

func (v *Conversation) ack(count int) {
	if count == 0 || slices.Contains(v.acked, count) {
		return
	}
	v.acked = append(v.acked, count)
	if len(v.acked) > maxCheckpoints {
		v.acked = v.acked[1:]
	}
}
