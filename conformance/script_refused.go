package conformance

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/message"
)

// unknownRoles hands over messages of a role that there is not, in every call that takes messages: the message is the newest of three.
func (s *script) unknownRoles() string {
	id := recallSession("of unknown roles")
	for _, role := range []message.Role{"narrator", "", "USER"} {
		list := s.transcript(2).Messages
		odd := s.message("user", "is not to be told")
		odd.Role = role
		list = append(list, odd)
		calls := map[string]func() error{
			"ingest": func() error {
				_, err := s.engine.Ingest(s.ctx(), core.IngestRequest{Session: id, Message: odd})
				return err
			},
		}
		for name, read := range s.reads() {
			calls[name+" of a transcript"] = func() error { return read(id, &core.Transcript{Messages: list}) }
		}
		for name, way := range s.ways() {
			if name != "ingest" { // which stores those before
				calls[name] = func() error { return way(id, list) }
			}
		}
		for _, name := range slices.Sorted(maps.Keys(calls)) {
			if err := s.heard(name, calls[name]()); !errors.Is(err, core.ErrInvalid) {
				return fmt.Sprintf("%s with a message of the role %q, which is none: error %v, want ErrInvalid", name, role, err)
			}
			if n := len(s.held(id)); n > 0 {
				return fmt.Sprintf("%s with a message of the role %q was refused, and %d entries are stored", name, role, n)
			}
		}
	}
	return ""
}

// blamed asks for prompts for which one entry alone is too large: where they are refused, it is the one that is named.
func (s *script) blamed() string {
	const budget = 500
	long := strings.Repeat("long ", 2000)
	for n, what := range []string{
		"a question that is called for", "the arguments of a call", "what is said beside a call", "a question", "an answer", "the arguments of one of two calls",
	} {
		s.id = recallSession("too large is " + what)
		list := s.looksUp()
		largest := 0
		switch n {
		case 0:
			list[0] = s.message(message.User, long)
		case 1:
			largest, list[1].Parts[len(list[1].Parts)-1].Args = 1, `{"text":"`+long+`"}`
		case 2:
			largest, list[1].Parts[0].Text = 1, long
		case 3:
			list = []message.Message{s.message(message.User, long)}
		case 4:
			largest, list = 1, []message.Message{list[0], s.message(message.Assistant, long)}
		case 5:
			other := s.message(message.Tool, "")
			other.Parts = []message.Part{{Kind: message.ToolResult, CallID: "call-other", Name: "look", Text: "it is not there"}}
			call := &list[1]
			call.Parts = append(call.Parts, message.Part{Kind: message.ToolCall, CallID: "call-other", Name: "look", Args: `{"text":"` + long + `"}`})
			largest, list = 1, append(list, other)
		}
		list = slices.Concat([]message.Message{
			s.message(message.System, "be brief and kind"), s.message(message.User, "good morning"), s.message(message.Assistant, "to you too"),
		}, list)
		var ids []string
		for _, m := range list {
			res, err := s.engine.Ingest(s.ctx(), core.IngestRequest{Session: s.id, Message: m})
			if err != nil || len(res.IDs) != 1 {
				return fmt.Sprintf("ingest: %+v, error %v", res, err)
			}
			ids = append(ids, res.IDs[0])
		}
		_, err := s.assemble(budget, nil)
		if err == nil {
			continue // it found something to shorten
		}
		var b *core.BudgetError
		if !errors.As(err, &b) || b.Entry != ids[3+largest] {
			return fmt.Sprintf("a refusal names the largest entry that must stay; with a budget of %d, where %s (entry %q) has 2000 words and nothing else many: error %v",
				budget, what, ids[3+largest], err)
		}
	}
	return ""
}
