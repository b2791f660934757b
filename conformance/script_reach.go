package conformance

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/engine"
	"github.com/contextengine/contextengine/core/message"
	"github.com/contextengine/contextengine/core/window"
)

// reachChecks hold an engine to what the way back shows of entries that are no plain text, of many, and of other sessions.
var reachChecks = []Check{
	{ID: "contract.all-of", Promise: 2, Suite: SuiteEngine, Needs: []Need{NeedRecaller}, script: scriptAllOf,
		Rule: "all that an entry says is read page by page: calls with their arguments, results, and texts of which parts cost more than others"},
	{ID: "contract.beside", Promise: 2, Suite: SuiteEngine, Needs: []Need{NeedOwner, NeedRecaller}, script: scriptBeside,
		Rule: "behind a compaction a summary is expanded into all that it stands for, and is nobody's neighbour"},
	{ID: "contract.unseen", Promise: 2, Suite: SuiteEngine, Needs: []Need{NeedRecaller}, script: scriptUnseen,
		Rule: "a search for several words finds what the window does not show before what it shows"},
	{ID: "contract.cited", Promise: 8, Suite: SuiteEngine, Needs: []Need{NeedRecaller, NeedSubagents}, script: scriptCited,
		Rule: "what an answer quotes of another session is cited by its id, and every citation is expanded to the entry that it names"},
	{ID: "contract.start", Promise: 7, Suite: SuiteEngine, script: scriptStart,
		Rule: "a restart moves no window: the next prompt begins with what the one before began with"},
}

// ingested ingests messages of a session and returns their entries.
func (s *script) ingested(id core.SessionID, list ...message.Message) ([]core.Entry, string) {
	out := make([]core.Entry, len(list))
	for i, m := range list {
		res, err := s.engine.Ingest(s.ctx(), core.IngestRequest{Session: id, Message: m})
		if err != nil || len(res.IDs) != 1 {
			return nil, fmt.Sprintf("ingest: %+v, error %v", res, err)
		}
		var text string
		if out[i], text = s.get(id, res.IDs[0]); text != "" {
			return nil, text
		}
	}
	return out, ""
}

// expanded reads all pages of what is expanded.
func (s *script) expanded(r engine.Recaller, req engine.ExpandRequest) ([]engine.Found, string) {
	const most = 200
	var out []engine.Found
	for n := 0; ; n++ {
		page, err := r.Expand(s.ctx(), req)
		if err != nil || len(page.Found) == 0 || n == most {
			return nil, fmt.Sprintf("page %d of what is expanded: %d entries, error %v", n+1, len(page.Found), err)
		}
		if text := s.trueText(req.Session, page.Found, page.Text, page.Tokens, req.Tokens); text != "" {
			return nil, fmt.Sprintf("page %d of what is expanded: %s", n+1, text)
		}
		out = append(out, page.Found...)
		if req.Offset = page.Next; page.Next == 0 {
			return out, ""
		}
	}
}

// manyCalls is a message with a text and two calls, the second with long arguments, and the results of both.
func (s *script) manyCalls() []message.Message {
	call, result := s.message(message.Assistant, "looks it up"), s.message(message.Tool, "")
	result.Parts = nil
	for n, size := range []int{2, 300} {
		id := fmt.Sprintf("call-%d-%d", s.n, n)
		call.Parts = append(call.Parts, message.Part{
			Kind: message.ToolCall, CallID: id, Name: fmt.Sprintf("look_%d", n), Args: fmt.Sprintf(`{"at":%q,"lines":[%d,7]}`, makeText(markOf(2, 10*s.n+n), textPlain, size, n, nil), n),
		})
		result.Parts = append(result.Parts, message.Part{Kind: message.ToolResult, CallID: id, Name: fmt.Sprintf("look_%d", n), Text: makeText(markOf(3, 10*s.n+n), textCode, 10+size, n, nil)})
	}
	return []message.Message{call, result}
}

// uneven are texts of which some parts cost far more for their bytes than others.
func (s *script) uneven() []message.Message {
	dear, cheap := strings.Repeat("數據庫遷移鹽", 100), strings.Repeat(" the of and to in", 800)
	var out []message.Message
	for _, text := range []string{dear + cheap, cheap + dear, dear + cheap + dear} {
		out = append(out, s.message(message.User, text))
	}
	return out
}

