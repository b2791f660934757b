package conformance

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"math/rand"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/engine"
	"github.com/contextengine/contextengine/core/message"
)

// scriptChecks call every method of an engine once on purpose, with what it must answer in every field. Generated sessions cannot know that.
var scriptChecks = []Check{
	{ID: "contract.info", Suite: SuiteEngine, script: scriptInfo,
		Rule: "Info names the engine, does not change, and reports no problem where there is none"},
	{ID: "contract.ingest", Promise: 2, Suite: SuiteEngine, script: scriptIngest,
		Rule: "what is ingested is stored with every field set, and the result says what was stored, in order"},
	{ID: "contract.batch", Promise: 9, Suite: SuiteEngine, script: scriptBatch,
		Rule: "a batch is stored as a whole, in order, once for its key"},
	{ID: "contract.bootstrap", Promise: 6, Suite: SuiteEngine, script: scriptBootstrap,
		Rule: "bootstrap imports what is missing and says how much is known; again it imports nothing"},
	{ID: "contract.after-turn", Promise: 6, Suite: SuiteEngine, script: scriptAfterTurn,
		Rule: "after a turn its messages are stored, in order, once, and those of a timer as such"},
	{ID: "contract.commit", Promise: 6, Suite: SuiteEngine, Needs: []Need{NeedTurns}, script: scriptCommit,
		Rule: "a committed turn is stored in order under the ids that are returned, once for its key, a timer's too, and Info names the contract"},
	{ID: "contract.invalid", Promise: 9, Suite: SuiteEngine, script: scriptInvalid,
		Rule: "a call that can never succeed is ErrInvalid and stores nothing"},
	{ID: "contract.cancel", Promise: 9, Suite: SuiteEngine, script: scriptCancel,
		Rule: "every call whose context was cancelled, or whose deadline has passed, returns the context's error and stores nothing"},
	{ID: "contract.assemble", Promise: 1, Suite: SuiteEngine, script: scriptAssemble,
		Rule: "the result of Assemble is true in every field: estimate, authority, epoch, choices, warnings"},
	{ID: "contract.modes", Promise: 10, Suite: SuiteEngine, script: scriptModes,
		Rule: "prompt modes, sections of the host and limits of budget do what they say"},
	{ID: "contract.tiny", Promise: 1, Suite: SuiteEngine, script: scriptTiny,
		Rule: "where system prompt and newest group do not fit, the refusal is typed and says what is needed and by which entry most; with room it works again"},
	{ID: "contract.compact", Promise: 4, Suite: SuiteEngine, script: scriptCompact,
		Rule: "the result of Compact is true in every field, and what Describe says of summaries; wishes reach the model that is asked, as long as they are, and what is hidden does not"},
	{ID: "contract.forget", Promise: 2, Suite: SuiteEngine, script: scriptForget,
		Rule: "an erasure of many entries, of a time, or of a session reaches exactly those, and its receipt says so, with the reason, however many there are; a session that was purged has another epoch"},
	{ID: "contract.back", Promise: 2, Suite: SuiteEngine, Needs: []Need{NeedRecaller}, script: scriptBack,
		Rule: "what is found and expanded is the stored entry in every field; pages leave nothing out and repeat nothing; Describe counts what there is when it is asked"},
	{ID: "contract.subagent", Promise: 8, Suite: SuiteEngine, Needs: []Need{NeedSubagents}, script: scriptSubagent,
		Rule: "a grant opens the parent's history until it is rolled back, over to the second, or the subagent has ended, and what it hands back is stored; a fork begins with what its parent shows"},
	{ID: "contract.nested", Promise: 8, Suite: SuiteEngine, Needs: []Need{NeedSubagents}, script: scriptNested,
		Rule: "a subagent of a subagent begins with what its parent shows, of everybody, and ends with the grants for it"},
	{ID: "contract.faults", Promise: 9, Suite: SuiteEngine, script: scriptFaults,
		Rule: "whatever method of the store fails, the call says so and works when it is repeated"},
}

