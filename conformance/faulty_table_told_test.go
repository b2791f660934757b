package conformance_test

import (
	"slices"

	"github.com/contextengine/contextengine/conformance"
	"github.com/contextengine/contextengine/core"
)

// tableTold are engines to which it matters how a conversation is told. They are held to that alone: most of them break other rules as well.
func tableTold() []broken {
	var out []broken
	told := func(name string, change func(*wrongEngine)) {
		out = append(out, brokenEngineOf("how it is told", name, setup{compactor: "summary", retriever: words}, change, conformance.WithClaims("contract.told")))
	}
	told("a smaller window first after a restart", func(w *wrongEngine) {
		known := map[core.SessionID]bool{}
		w.before = func(_ string, req any) {
			if r, ok := req.(*core.AssembleRequest); ok && !known[r.Session] {
				known[r.Session] = true
				r.Budget -= r.Budget / 5
			}
		}
	})
	told("batches are turned round", func(w *wrongEngine) {
		w.before = func(_ string, req any) {
			if r, ok := req.(*core.IngestBatchRequest); ok {
				r.Messages = slices.Clone(r.Messages)
				slices.Reverse(r.Messages)
			}
		}
	})
	told("the last message of a long batch is left", func(w *wrongEngine) {
		w.before = func(_ string, req any) {
			if r, ok := req.(*core.IngestBatchRequest); ok && len(r.Messages) > 3 {
				r.Messages = r.Messages[:len(r.Messages)-1]
			}
		}
	})
	told("nothing is recalled the second time", func(w *wrongEngine) {
		last := ""
		w.before = func(_ string, req any) {
			if r, ok := req.(*core.AssembleRequest); ok {
				if r.Prompt == last {
					r.Prompt = ""
				}
				last = r.Prompt
			}
		}
	})
	return out
}
