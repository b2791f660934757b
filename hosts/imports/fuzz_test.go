package imports_test

import (
	"context"
	"errors"
	"testing"

	"github.com/contextengine/contextengine/backends/memory"
	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/message"
	"github.com/contextengine/contextengine/hosts/imports"
)

// taker takes messages and forgets them.
type taker struct {
	store  core.Store
	broken []message.Message
}

func (f *taker) Target(context.Context, core.SessionID) (imports.Target, error) {
	return imports.Target{Ingester: f, Store: f.store}, nil
}

func (f *taker) IngestBatch(_ context.Context, req core.IngestBatchRequest) (core.IngestResult, error) {
	for _, m := range req.Messages {
		if !m.Role.Valid() || m.Key == "" || req.Session.Validate() != nil {
			f.broken = append(f.broken, m)
		}
	}
	return core.IngestResult{Ingested: len(req.Messages)}, nil
}

func FuzzData(f *testing.F) {
	for _, s := range []string{
		chatLines, chatExport, headerLine + "\n" + event("1", "", "user", "hello", 1), "[", "{}", "",
		`{"header":{"format":"contextengine-export","version":1,"time":"2026-01-01T00:00:00Z"}}` + "\n" + `{"end":{"entries":0,"views":0}}`,
		string(stored([]byte(chatLines))), "\x1f\x8b",
	} {
		f.Add([]byte(s), "")
		f.Add([]byte(s), string(imports.ChatGPT))
		f.Add([]byte(s), string(imports.Lines))
	}
	f.Fuzz(func(t *testing.T, data []byte, from string) {
		store, err := memory.Open(t.Context(), memory.DefaultConfig())
		if err != nil {
			t.Fatal(err)
		}
		s := &taker{store: store}
		o := imports.Options{From: imports.Format(from), KeepGoing: true, Branches: true}
		r, err := imports.Data(t.Context(), "fuzz.json", data, s, o)
		if err != nil && !errors.Is(err, core.ErrInvalid) && !errors.Is(err, imports.ErrMalformed) {
			t.Errorf("error %v is none of the documented ones", err)
		}
		if len(s.broken) > 0 {
			t.Errorf("messages that no engine takes: %+v", s.broken)
		}
		if err == nil && r.Messages != r.Imported+r.Duplicates+r.Erased {
			t.Errorf("%s", counts(r))
		}
	})
}
