package rpc_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/contextengine/contextengine/backends/memory"
	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/engine"
	"github.com/contextengine/contextengine/hosts/rpc"
)

// long is a session on a server that can be started anew over the same store.
type long struct {
	t     *testing.T
	store core.Store
	c     *rpc.Client
	// rows are what was said, words those that only one of them says.
	rows  []json.RawMessage
	words []string
	turns int
}

func newLong(t *testing.T) *long {
	t.Helper()
	l := &long{t: t, store: memory.New()}
	l.restart()
	return l
}

func (l *long) restart() {
	l.t.Helper()
	e := composed(l.t, nil, func(p *engine.Parts) { p.Store, p.OwnStore = l.store, false })
	l.c = open(l.t, newServer(l.t, one{e}, nil), rpc.ClientOptions{})
}

// commit stores n turns of two or four messages.
func (l *long) commit(n int) {
	l.t.Helper()
	for range n {
		at := len(l.rows)
		word := func(what string) string {
			w := fmt.Sprintf("%s%dof%d", what, at, len(l.words))
			l.words = append(l.words, w)
			return w + " " + strings.Repeat("and some more ", 10)
		}
		turn := []json.RawMessage{user(word("question"), at)}
		if l.turns%3 == 2 {
			id := fmt.Sprint("call", l.turns)
			turn = append(turn,
				fmt.Appendf(nil, `{"role":"assistant","content":[{"type":"text","text":%q},{"type":"toolCall","id":%q,"name":"read","arguments":{}}],"stopReason":"toolUse"}`, word("looking"), id),
				fmt.Appendf(nil, `{"role":"toolResult","toolCallId":%q,"toolName":"read","content":[{"type":"text","text":%q}],"isError":false}`, id, word("result")))
		}
		turn = append(turn, answer(word("answer"), at+1))
		_, err := l.c.CommitTurn(l.t.Context(), rpc.CommitTurnParams{Session: sid("s"), AdvancementKey: fmt.Sprint("turn", l.turns), Messages: turn})
		if err != nil {
			l.t.Fatal(err)
		}
		l.rows, l.turns = append(l.rows, turn...), l.turns+1
	}
}

func (l *long) assemble(list []json.RawMessage, change ...func(*rpc.AssembleParams)) rpc.AssembleResult {
	l.t.Helper()
	p := rpc.AssembleParams{Session: sid("s"), Budget: 1500, Prompt: "and now?", Transcript: &rpc.TranscriptParams{Messages: list}}
	for _, c := range change {
		c(&p)
	}
	res, err := l.c.Assemble(l.t.Context(), p)
	if err != nil {
		l.t.Fatal(err)
	}
	return res
}

func (l *long) known() int {
	l.t.Helper()
	res, err := l.c.Bootstrap(l.t.Context(), rpc.BootstrapParams{Session: sid("s")})
	if err != nil {
		l.t.Fatal(err)
	}
	return res.Known
}

func (l *long) finds(word string) bool {
	l.t.Helper()
	res, err := l.c.Search(l.t.Context(), rpc.SearchParams{SearchRequest: engine.SearchRequest{Session: sid("s"), Query: word}})
	if err != nil {
		l.t.Fatal(err)
	}
	return slices.ContainsFunc(res.Found, func(f engine.Found) bool { return strings.Contains(f.Excerpt, word) })
}

// complete checks that everything said is in force, found, and spoken of in front of the window.
func (l *long) complete(when string, res rpc.AssembleResult) {
	l.t.Helper()
	if n := l.known(); n < len(l.rows) {
		l.t.Errorf("%s: %d known, want %d", when, n, len(l.rows))
	}
	for i, w := range l.words {
		if i%7 == len(l.words)%7 && !l.finds(w) {
			l.t.Errorf("%s: search does not find %q", when, w)
		}
	}
	if all := fmt.Sprintf("%s", res.Messages); !strings.Contains(all, "earlier messages are stored but not shown") {
		l.t.Errorf("%s: no note in front of %.300s", when, all)
	}
}

// bootstrapLine is what OpenClaw puts in front of a history that begins with an answer.
func bootstrapLine(at int) json.RawMessage { return user("(session bootstrap)", at) }

