package conformance

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/engine"
)

// shownBefore erases, in every way, what windows showed just before, and asks for the same windows again: an engine that keeps windows lets go of these, whichever
// session was named.
func (s *script) shownBefore() string {
	type erasing struct {
		what string
		req  func(of []core.Entry) engine.ForgetRequest
	}
	ways := []erasing{
		{"all of an agent", func([]core.Entry) engine.ForgetRequest { return engine.ForgetRequest{} }},
		{"entries of an agent", func(of []core.Entry) engine.ForgetRequest {
			return engine.ForgetRequest{Entries: []string{of[0].ID, of[len(of)-1].ID}}
		}},
		{"a time of an agent", func(of []core.Entry) engine.ForgetRequest {
			return engine.ForgetRequest{From: of[1].Time, To: of[len(of)-1].Time}
		}},
		{"what an agent said first", func(of []core.Entry) engine.ForgetRequest { return engine.ForgetRequest{To: of[len(of)-2].Time} }},
		{"all of an agent, with a purge", func([]core.Entry) engine.ForgetRequest { return engine.ForgetRequest{Purge: true} }},
		{"a session", func(of []core.Entry) engine.ForgetRequest {
			return engine.ForgetRequest{Scope: of[0].SessionID().Scope()}
		}},
		{"entries of a session", func(of []core.Entry) engine.ForgetRequest {
			return engine.ForgetRequest{Scope: of[0].SessionID().Scope(), Entries: []string{of[1].ID}}
		}},
	}
	for n, way := range ways {
		for _, forks := range []bool{false, true} {
			for last := range 2 {
				agent := fmt.Sprintf("shown before %d %v %d", n, forks, last)
				if text := s.erasesShown(agent, last, forks, way.req); text != "" {
					return fmt.Sprintf("%s was erased, windows were shown before (the last of session %d, with forks: %v): %s", way.what, last+1, forks, text)
				}
			}
		}
	}
	return ""
}

// erasesShown shows the windows of an agent's sessions, one of them last, erases, and shows that one and the others again.
func (s *script) erasesShown(agent string, last int, forks bool, erases func(of []core.Entry) engine.ForgetRequest) string {
	var ids []core.SessionID
	var of []core.Entry
	for _, name := range []string{"main", "second"} {
		id := core.SessionID{Agent: agent, Session: name}
		said, text := s.talk(id, 3, 3)
		if text != "" {
			return text
		}
		ids, of = append(ids, id), append(of, said...)
	}
	if e, ok := s.engine.(core.SubagentHost); ok && forks {
		child := core.SessionID{Agent: agent, Session: "fork"}
		if _, err := e.PrepareSubagentSpawn(s.ctx(), core.SpawnRequest{Parent: ids[last], Child: child, Mode: core.SpawnFork, TTL: time.Hour}); err != nil {
			return fmt.Sprintf("prepare spawn: error %v", err)
		}
		if _, text := s.talk(child, 1, 3); text != "" {
			return text
		}
		ids = append(ids, child)
	} else if forks {
		return ""
	}
	// The one that is shown last is asked first afterwards: nothing else happened meanwhile.
	slices.SortStableFunc(ids, func(a, b core.SessionID) int {
		mine := func(id core.SessionID) int {
			if id == of[3*last].SessionID() {
				return 1
			}
			return 0
		}
		return cmp.Compare(mine(a), mine(b))
	})
	show := func(id core.SessionID) (string, string) {
		res, err := s.engine.Assemble(s.ctx(), core.AssembleRequest{Session: id, Budget: 8000})
		if err != nil {
			return "", fmt.Sprintf("assemble of %s: error %v", id, err)
		}
		return windowText(res), ""
	}
	before := map[core.SessionID]string{}
	for _, id := range ids {
		for range 2 {
			var text string
			if before[id], text = show(id); text != "" {
				return text
			}
		}
	}
	req := erases(of)
	if req.Scope.Agent == "" {
		req.Scope.Agent = agent
	}
	if _, err := s.forgets(req); err != nil {
		return fmt.Sprintf("forget: error %v", err)
	}
	left := map[string]bool{}
	for _, id := range ids {
		for _, e := range s.held(id) {
			for _, mark := range marksIn(e.Text()) {
				left[mark] = true
			}
		}
	}
	for _, id := range slices.Backward(ids) {
		now, text := show(id)
		if text != "" {
			return text
		}
		for _, mark := range marksIn(before[id]) {
			if shows := strings.Contains(now, mark); shows && !left[mark] {
				return fmt.Sprintf("session %s shows %q, which is in the store no longer", id, mark)
			} else if !shows && left[mark] {
				return fmt.Sprintf("session %s does not show %q any more, which was not erased", id, mark)
			}
		}
	}
	return ""
}