func scriptAllOf(s *script) string {
	r, _ := s.engine.(engine.Recaller)
	list := append(s.manyCalls(), s.uneven()...)
	entries, text := s.ingested(s.id, list...)
	if text != "" {
		return text
	}
	for i, m := range list {
		// In a page of its own, in many, and beside others where it has room for all.
		for _, tokens := range []int{200, engine.MaxAnswer} {
			pages, text := s.expanded(r, engine.ExpandRequest{Session: s.id, ID: entries[i].ID, Tokens: tokens})
			if text != "" {
				return text
			}
			var whole strings.Builder
			for _, f := range pages {
				if f.ID != entries[i].ID {
					return fmt.Sprintf("expand of %q shows %q", entries[i].ID, f.ID)
				}
				whole.WriteString(f.Excerpt)
			}
			if text := saysAll(whole.String(), m); text != "" {
				return fmt.Sprintf("an entry read in pages of %d tokens %s", tokens, text)
			}
		}
	}
	around, text := s.expanded(r, engine.ExpandRequest{Session: s.id, ID: entries[0].ID, After: 1, Tokens: engine.MaxAnswer})
	if text != "" {
		return text
	}
	for i, f := range around {
		if text := saysAll(f.Excerpt, list[i]); f.Whole && text != "" {
			return "an entry that is whole beside its neighbours " + text
		}
	}
	return ""
}

// saysAll describes what a text leaves out of a message, if anything. A message of one text is that text.
func saysAll(text string, m message.Message) string {
	if len(m.Parts) == 1 && m.Parts[0].Kind == message.Text {
		if d := differText("the text", text, m.Text()); d != "" {
			return "is another: " + d
		}
	}
	for _, p := range m.Parts {
		for _, says := range []string{p.Text, p.Name, p.Args} {
			if p.Kind == message.ToolResult && says == p.Name {
				continue // the call says it
			}
			if !strings.Contains(text, says) {
				return fmt.Sprintf("leaves out %s of a %s", quoteShort(says), p.Kind)
			}
		}
	}
	return ""
}

func scriptBeside(s *script) string {
	const budget, before = 900, 130
	r, _ := s.engine.(engine.Recaller)
	// As short as can be: a summary stands for more of them than a store is asked for at once.
	for n := range before {
		if _, text := s.ingested(s.id, s.message([]message.Role{message.User, message.Assistant}[n%2], "on")); text != "" {
			return text
		}
	}
	if _, err := s.assemble(budget, nil); err != nil {
		return fmt.Sprintf("assemble: error %v", err)
	}
	if _, err := s.engine.Compact(s.ctx(), core.CompactRequest{Session: s.id, Budget: budget, Force: true}); err != nil {
		return fmt.Sprintf("compact: error %v", err)
	}
	d, err := r.Describe(s.ctx(), engine.DescribeRequest{Session: s.id})
	if err != nil {
		return fmt.Sprintf("describe: error %v", err)
	}
	for _, sum := range d.Summaries {
		got, text := s.expanded(r, engine.ExpandRequest{Session: s.id, ID: sum.ID, Tokens: engine.MaxAnswer})
		if text == "" && len(got) != sum.Covers {
			text = fmt.Sprintf("a summary stands for %d entries, and expands to %d", sum.Covers, len(got))
		}
		if text != "" {
			return text
		}
	}
	if _, text := s.talk(s.id, 6, 3); text != "" {
		return text
	}
	said := slices.DeleteFunc(s.held(s.id), func(e core.Entry) bool { return e.Type == core.TypeSummary })
	for _, at := range []int{before - 2, before, before + 3} {
		if text := s.inOneRow(r, said, at, 6); text != "" {
			return "around a compaction: " + text
		}
	}
	return ""
}

// inOneRow expands the entry at a place of a conversation with some before and after it: what is shown is a piece of the conversation, without a gap, and each is counted once.
func (s *script) inOneRow(r engine.Recaller, said []core.Entry, at, around int) string {
	ids := idsOf(said)
	res, err := r.Expand(s.ctx(), engine.ExpandRequest{Session: said[at].SessionID(), ID: ids[at], Before: around, After: around, Tokens: engine.MaxAnswer})
	if err != nil || len(res.Found) == 0 || res.Next != 0 || res.Total != len(res.Found) {
		return fmt.Sprintf("expand with %d before and after shows %d of %d entries, goes on at %d, error %v", around, len(res.Found), res.Total, res.Next, err)
	}
	first := slices.Index(ids, res.Found[0].ID)
	for i, f := range res.Found {
		if first < 0 || first+i >= len(ids) || f.ID != ids[first+i] {
			return fmt.Sprintf("expand with %d before and after: number %d of %d, %q at %d (%s), is no neighbour in the conversation", around, i+1, len(res.Found), f.ID, f.Seq, f.Type)
		}
	}
	if first > at || first+len(res.Found) <= at {
		return fmt.Sprintf("expand of %q with %d before and after shows %d others", ids[at], around, len(res.Found))
	}
	return ""
}

