package history

import (
	"slices"
	"strings"

	"github.com/contextengine/contextengine/core/message"
)

// join makes one message of a run of two or more: the later message is the base and gives stop reason and usage, the
// first gives ID and Key, Entry lists those of all, separated by commas, and the parts are those of all in order.
func join(run []message.Message) message.Message {
	n := 0
	for i := range run {
		n += len(run[i].Parts)
	}
	first, base := &run[0], run[len(run)-1]
	if base.Format == "" {
		// A message of the framework's own lends itself to no host's bytes; take the newest that has some.
		for _, m := range slices.Backward(run) {
			if m.Format != "" {
				base.Format, base.Raw = m.Format, m.Raw
				break
			}
		}
	}
	for i := len(run) - 1; i >= 0 && base.Time.IsZero(); i-- {
		base.Time = run[i].Time
	}
	parts := make([]message.Part, 0, n)
	for i := range run {
		for _, p := range run[i].Parts {
			if run[i].Format != base.Format && p.Kind != message.Image && p.Kind != message.Other {
				// Another format's bytes mean nothing in this message; the fields say the same.
				p.Raw = nil
			}
			parts = append(parts, p)
		}
	}
	base.ID, base.Key = first.ID, first.Key
	var entries []string
	for i := range run {
		if run[i].Entry != "" { // what the rules themselves put in shows no entry
			entries = append(entries, run[i].Entry)
		}
	}
	base.Entry = strings.Join(entries, ",")
	return base.WithParts(parts)
}
