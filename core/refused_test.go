package core_test

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/capability"
	"github.com/contextengine/contextengine/core/message"
)

// TestArgumentsOfAStore: what a store may not be asked is ErrInvalid, and the error begins with the operation and names the field, or the figure.
func TestArgumentsOfAStore(t *testing.T) {
	agent := core.Scope{Agent: "a"}
	entry := func(change func(*core.Entry)) error {
		e := core.Entry{ID: "i", Key: "k", Agent: "a", Session: "s"}
		change(&e)
		return e.Check("x: append")
	}
	for name, c := range map[string]struct {
		err  error
		says string
	}{
		"a scope":         {agent.Check("x: get"), ""},
		"no agent":        {core.Scope{Session: "s"}.Check("x: get"), "x: get: scope.agent is empty"},
		"a scan":          {core.ScanQuery{Scope: agent, Limit: 1}.Check("x: scan"), ""},
		"a long scan":     {core.ScanQuery{Scope: agent, Limit: core.MaxPage}.Check("x: scan"), ""},
		"scan of nobody":  {core.ScanQuery{Limit: 1}.Check("x: scan"), "x: scan: scope.agent is empty"},
		"scan of nothing": {core.ScanQuery{Scope: agent}.Check("x: scan"), "x: scan: limit 0 is"},
		"scan of all":     {core.ScanQuery{Scope: agent, Limit: core.MaxPage + 1}.Check("x: scan"), "x: scan: limit 1001 is"},
		"changes":         {core.ChangeQuery{Agent: "a", Limit: 1}.Check("x: changes"), ""},
		"changes of none": {core.ChangeQuery{Limit: 1}.Check("x: changes"), "x: changes: scope.agent is empty"},
		"no changes":      {core.ChangeQuery{Agent: "a"}.Check("x: changes"), "x: changes: limit 0 is"},
		"an entry":        {entry(func(*core.Entry) {}), ""},
		"no id":           {entry(func(e *core.Entry) { e.ID = "" }), `x: append "": id is empty`},
		"no key":          {entry(func(e *core.Entry) { e.Key = "" }), `x: append "i": key is empty`},
		"nobody's entry":  {entry(func(e *core.Entry) { e.Agent = "" }), `x: append "i": agent is empty`},
		"no session":      {entry(func(e *core.Entry) { e.Session = "" }), `x: append "i": session is empty`},
	} {
		if c.says == "" {
			if c.err != nil {
				t.Errorf("%s: %v", name, c.err)
			}
		} else if !errors.Is(c.err, core.ErrInvalid) || !strings.HasPrefix(c.err.Error(), c.says) {
			t.Errorf("%s: error %v, want ErrInvalid that begins with %q", name, c.err, c.says)
		}
	}
}

// TestNoHost: a runtime that offers nothing says what it lacks, and that is a requirement which is not met.
func TestNoHost(t *testing.T) {
	h := core.NoHost{}
	_, compact := h.Compact(t.Context(), core.CompactRequest{})
	_, complete := h.Complete(t.Context(), core.CompletionRequest{})
	for missing, err := range map[capability.Name]error{capability.DelegateHost: compact, capability.Complete: complete} {
		re, ok := errors.AsType[*capability.RequirementError](err)
		if !ok || !errors.Is(err, capability.ErrRequirement) || !slices.Equal(re.Missing, []capability.Name{missing}) || slices.Contains(h.Capabilities(), missing) {
			t.Errorf("error %v, want a requirement that is not met and names %s", err, missing)
		}
	}
	if h.Name() != "standalone" || !strings.HasPrefix(compact.Error(), "capability: compact: ") || !strings.HasPrefix(complete.Error(), "capability: complete: ") {
		t.Errorf("%q says %v and %v", h.Name(), compact, complete)
	}
}

// TestArgumentsThatAreCutOff: arguments of a call that end in the midst, wherever that is, stand as they are behind what could be read of them.
func TestArgumentsThatAreCutOff(t *testing.T) {
	const whole = `{"a":[1,{"b":"two"}],"c":3}`
	for n := 1; n < len(whole); n++ {
		m := message.Message{Role: message.Assistant, Parts: []message.Part{{Kind: message.ToolCall, Name: "look", CallID: "c", Args: whole[:n]}}}
		if got := (core.Entry{Role: m.Role, Type: core.TypeMessage, Message: m}).Text(); !strings.HasPrefix(got, "look\n") || !strings.HasSuffix(got, "\n"+whole[:n]) {
			t.Errorf("%s: %q", whole[:n], got)
		}
	}
}

// TestViewThatIsNoJSON: a time that JSON cannot hold is an error, and no view without it.
func TestViewThatIsNoJSON(t *testing.T) {
	late := time.Date(12000, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, odd := range []string{"", "caf\xe9"} {
		v := core.View{Session: core.SessionID{Agent: "a", Session: "s"}, Grants: []core.Grant{{ID: odd, Until: late}}}
		if text, err := json.Marshal(v); err == nil {
			t.Errorf("%q: %s", odd, text)
		}
	}
}