// fewCases is the number of cases below which scripts are drawn: a combination plays as large a part of them as its cases are of this number,
// other ones with another seed.
const fewCases = 10

// part is how many of fewCases parts are played of what is drawn with few cases. What somebody names is played whole.
func part(o options) int {
	if o.claims != nil || o.exact {
		return fewCases
	}
	return min(o.cases, fewCases)
}

// drawn reports whether a combination plays a script.
func drawn(id, combination string, o options) bool {
	h := fnv.New32a()
	fmt.Fprintln(h, o.seed, combination, id)
	return int(h.Sum32()%fewCases) < part(o)
}

// few returns which of n plays of a script are played, in order: all of them, or where scripts are drawn as large a part, at least one.
func (s *script) few(n int) []int {
	played := rand.New(rand.NewSource(s.seed)).Perm(n)[:max(1, n*s.part/fewCases)] //nolint:gosec // what is drawn is no secret
	slices.Sort(played)
	return played
}

// scripts are all checks that play a script.
func scripts() []Check {
	return slices.Concat(scriptChecks, moreScriptChecks, againChecks, recallScriptChecks, toldChecks, askedScriptChecks,
		heldChecks, eraseChecks, failChecks, severalChecks, reachChecks, endedScriptChecks, resetScriptChecks, promptScriptChecks, questionChecks, courseScriptChecks, triesChecks, pairsChecks, turnChecks, saidAgainChecks, keptChecks, returnedChecks, compactedChecks, refreshChecks, recalledChecks)
}

// examineScripts runs the scripts that checks name, each on an engine of its own.
func examineScripts(tb testing.TB, c Combination, checks map[string]Check, tokens *tokenCache, o options) []Finding {
	tb.Helper()
	var out []Finding
	for _, check := range scripts() {
		if _, ok := checks[check.ID]; !ok || !drawn(check.ID, c.Name, o) {
			continue
		}
		w := watched{watch: o.watch}
		scope := &caseTB{TB: tb}
		text := w.run(scope, func() string {
			seed := seedFor(o.seed, c.Name+check.ID)
			d := newDriver(scope, c, plan{Budget: 4000, Sparse: seed%3 == 0}, checks, tokens, nil)
			d.watch = o.watch
			s := &script{driver: d, id: sessionOf(0), cases: o.cases, part: part(o), seed: seed}
			d.saw(check.ID)
			text := cmp.Or(check.script(s), s.told)
			if text == "" {
				d.dispose()
			}
			return text
		})
		if w.hung != "" {
			text = w.hung
		}
		w.finish(scope)
		if text != "" {
			out = append(out, Finding{Check: check, Text: text, Seed: o.seed})
			if o.first {
				break
			}
		}
	}
	return out
}

// script is one engine and a session of it.
type script struct {
	*driver
	id core.SessionID
	n  int
	// cases is the suite's number of them, for scripts that do more in a longer one.
	cases int
	// part is how many of fewCases parts are played of what has many plays.
	part int
	// seed is for what a script draws.
	seed int64
	// told says which error said what a message says.
	told string
}

// heard looks at the error of a call, and returns it.
func (s *script) heard(name string, err error) error {
	if err != nil && len(marksIn(err.Error())) > 0 && s.told == "" {
		s.told = fmt.Sprintf("the error of %s holds what a message says: %v", name, err)
	}
	return err
}

func (s *script) ctx() context.Context { return s.watch.calling(s.tb.Context()) }

// message makes a message that says something of its own.
func (s *script) message(role message.Role, text string) message.Message {
	s.n++
	m := message.New(role, fmt.Sprintf("%s %s", markOf(0, s.n), text))
	m.ID, m.Key = fmt.Sprintf("m-%d", s.n), fmt.Sprintf("mk-%d", s.n)
	return m
}