func scriptUnseen(s *script) string {
	r, _ := s.engine.(engine.Recaller)
	if text := s.outgrown(s.id); text != "" {
		return text
	}
	for n := range 4 {
		if _, text := s.ingested(s.id, s.message([]message.Role{message.Assistant, message.User}[n%2], "the harbour lantern invoice is due")); text != "" {
			return text
		}
	}
	res, _, text := s.prompted(s.id, core.PromptFull, core.CallPrompt)
	if text != "" {
		return text
	}
	// What is quoted, clipped, or told by a summary may stand on either side.
	shown, there := map[string]bool{}, map[string]bool{}
	for _, c := range res.Choices {
		there[c.Entry] = there[c.Entry] || c.Message >= 0
		shown[c.Entry] = shown[c.Entry] || c.Message >= 0 && c.Stub == "" && (c.Reason == window.ReasonTail || c.Reason == window.ReasonPinned)
	}
	// No entry holds it as it stands.
	req := engine.SearchRequest{Session: s.id, Query: "invoice lantern harbour", Limit: engine.MaxFound, Tokens: engine.MaxAnswer}
	first := ""
	for {
		page, err := r.Search(s.ctx(), req)
		if err != nil || len(page.Found) == 0 {
			return fmt.Sprintf("search: %d found, error %v", len(page.Found), err)
		}
		for _, f := range page.Found {
			if first != "" && !there[f.ID] {
				return fmt.Sprintf("search for %q finds %q, which the window shows, before %q, which it does not show", req.Query, first, f.ID)
			}
			if shown[f.ID] {
				first = f.ID
			}
		}
		if req.Offset = page.Next; page.Next == 0 {
			return ""
		}
	}
}

// scriptCited lets a subagent look into its parent's session, and a parent into what its subagent said: positions mean another entry in each.
func scriptCited(s *script) string {
	e, _ := s.engine.(core.SubagentHost)
	r, _ := s.engine.(engine.Recaller)
	if _, text := s.talk(s.id, 7, 3); text != "" {
		return text
	}
	kid := core.SessionID{Agent: "agent-c", Session: "kid who cites"}
	if _, err := e.PrepareSubagentSpawn(s.ctx(), core.SpawnRequest{Parent: s.id, Child: kid, TTL: time.Hour}); err != nil {
		return fmt.Sprintf("prepare spawn: error %v", err)
	}
	if _, text := s.talk(kid, 4, 3); text != "" {
		return text
	}
	for _, from := range []core.SessionID{kid, s.id} {
		res, err := r.Search(s.ctx(), engine.SearchRequest{Session: from, Query: "budget report", Limit: engine.MaxFound, Tokens: engine.MaxAnswer})
		if err != nil {
			return fmt.Sprintf("search: error %v", err)
		}
		if text := s.trueText(from, res.Found, res.Text, res.Tokens, engine.MaxAnswer); text != "" {
			return "search across a grant: " + text
		}
		for _, f := range res.Found {
			names := []string{"#" + f.ID}
			if f.Session == from.Session {
				names = append(names, fmt.Sprintf("#%d", f.Seq))
			}
			for _, name := range names {
				got, err := r.Expand(s.ctx(), engine.ExpandRequest{Session: from, ID: name})
				if err != nil || len(got.Found) != 1 || got.Found[0].ID != f.ID {
					return fmt.Sprintf("session %s expands %q, entry %q of session %q, to %d entries, error %v", from, name, f.ID, f.Session, len(got.Found), err)
				}
				if text := s.trueText(from, got.Found, got.Text, got.Tokens, engine.DefaultAnswer); text != "" {
					return "expand across a grant: " + text
				}
			}
		}
	}
	return ""
}

// scriptStart restarts after every few messages: where a window begins follows from nothing that is still there.
func scriptStart(s *script) string {
	const budget, steps = 1200, 14
	if !s.restarts() {
		return ""
	}
	for n := range steps {
		words := []int{6, 13, 60, 20, 300, 9, 25, 16, 30, 14, 40}[n%11]
		if _, text := s.talk(s.id, 2, words); text != "" {
			return text
		}
		bare := func(r *core.AssembleRequest) { r.PromptMode = core.PromptNone }
		was, err := s.assemble(budget, bare)
		if err != nil {
			return fmt.Sprintf("assemble: error %v", err)
		}
		s.reopen(true)
		now, err := s.assemble(budget, bare)
		if err != nil {
			return fmt.Sprintf("assemble after a restart: error %v", err)
		}
		if got, want := s.toldWindow(s.id, now), s.toldWindow(s.id, was); got != want {
			return fmt.Sprintf("window %d, of %d messages, has %d after a restart: %s", n+1, len(was.Messages), len(now.Messages), firstDifference(got, want))
		}
	}
	return ""
}
