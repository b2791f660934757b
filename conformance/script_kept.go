package conformance

import (
	"fmt"
	"maps"
	"slices"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/message"
)

// keptChecks look at whose what an engine was given is.
var keptChecks = []Check{
	{ID: "contract.kept", Suite: SuiteEngine, script: scriptKept,
		Rule: "what was given belongs to the caller: writing into it afterwards changes nothing that is stored or shown, whichever call it was given to"},
}

// scriptKept writes into messages once they were taken, by a session that was read before or was not.
func scriptKept(s *script) string {
	ways := s.ways()
	ways["assemble"] = func(id core.SessionID, list []message.Message) error {
		_, err := s.engine.Assemble(s.ctx(), core.AssembleRequest{Session: id, Budget: 8000, PromptMode: core.PromptNone, Transcript: &core.Transcript{Messages: list}})
		return err
	}
	ways["compact"] = func(id core.SessionID, list []message.Message) error {
		_, _ = s.engine.Compact(s.ctx(), core.CompactRequest{Session: id, Budget: 8000, Transcript: &core.Transcript{Messages: list}}) // other checks say what may fail
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(ways)) {
		for _, warm := range []bool{false, true} {
			id := core.SessionID{Agent: "gives to " + name, Session: fmt.Sprintf("read before: %v", warm)}
			if warm {
				if _, err := s.engine.Assemble(s.ctx(), core.AssembleRequest{Session: id, Budget: 8000, PromptMode: core.PromptNone}); err != nil {
					return fmt.Sprintf("assemble: error %v", err)
				}
			}
			list := s.everyField()
			for i := range list {
				list[i].Raw, list[i].Parts[0].Raw = []byte(fmt.Sprintf(`{"n": %d}`, i)), []byte(`{"type": "text"}`)
			}
			given := copiedMessages(list)
			if err := ways[name](id, given); err != nil {
				return fmt.Sprintf("%s: error %v", name, err)
			}
			spoilt(&given)
			if name == "compact" && len(s.held(id)) == 0 {
				continue // who lets the host compact may leave the transcript to it
			}
			if text := s.holdsAndShows(id, list); text != "" {
				return fmt.Sprintf("somebody wrote into messages behind %s, into a session that was read before, %v: %s", name, warm, text)
			}
		}
	}
	return ""
}

// holdsAndShows looks whether a session holds and shows messages as they were given.
func (s *script) holdsAndShows(id core.SessionID, list []message.Message) string {
	stored := make([]message.Message, 0, len(list))
	for _, e := range s.held(id) {
		stored = append(stored, e.Message)
	}
	res, err := s.engine.Assemble(s.ctx(), core.AssembleRequest{Session: id, Budget: 8000, PromptMode: core.PromptNone})
	if err != nil {
		return fmt.Sprintf("assemble: error %v", err)
	}
	for i := range res.Messages {
		res.Messages[i].Entry = "" // which a host does not set
	}
	if d := differs(stored, list); d != "" {
		return "what is stored: " + d
	}
	if d := differs(res.Messages, list); d != "" {
		return "what is shown: " + d
	}
	return ""
}