// talk ingests n messages, the user's and the assistant's by turns.
func (s *script) talk(id core.SessionID, n, words int) ([]core.Entry, string) {
	var out []core.Entry
	for i := range n {
		role := message.User
		if i%2 == 1 {
			role = message.Assistant
		}
		res, err := s.engine.Ingest(s.ctx(), core.IngestRequest{Session: id, Message: s.message(role, strings.Repeat("the budget report moved ", words))})
		if err != nil || res.Ingested != 1 || res.Duplicates != 0 || len(res.IDs) != 1 {
			return nil, fmt.Sprintf("ingest of a new message: %+v, error %v", res, err)
		}
		e, text := s.get(id, res.IDs[0])
		if text != "" {
			return nil, text
		}
		out = append(out, e)
		s.env.Host.advance(time.Minute)
	}
	return out, ""
}

func (s *script) get(id core.SessionID, entry string) (core.Entry, string) {
	got, err := s.store.Get(s.ctx(), id.Scope(), []string{entry})
	if err != nil {
		return core.Entry{}, fmt.Sprintf("entry %q, which a result names, is not in the store: %v", entry, err)
	}
	return got[0], ""
}

// held returns what the store holds of a session.
func (s *script) held(id core.SessionID) []core.Entry {
	var out []core.Entry
	for e, err := range core.All(s.ctx(), s.store, id.Scope(), false) {
		if err == nil {
			out = append(out, e)
		}
	}
	return out
}

func scriptInfo(s *script) string {
	info := s.engine.Info()
	if info.ID == "" || info.Name == "" || info.Version == "" {
		return fmt.Sprintf("Info has id %q, name %q and version %q, want all three", info.ID, info.Name, info.Version)
	}
	if !slices.Contains([]string{"", "background", "foreground"}, info.TurnMaintenance) {
		return fmt.Sprintf("Info says that maintenance runs %q", info.TurnMaintenance)
	}
	if len(info.Health) > 0 {
		return fmt.Sprintf("Info of a new engine reports %+v", info.Health)
	}
	if _, text := s.talk(s.id, 4, 5); text != "" {
		return text
	}
	if _, err := s.engine.Assemble(s.ctx(), core.AssembleRequest{Session: s.id, Budget: 4000}); err != nil {
		return fmt.Sprintf("assemble: error %v", err)
	}
	again := s.engine.Info()
	if d := differs(again, info); d != "" {
		return "Info changes: " + d
	}
	return ""
}

func scriptIngest(s *script) string {
	for i, role := range []message.Role{message.System, message.User, message.Assistant, message.User, message.User} {
		m, beat := s.message(role, "a note on the budget"), i == 3
		res, err := s.engine.Ingest(s.ctx(), core.IngestRequest{Session: s.id, Message: m, Heartbeat: beat})
		if err != nil || res.Ingested != 1 || res.Duplicates != 0 || len(res.IDs) != 1 {
			return fmt.Sprintf("ingest of a new message: %+v, error %v", res, err)
		}
		e, text := s.get(s.id, res.IDs[0])
		if text == "" {
			text = oddID(res.IDs[0])
		}
		if text != "" {
			return text
		}
		want := map[bool]core.EntryType{false: core.TypeMessage, true: core.TypeHeartbeat}[beat]
		switch {
		case e.SessionID() != s.id, e.Role != role, e.Type != want, e.Key == "", e.Time.IsZero(), e.Text() != m.Text(), e.Seq != int64(i):
			return fmt.Sprintf("message %d was stored as %+v", i, e)
		case e.Fingerprint != message.Fingerprint(m):
			return fmt.Sprintf("message %d was stored with the fingerprint %q, want %q", i, e.Fingerprint, message.Fingerprint(m))
		case e.Tokens != s.count(m):
			return fmt.Sprintf("message %d was stored with %d tokens, it costs %d", i, e.Tokens, s.count(m))
		}
		again, err := s.engine.Ingest(s.ctx(), core.IngestRequest{Session: s.id, Message: m, Heartbeat: beat})
		if err != nil || again.Ingested != 0 || again.Duplicates != 1 || !slices.Equal(again.IDs, res.IDs) {
			return fmt.Sprintf("ingest of the same message again: %+v, error %v, want a duplicate of %q", again, err, res.IDs)
		}
		if n := len(s.held(s.id)); n != i+1 {
			return fmt.Sprintf("after %d messages %d entries are stored", i+1, n)
		}
	}
	bare := message.New(message.User, markOf(0, 900)+" without an id of its host")
	var first core.IngestResult
	for i := range 2 {
		res, err := s.engine.Ingest(s.ctx(), core.IngestRequest{Session: s.id, Message: bare, IdempotencyKey: "call-1"})
		if err != nil || res.Ingested != 1-i || res.Duplicates != i || i == 1 && !slices.Equal(res.IDs, first.IDs) {
			return fmt.Sprintf("call %d with one idempotency key: %+v, error %v", i+1, res, err)
		}
		first = res
	}
	filler := s.message(message.User, "nobody said it")
	filler.Type = message.Filler
	res, err := s.engine.Ingest(s.ctx(), core.IngestRequest{Session: s.id, Message: filler})
	if err != nil || res.Ingested != 0 || len(s.held(s.id)) != 6 {
		return fmt.Sprintf("ingest of a filler: %+v, error %v, %d entries are stored, want nothing new", res, err, len(s.held(s.id)))
	}
	return s.storesAll("ingest")
}

