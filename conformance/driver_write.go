package conformance

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/message"
)

// mark makes a new mark for a track.
func (d *driver) mark(t *track) string {
	who := slices.Index(d.tracks[:], t)
	d.items++
	m := markOf(max(who, 0), d.items)
	d.owner[m] = t
	return m
}

// text makes the text of an op with a new mark, or a blank one.
func (d *driver) text(t *track, o op) (text string, marks []string) {
	kind := o.Text
	if kind == textEmpty && len(t.log) == 0 {
		// A conversation that begins with nothing looks like any other that does.
		kind = textPlain
	}
	m := d.mark(t)
	if kind != textEmpty {
		marks = []string{m}
	}
	return makeText(m, kind, o.Size, o.N, d.closing), marks
}

func (d *driver) say(t *track, o op, role message.Role) item {
	text, marks := d.text(t, o)
	it, err := d.author.say(role, text, o.N%5 == 0)
	if err != nil {
		d.tb.Fatalf("conformance: %v", err)
	}
	it.marks, it.blank = marks, marks == nil
	if o.N%2 == 0 && len(marks) > 0 {
		id := fmt.Sprintf("host-%d", d.items)
		it.msg.ID, it.msg.Key, it.keyed = id, "key-"+id, true
	}
	return it
}

func (d *driver) user(t *track, o op) {
	it := d.say(t, o, message.User)
	if !d.plan.Managed {
		d.ingest(t, []item{it}, false, o.N)
		return
	}
	if t.open {
		d.endTurn(t, op{N: 1}, true)
	}
	t.turn++
	t.open, t.cur, t.curBeat = true, []item{it}, false
}

func (d *driver) answer(t *track, o op) {
	d.put(t, []item{d.say(t, o, message.Assistant)}, o)
}

// put adds what the assistant or a tool said.
func (d *driver) put(t *track, items []item, o op) {
	switch {
	case !d.plan.Managed:
		d.ingest(t, items, false, o.N)
	case t.open:
		t.cur = append(t.cur, items...)
	case len(t.log) > 0:
		// An announcement: it stands in the transcript without having been a turn.
		t.stands(items)
	}
}

func (d *driver) tool(t *track, o op) {
	n := 1 + o.N%3
	ids := make([]string, n)
	for i := range ids {
		ids[i] = fmt.Sprintf("call%dx%d", d.items, i)
	}
	if d.plan.Managed && !t.open && len(t.log) == 0 {
		return
	}
	lead, leadMark := "", ""
	if o.N%4 == 0 {
		leadMark = d.mark(t)
		lead = leadMark + " let me look"
	}
	argMark := d.mark(t)
	call, err := d.author.calls(lead, argMark, ids, o.N%5 == 0)
	if err != nil {
		d.tb.Fatalf("conformance: %v", err)
	}
	if leadMark != "" {
		call.marks = append(call.marks, leadMark)
	}
	call.marks = append(call.marks, argMark)
	answered := ids
	if o.N%7 == 0 {
		answered = ids[:n-1]
		t.waiting = append(t.waiting, ids[n-1])
	}
	texts := map[string]string{}
	marks := map[string][]string{}
	for i, id := range answered {
		size := o
		if i > 0 {
			size.Size, size.Text = o.Size/3, textPlain
		}
		texts[id], marks[id] = d.text(t, size)
	}
	results, err := d.author.results(texts, answered, o.N%11 == 0)
	if err != nil {
		d.tb.Fatalf("conformance: %v", err)
	}
	for i := range results {
		for _, id := range results[i].results {
			results[i].marks = append(results[i].marks, marks[id]...)
		}
		results[i].blank = len(results[i].marks) == 0
	}
	d.put(t, append([]item{call}, results...), o)
}

