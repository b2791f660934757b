package conformance

import (
	"fmt"
	"slices"
	"strings"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/history"
	"github.com/contextengine/contextengine/core/message"
)

// promptScriptChecks look at where prompts begin and end, and at what a provider takes.
var promptScriptChecks = []Check{
	{ID: "contract.unsent", Promise: 5, Suite: SuiteEngine, script: scriptUnsent,
		Rule: "a prompt that the host appends itself is nowhere in a result, with a transcript or without; without one of either the result ends with the newest message, behind what is recalled"},
	{ID: "contract.rewound", Promise: 5, Suite: SuiteEngine, script: scriptRewound,
		Rule: "the result ends where the transcript does, also where that is shorter than before and brings nothing new, be it what was said at the end too, until something is added again; what comes back, a system message in front too, stands where the transcript has it and nowhere else"},
	{ID: "contract.provider", Promise: 5, Suite: SuiteEngine, script: scriptProvider,
		Rule: "roles and the ids of calls are what the provider of the call at hand accepts, whichever came before, once something has left the window too"},
}

func scriptUnsent(s *script) string {
	for n, of := range []func(core.SessionID) string{
		func(id core.SessionID) string { _, text := s.talk(id, 3, 5); return text }, s.outgrown,
	} {
		s.id = recallSession(fmt.Sprintf("unsent %d", n))
		if text := of(s.id); text != "" {
			return text
		}
		for i, handed := range []bool{false, true, false} {
			mark := markOf(1, 950+10*n+i)
			res, err := s.assemble(recallBudget, func(r *core.AssembleRequest) {
				r.Prompt = fmt.Sprintf("%s %s", mark, asked)
				if r.Call = core.CallPrompt; i == 2 {
					r.Call = core.CallLoop
				}
				if handed {
					r.Transcript = s.heldTranscript()
				}
			})
			if err != nil {
				return fmt.Sprintf("assemble with a prompt: error %v", err)
			}
			if text := shownOf(res, []string{mark}); text != "" {
				return fmt.Sprintf("a prompt that the host appends itself, with a transcript: %v: %s", handed, text)
			}
			if res, err = s.assemble(recallBudget, nil); err != nil {
				return fmt.Sprintf("assemble: error %v", err)
			}
			if text := shownOf(res, []string{mark}); text != "" {
				return "the prompt before that the host appended itself: " + text
			}
			if text := s.endsNewest(res); text != "" {
				return text
			}
		}
		// What is recalled stays in front of the newest turn as that goes on.
		if _, err := s.engine.Ingest(s.ctx(), core.IngestRequest{Session: s.id, Message: s.message(message.Assistant, "let me see")}); err != nil {
			return fmt.Sprintf("ingest: error %v", err)
		}
		for _, call := range []core.Call{core.CallLoop, core.CallPrompt} {
			res, err := s.assemble(recallBudget, func(r *core.AssembleRequest) { r.Call = call })
			if err != nil {
				return fmt.Sprintf("assemble: error %v", err)
			}
			if text := s.endsNewest(res); text != "" {
				return text
			}
		}
	}
	return ""
}

// heldTranscript is what a host hands over that has all that is stored.
func (s *script) heldTranscript() *core.Transcript {
	t := &core.Transcript{}
	for _, e := range s.held(s.id) {
		t.Messages = append(t.Messages, e.Message)
	}
	return t
}

// endsNewest looks whether a prompt ends with the newest message that is stored.
func (s *script) endsNewest(res core.AssembleResult) string {
	held := s.held(s.id)
	newest := marksIn(held[len(held)-1].Text())
	switch last := len(res.Messages) - 1; {
	case last < 0 || !contains(newest, lastOf(marksIn(res.Messages[last].Text()))):
		return fmt.Sprintf("of %d messages the last does not end with %s, the newest message", last+1, newest)
	case res.RecallLen > 0 && res.RecallAt+res.RecallLen > last:
		return fmt.Sprintf("the recall block, %d from message %d on, ends a prompt of %d messages", res.RecallLen, res.RecallAt, last+1)
	}
	return ""
}

func lastOf(list []string) string {
	if len(list) == 0 {
		return ""
	}
	return list[len(list)-1]
}