// count is what a message costs.
func (s *script) count(m message.Message) int {
	w, err := readWire(m, "")
	if err != nil {
		return 0
	}
	return recount([]wireMessage{w}, "", s.env.Count)
}

func scriptBatch(s *script) string {
	e, ok := s.engine.(core.BatchIngester)
	if !ok {
		return ""
	}
	req := core.IngestBatchRequest{Session: s.id, IdempotencyKey: "batch-1"}
	for _, role := range []message.Role{message.User, message.Assistant, message.User, message.Assistant} {
		m := s.message(role, "one of several")
		m.ID, m.Key = "", ""
		req.Messages = append(req.Messages, m)
	}
	res, err := e.IngestBatch(s.ctx(), req)
	if err != nil || res.Ingested != 4 || res.Duplicates != 0 || len(res.IDs) != 4 {
		return fmt.Sprintf("a batch of 4: %+v, error %v", res, err)
	}
	for i, id := range res.IDs {
		entry, text := s.get(s.id, id)
		if text != "" {
			return text
		}
		if entry.Text() != req.Messages[i].Text() || entry.Seq != int64(i) {
			return fmt.Sprintf("message %d of a batch is entry %q at %d: %q, want %q", i, id, entry.Seq, entry.Text(), req.Messages[i].Text())
		}
	}
	again, err := e.IngestBatch(s.ctx(), req)
	if err != nil || again.Ingested != 0 || again.Duplicates != 4 || !slices.Equal(again.IDs, res.IDs) || len(s.held(s.id)) != 4 {
		return fmt.Sprintf("the same batch again: %+v, error %v, %d entries are stored, want 4 duplicates", again, err, len(s.held(s.id)))
	}
	beat, err := e.IngestBatch(s.ctx(), core.IngestBatchRequest{Session: s.id, Messages: []message.Message{s.message(message.User, "tick"), s.message(message.Assistant, "tock")}, Heartbeat: true})
	if err != nil || beat.Ingested != 2 {
		return fmt.Sprintf("a batch of heartbeats: %+v, error %v", beat, err)
	}
	for _, id := range beat.IDs {
		if entry, text := s.get(s.id, id); text != "" || entry.Type != core.TypeHeartbeat {
			return fmt.Sprintf("a heartbeat of a batch is stored as %q %s", entry.Type, text)
		}
	}
	if text := s.fillerInBatch(e); text != "" {
		return text
	}
	// One that cannot be stored takes the whole batch back.
	bad := s.message("nobody", "no role")
	if _, err := e.IngestBatch(s.ctx(), core.IngestBatchRequest{Session: s.id, Messages: []message.Message{s.message(message.User, "first"), bad}}); err != nil && len(s.held(s.id)) != 6 {
		return fmt.Sprintf("a batch that was refused (%v) left %d entries, want 6", err, len(s.held(s.id)))
	}
	return s.storesAll("ingest batch")
}

