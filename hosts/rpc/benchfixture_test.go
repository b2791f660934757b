package rpc_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/engine"
	"github.com/contextengine/contextengine/core/message"
	"github.com/contextengine/contextengine/hosts/rpc"
)

// warm returns a client of a server whose engine has n messages of session s.
func warm(b *testing.B, n int) (*rpc.Client, []json.RawMessage) {
	b.Helper()
	host := rpc.NewHost()
	count := tokenizer(b)
	path := socketPath(b)
	serveUnix(b, one{composed(b, host, func(p *engine.Parts) { p.Counter = count })}, host, path)
	c := dial(b, path)
	list := history(n)
	_, err := c.Bootstrap(b.Context(), rpc.BootstrapParams{Session: sid("s"), Transcript: &rpc.TranscriptParams{Messages: list, Digest: "0"}})
	if err != nil {
		b.Fatal(err)
	}
	return c, list
}

// warmEngine returns an engine that has n messages of session s.
func warmEngine(b *testing.B, n int) (*engine.Engine, *core.Transcript) {
	b.Helper()
	count := tokenizer(b)
	e := composed(b, nil, func(p *engine.Parts) { p.Counter = count })
	codec, err := message.Lookup(message.FormatPi)
	if err != nil {
		b.Fatal(err)
	}
	t := &core.Transcript{}
	for _, raw := range history(n) {
		m, err := codec.Decode(raw)
		if err != nil {
			b.Fatal(err)
		}
		t.Messages = append(t.Messages, m)
	}
	if _, err := e.Bootstrap(b.Context(), core.BootstrapRequest{Session: sid("s"), Transcript: t}); err != nil {
		b.Fatal(err)
	}
	return e, &core.Transcript{Skipped: len(t.Messages), Digest: message.DigestOf(t.Messages)}
}

// engineTurn assembles and commits; t grows by the turn.
func engineTurn(b *testing.B, e *engine.Engine, t *core.Transcript, i, budget int) {
	b.Helper()
	_, err := e.Assemble(b.Context(), core.AssembleRequest{Session: sid("s"), Budget: budget, Prompt: "what about item 17?", Transcript: t})
	if err != nil {
		b.Fatal(err)
	}
	turn := []message.Message{message.New(message.User, fmt.Sprint("new ", i)), message.New(message.Assistant, fmt.Sprint("done ", i))}
	_, err = e.CommitTurn(b.Context(), core.CommitTurnRequest{Session: sid("s"), AdvancementKey: fmt.Sprint(i), Messages: turn})
	if err != nil {
		b.Fatal(err)
	}
	for _, m := range turn {
		t.Digest = t.Digest.Add(message.Fingerprint(m))
	}
	t.Skipped += len(turn)
}
