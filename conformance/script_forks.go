package conformance

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/message"
)

// forksShow forks a session that begins with a system message, was compacted, and has a result of a tool that is too long for its place. A fork begins with
// what the parent shows, so both show the same.
func (s *script) forksShow() string {
	const budget = 1500
	s.id = recallSession("forked as it is shown")
	if _, err := s.engine.Ingest(s.ctx(), core.IngestRequest{Session: s.id, Message: s.message(message.System, "be brief and kind")}); err != nil {
		return fmt.Sprintf("ingest: error %v", err)
	}
	if _, text := s.compactedTalk(s.id); text != "" {
		return text
	}
	turn := s.looksUp()
	turn[2].Parts[0].Text += strings.Repeat(" the harbour is quiet", 500)
	for _, m := range append(turn, s.message(message.Assistant, "it is there")) {
		if _, err := s.engine.Ingest(s.ctx(), core.IngestRequest{Session: s.id, Message: m}); err != nil {
			return fmt.Sprintf("ingest: error %v", err)
		}
	}
	plain := func(r *core.AssembleRequest) { r.PromptMode = core.PromptNone }
	for _, child := range []core.SessionID{recallSession("fork as it is shown"), kid("fork as it is shown")} {
		want, err := s.assemble(budget, plain)
		if err != nil {
			return fmt.Sprintf("assemble: error %v", err)
		}
		if _, text := s.spawned(core.SpawnFork, child); text != "" {
			return text
		}
		got, err := s.assemble(budget, func(r *core.AssembleRequest) { plain(r); r.Session = child })
		if err != nil {
			return fmt.Sprintf("assemble for a fork: error %v", err)
		}
		if text := sameTexts(got.Messages, want.Messages); text != "" {
			return fmt.Sprintf("a fork (%s) begins with what its parent shows, and shows something else: %s", child, text)
		}
		for i := range want.Messages {
			if !bytes.Equal(got.Messages[i].Raw, want.Messages[i].Raw) {
				return fmt.Sprintf("a fork (%s) shows message %d in other bytes than its parent", child, i)
			}
		}
	}
	return ""
}
