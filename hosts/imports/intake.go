package imports

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/message"
)

// A batch that is ingested at once has so many messages, or bytes, at most.
const (
	batchMessages = 256
	batchBytes    = 4 << 20
)

// earlierSuffix names the session that gets messages older than what their session has already: put at its end they would stand in
// the wrong place.
const earlierSuffix = "#earlier"

// intake takes messages session by session, leaves out what is known, and ingests the rest in batches.
type intake struct {
	sink   Sink
	o      Options
	report Report
	total  int
	// used counts the sessions of each name, so that two of one name do not become one.
	used map[string]int

	open   bool
	counts bool // the session has messages
	main   lane
	// earlier is where messages older than what is known go; it is used for sessions that are not empty.
	earlier lane
	// held are the messages of a session that is not empty: where they belong shows when all were seen.
	held []heldMessage
}

// heldMessage is a message with the keys it would have in the session and beside it, or stands for one that is stored already.
type heldMessage struct {
	m     message.Message
	keys  [2]string
	known bool
}

// lane is a session and what is on its way to it.
type lane struct {
	id      core.SessionID
	target  Target
	known   *known
	seen    map[string]int // how often the same message was seen
	pending []message.Message
	bytes   int
}

// place says where messages are from, and where they go unless the caller of File said so.
type place struct {
	agent, session string
}

// begin starts a session; what was begun before ends.
func (in *intake) begin(ctx context.Context, p place) error {
	if err := in.end(ctx); err != nil {
		return err
	}
	if in.o.Agent != "" {
		p.agent = in.o.Agent
	}
	if p.agent == "" {
		p.agent = "main"
	}
	if in.o.Session != "" {
		if len(in.used) > 0 {
			return fmt.Errorf("it holds several sessions, %q among them: leave out the name of the session: %w", p.session, core.ErrInvalid)
		}
		p.session = in.o.Session
	}
	name := p.agent + "\x00" + p.session
	in.used[name]++
	if n := in.used[name]; n > 1 {
		p.session += "#" + strconv.Itoa(n)
	}
	id := core.SessionID{Agent: p.agent, Session: p.session}
	if err := id.Validate(); err != nil {
		return err
	}
	in.open, in.counts, in.held = true, false, nil
	var err error
	if in.main, err = in.lane(ctx, id); err != nil {
		return err
	}
	if in.main.known.empty() {
		return nil
	}
	id.Session += earlierSuffix
	in.earlier, err = in.lane(ctx, id)
	return err
}

func (in *intake) lane(ctx context.Context, id core.SessionID) (lane, error) {
	target, err := in.sink.Target(ctx, id)
	if err != nil {
		return lane{}, err
	}
	k, err := readKnown(ctx, target.Store, id)
	return lane{id: id, target: target, known: k, seen: make(map[string]int)}, err
}

// add takes a message of the session that was begun.
func (in *intake) add(ctx context.Context, m message.Message) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	in.note(m)
	keys := [2]string{in.main.key(m), ""}
	if in.main.known.empty() {
		m.Key = keys[0]
		return in.put(ctx, &in.main, m)
	}
	keys[1] = in.earlier.key(m)
	for i, l := range []*lane{&in.main, &in.earlier} {
		switch l.known.match(m, keys[i]) {
		case isStored:
			in.report.Duplicates++
			if i == 0 {
				in.held = append(in.held, heldMessage{known: true})
			}
			return nil
		case isErased:
			in.report.Erased++
			return nil
		}
	}
	in.held = append(in.held, heldMessage{m: m, keys: keys})
	return nil
}

// note counts a message.
func (in *intake) note(m message.Message) {
	r := &in.report
	if !in.counts {
		in.counts = true
		r.Sessions++
	}
	r.Messages++
	if m.Time.IsZero() {
		r.Untimed++
	} else {
		if r.First.IsZero() || m.Time.Before(r.First) {
			r.First = m.Time
		}
		if m.Time.After(r.Last) {
			r.Last = m.Time
		}
	}
	if in.o.Progress != nil && r.Messages%100 == 0 {
		in.o.Progress(Progress{Sessions: r.Sessions, Messages: r.Messages, Total: in.total})
	}
}

