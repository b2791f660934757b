package conformance

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/engine"
)

// compactedTalk is a conversation that outgrew its budget and was compacted. Nothing is recalled in it.
func (s *script) compactedTalk(id core.SessionID) ([]core.Entry, string) {
	const budget = 900
	said, text := s.talk(id, 24, 25)
	if text != "" {
		return nil, text
	}
	if _, err := s.engine.Assemble(s.ctx(), core.AssembleRequest{Session: id, Budget: budget, PromptMode: core.PromptNone}); err != nil {
		return nil, fmt.Sprintf("assemble: error %v", err)
	}
	_, _ = s.engine.Compact(s.ctx(), core.CompactRequest{Session: id, Budget: budget, Force: true}) // that it works is for others to say
	return said, ""
}

// knownInForce bootstraps sessions of which a part is summarised or was taken back: the one part is in force, the other is not.
func (s *script) knownInForce() string {
	known := func(id core.SessionID, t *core.Transcript, imported, want int, what string) string {
		e, _ := s.engine.(core.Bootstrapper)
		res, err := e.Bootstrap(s.ctx(), core.BootstrapRequest{Session: id, Transcript: t})
		if err != nil || res.Imported != imported || res.Known != want {
			return fmt.Sprintf("bootstrap says how many entries of a session are in force; %s: %+v, error %v, want %d imported and %d known",
				what, res, err, imported, want)
		}
		return ""
	}
	long, short := recallSession("known when compacted"), recallSession("known when forked away")
	said, text := s.compactedTalk(long)
	if text != "" {
		return text
	}
	if text := known(long, nil, 0, len(said), "after a compaction, which takes nothing back"); text != "" {
		return text
	}
	t := s.transcript(6)
	fork := &core.Transcript{Messages: append(slices.Clone(t.Messages[:2]), s.transcript(2).Messages...), Whole: true}
	for _, transcript := range []*core.Transcript{t, fork} {
		if _, err := s.engine.Assemble(s.ctx(), core.AssembleRequest{Session: short, Budget: transcriptBudget, Transcript: transcript}); err != nil {
			return fmt.Sprintf("assemble: error %v", err)
		}
	}
	if text := known(short, nil, 0, 4, "after a host took 4 of 6 messages back and said 2 others"); text != "" {
		return text
	}
	anew := s.transcript(3)
	anew.Whole = true
	if text := known(long, anew, 3, 3, "when a host begins anew after a compaction"); text != "" {
		return text
	}
	if !s.restarts() {
		return ""
	}
	s.reopen(true)
	for id, want := range map[core.SessionID]int{short: 4, long: 3} {
		if text := known(id, nil, 0, want, "after a restart, where a host took messages back before"); text != "" {
			return text
		}
	}
	return ""
}

// summaryTakenBack lets a host begin anew after a compaction: what a summary says was said before, so no answer shows it.
func (s *script) summaryTakenBack() string {
	if s.comb.ResetHistory {
		return "" // it may be recalled
	}
	id := recallSession("begun anew after a compaction")
	if _, text := s.compactedTalk(id); text != "" {
		return text
	}
	anew := s.transcript(2)
	anew.Whole = true
	if _, err := s.engine.Assemble(s.ctx(), core.AssembleRequest{Session: id, Budget: 900, Transcript: anew}); err != nil {
		return fmt.Sprintf("assemble: error %v", err)
	}
	var summaries []core.Entry
	for _, e := range s.held(id) {
		if e.Type == core.TypeSummary {
			summaries = append(summaries, e)
		}
	}
	for _, restart := range []bool{false, true} {
		if restart && len(summaries) > 0 && s.restarts() {
			s.reopen(true)
		}
		r, _ := s.engine.(engine.Recaller)
		for _, sum := range summaries {
			words := strings.Fields(sum.Text())
			for _, query := range []string{strings.Join(words[:min(len(words), 8)], " "), strings.Join(words[max(len(words)-8, 0):], " "), "budget report"} {
				if query == "" {
					continue
				}
				res, err := r.Search(s.ctx(), engine.SearchRequest{Session: id, Query: query, Limit: engine.MaxFound, Tokens: engine.MaxAnswer})
				if err != nil || slices.ContainsFunc(res.Found, func(f engine.Found) bool { return f.ID == sum.ID }) {
					return fmt.Sprintf("what was reset is not found, nor a summary of it; search for %.60q finds %d entries, error %v, one is the summary %q",
						query, len(res.Found), err, sum.ID)
				}
			}
			for _, name := range []string{sum.ID, "#" + sum.ID} {
				res, err := r.Expand(s.ctx(), engine.ExpandRequest{Session: id, ID: name})
				if !errors.Is(err, core.ErrNotFound) || len(res.Found) > 0 || res.Text != "" {
					return fmt.Sprintf("expand of %q, a summary of what was reset: %d entries, error %v, want ErrNotFound", name, len(res.Found), err)
				}
			}
		}
	}
	return ""
}
