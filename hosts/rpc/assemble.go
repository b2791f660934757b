package rpc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/message"
)

func assemble(ctx context.Context, k *call, p AssembleParams) (any, error) {
	if err := p.check(); err != nil {
		return nil, err
	}
	if err := k.run(p.Session, p.Settings, p.TranscriptScope); err != nil {
		return nil, err
	}
	codec, err := k.format(p.Format)
	if err != nil {
		return nil, err
	}
	t, c, err := k.transcript(p.Session, p.Transcript, codec)
	if err != nil {
		return nil, err
	}
	e, _, err := k.conn.s.engineFor(ctx, p.Session)
	if err != nil {
		return nil, err
	}
	res, err := e.Assemble(ctx, core.AssembleRequest{
		Session: p.Session, Budget: p.Budget, Transcript: t, Prompt: p.Prompt, Call: p.Call, PromptMode: p.PromptMode, Memory: p.Memory,
		Settings: p.Settings.core(codec.Name()), TranscriptScope: p.TranscriptScope,
	})
	if err != nil {
		return nil, k.rejected(p.Session, err)
	}
	place := k.remember(c)
	out, err := encodeMessages(codec, res.Messages)
	if err != nil {
		return nil, err
	}
	answer := out.assembled(res, p.Explain)
	ids := k.conn.s.known.hashes(p.Session, out.raw)
	answer.Output.Count = len(out.raw)
	if out.whole && res.Degraded == "" {
		answer.Output.Digest = k.conn.s.known.output(p.Session, ids, out.raw, res.Messages)
	} else {
		answer.Output.Digest = "out:none" // never known: the next transcript comes whole
	}
	if !p.References {
		answer.Messages = out.raw
		return answer.encode(false)
	}
	answer.Items = itemsFor(out.raw, ids, place)
	return answer.encode(true)
}

func (p AssembleParams) check() error {
	if err := checkSession("session", p.Session); err != nil {
		return err
	}
	switch {
	case p.Budget <= 0:
		return badField("tokenBudget", "must be a positive number of tokens")
	case p.Call != "" && p.Call != core.CallPrompt && p.Call != core.CallLoop:
		return badField("call", `must be "prompt" or "loop"`)
	case p.PromptMode != "" && p.PromptMode != core.PromptFull && p.PromptMode != core.PromptMinimal && p.PromptMode != core.PromptNone:
		return badField("promptMode", `must be "full", "minimal" or "none"`)
	}
	return nil
}

// encode writes the result with its messages byte for byte.
func (r AssembleResult) encode(references bool) ([]byte, error) {
	var list []byte
	name := `{"messages":`
	if references {
		name = `{"items":`
		list = append(list, '[')
		for i, it := range r.Items {
			if i > 0 {
				list = append(list, ',')
			}
			list = it.appendTo(list)
		}
		list = append(list, ']')
	} else {
		list = rawArray(r.Messages)
	}
	r.Messages, r.Items = nil, nil
	rest, err := encode(r)
	if err != nil {
		return nil, err
	}
	out := make([]byte, 0, len(name)+len(list)+len(rest)+1)
	out = append(append(append(out, name...), list...), ',')
	return append(out, rest[1:]...), nil // there are always more fields
}

// itemsFor names the messages that the client has by their place in its list, in runs.
func itemsFor(raw []json.RawMessage, ids []hash, place func(h hash, after int) int) []Item {
	var out []Item
	last := -1
	for i := range raw {
		at := -1
		if place != nil {
			at = place(ids[i], last)
		}
		n := len(out)
		switch {
		case at < 0:
			out = append(out, Item{Message: raw[i]})
			continue
		case n > 0 && out[n-1].Message == nil && out[n-1].To == at:
			out[n-1].To++
		default:
			out = append(out, Item{From: at, To: at + 1})
		}
		last = at
	}
	return out
}

// transcript turns a client's transcript into the engine's. The claim is what to remember once the engine has accepted it.
func (k *call) transcript(id core.SessionID, p *TranscriptParams, codec message.Codec) (*core.Transcript, *claim, error) {
	if p == nil {
		return nil, nil, nil
	}
	const longest = 128
	most := k.conn.s.cfg.MaxTranscript
	switch {
	case codec == nil:
		return nil, nil, badField("format", "name the messages' format here or in initialize")
	case p.Skipped < 0:
		return nil, nil, badField("transcript.skipped", "must not be negative")
	case p.Skipped > 0 && p.Prefix == "":
		return nil, nil, badField("transcript.prefix", "give the digest of the skipped messages")
	case len(p.Prefix) > longest || len(p.Digest) > longest:
		return nil, nil, badField("transcript", fmt.Sprintf("digests have at most %d bytes", longest))
	case p.Skipped > most || len(p.Messages) > most-p.Skipped:
		return nil, nil, badField("transcript", fmt.Sprintf("at most %d messages", most))
	}
	known := k.conn.s.known
	start, ok := known.begin(id, p.Skipped, p.Prefix)
	if !ok {
		return nil, nil, needTranscript(known.checkpoints(id))
	}
	messages, err := decodeMessages(codec, "transcript.messages", p.Messages)
	if err != nil {
		return nil, nil, err
	}
	c := &claim{session: id, skipped: p.Skipped, prefix: p.Prefix, start: start, tail: hashes(p.Messages), digest: p.Digest, end: start}
	for i := range messages {
		c.end = c.end.Add(message.Fingerprint(messages[i]))
	}
	return &core.Transcript{Skipped: p.Skipped, Digest: start, Messages: messages, Whole: p.Whole}, c, nil
}

// remember records what a call that succeeded said about the client's list.
func (k *call) remember(c *claim) func(h hash, after int) int {
	if c == nil {
		return nil
	}
	return k.conn.s.known.keep(*c)
}

// advance records that the client's list goes on with the messages of a call, if it began as the client says.
func (k *call) advance(id core.SessionID, a *Advance, raw []json.RawMessage, messages []message.Message) {
	if a == nil || a.Count < 0 || a.Count+len(raw) > k.conn.s.cfg.MaxTranscript || len(a.Digest) > 128 {
		return
	}
	start, ok := k.conn.s.known.begin(id, a.Count, a.Prefix)
	if !ok {
		return
	}
	c := claim{session: id, skipped: a.Count, prefix: a.Prefix, start: start, tail: hashes(raw), digest: a.Digest, end: start}
	for i := range messages {
		c.end = c.end.Add(message.Fingerprint(messages[i]))
	}
	k.remember(&c)
}

// rejected turns an engine's wish for the whole transcript into the client's error: what was remembered is of no use.
func (k *call) rejected(id core.SessionID, err error) error {
	if !errors.Is(err, core.ErrNeedTranscript) {
		return err
	}
	k.conn.s.known.forget(id)
	return needTranscript([]Checkpoint{})
}

func needTranscript(known []Checkpoint) error {
	e := fail(CodeNeedTranscript, "transcript: "+core.ErrNeedTranscript.Error())
	e.Data.Known = &known
	return e
}