// filledUp is a turn of a message, a filler and a message.
func (s *script) filledUp() []message.Message {
	list := []message.Message{s.message(message.User, "said"), s.message(message.Assistant, "nobody said it"), s.message(message.Assistant, "answered")}
	list[1].Type = message.Filler
	return list
}

// spoken looks whether a session holds what of a turn somebody said.
func (s *script) spoken(id core.SessionID, turn []message.Message) string {
	held := s.held(id)
	if len(held) != 2 || held[0].Text() != turn[0].Text() || held[1].Text() != turn[2].Text() {
		return fmt.Sprintf("of a turn of a message, a filler and a message %d entries are stored, want the two that somebody said", len(held))
	}
	return ""
}

// fillerInBatch ingests what nobody said between two messages, in a session of its own.
func (s *script) fillerInBatch(e core.BatchIngester) string {
	id := core.SessionID{Agent: "agent-a", Session: "filled up"}
	list := s.filledUp()
	res, err := e.IngestBatch(s.ctx(), core.IngestBatchRequest{Session: id, Messages: list})
	if err != nil || res.Ingested != 2 || len(res.IDs) != 3 || res.IDs[0] == "" || res.IDs[1] != "" || res.IDs[2] == "" || len(s.held(id)) != 2 {
		return fmt.Sprintf("a batch of a message, a filler and a message: %+v, error %v, %d entries are stored", res, err, len(s.held(id)))
	}
	return ""
}

func (s *script) transcript(n int) *core.Transcript {
	t := &core.Transcript{}
	for i := range n {
		t.Messages = append(t.Messages, s.message([]message.Role{message.User, message.Assistant}[i%2], "from the transcript"))
	}
	return t
}

func scriptBootstrap(s *script) string {
	e, ok := s.engine.(core.Bootstrapper)
	if !ok {
		return ""
	}
	res, err := e.Bootstrap(s.ctx(), core.BootstrapRequest{Session: s.id})
	if err != nil || res.Imported != 0 || res.Known != 0 {
		return fmt.Sprintf("bootstrap of a new session: %+v, error %v", res, err)
	}
	t := s.transcript(6)
	res, err = e.Bootstrap(s.ctx(), core.BootstrapRequest{Session: s.id, Transcript: t})
	if err != nil || !res.Bootstrapped || res.Imported != 6 || res.Known != 6 || len(s.held(s.id)) != 6 {
		return fmt.Sprintf("bootstrap with 6 messages: %+v, error %v, %d entries are stored", res, err, len(s.held(s.id)))
	}
	more := &core.Transcript{Messages: append(slices.Clone(t.Messages), s.message(message.User, "and one more"))}
	for _, imported := range []int{1, 0} {
		res, err = e.Bootstrap(s.ctx(), core.BootstrapRequest{Session: s.id, Transcript: more})
		if err != nil || res.Imported != imported || res.Known != 7 || len(s.held(s.id)) != 7 {
			return fmt.Sprintf("bootstrap with 7 messages: %+v, error %v, want %d imported", res, err, imported)
		}
	}
	if text := s.knownInForce(); text != "" {
		return text
	}
	return s.storesAll("bootstrap")
}