// end finishes the session that was begun.
func (in *intake) end(ctx context.Context) error {
	if !in.open {
		return nil
	}
	in.open = false
	if err := in.release(ctx); err != nil {
		return err
	}
	for _, l := range []*lane{&in.main, &in.earlier} {
		if err := in.flush(ctx, l); err != nil {
			return err
		}
	}
	if in.o.Progress != nil {
		in.o.Progress(Progress{Sessions: in.report.Sessions, Messages: in.report.Messages, Total: in.total})
	}
	return nil
}

// release puts held messages where they belong: what comes behind the newest known one to the end of the session, the rest beside it. When
// none is known, time decides.
func (in *intake) release(ctx context.Context) error {
	held := in.held
	in.held = nil
	last := -1
	for i, h := range held {
		if h.known {
			last = i
		}
	}
	newest := in.main.known.newest
	beside := 0
	for i, h := range held {
		if h.known {
			continue
		}
		l, key := &in.main, h.keys[0]
		if i < last || last < 0 && !h.m.Time.IsZero() && h.m.Time.Before(newest) {
			l, key = &in.earlier, h.keys[1]
			beside++
		}
		h.m.Key = key
		if err := in.put(ctx, l, h.m); err != nil {
			return err
		}
	}
	if beside > 0 {
		in.report.Notes = append(in.report.Notes, fmt.Sprintf("%d messages are older than what session %q has already: they go to session %q",
			beside, in.main.id.Session, in.earlier.id.Session))
	}
	return nil
}

// key returns the key that makes ingesting m idempotent: the host's own, or a digest of session, id, time and content. Of equal messages each
// has its own, so it is called once for every message, known or not.
func (l *lane) key(m message.Message) string {
	if m.Key != "" {
		return m.Key
	}
	of := l.id.Agent + "\x00" + l.id.Session + "\x00" + m.ID + "\x00" + m.Time.UTC().Format(time.RFC3339Nano) + "\x00" + message.Fingerprint(m)
	n := l.seen[of]
	l.seen[of]++
	sum := sha256.Sum256([]byte("import\x00" + of + "\x00" + strconv.Itoa(n)))
	return "import:" + hex.EncodeToString(sum[:16])
}

func (in *intake) put(ctx context.Context, l *lane, m message.Message) error {
	l.pending = append(l.pending, m)
	l.bytes += len(m.Raw) + 64
	if len(l.pending) < batchMessages && l.bytes < batchBytes {
		return nil
	}
	return in.flush(ctx, l)
}

// flush ingests what is pending.
func (in *intake) flush(ctx context.Context, l *lane) error {
	batch := l.pending
	l.pending, l.bytes = nil, 0
	if len(batch) == 0 {
		return nil
	}
	if in.o.DryRun {
		in.report.Imported += len(batch)
		return ctx.Err()
	}
	res, err := l.target.Ingester.IngestBatch(ctx, core.IngestBatchRequest{Session: l.id, Messages: batch})
	if err != nil {
		return fmt.Errorf("session %q: %w", l.id, err)
	}
	in.report.Imported += res.Ingested
	in.report.Duplicates += res.Duplicates
	return nil
}

// skip notes something malformed, and returns it as an error unless the import is to go on.
func (in *intake) skip(where, reason string) error {
	if !in.o.KeepGoing {
		return fmt.Errorf("imports: %s: %s: %w", where, reason, ErrMalformed)
	}
	in.report.SkippedCount++
	if len(in.report.Skipped) < maxSkips {
		in.report.Skipped = append(in.report.Skipped, Skip{Place: where, Reason: reason})
	}
	return nil
}

// leave notes what is left out on purpose.
func (in *intake) leave(what string, n int) {
	if n == 0 {
		return
	}
	if in.report.Left == nil {
		in.report.Left = make(map[string]int)
	}
	in.report.Left[what] += n
}

// LeftOut returns what Left counts, in alphabetical order.
func (r Report) LeftOut() []string { return slices.Sorted(maps.Keys(r.Left)) }
