package rpc_test

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/hosts/rpc"
)

// told is an engine that remembers what it was asked, by method.
type told struct {
	fake
	requests map[string]any
}

func newTold() *told {
	e := &told{requests: make(map[string]any)}
	e.assemble = func(_ context.Context, req core.AssembleRequest) (core.AssembleResult, error) {
		e.requests[rpc.MethodAssemble] = req
		return core.AssembleResult{PromptAuthority: core.AuthorityAssembled}, nil
	}
	e.compact = func(_ context.Context, req core.CompactRequest) (core.CompactResult, error) {
		e.requests[rpc.MethodCompact] = req
		return core.CompactResult{OK: true}, nil
	}
	e.commit = func(_ context.Context, req core.CommitTurnRequest) (core.CommitTurnResult, error) {
		e.requests[rpc.MethodCommitTurn] = req
		return core.CommitTurnResult{Status: core.Committed}, nil
	}
	e.maintain = func(_ context.Context, req core.MaintainRequest) (core.MaintainResult, error) {
		e.requests[rpc.MethodMaintain] = req
		return core.MaintainResult{}, nil
	}
	return e
}

func (e *told) Bootstrap(_ context.Context, req core.BootstrapRequest) (core.BootstrapResult, error) {
	e.requests[rpc.MethodBootstrap] = req
	return core.BootstrapResult{Bootstrapped: true}, nil
}

func (e *told) AfterTurn(_ context.Context, req core.AfterTurnRequest) error {
	e.requests[rpc.MethodAfterTurn] = req
	return nil
}

// runMethods are the calls that a host makes about a run, with what they need besides.
var runMethods = map[string]string{
	rpc.MethodBootstrap:  ``,
	rpc.MethodCommitTurn: `,"advancementKey":"k","messages":[{"role":"user","content":"hi"}]`,
	rpc.MethodAfterTurn:  `,"messages":[{"role":"user","content":"hi"}]`,
	rpc.MethodAssemble:   `,"tokenBudget":100`,
	rpc.MethodCompact:    `,"force":true`,
	rpc.MethodMaintain:   `,"reason":"turn"`,
}

// runCall calls a method of runMethods with one more field.
func runCall(t *testing.T, c *rpc.Client, method, field string, value any) error {
	t.Helper()
	b, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	params := `{"session":{"agent":"a","session":"s"},"` + field + `":` + string(b) + runMethods[method] + `}`
	return c.Call(t.Context(), method, json.RawMessage(params), &struct{}{})
}

// everyField sets all that a structure holds to something that is not its zero value, so that a field that is added one day is covered that day.
func everyField(v reflect.Value, n *int) {
	*n++
	switch v.Kind() {
	case reflect.Struct:
		for _, field := range v.Fields() {
			everyField(field, n)
		}
	case reflect.String:
		v.SetString("text " + string(rune('a'+*n)))
	case reflect.Int:
		v.SetInt(int64(*n))
	}
}

func TestSettingsReachTheEngine(t *testing.T) {
	t.Parallel()
	e := newTold()
	c := open(t, newServer(t, one{e}, nil), rpc.ClientOptions{})
	var want core.RuntimeSettings
	n := 0
	everyField(reflect.ValueOf(&want).Elem(), &n)
	sent := want
	sent.Format = "" // the call's own
	for _, method := range slices.Sorted(maps.Keys(runMethods)) {
		if err := runCall(t, c, method, "settings", sent); err != nil {
			t.Errorf("%s = %v", method, err)
			continue
		}
		got, _ := reflect.TypeAssert[core.RuntimeSettings](reflect.ValueOf(e.requests[method]).FieldByName("Settings"))
		want.Format = "pi"
		if method == rpc.MethodMaintain {
			want.Format = "" // it has no messages
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: settings (-want +got):\n%s", method, diff)
		}
	}
}

func TestSettingsAreChecked(t *testing.T) {
	t.Parallel()
	c := open(t, newServer(t, one{newTold()}, nil), rpc.ClientOptions{})
	type fields map[string]any
	for want, value := range map[string]fields{
		"settings.schemaVersion":                 {"schemaVersion": -1},
		"settings.contextWindow":                 {"contextWindow": -1},
		"settings.maxOutputTokens":               {"maxOutputTokens": -1},
		"settings.promptTokenBudget":             {"promptTokenBudget": -1},
		"settings.modelFamily":                   {"modelFamily": strings.Repeat("x", 1025)},
		"settings.requestedModel":                {"requestedModel": "a\x00b"},
		"settings.executionHost.label":           {"executionHost": fields{"label": strings.Repeat("x", 1025)}},
		"settings.contextEngineSelection.source": {"contextEngineSelection": fields{"source": "\x00"}},
		"apiKey":                                 {"apiKey": "secret"},
		"url":                                    {"executionHost": fields{"url": "secret"}},
		"settings.executionHost":                 {"executionHost": "embedded"},
		"settings.schemaVersion ":                {"schemaVersion": "1"},
	} {
		for method := range runMethods {
			err := runCall(t, c, method, "settings", value)
			if e := wantCode(t, method, err, rpc.CodeInvalidParams); e.Data.Field != strings.TrimSpace(want) {
				t.Errorf("%s with %.80v names the field %q, want %q", method, value, e.Data.Field, want)
			}
			if e, ok := errors.AsType[*rpc.Error](err); ok && strings.Contains(e.Message, "secret") {
				t.Errorf("%s says a value: %s", method, e.Message)
			}
		}
	}
	// A host of tomorrow says more words than are known today.
	if err := runCall(t, c, rpc.MethodAssemble, "settings", fields{"mode": "hurried", "fallbackReason": "moon_phase", "contextEngineSelection": fields{"source": "chosen"}}); err != nil {
		t.Errorf("new words of a host: %v", err)
	}
}