func (d *driver) late(t *track, o op) {
	if len(t.waiting) == 0 || d.plan.Managed && t.open {
		return
	}
	id := t.waiting[0]
	t.waiting = t.waiting[1:]
	text, marks := d.text(t, o)
	results, err := d.author.results(map[string]string{id: text}, []string{id}, false)
	if err != nil {
		d.tb.Fatalf("conformance: %v", err)
	}
	results[0].marks = marks
	for _, m := range marks {
		t.floating[m] = true
	}
	// The place of the call may be far back: what was sent there changes.
	t.prev = nil
	d.put(t, results, o)
}

// repeat hands over something a second time.
func (d *driver) repeat(t *track, o op) {
	if d.plan.Managed {
		if o.N%2 == 0 {
			d.commitAgain(t)
		} else if len(t.log) > 1 && t.open && !t.curBeat {
			// Of what is said twice, and was never told the first time, nobody can tell which of both a shorter list holds.
			known := func(it item) bool { return t.told[it.wire] || said(t.stored, it) > 0 }
			if it := t.log[len(t.log)-1]; plain(it) && it.msg.Role == message.Assistant && !it.keyed && !t.inherited[it.marks[0]] && known(it) {
				t.cur = append(t.cur, it)
			}
		}
		return
	}
	if o.N%3 == 0 {
		d.ingestErased(t)
	}
	var pick []item
	for _, it := range t.log {
		if it.keyed == (o.N%2 == 0) && plain(it) && !t.inherited[it.marks[0]] {
			pick = append(pick, it)
		}
	}
	if len(pick) == 0 {
		return
	}
	it := pick[o.N%len(pick)]
	if it.keyed {
		d.ingestAgain(t, it)
		return
	}
	d.ingest(t, []item{it}, false, o.N)
}

func (d *driver) heartbeat(t *track, o op) {
	it := d.say(t, o, message.User)
	it.beat = true
	if !d.plan.Managed {
		d.ingest(t, []item{it}, true, o.N)
		return
	}
	if t.open {
		d.endTurn(t, op{N: 1}, true)
	}
	t.turn++
	t.open, t.cur, t.curBeat = true, []item{it}, true
}

// ingest stores items, at once or one by one, and repeats what failed for an excused reason.
func (d *driver) ingest(t *track, items []item, beat bool, n int) {
	if e, ok := d.engine.(core.BatchIngester); ok && len(items) > 1 && n%2 == 0 {
		d.ingestSome(t, items, beat, func(ctx context.Context) (core.IngestResult, error) {
			return e.IngestBatch(ctx, core.IngestBatchRequest{Session: t.id, Messages: messagesOf(items), Heartbeat: beat})
		})
		return
	}
	for _, it := range items {
		d.ingestSome(t, []item{it}, beat, func(ctx context.Context) (core.IngestResult, error) {
			return d.engine.Ingest(ctx, core.IngestRequest{Session: t.id, Message: it.msg, Heartbeat: beat})
		})
	}
}

func (d *driver) ingestSome(t *track, items []item, beat bool, f func(context.Context) (core.IngestResult, error)) {
	keyed := !slices.ContainsFunc(items, func(it item) bool { return !it.keyed })
	var res core.IngestResult
	attempt := func(ctx context.Context) (err error) { res, err = f(ctx); return err }
	excused, err := d.call("ingest", keyed, attempt)
	d.spurious("ingest", excused, err)
	repeated := err != nil
	if err != nil && excused {
		d.noHalf(t, items)
		if _, err = d.call("ingest", keyed, attempt); err != nil {
			d.fail("failure.spurious", "ingest repeated after an injected failure: error %v", err)
		}
	}
	if err != nil {
		return
	}
	d.saw("idempotent.key", "failure.loud")
	switch {
	case !repeated && !excused && (res.Ingested != len(items) || res.Duplicates != 0):
		d.fail("idempotent.key", "ingest of %d new messages: %d ingested, %d duplicates", len(items), res.Ingested, res.Duplicates)
	case res.Ingested+res.Duplicates != len(items) && len(d.engine.Info().Health) == 0:
		d.fail("failure.loud", "ingest of %d messages reports %d and no problem", len(items), res.Ingested+res.Duplicates)
	case res.Ingested+res.Duplicates != len(items):
		return
	case len(res.IDs) != len(items):
		d.fail("idempotent.key", "ingest of %d messages returns %d ids", len(items), len(res.IDs))
	}
	d.took(t, items)
	t.log = append(t.log, items...)
}