func scriptRewound(s *script) string {
	for n, c := range []struct {
		whole    bool
		prompt   string
		restarts bool
		ids      bool
		twice    bool // the conversation ends as it began
	}{{}, {whole: true}, {prompt: "and what now"}, {restarts: true}, {ids: true}, {whole: true, ids: true}, {twice: true}, {whole: true, twice: true}} {
		s.id = recallSession(fmt.Sprintf("rewound %d", n))
		t := s.transcript(9).Messages
		again := append(slices.Clone(t[:2]), s.transcript(2).Messages...)
		lists := [][]message.Message{t, t[:6], t[:5], again, t[:2], again[:1]}
		if c.ids {
			all := append(s.transcript(6).Messages, s.message(message.System, "be brief"))
			for i := range all {
				all[i].ID = fmt.Sprintf("host-%d", i)
			}
			led := func(n int) []message.Message { return append(slices.Clone(all[6:]), all[:n]...) }
			lists = [][]message.Message{led(4), led(2), led(6), s.transcript(1).Messages, led(3), led(6)}
		}
		if c.twice {
			lists = [][]message.Message{append(slices.Clone(t[:6]), t[:2]...), t[:2]}
		}
		for i, list := range lists {
			if i%2 == 1 && c.restarts && s.restarts() {
				s.reopen(true)
			}
			for range 2 {
				res, err := s.assemble(transcriptBudget, func(r *core.AssembleRequest) {
					r.Transcript, r.Prompt = &core.Transcript{Messages: copiedMessages(list), Whole: c.whole}, c.prompt
				})
				if err != nil {
					return fmt.Sprintf("assemble with a transcript of %d messages: error %v", len(list), err)
				}
				// What was taken back may be recalled where that is allowed.
				said := slices.DeleteFunc(res.Messages, func(m message.Message) bool { return m.Entry == "" })
				if text := sameTexts(said, list); text != "" {
					return fmt.Sprintf("transcript %d, of %d messages (%+v), after longer ones: %s", i+1, len(list), c, text)
				}
			}
		}
	}
	return ""
}

func scriptProvider(s *script) string {
	// The one that asks for least is first.
	providers := []string{history.ProviderGoogle, history.ProviderOpenAI, history.ProviderMistral, history.ProviderAnthropic}
	for n := range 2 {
		// The first sessions have a provider each, the last one has them by turns.
		for i, provider := range append(providers, providers...) {
			if i < len(providers) == (n == 1) {
				continue
			}
			s.id = recallSession("of " + provider)
			if n == 1 {
				s.id = recallSession("of one after the other")
			}
			for more := range 3 {
				count := 1
				if more == 0 && (n == 0 || i == len(providers)) {
					count = 24
				}
				if _, text := s.talk(s.id, count, 25); text != "" {
					return text
				}
				for _, m := range s.looksUp() {
					if _, err := s.engine.Ingest(s.ctx(), core.IngestRequest{Session: s.id, Message: m}); err != nil {
						return fmt.Sprintf("ingest: error %v", err)
					}
				}
				res, err := s.assemble(900, func(r *core.AssembleRequest) { r.Settings.Provider = provider })
				if err != nil {
					return fmt.Sprintf("assemble for %s: error %v", provider, err)
				}
				if text := obeys(res.Messages, provider); text != "" {
					return text
				}
			}
		}
	}
	return ""
}

// obeys looks whether the usual rules of a provider would change the order of roles.
func obeys(list []message.Message, provider string) string {
	policy, err := history.PolicyFor(provider)
	if err != nil {
		return err.Error()
	}
	form := func(list []message.Message) string {
		var out []string
		for _, m := range list {
			out = append(out, string(m.Role))
			for _, p := range m.Parts {
				if p.CallID != "" {
					out = append(out, fmt.Sprintf("(%s %s)", p.Kind, p.CallID))
				}
			}
		}
		return strings.Join(out, " ")
	}
	if got, want := form(list), form(history.Apply(copiedMessages(list), policy)); got != want {
		return fmt.Sprintf("the roles and calls of a prompt for %s are %s; by its rules they are %s", provider, got, want)
	}
	return ""
}

// looksUp are a user's message, a call and its result.
func (s *script) looksUp() []message.Message {
	ask, call, result := s.message(message.User, "look it up"), s.message(message.Assistant, "looks"), s.message(message.Tool, "")
	id := fmt.Sprintf("call-%d", s.n)
	call.Parts = append(call.Parts, message.Part{Kind: message.ToolCall, CallID: id, Name: "look", Args: `{"at":"it"}`})
	result.Parts = []message.Part{{Kind: message.ToolResult, CallID: id, Name: "look", Text: markOf(0, s.n) + " it is there"}}
	return []message.Message{ask, call, result}
}
