package conformance

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/engine"
	"github.com/contextengine/contextengine/core/message"
)

// forget erases one message. A host keeps its copy and goes on handing it over.
func (d *driver) forget(t *track, o op) {
	if _, ok := d.engine.(engine.Forgetter); !ok || t == d.tracks[3] {
		return
	}
	at := d.forgettable(t, o.N)
	if at < 0 {
		return
	}
	it := &t.log[at]
	id := d.entryOf(t, *it)
	if id == "" {
		return
	}
	req := engine.ForgetRequest{Scope: t.id.Scope(), Entries: []string{id}}
	var rec engine.Receipt
	attempt := func(ctx context.Context) (err error) {
		rec, err = d.engine.(engine.Forgetter).Forget(ctx, req) // a fault may have made a new engine
		return err
	}
	excused, err := d.call("forget", true, attempt)
	d.spurious("forget", excused, err)
	if err != nil && excused {
		if _, err = d.call("forget", true, attempt); err != nil {
			d.fail("failure.spurious", "forget repeated after an injected failure: error %v", err)
		}
	}
	if err != nil {
		return
	}
	if !excused && rec.Entries != 1 {
		d.fail("erase.stored", "forget of one entry: the receipt names %d", rec.Entries)
	}
	for _, m := range it.marks {
		d.erased[m] = true
	}
	it.erased, d.entries = true, nil
	kept := t.stored[:0:0]
	for _, s := range t.stored {
		if s.wire != it.wire {
			kept = append(kept, s)
		}
	}
	t.stored = kept
	for _, other := range d.tracks {
		if other != nil {
			other.prev = nil
		}
	}
}

// forgettable chooses a stored message that was said once and that no subagent got a copy of.
func (d *driver) forgettable(t *track, n int) int {
	var pick []int
	for i, it := range t.log {
		if it.erased || it.inherited || !plain(it) || t.loose[it.wire] > 0 || d.forked[it.marks[0]] || t.floating[it.marks[0]] || said(t.cur, it) > 0 {
			continue
		}
		if said(t.stored, it) == 1 {
			pick = append(pick, i)
		}
	}
	if len(pick) == 0 {
		return -1
	}
	return pick[n%len(pick)]
}

// said counts the items that are the same message.
func said(items []item, it item) int {
	n := 0
	for _, s := range items {
		if s.wire == it.wire {
			n++
		}
	}
	return n
}

// entryOf returns the id of the entry that holds an item, empty when there is none yet.
func (d *driver) entryOf(t *track, it item) string {
	for e, err := range core.All(d.tb.Context(), d.store, t.id.Scope(), false) {
		if err != nil {
			d.fail("lost.readback", "reading session %s: error %v", t.id, err)
			return ""
		}
		if w, err := message.Encode(e.Message, message.FormatOpenAI); err == nil && string(w) == it.wire && e.Type == core.TypeMessage {
			return e.ID
		}
	}
	return ""
}

// erasedIn returns the first erased mark in a text.
func (d *driver) erasedIn(text string) string {
	for _, m := range marksIn(text) {
		if d.erased[m] {
			return m
		}
	}
	return ""
}

func eraseShown(p *prompt) string {
	if len(p.d.erased) == 0 {
		return ""
	}
	for i, w := range p.wire {
		if m := p.d.erasedIn(w.Raw + "\n" + w.text()); m != "" && !contains(p.current, m) {
			return fmt.Sprintf("message %d shows %s, which was erased", i, m)
		}
	}
	return ""
}

// eraseStored looks for erased text in everything that the store holds: entries, summaries and views.
func eraseStored(d *driver) string {
	if len(d.erased) == 0 {
		return ""
	}
	agents := map[string]bool{}
	for _, t := range d.tracks {
		if t != nil {
			agents[t.id.Agent] = true
		}
	}
	for agent := range agents {
		for e, err := range core.All(d.tb.Context(), d.store, core.Scope{Agent: agent}, false) {
			if err != nil {
				return fmt.Sprintf("reading agent %q: error %v", agent, err)
			}
			b, err := json.Marshal(e)
			if err != nil {
				continue // text that is not UTF-8 is looked for below
			}
			if m := d.erasedIn(string(bytes.Join([][]byte{b, e.Message.Raw, []byte(e.Text())}, []byte("\n")))); m != "" {
				return fmt.Sprintf("entry %q of session %s (%s) still holds %s, which was erased", e.ID, e.SessionID(), e.Type, m)
			}
		}
	}
	views, ok := core.As[core.ViewStore](d.store)
	if !ok {
		return ""
	}
	for _, t := range d.tracks {
		if t == nil {
			continue
		}
		v, err := views.LoadView(d.tb.Context(), t.id)
		if err != nil {
			continue
		}
		if b, err := json.Marshal(v); err == nil {
			if m := d.erasedIn(strings.ToValidUTF8(string(b), "?")); m != "" {
				return fmt.Sprintf("the view of session %s still holds %s, which was erased", t.id, m)
			}
		}
	}
	return ""
}
