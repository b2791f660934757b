package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/message"
	"github.com/contextengine/contextengine/core/window"
)

// carryWidth is how many entries are read for each message that a turn may be given of what was before a reset: results of tools are among them.
const carryWidth = 8

// carried quotes what the first turn after a reset is given of what was before it, as far as an allowance goes: half of it is the newest summary's at most,
// the rest the newest messages'.
func (f *frame) carried(ctx context.Context, allowance int) ([]quotation, error) {
	reset, most := f.v.Reset, f.e.cfg.Recall.ResetMessages
	if reset == nil || most == 0 || allowance < minRecall {
		return nil, nil
	}
	entries, err := f.e.reader.before(ctx, f.s.id, reset, most)
	if err != nil {
		if ctx.Err() != nil || f.e.cfg.Failure == FailStrict {
			return nil, fmt.Errorf("core: assemble %q: before the reset: %w", f.s.id, err)
		}
		f.e.warn(ctx, "store", "before the reset", err)
		return nil, nil
	}
	var out []quotation
	room := f.s.quoteRoom(allowance)
	take := func(entry *core.Entry, text string) bool {
		if text = quoted(f.s.id, entry, text); f.s.cachedCount(text) > room {
			return false
		}
		out = append(out, quotation{Candidate: &core.Candidate{Entry: *entry, Source: "reset"}, text: text, cost: f.s.cachedCount(text), part: true})
		room -= out[len(out)-1].cost
		return true
	}
	for i := range entries {
		entry := &entries[i]
		text := f.e.cfg.shorten(entry.Said(), entry)
		if entry.Type == core.TypeSummary {
			text = window.HeadTail(entry.Text(), len(entry.Text())*min(room/2, entry.Tokens)/max(entry.Tokens, 1), "\n...\n")
		}
		if !window.Blank(text) && !take(entry, text) && entry.Type != core.TypeSummary {
			break
		}
	}
	return out, nil
}

// before reads the newest summary and the newest messages of what was in force before a reset, in this order, as far as they are still there.
func (r *reader) before(ctx context.Context, id core.SessionID, reset *core.Reset, most int) ([]core.Entry, error) {
	was := core.View{Path: reset.Path}
	var out, messages []core.Entry
	if reset.Summary != "" {
		got, err := r.store.Get(ctx, id.Scope(), []string{reset.Summary})
		if err != nil && !errors.Is(err, core.ErrNotFound) {
			return nil, err
		}
		out = append(out, got...)
	}
	for _, sp := range was.Slice(max(was.Len()-most*carryWidth, 0), was.Len()) {
		err := r.scanSpan(ctx, &was, sp, func(entry core.Entry) {
			if entry.Type == core.TypeMessage && (entry.Role == message.User || entry.Role == message.Assistant) && !entry.LookedUp() && !window.Blank(entry.Said()) {
				messages = append(messages, entry)
			}
		})
		if err != nil {
			return nil, err
		}
	}
	slices.Reverse(messages)
	return append(out, messages[:min(most, len(messages))]...), nil
}