func behind(line json.RawMessage, rows []json.RawMessage) []json.RawMessage {
	return slices.Concat([]json.RawMessage{line}, rows)
}

// A host that hands over less and less of a long session, behind a line of its own that is new each time, has taken nothing back.
func TestTruncatedTranscripts(t *testing.T) {
	t.Parallel()
	l := newLong(t)
	l.commit(30)
	first := l.assemble(l.rows)
	l.complete("before", first)
	var res rpc.AssembleResult
	for i, list := range [][]json.RawMessage{
		behind(bootstrapLine(1000), l.rows[1:]),
		behind(bootstrapLine(2000), l.rows[slices.IndexFunc(l.rows, func(m json.RawMessage) bool { return strings.Contains(string(m), "answer28") }):]),
		l.rows[len(l.rows)-40:],
	} {
		res = l.assemble(list)
		l.complete(fmt.Sprint("list ", i), res)
		if !slices.EqualFunc(res.Messages, first.Messages, func(a, b json.RawMessage) bool { return string(a) == string(b) }) {
			t.Errorf("list %d moves the window: %.400s\nwant %.400s", i, res.Messages, first.Messages)
		}
	}
	if n := l.known(); n != len(l.rows) {
		t.Errorf("%d known, want %d: the host's own lines are no conversation", n, len(l.rows))
	}
}

// The same in any order, with any line in front, with turns between, compactions and new servers.
func TestTruncatedTranscriptsOfAnyKind(t *testing.T) {
	t.Parallel()
	for range 20 {
		seed := rand.Uint64()
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			rng := rand.New(rand.NewPCG(seed, 1))
			l := newLong(t)
			l.commit(20 + rng.IntN(20))
			l.assemble(l.rows)
			from := 0
			for step := range 8 {
				from = min(from+rng.IntN(len(l.rows)/4), len(l.rows)-4)
				list := l.rows[from:]
				lines := []json.RawMessage{
					nil, bootstrapLine(1000 + step), user("(shortened)", 1000+step), user(fmt.Sprint("(shortened at ", step, ")"), 1000+step),
					answer("(shortened)", 1000+step), user("[empty content omitted]", step),
					fmt.Appendf(nil, `{"role":"toolResult","toolCallId":"x","toolName":"read","content":[{"type":"text","text":"gone %d"}]}`, step),
				}
				if line := lines[rng.IntN(len(lines))]; line != nil {
					list = behind(line, list)
				}
				res := l.assemble(list)
				l.complete(fmt.Sprintf("step %d, list from %d on behind %.90s", step, from, list[0]), res)
				switch rng.IntN(5) {
				case 0:
					l.restart()
				case 1:
					if _, err := l.c.Compact(t.Context(), rpc.CompactParams{Session: sid("s"), Budget: 1500}); err != nil {
						t.Fatal(err)
					}
				}
				l.commit(rng.IntN(3))
			}
		})
	}
}

// A list that is said to be whole replaces what it does not have; one that is not does not.
func TestWholeTranscript(t *testing.T) {
	t.Parallel()
	for _, whole := range []bool{false, true} {
		l := newLong(t)
		l.commit(4)
		edited := behind(user("edited", 77), l.rows[1:])
		res := l.assemble(edited, func(p *rpc.AssembleParams) { p.Transcript.Whole = whole })
		if all := fmt.Sprintf("%s", res.Messages); !strings.Contains(all, "edited") || strings.Contains(all, l.words[0]) == whole || l.finds(l.words[0]) == whole {
			t.Errorf("whole %t: %s is shown, found %t; %s", whole, l.words[0], l.finds(l.words[0]), all)
		}
	}
}

