package conformance

import (
	"fmt"
	"slices"

	"github.com/contextengine/contextengine/core"
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