func scriptAfterTurn(s *script) string {
	e, ok := s.engine.(core.AfterTurner)
	if !ok {
		return ""
	}
	t := s.transcript(8)
	for _, turn := range []struct {
		from, to int
		beat     bool
	}{{0, 0, false}, {0, 2, false}, {2, 4, false}, {2, 4, false}, {4, 4, false}, {4, 6, true}, {6, 6, true}, {6, 8, false}, {8, 8, false}} { // a turn may bring nothing
		if err := e.AfterTurn(s.ctx(), core.AfterTurnRequest{Session: s.id, Messages: t.Messages[:turn.to], PrePrompt: turn.from, Heartbeat: turn.beat}); err != nil {
			return fmt.Sprintf("after turn: error %v", err)
		}
		held := s.held(s.id)
		if len(held) != turn.to {
			return fmt.Sprintf("after a turn of %d messages, %d in all, %d entries are stored", turn.to-turn.from, turn.to, len(held))
		}
		for i, e := range held {
			want := core.TypeMessage
			if i == 4 || i == 5 {
				want = core.TypeHeartbeat
			}
			if e.Text() != t.Messages[i].Text() || e.Type != want {
				return fmt.Sprintf("message %d is stored as %q (%s)", i, e.Text(), e.Type)
			}
		}
	}
	filled := core.SessionID{Agent: "agent-a", Session: "filled up after a turn"}
	turn := s.filledUp()
	if err := e.AfterTurn(s.ctx(), core.AfterTurnRequest{Session: filled, Messages: turn}); err != nil {
		return fmt.Sprintf("after turn: error %v", err)
	}
	if text := s.spoken(filled, turn); text != "" {
		return "after turn: " + text
	}
	if text := s.ingestedToo(e); text != "" {
		return text
	}
	if text := s.otherBeat(e); text != "" {
		return text
	}
	return s.storesAll("after turn")
}

// otherBeat is a timer's turn in a session that nothing is known of: what was there before is no timer's.
func (s *script) otherBeat(e core.AfterTurner) string {
	id := sessionOf(1)
	t := s.transcript(4)
	if err := e.AfterTurn(s.ctx(), core.AfterTurnRequest{Session: id, Messages: t.Messages, PrePrompt: 2, Heartbeat: true}); err != nil {
		return fmt.Sprintf("after turn: error %v", err)
	}
	for _, e := range s.held(id) {
		i := slices.IndexFunc(t.Messages, func(m message.Message) bool { return m.Text() == e.Text() })
		if (e.Type == core.TypeHeartbeat) != (i >= 2) {
			return fmt.Sprintf("message %d, a timer's turn began with number 2, is stored as %s", i, e.Type)
		}
	}
	return ""
}

func scriptCommit(s *script) string {
	e, _ := s.engine.(core.TurnCommitter)
	req := core.CommitTurnRequest{Session: s.id, AdvancementKey: "turn-1", Messages: s.transcript(4).Messages}
	res, err := e.CommitTurn(s.ctx(), req)
	if err != nil || res.Status != core.Committed || len(res.IDs) != 4 {
		return fmt.Sprintf("commit of a turn: %+v, error %v", res, err)
	}
	for i, id := range res.IDs {
		if entry, text := s.get(s.id, id); text != "" || entry.Text() != req.Messages[i].Text() || entry.Seq != int64(i) {
			return fmt.Sprintf("message %d of a turn is entry %q: %q %s", i, id, entry.Text(), text)
		}
	}
	s.reopen(true)
	e, _ = s.engine.(core.TurnCommitter)
	again, err := e.CommitTurn(s.ctx(), req)
	if err != nil || again.Status != core.Duplicate || len(again.IDs) > 0 && !slices.Equal(again.IDs, res.IDs) || len(s.held(s.id)) != 4 {
		return fmt.Sprintf("the same turn after a restart: %+v, error %v, %d entries are stored, want a duplicate of %q", again, err, len(s.held(s.id)), res.IDs)
	}
	next := core.CommitTurnRequest{Session: s.id, AdvancementKey: "turn-2", Messages: s.transcript(2).Messages, Heartbeat: true}
	if res, err = e.CommitTurn(s.ctx(), next); err != nil || res.Status != core.Committed || len(res.IDs) != 2 {
		return fmt.Sprintf("commit of a second turn: %+v, error %v", res, err)
	}
	if entry, text := s.get(s.id, res.IDs[0]); text != "" || entry.Type != core.TypeHeartbeat {
		return fmt.Sprintf("a heartbeat's turn is stored as %q %s", entry.Type, text)
	}
	if res, err = e.CommitTurn(s.ctx(), next); err != nil || res.Status != core.Duplicate || len(s.held(s.id)) != 6 {
		return fmt.Sprintf("a heartbeat's turn once more: %+v, error %v, %d entries are stored, want a duplicate and 6", res, err, len(s.held(s.id)))
	}
	filled := core.CommitTurnRequest{Session: core.SessionID{Agent: "agent-a", Session: "filled up"}, AdvancementKey: "turn-1", Messages: s.filledUp()}
	res, err = e.CommitTurn(s.ctx(), filled)
	if err != nil || res.Status != core.Committed || len(res.IDs) != 3 || res.IDs[0] == "" || res.IDs[1] != "" || res.IDs[2] == "" {
		return fmt.Sprintf("commit of a turn of a message, a filler and a message: %+v, error %v", res, err)
	}
	if text := s.spoken(filled.Session, filled.Messages); text != "" {
		return "commit turn: " + text
	}
	if text := s.storesAll("commit turn"); text != "" {
		return text
	}
	return s.namesContract()
}

