package conformance_test

import (
	"encoding/json"
	"sync"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/engine"
	"github.com/contextengine/contextengine/core/message"
)

// tableReturned are engines that go on holding what they returned: they hand it out again while nothing in it has changed.
func tableReturned() []broken {
	var out []broken
	shared := func(name string, share func(kept map[string]any, res any)) {
		out = append(out, caughtBy("contract.returned", name, recalling(nil), func(w *wrongEngine) {
			var mu sync.Mutex
			kept := map[string]any{}
			w.after = func(_ string, res any) {
				mu.Lock()
				defer mu.Unlock()
				share(kept, res)
			}
		}))
	}
	shared("the same messages are handed out again", func(kept map[string]any, res any) {
		if a, ok := res.(*core.AssembleResult); ok {
			a.Messages = again(kept, a.Messages)
		}
	})
	shared("the parts of messages are handed out again", func(kept map[string]any, res any) {
		if a, ok := res.(*core.AssembleResult); ok {
			for i := range a.Messages {
				a.Messages[i].Parts = again(kept, a.Messages[i].Parts)
			}
		}
	})
	shared("the raw bytes of parts are handed out again", func(kept map[string]any, res any) {
		if a, ok := res.(*core.AssembleResult); ok {
			for i := range a.Messages {
				for p := range a.Messages[i].Parts {
					a.Messages[i].Parts[p].Raw = again(kept, a.Messages[i].Parts[p].Raw)
				}
			}
		}
	})
	shared("the choices are handed out again", func(kept map[string]any, res any) {
		if a, ok := res.(*core.AssembleResult); ok {
			a.Choices = again(kept, a.Choices)
		}
	})
	shared("what was found is handed out again", func(kept map[string]any, res any) {
		if a, ok := res.(*engine.SearchResult); ok {
			a.Found = again(kept, a.Found)
		}
	})
	shared("what an entry consists of is handed out again", func(kept map[string]any, res any) {
		if a, ok := res.(*engine.ExpandResult); ok {
			a.Found = again(kept, a.Found)
		}
	})
	shared("what summaries stand for is handed out again", func(kept map[string]any, res any) {
		if a, ok := res.(*engine.DescribeResult); ok {
			a.Summaries = again(kept, a.Summaries)
		}
	})
	return out
}

// again returns the slice that said the same when it was kept, whatever it says by now.
func again[T any](kept map[string]any, list []T) []T {
	key, _ := json.Marshal(list) // of what engines return all can be written
	if was, ok := kept[string(key)].([]T); ok {
		return was
	}
	kept[string(key)] = list
	return list
}

// tableGivenKept are engines that keep lists which they were given, and show what stands in them by then.
func tableGivenKept() []broken {
	var out []broken
	keeps := func(name string, of func(req any) []message.Message) {
		out = append(out, caughtBy("contract.kept", name, recalling(nil), func(w *wrongEngine) {
			var mu sync.Mutex
			kept := map[string][]message.Part{}
			w.before = func(_ string, req any) {
				mu.Lock()
				defer mu.Unlock()
				for _, m := range of(req) {
					kept[message.Fingerprint(m)] = m.Parts
				}
			}
			w.after = func(_ string, res any) {
				mu.Lock()
				defer mu.Unlock()
				if a, ok := res.(*core.AssembleResult); ok {
					for i := range a.Messages {
						if parts, ok := kept[message.Fingerprint(a.Messages[i])]; ok {
							a.Messages[i].Parts = parts
						}
					}
				}
			}
		}))
	}
	keeps("the parts of a message are kept", func(req any) []message.Message {
		if r, ok := req.(*core.IngestRequest); ok {
			return []message.Message{r.Message}
		}
		return nil
	})
	keeps("the parts of a batch are kept", func(req any) []message.Message {
		if r, ok := req.(*core.IngestBatchRequest); ok {
			return r.Messages
		}
		return nil
	})
	keeps("the parts of a turn are kept", func(req any) []message.Message {
		if r, ok := req.(*core.CommitTurnRequest); ok {
			return r.Messages
		}
		return nil
	})
	keeps("the parts of a turn that ended are kept", func(req any) []message.Message {
		if r, ok := req.(*core.AfterTurnRequest); ok {
			return r.Messages
		}
		return nil
	})
	keeps("the parts of a transcript are kept", func(req any) []message.Message {
		switch r := req.(type) {
		case *core.BootstrapRequest:
			return r.Transcript.Messages
		case *core.AssembleRequest:
			if r.Transcript != nil {
				return r.Transcript.Messages
			}
		}
		return nil
	})
	return out
}
