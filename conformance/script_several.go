package conformance

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/engine"
	"github.com/contextengine/contextengine/core/message"
)

// severalChecks look at two engines over one store.
var severalChecks = []Check{
	{ID: "contract.several", Promise: 2, Suite: SuiteEngine, script: scriptSeveral,
		Rule: "of two engines over one store that tells how far a session is, each shows at its next call what the other one stored, compacted, erased and purged, nothing is left of what one erases while the other one compacts, and what both are told at the same time is stored"},
}

// tells reports whether the store lets an engine see what another one stores: it tells how far a session is.
func (s *script) tells() bool {
	t, ok := core.As[core.Tailer](s.store)
	if !ok {
		return false
	}
	_, err := t.Tail(s.ctx(), s.id)
	return err == nil
}

// shares reports whether the store lets an engine see all that another one does: it keeps the views, too.
func (s *script) shares() bool {
	_, ok := core.As[core.ViewStore](s.store)
	return ok && s.tells()
}

// secondEngine makes another engine over the store, as a second process has it.
func (s *script) secondEngine() core.ContextEngine {
	env := s.env
	env.Store = s.store
	e, _ := s.comb.Open(s.tb, env)
	return e
}

func scriptSeveral(s *script) string {
	if !s.tells() {
		return ""
	}
	a, b := s.engine, s.secondEngine()
	engines := [2]core.ContextEngine{a, b} // told apart by their places: not every engine can be compared
	defer func() {
		s.engine = a
		if d, ok := b.(core.Disposer); ok {
			_ = d.Dispose(s.ctx())
		}
	}()
	id := s.id
	if text := s.erasedMeanwhile(a, b); text != "" || !s.shares() {
		return text
	}
	s.id = id
	// each does something with one of the two, and looks whether the other one shows the same then.
	each := func(what string, n int, do func() string) string {
		with, other := engines[n], engines[1-n]
		s.engine = with
		if text := do(); text != "" {
			return what + ": " + text
		}
		want, text := s.windowOf(with)
		if text != "" {
			return what + ": " + text
		}
		got, text := s.windowOf(other)
		if text != "" {
			return what + " by another engine: " + text
		}
		if got != want {
			return fmt.Sprintf("after another engine did this to its session (%s) an engine shows something else than that one: %s", what, firstDifference(got, want))
		}
		return ""
	}
	talk := func(n, words int) func() string {
		return func() string { _, text := s.talk(s.id, n, words); return text }
	}
	for n, step := range []struct {
		what string
		with int
		do   func() string
	}{
		{"two messages", 0, talk(2, 3)}, {"two messages more", 1, talk(2, 3)}, {"two messages more", 0, talk(2, 3)}, {"one message more", 1, talk(1, 3)},
		{"more than there is room for", 0, talk(20, 25)}, {"a compaction", 1, s.compacts}, {"one message more", 0, talk(1, 3)}, {"a compaction", 0, s.compacts},
		{"an erasure", 1, s.erasesNewest}, {"one message more", 0, talk(1, 3)}, {"an erasure", 0, s.erasesNewest},
		{"a purge", 1, s.purges}, {"one message more", 0, talk(1, 3)},
	} {
		if text := each(step.what, step.with, step.do); text != "" {
			return fmt.Sprintf("step %d: %s", n+1, text)
		}
	}
	if text := s.purgedByOther(a, b); text != "" {
		return text
	}
	return s.bothAtOnce(a, b)
}

// meanwhile is what two engines do to a session of which one makes a summary.
type meanwhile struct {
	what string
	// own says that the compacting engine has erased a message itself, fork that the session is a fork of the one where something is erased, purge that all of that is
	// purged, and nothing that nothing happens.
	own, fork, purge, nothing bool
}

// erasedMeanwhile lets each of two engines compact, and the other one erase what is compacted when the summary comes to the store.
func (s *script) erasedMeanwhile(engines ...core.ContextEngine) string {
	for _, m := range []meanwhile{
		{what: "erased a message"}, {what: "erased another message, after it did so itself,", own: true}, {what: "erased a message of the session that it forked", fork: true},
		{what: "purged the session", purge: true}, {what: "did nothing", own: true, nothing: true},
	} {
		for n := range engines {
			if text := s.crossed(m, n, engines); text != "" {
				return fmt.Sprintf("engine %d %s while engine %d compacted: %s", 1-n, m.what, n, text)
			}
		}
	}
	return ""
}

// crossed is one case of erasedMeanwhile: engine n compacts.
func (s *script) crossed(m meanwhile, n int, engines []core.ContextEngine) string {
	f, ok := engines[1-n].(engine.Forgetter)
	if !ok {
		return ""
	}
	s.id, s.engine = recallSession(fmt.Sprintf("engine %d %s while engine %d compacts", 1-n, m.what, n)), engines[n]
	talk, text := s.talk(s.id, 20, 25)
	if text != "" {
		return text
	}
	if m.own {
		if _, err := s.forgets(engine.ForgetRequest{Scope: s.id.Scope(), Entries: []string{talk[1].ID}}); err != nil {
			return fmt.Sprintf("forget: error %v", err)
		}
	}
	req := engine.ForgetRequest{Scope: s.id.Scope(), Entries: []string{talk[0].ID}}
	if m.purge {
		req.Entries, req.Purge = nil, true
	}
	if m.fork {
		if _, ok := s.engine.(core.SubagentHost); !ok {
			return ""
		}
		child := kid(s.id.Session + ": fork")
		if _, text := s.spawned(core.SpawnFork, child); text != "" {
			return text
		}
		s.id = child
		if _, text := s.talk(s.id, 4, 3); text != "" {
			return text
		}
	}
	reached, release := s.env.faults.hold(s.id)
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.compacts()
	}()
	var err error
	select {
	case <-reached:
		if !m.nothing {
			_, err = f.Forget(s.ctx(), req)
		}
	case <-done: // it stores no summary
	}
	release()
	<-done
	if err != nil {
		return fmt.Sprintf("forget: error %v", err)
	}
	select {
	case <-reached:
	default:
		return ""
	}
	if m.nothing {
		return s.keepsSummaries(engines)
	}
	mark := marksIn(talk[0].Text())[0]
	for i, e := range slices.Backward(engines) {
		window, text := s.windowOf(e)
		if text != "" {
			return text
		}
		if strings.Contains(window, mark) {
			return fmt.Sprintf("engine %d shows it", i)
		}
	}
	return s.leftOf([]string{talk[0].Agent, s.id.Agent}, mark)
}