// calls are the calls of an engine with a session.
func (s *script) calls(id core.SessionID) map[string]func(context.Context) error {
	m := s.message(message.User, "not to be stored")
	out := map[string]func(context.Context) error{
		"ingest": func(ctx context.Context) error {
			_, err := s.engine.Ingest(ctx, core.IngestRequest{Session: id, Message: m})
			return err
		},
		"assemble": func(ctx context.Context) error {
			_, err := s.engine.Assemble(ctx, core.AssembleRequest{Session: id, Budget: 4000, Prompt: m.Text()})
			return err
		},
		"compact": func(ctx context.Context) error {
			_, err := s.engine.Compact(ctx, core.CompactRequest{Session: id, Budget: 4000, Force: true})
			return err
		},
	}
	if e, ok := s.engine.(core.BatchIngester); ok {
		out["ingest batch"] = func(ctx context.Context) error {
			_, err := e.IngestBatch(ctx, core.IngestBatchRequest{Session: id, Messages: []message.Message{m}})
			return err
		}
	}
	if e, ok := s.engine.(core.Bootstrapper); ok {
		out["bootstrap"] = func(ctx context.Context) error {
			_, err := e.Bootstrap(ctx, core.BootstrapRequest{Session: id, Transcript: &core.Transcript{Messages: []message.Message{m}}})
			return err
		}
	}
	if e, ok := s.engine.(core.TurnCommitter); ok {
		out["commit turn"] = func(ctx context.Context) error {
			_, err := e.CommitTurn(ctx, core.CommitTurnRequest{Session: id, AdvancementKey: "x", Messages: []message.Message{m}})
			return err
		}
	}
	if e, ok := s.engine.(core.AfterTurner); ok {
		out["after turn"] = func(ctx context.Context) error {
			return e.AfterTurn(ctx, core.AfterTurnRequest{Session: id, Messages: []message.Message{m}})
		}
	}
	if e, ok := s.engine.(core.SubagentHost); ok {
		out["prepare spawn"] = func(ctx context.Context) error {
			_, err := e.PrepareSubagentSpawn(ctx, core.SpawnRequest{Parent: id, Child: core.SessionID{Agent: "agent-a", Session: "kid"}})
			return err
		}
		out["subagent ended"] = func(ctx context.Context) error {
			return e.OnSubagentEnded(ctx, core.SubagentEnded{Parent: s.id, Child: id, Reason: "completed", Result: m.Text()})
		}
	}
	if e, ok := s.engine.(engine.Recaller); ok {
		out["search"] = func(ctx context.Context) error {
			_, err := e.Search(ctx, engine.SearchRequest{Session: id, Query: "budget"})
			return err
		}
		out["expand"] = func(ctx context.Context) error {
			_, err := e.Expand(ctx, engine.ExpandRequest{Session: id, ID: "0"})
			return err
		}
		out["describe"] = func(ctx context.Context) error {
			_, err := e.Describe(ctx, engine.DescribeRequest{Session: id})
			return err
		}
	}
	if e, ok := s.engine.(engine.Forgetter); ok {
		out["forget"] = func(ctx context.Context) error {
			_, err := e.Forget(ctx, engine.ForgetRequest{Scope: core.Scope(id)})
			return err
		}
	}
	for name, call := range out {
		out[name] = func(ctx context.Context) error { return s.heard(name, call(ctx)) }
	}
	return out
}

