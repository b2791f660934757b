package conformance

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/message"
	"github.com/contextengine/contextengine/core/upkeep"
)

func statsCount(r *storeRun) string {
	s, _ := core.As[upkeep.Statter](r.store)
	if _, err := s.Stats(context.WithoutCancel(r.ctx())); unsupported(err) {
		return ""
	}
	if text := r.statsEmpty(s, "before anything was stored"); text != "" {
		return text
	}
	if text := r.fill(); text != "" {
		return text
	}
	// The newest is not the last that came, nor the oldest the first, and neither is near the others: numbers of nanoseconds or of seconds may end before.
	ends := []core.Entry{
		plainEntry(0, core.SessionID{Agent: "agent-a", Session: "of the newest"}, 0), plainEntry(1, core.SessionID{Agent: "agent-a", Session: "of the oldest"}, 0),
	}
	ends[0].Time, ends[1].Time = time.Date(9999, 12, 31, 23, 59, 59, 999e6, time.UTC), time.Date(1601, 1, 1, 0, 0, 0, 0, time.UTC)
	if _, err := r.store.Append(r.ctx(), cloneEntries(ends)); err != nil {
		return fmt.Sprintf("Append: error %v, want none", err)
	}
	r.remember(ends)
	for round := range 4 {
		if text := r.figures(); text != "" {
			return fmt.Sprintf("round %d: %s", round+1, text)
		}
		if len(r.all) == 0 {
			break
		}
		if round == 0 {
			if text := r.reworkRaw(); text != "" {
				return text
			}
			continue
		}
		last := r.all[len(r.all)-1]
		if _, err := r.store.Delete(r.ctx(), last.SessionID().Scope(), []string{last.ID}); err != nil {
			return fmt.Sprintf("Delete: error %v", err)
		}
		r.all = r.all[:len(r.all)-1]
	}
	of := map[core.Scope][]string{}
	for _, e := range r.all {
		of[e.SessionID().Scope()] = append(of[e.SessionID().Scope()], e.ID)
	}
	for scope, ids := range of {
		if _, err := r.store.Delete(r.ctx(), scope, ids); err != nil {
			return fmt.Sprintf("Delete: error %v", err)
		}
	}
	r.all = nil
	return r.statsEmpty(s, "after all was deleted")
}

// figures compares what a store tells of itself, if it does, with what was stored. Sessions that have nothing but a view may be counted.
func (r *storeRun) figures(viewed ...core.SessionID) string {
	s, ok := core.As[upkeep.Statter](r.store)
	if !ok {
		return ""
	}
	agents := map[string]bool{}
	sessions := map[core.SessionID]bool{}
	var oldest, newest time.Time
	raw := int64(0)
	for _, e := range r.all {
		raw += int64(len(e.Message.Raw))
		agents[e.Agent], sessions[e.SessionID()] = true, true
		if oldest.IsZero() || e.Time.Before(oldest) {
			oldest = e.Time
		}
		if e.Time.After(newest) {
			newest = e.Time
		}
	}
	leastAgents, leastSessions := len(agents), len(sessions)
	for _, id := range viewed {
		agents[id.Agent], sessions[id] = true, true
	}
	got, err := s.Stats(r.ctx())
	if unsupported(err) {
		return ""
	}
	same := func(got, want time.Time) bool {
		among := r.untimely && !got.Before(oldest.Truncate(time.Millisecond)) && !got.After(newest)
		return got.IsZero() || got.Equal(want.Truncate(time.Millisecond)) || among
	}
	if err == nil && (!same(got.Oldest, oldest) || !same(got.Newest, newest)) {
		return fmt.Sprintf("Stats of entries from %v to %v: oldest %v, newest %v", oldest, newest, got.Oldest, got.Newest)
	}
	right := func(got, least, most int) bool { return least <= got && got <= most || got == 0 }
	if err != nil || !right(got.Agents, leastAgents, len(agents)) || !right(got.Sessions, leastSessions, len(sessions)) || !right(got.Entries, len(r.all), len(r.all)) || got.Bytes < 0 || got.RawBytes != 0 && got.RawBytes != raw || got.Newest.Before(got.Oldest) {
		return fmt.Sprintf("Stats of %d entries in %d sessions of %d agents, %d raw bytes: %+v, error %v", len(r.all), leastSessions, leastAgents, raw, got, err)
	}
	return ""
}

// statsEmpty looks at the times of a store that holds nothing.
func (r *storeRun) statsEmpty(s upkeep.Statter, when string) string {
	got, err := s.Stats(r.ctx())
	if err != nil || !got.Oldest.IsZero() || !got.Newest.IsZero() {
		return fmt.Sprintf("Stats of an empty store, %s: %+v, error %v, want no times", when, got, err)
	}
	return ""
}

// reworkRaw changes entries, one of them to longer bytes of the host.
func (r *storeRun) reworkRaw() string {
	e := &r.all[0]
	m := message.New(e.Role, "with bytes of its own")
	m.Format, m.Raw = message.FormatPi, append(bytes.Repeat(oddBytes, 3), "é界😀"...)
	text := r.rework() // the first entry is not among them
	if err := r.store.Update(r.ctx(), e.SessionID().Scope(), e.ID, core.Change{Message: &m, Tokens: 5, Fingerprint: "raw"}); err != nil {
		return fmt.Sprintf("Update(%q): error %v, want none", e.ID, err)
	}
	e.Message, e.Tokens, e.Fingerprint = m, 5, "raw"
	return text
}
