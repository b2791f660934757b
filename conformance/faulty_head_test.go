package conformance_test

import (
	"slices"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/message"
)

func faultyHeads(sound func(setup) []string) []fault {
	plain := setup{compactor: "archive"}
	told := func(f func(*core.Transcript)) func(*brokenEngine) {
		return func(b *brokenEngine) {
			b.request = func(req *core.AssembleRequest) {
				if req.Transcript == nil || req.Call == core.CallLoop {
					return
				}
				t := *req.Transcript
				t.Messages = slices.Clone(t.Messages)
				f(&t)
				req.Transcript = &t
			}
		}
	}
	return []fault{
		engineFault("takes every list for whole", plain, sound, told(func(t *core.Transcript) { t.Whole = true }),
			[]string{"head.kept"}, append(changed, "back.found", "erase.*", "idempotent.*", "isolation.back")...).with(120),
		engineFault("takes the host's own lines for conversation", plain, sound, told(func(t *core.Transcript) {
			for i := range t.Messages {
				if t.Messages[i].Type == message.Filler {
					t.Messages[i].Type = ""
				}
			}
		}), []string{"head.filler"}, append(changed, "lost.verbatim", "idempotent.*")...).with(120),
		engineFault("keeps every system message", plain, sound, func(b *brokenEngine) {
			var old, now message.Message
			b.result = func(_ core.AssembleRequest, res *core.AssembleResult) error {
				at := find(res, 0, func(m message.Message) bool { return m.Role == message.System })
				if at < 0 {
					return nil
				}
				if m := res.Messages[at]; m.Text() != now.Text() {
					old, now = now, m
				}
				if old.Text() != "" {
					insert(res, at, old)
				}
				return nil
			}
		}, []string{"head.system"}, append(changed, "budget.*", "idempotent.*", "isolation.*", "compact.*", "lost.verbatim")...).with(60),
	}
}