// reservedNames are the sessions that hold an engine's own records.
var reservedNames = []string{"contextengine-receipts", "contextengine-secrets", "contextengine-outcomes"}

func scriptInvalid(s *script) string {
	before, text := s.talk(s.id, 3, 3)
	if text != "" {
		return text
	}
	for _, id := range []core.SessionID{{}, {Session: "main"}} {
		calls := s.calls(id)
		for _, name := range slices.Sorted(maps.Keys(calls)) {
			if err := calls[name](s.ctx()); !errors.Is(err, core.ErrInvalid) {
				return fmt.Sprintf("%s without an agent: error %v, want ErrInvalid", name, err)
			}
		}
	}
	for _, session := range reservedNames {
		calls := s.calls(core.SessionID{Agent: s.id.Agent, Session: session})
		for _, name := range slices.Sorted(maps.Keys(calls)) {
			if err := calls[name](s.ctx()); !errors.Is(err, core.ErrInvalid) {
				return fmt.Sprintf("%s of the session %q, which core.Reserved names: error %v, want ErrInvalid", name, session, err)
			}
		}
		if e, ok := s.engine.(core.SubagentHost); ok {
			err := e.OnSubagentEnded(s.ctx(), core.SubagentEnded{Parent: core.SessionID{Agent: s.id.Agent, Session: session}, Child: kid("of nobody"), Reason: "completed", Result: "done"})
			if !errors.Is(err, core.ErrInvalid) {
				return fmt.Sprintf("the end of a child of the session %q, which core.Reserved names: error %v, want ErrInvalid", session, err)
			}
		}
	}
	for _, budget := range []int{0, -1} {
		if _, err := s.engine.Assemble(s.ctx(), core.AssembleRequest{Session: s.id, Budget: budget}); !errors.Is(err, core.ErrInvalid) {
			return fmt.Sprintf("assemble with the budget %d: error %v, want ErrInvalid", budget, err)
		}
	}
	if e, ok := s.engine.(core.TurnCommitter); ok {
		if _, err := e.CommitTurn(s.ctx(), core.CommitTurnRequest{Session: s.id, Messages: s.transcript(2).Messages}); !errors.Is(err, core.ErrInvalid) {
			return fmt.Sprintf("commit turn without an advancement key: error %v, want ErrInvalid", err)
		}
	}
	if d := sameEntries(s.held(s.id), before); d != "" {
		return "after invalid calls: " + d
	}
	return s.unknownRoles()
}

func scriptCancel(s *script) string {
	before, text := s.talk(s.id, 4, 30)
	if text != "" {
		return text
	}
	calls := s.calls(s.id)
	for _, name := range slices.Sorted(maps.Keys(calls)) {
		for _, over := range endings() {
			ctx, cancel := over.context(s.ctx())
			err := calls[name](ctx)
			cancel()
			if !errors.Is(err, over.err) {
				return fmt.Sprintf("%s with a context that %s: error %v, want %v", name, over.what, err, over.err)
			}
			s.recover()
		}
	}
	if d := sameEntries(s.held(s.id), before); d != "" {
		return "after cancelled calls: " + d
	}
	return ""
}
