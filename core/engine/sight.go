package engine

import (
	"context"
	"fmt"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/edit"
	"github.com/contextengine/contextengine/core/message"
)

// outOfSight finds which of a host's messages the store holds although it did not show them: the ids of their entries, by index. What stands in front is not
// looked for, it is few. The next position of v comes behind theirs.
func (e *Engine) outOfSight(ctx context.Context, id core.SessionID, v *core.View, f followed, messages []message.Message) (map[int]string, error) {
	r, ok := core.As[core.Recogniser](e.store)
	n := len(messages)
	for _, l := range f.leaders {
		if l.host >= 0 {
			n--
		}
	}
	if !ok || n == 0 {
		return nil, nil
	}
	found, err := r.Recognise(ctx, id, messages[:n])
	if err != nil {
		return nil, fmt.Errorf("core: reconcile %q: %w", id, err)
	}
	taken := make(map[string]bool)
	for _, k := range f.known {
		taken[k.id] = true
	}
	says := make(map[string][]core.Entry)
	for _, entry := range found {
		if inConversation(entry) && entry.SessionID() == id {
			says[entry.Fingerprint] = append(says[entry.Fingerprint], entry)
		}
	}
	there := make(map[int]string)
	for i, fp := range fingerprintsOf(messages[:n]) {
		for _, entry := range says[fp] {
			if !taken[entry.ID] && sameOrigin(entry.Message, messages[i]) {
				taken[entry.ID], there[i] = true, entry.ID
				v.Apply(edit.Count{Next: max(v.Next, entry.Seq+1), Turns: v.Turns})
				break
			}
		}
	}
	return there, nil
}