// took remembers items as stored.
func (d *driver) took(t *track, items []item) {
	t.stored = append(t.stored, items...)
}

func (d *driver) ingestAgain(t *track, it item) {
	var res core.IngestResult
	excused, err := d.call("ingest again", true, func(ctx context.Context) (err error) {
		res, err = d.engine.Ingest(ctx, core.IngestRequest{Session: t.id, Message: it.msg})
		return err
	})
	d.spurious("ingest of a known key", excused, err)
	if err == nil && (res.Ingested != 0 || res.Duplicates != 1 || len(res.IDs) != 1) {
		d.fail("idempotent.key", "ingest of a known key: %d ingested, %d duplicates, %d ids", res.Ingested, res.Duplicates, len(res.IDs))
	}
}

// ingestErased hands over once more what was erased, as it was said then. The checks of erasure see whether it comes back.
func (d *driver) ingestErased(t *track) {
	for _, it := range slices.Backward(t.log) {
		if it.erased && !it.inherited {
			excused, err := d.call("ingest of an erased message", true, func(ctx context.Context) error {
				_, err := d.engine.Ingest(ctx, core.IngestRequest{Session: t.id, Message: it.msg})
				return err
			})
			d.spurious("ingest of an erased message", excused, err)
			return
		}
	}
}

// noHalf checks that a failed batch was stored as a whole or not at all.
func (d *driver) noHalf(t *track, items []item) {
	if len(items) < 2 {
		return
	}
	d.saw("failure.no-half")
	have := d.storedWires(t)
	before := map[string]bool{}
	for _, it := range t.stored {
		before[it.wire] = true
	}
	in, of := 0, 0
	for _, it := range items {
		if it.blank || before[it.wire] || t.loose[it.wire] > 0 {
			continue // what it says was said before, or it says nothing, as others do
		}
		if of++; have[it.wire] > 0 {
			in++
		}
	}
	if in != 0 && in != of {
		d.fail("failure.no-half", "after a failed call %d of its %d new messages are stored", in, of)
	}
}

// storedWires counts what the store holds of a session, by its bytes.
func (d *driver) storedWires(t *track) map[string]int {
	have := map[string]int{}
	for e, err := range core.All(d.tb.Context(), d.store, t.id.Scope(), false) {
		if err != nil {
			d.fail("lost.readback", "reading session %s: error %v", t.id, err)
			break
		}
		if e.Type == core.TypeSubagent || e.Type == core.TypeErased {
			continue // the one may say what somebody else said too, the other says nothing
		}
		w, err := message.Encode(e.Message, message.FormatOpenAI)
		if err != nil {
			d.fail("lost.readback", "entry %q does not encode: %v", e.ID, err)
			continue
		}
		have[string(w)]++
	}
	return have
}

// together writes to three sessions at the same time.
func (d *driver) together(o op) {
	if d.plan.Managed {
		return
	}
	d.parallel = true
	var wg sync.WaitGroup
	var errs [3]error
	var items [3]item
	for who := range items {
		items[who] = d.say(d.tracks[who], o, message.User)
	}
	for who := range items {
		wg.Go(func() {
			_, errs[who] = d.engine.Ingest(d.tb.Context(), core.IngestRequest{Session: d.tracks[who].id, Message: items[who].msg})
		})
	}
	wg.Wait()
	for who, err := range errs {
		if err != nil {
			d.fail("failure.spurious", "ingest into %s while others are written to: error %v", d.tracks[who].id, err)
			continue
		}
		d.took(d.tracks[who], items[who:who+1])
		d.tracks[who].log = append(d.tracks[who].log, items[who])
	}
}