func TestTranscriptScopeReachesTheEngine(t *testing.T) {
	t.Parallel()
	e := newTold()
	c := open(t, newServer(t, one{e}, nil), rpc.ClientOptions{})
	var want core.TranscriptScope
	n := 0
	everyField(reflect.ValueOf(&want).Elem(), &n)
	for method := range runMethods {
		if err := runCall(t, c, method, "transcriptScope", want); err != nil {
			t.Errorf("%s = %v", method, err)
			continue
		}
		got, _ := reflect.TypeAssert[core.TranscriptScope](reflect.ValueOf(e.requests[method]).FieldByName("TranscriptScope"))
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: scope of the transcript (-want +got):\n%s", method, diff)
		}
	}
}

func TestTranscriptScopeIsChecked(t *testing.T) {
	t.Parallel()
	c := open(t, newServer(t, one{newTold()}, nil), rpc.ClientOptions{})
	for want, value := range map[string]any{
		"transcriptScope.agentId":   map[string]string{"agentId": strings.Repeat("x", 1025)},
		"transcriptScope.sessionId": map[string]string{"sessionId": "a\x00b"},
		"transcriptScope.path":      map[string]string{"path": strings.Repeat("x", 4097)},
		"storePath":                 map[string]string{"storePath": "/home/somebody"},
		"transcriptScope":           "agent",
	} {
		for method := range runMethods {
			e := wantCode(t, method, runCall(t, c, method, "transcriptScope", value), rpc.CodeInvalidParams)
			if e.Data.Field != want || strings.Contains(e.Message, "somebody") {
				t.Errorf("%s with %.80v: %v of the field %q, want %q", method, value, e, e.Data.Field, want)
			}
		}
	}
}

func (e *told) PrepareSubagentSpawn(_ context.Context, req core.SpawnRequest) (core.Spawn, error) {
	e.requests[rpc.MethodPrepareSpawn] = req
	return core.Spawn{Rollback: func(context.Context) error { return nil }}, nil
}

func (e *told) OnSubagentEnded(context.Context, core.SubagentEnded) error { return nil }

func TestSpawnNamesTheTranscripts(t *testing.T) {
	t.Parallel()
	e := newTold()
	c := open(t, newServer(t, one{e}, nil), rpc.ClientOptions{})
	params := func(more string) json.RawMessage {
		return json.RawMessage(`{"parent":{"agent":"a","session":"p"},"child":{"agent":"a","session":"c"}` + more + `}`)
	}
	call := func(more string) error {
		return c.Call(t.Context(), rpc.MethodPrepareSpawn, params(more), &struct{}{})
	}
	if err := call(`,"parentSessionId":"p1","parentSessionFile":"/t/p1.jsonl","childSessionId":"c1","childSessionFile":"/t/c1.jsonl"`); err != nil {
		t.Fatal(err)
	}
	want := core.SpawnRequest{
		Parent: core.SessionID{Agent: "a", Session: "p"}, Child: core.SessionID{Agent: "a", Session: "c"},
		ParentSessionID: "p1", ParentSessionFile: "/t/p1.jsonl", ChildSessionID: "c1", ChildSessionFile: "/t/c1.jsonl",
	}
	if diff := cmp.Diff(want, e.requests[rpc.MethodPrepareSpawn]); diff != "" {
		t.Errorf("the request of the engine (-want +got):\n%s", diff)
	}
	long := strings.Repeat("x", 4097)
	for more, field := range map[string]string{
		`,"parentSessionId":"` + long[:1025] + `"`: "parentSessionId",
		`,"childSessionId":"a\u0000b"`:             "childSessionId",
		`,"parentSessionFile":"` + long + `"`:      "parentSessionFile",
		`,"childSessionFile":"` + long + `"`:       "childSessionFile",
		`,"parentSessionFile":5`:                   "parentSessionFile",
		`,"sessionFile":"/t/p1.jsonl"`:             "sessionFile",
	} {
		if e := wantCode(t, field, call(more), rpc.CodeInvalidParams); e.Data.Field != field {
			t.Errorf("%.40s names the field %q, want %q", more, e.Data.Field, field)
		}
	}
}