// keepsSummaries reports that a summary of which nothing was erased since does not say what it said, once every engine has shown the session.
func (s *script) keepsSummaries(engines []core.ContextEngine) string {
	summaries := func() map[string]string {
		out := make(map[string]string)
		for _, e := range s.held(s.id) {
			if e.Type == core.TypeSummary {
				out[e.ID] = e.Text()
			}
		}
		return out
	}
	was := summaries()
	for i, e := range engines {
		if _, text := s.windowOf(e); text != "" {
			return text
		}
		if now := summaries(); !maps.Equal(now, was) {
			return fmt.Sprintf("engine %d showed the session, and of %d summaries %d are left as they were", i, len(was), len(now))
		}
	}
	return ""
}

// purgedByOther purges a session with each of two engines in turn, and looks at the epoch of both.
func (s *script) purgedByOther(engines ...core.ContextEngine) string {
	for n, with := range engines {
		s.id = recallSession(fmt.Sprintf("purged by engine %d", n))
		s.engine = with
		if _, ok := with.(engine.Forgetter); !ok {
			return ""
		}
		if _, text := s.talk(s.id, 3, 3); text != "" {
			return text
		}
		var before []core.AssembleResult
		for _, s.engine = range engines {
			res, err := s.assemble(traceBudget, nil)
			if err != nil {
				return fmt.Sprintf("assemble: error %v", err)
			}
			before = append(before, res)
		}
		s.engine = with
		if text := s.purges(); text != "" {
			return text
		}
		for i, e := range slices.Backward(engines) {
			s.engine = e
			if text := s.anotherEpoch(before[i]); text != "" {
				return fmt.Sprintf("engine %d, where engine %d purged: %s", i, n, text)
			}
		}
	}
	return ""
}

// windowOf is what an engine shows of the session, or that it shows nothing.
func (s *script) windowOf(e core.ContextEngine) (window, text string) {
	res, err := e.Assemble(s.ctx(), core.AssembleRequest{Session: s.id, Budget: traceBudget, PromptMode: core.PromptNone})
	if err != nil {
		return "", fmt.Sprintf("assemble: error %v", err)
	}
	return windowText(res), ""
}

func (s *script) compacts() string {
	_, _ = s.engine.Compact(s.ctx(), core.CompactRequest{Session: s.id, Budget: traceBudget, Force: true}) // that it works is for others to say
	return ""
}

// erasesNewest erases the newest message that says something.
func (s *script) erasesNewest() string {
	if _, ok := s.engine.(engine.Forgetter); !ok {
		return ""
	}
	held := s.held(s.id)
	for _, e := range slices.Backward(held) {
		if e.Type != core.TypeMessage {
			continue
		}
		if _, err := s.forgets(engine.ForgetRequest{Scope: s.id.Scope(), Entries: []string{e.ID}}); err != nil {
			return fmt.Sprintf("forget: error %v", err)
		}
		return ""
	}
	return ""
}

func (s *script) purges() string {
	if _, ok := s.engine.(engine.Forgetter); !ok {
		return ""
	}
	if _, err := s.forgets(engine.ForgetRequest{Scope: s.id.Scope(), Purge: true}); err != nil {
		return fmt.Sprintf("purge: error %v", err)
	}
	return ""
}

// bothAtOnce tells both engines the same at the same time: first so that both come to the store before either is done, then as it happens.
func (s *script) bothAtOnce(engines ...core.ContextEngine) string {
	const each = 12
	id := core.SessionID{Agent: "agent-a", Session: "both at once"}
	tell := func(e core.ContextEngine) error {
		res, err := e.Ingest(s.ctx(), core.IngestRequest{Session: id, Message: message.New(message.User, "go on")})
		if err == nil && (res.Ingested != 1 || len(res.IDs) != 1) {
			err = fmt.Errorf("the result is %+v", res) //nolint:err113 // it is only told
		}
		return err
	}
	for range 2 {
		reached, release := s.env.faults.hold(id)
		done := make(chan error, len(engines))
		for _, e := range engines {
			go func() { done <- tell(e) }()
		}
		<-reached
		time.Sleep(begun)
		release()
		for range engines {
			if err := <-done; err != nil {
				return fmt.Sprintf("ingest while another engine stores into the session: error %v", err)
			}
		}
	}
	text := atOnce(len(engines), func(i int) string {
		for range each {
			if err := tell(engines[i]); err != nil {
				return fmt.Sprintf("ingest while another engine stores into the session: error %v", err)
			}
		}
		return ""
	})
	if text != "" {
		return text
	}
	if n, want := len(s.held(id)), len(engines)*(each+2); n != want {
		return fmt.Sprintf("two engines over one store were told %d messages at the same time: %d are stored", want, n)
	}
	return ""
}
