package conformance

import (
	"context"
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

// settingsByWord have words that nobody knows, one by one.
var settingsByWord = []core.RuntimeSettings{
	{Mode: "turbo"}, {FallbackReason: "tired"}, {DegradedReason: "tired"}, {Host: "a host", HarnessID: "a harness", RuntimeID: "a runtime"},
	{EngineSelection: core.EngineSelection{SelectedID: "another", Source: "dice"}},
	{Mode: "fallback", RequestedModel: "model-9", ResolvedModel: "model-8", ModelFamily: "models"},
}

// unknownWords hands settings with words that nobody knows to every call that takes settings.
func (s *script) unknownWords() string {
	id := recallSession("of unknown words")
	said := 0
	_, plain := s.engine.Compact(s.ctx(), core.CompactRequest{Session: id, Budget: 8000})
	for n, settings := range settingsByWord {
		m := s.message(message.User, "good morning")
		said++
		if _, err := s.engine.Ingest(s.ctx(), core.IngestRequest{Session: id, Message: m}); err != nil {
			return fmt.Sprintf("ingest: error %v", err)
		}
		calls := map[string]func(context.Context) error{
			"assemble": func(ctx context.Context) error {
				_, err := s.engine.Assemble(ctx, core.AssembleRequest{Session: id, Budget: 8000, Settings: settings})
				return err
			},
			"compact": func(ctx context.Context) error {
				_, err := s.engine.Compact(ctx, core.CompactRequest{Session: id, Budget: 8000, Settings: settings})
				if !errors.Is(err, core.ErrInvalid) || errors.Is(plain, core.ErrInvalid) {
					return nil // that it works is for others to say
				}
				return err
			},
		}
		if e, ok := s.engine.(core.Bootstrapper); ok {
			calls["bootstrap"] = func(ctx context.Context) error {
				_, err := e.Bootstrap(ctx, core.BootstrapRequest{Session: id, Settings: settings})
				return err
			}
		}
		if e, ok := s.engine.(core.TurnCommitter); ok {
			said++
			calls["commit turn"] = func(ctx context.Context) error {
				_, err := e.CommitTurn(ctx, core.CommitTurnRequest{Session: id, AdvancementKey: fmt.Sprint(n), Messages: s.transcript(1).Messages, Settings: settings})
				return err
			}
		}
		if e, ok := s.engine.(core.AfterTurner); ok {
			said++
			calls["after turn"] = func(ctx context.Context) error {
				return e.AfterTurn(ctx, core.AfterTurnRequest{Session: id, Messages: s.transcript(1).Messages, Settings: settings})
			}
		}
		if e, ok := s.engine.(core.Maintainer); ok {
			calls["maintain"] = func(ctx context.Context) error {
				_, err := e.Maintain(ctx, core.MaintainRequest{Session: id, Reason: "turn", Budget: 8000, Settings: settings})
				return err
			}
		}
		for _, name := range slices.Sorted(maps.Keys(calls)) {
			if err := calls[name](s.ctx()); err != nil {
				return fmt.Sprintf("the words of settings are the host's own; %s with the settings %+v: error %v, want none", name, settings, err)
			}
		}
		if n := len(s.held(id)); n != said {
			return fmt.Sprintf("the words of settings are the host's own; with the settings %+v %d entries are stored, want %d", settings, n, said)
		}
	}
	return ""
}