// What a runtime makes itself is not stored, whichever way it comes in.
func TestFillersAreNotStored(t *testing.T) {
	t.Parallel()
	tool := func(text string) json.RawMessage {
		return fmt.Appendf(nil, `{"role":"toolResult","toolCallId":"c1","toolName":"read","content":[{"type":"text","text":%q}],"isError":true}`, text)
	}
	calls := json.RawMessage(`{"role":"assistant","content":[{"type":"toolCall","id":"c1","name":"read","arguments":{}}],"stopReason":"toolUse"}`)
	fillers := []json.RawMessage{
		bootstrapLine(1), user("[empty content omitted]", 2), answer("[tool calls omitted]", 3), answer("[assistant reasoning omitted]", 4), tool("aborted"),
		tool("[openclaw] missing tool result in session history; inserted synthetic error result for transcript repair."),
		json.RawMessage(`{"role":"toolResult","toolCallId":"c1","toolName":"read","content":[{"type":"text","text":"aborted"}],"isError":true,"details":{"openclawSyntheticMissingToolResult":true}}`),
		json.RawMessage(`{"role":"user","content":"<runtime>","runtimeContextCarrier":true}`),
	}
	said := []json.RawMessage{
		user("aborted", 5), user("what does (session bootstrap) mean?", 6), answer("nothing", 7),
		json.RawMessage(`{"role":"user","content":"\"runtimeContextCarrier\": true","runtimeContextCarrier":false}`),
	}
	all := slices.Concat(said[:1], []json.RawMessage{calls}, fillers, said[1:])
	for name, take := range map[string]func(c *rpc.Client) error{
		"ingest": func(c *rpc.Client) error {
			for i := range all {
				if _, err := c.Ingest(t.Context(), rpc.IngestParams{Session: sid("s"), Message: all[i]}); err != nil {
					return err
				}
			}
			return nil
		},
		"ingestBatch": func(c *rpc.Client) error {
			res, err := c.IngestBatch(t.Context(), rpc.IngestBatchParams{Session: sid("s"), Messages: all})
			if err == nil && (res.Ingested != len(said)+1 || len(res.IDs) != len(all) || res.IDs[2] != "" || res.IDs[len(all)-1] == "") {
				t.Errorf("ingestBatch = %+v", res)
			}
			return err
		},
		"commitTurn": func(c *rpc.Client) error {
			_, err := c.CommitTurn(t.Context(), rpc.CommitTurnParams{Session: sid("s"), AdvancementKey: "k", Messages: all})
			return err
		},
		"afterTurn": func(c *rpc.Client) error {
			return c.AfterTurn(t.Context(), rpc.AfterTurnParams{Session: sid("s"), Messages: all})
		},
		"bootstrap": func(c *rpc.Client) error {
			_, err := c.Bootstrap(t.Context(), rpc.BootstrapParams{Session: sid("s"), Transcript: &rpc.TranscriptParams{Messages: all}})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLong(t)
			if err := take(l.c); err != nil {
				t.Fatal(err)
			}
			l.assemble(all)
			if n := l.known(); n != len(said)+1 {
				t.Errorf("%d known, want %d", n, len(said)+1)
			}
		})
	}
}

// A tool that failed with the words of a filler has said them: the host hands its result over with details when it commits, and without them in its history.
func TestResultThatSaysWhatAFillerSays(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"aborted", "No result provided"} {
		l := newLong(t)
		row := func(details string) json.RawMessage {
			return fmt.Appendf(nil, `{"role":"toolResult","toolCallId":"c1","toolName":"read","content":[{"type":"text","text":%q}]%s,"isError":true}`, text, details)
		}
		turn := func(result json.RawMessage) []json.RawMessage {
			return []json.RawMessage{
				user("read it", 1),
				json.RawMessage(`{"role":"assistant","content":[{"type":"toolCall","id":"c1","name":"read","arguments":{}}],"stopReason":"toolUse"}`),
				result, answer("it was stopped", 2),
			}
		}
		_, err := l.c.CommitTurn(t.Context(), rpc.CommitTurnParams{Session: sid("s"), AdvancementKey: "k", Messages: turn(row(`,"details":{}`))})
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			res := l.assemble(turn(row("")))
			if n := l.known(); n != 4 {
				t.Errorf("%q: %d known, want 4", text, n)
			}
			if all := fmt.Sprintf("%s", res.Messages); strings.Count(all, text) != 1 {
				t.Errorf("%q: the result is shown %d times in %s", text, strings.Count(all, text), all)
			}
			l.restart()
		}
	}
}
