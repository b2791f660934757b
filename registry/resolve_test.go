package registry_test

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/contextengine/contextengine/registry"
)

// TestOverride: an agent's keys are merged over the base, level by level; the base stays as it is.
func TestOverride(t *testing.T) {
	r := newRegistry(t, &shop{})
	cfg := mustLoad(t, r, yaml(`
retriever: {limit: 7, wait: 3s, weights: {b: 2}}
window: {high: 0.8, low: 0.4}
history: {limits: {channels: {telegram: {historyLimit: 5, dmHistoryLimit: 6}}}}
store: {type: disk, path: base.db}
agents:
  deep:
    retriever: {weights: {c: 3}, deep: {on: true}}
    window: {low: 0.3}
    history: {limits: {channels: {telegram: {historyLimit: 1}, irc: {historyLimit: 2}}}}
  same: {retriever: {type: hybrid, limit: 1}}
  type: {retriever: recent, store: {type: disk}}
  engine: {engine: openbrain}
arms:
  - {name: plain, agents: [nobody]}
  - {name: both, agents: [deep], override: {retriever: {limit: 99}, window: {high: 0.7}}}
`))
	before := cfg.String()
	deep, info := mustResolve(t, r, cfg, "deep", "s")
	want := map[string]any{"limit": int64(99), "wait": "3s", "weights": map[string]any{"a": 1.0, "b": 2.0, "c": 3.0}, "deep": map[string]any{"on": true}}
	if diff := cmp.Diff(want, deep.Retriever.Options); diff != "" || info.Name != "both" || info.Share != 1 {
		t.Errorf("arm %+v, retriever (-want +got):\n%s", info, diff)
	}
	if w := deep.Core.Window; w.High != 0.7 || w.Low != 0.3 || w.KeepResults != 10 {
		t.Errorf("window is %+v", w)
	}
	channels := deep.Core.History.Limits.Channels
	if tg := channels["telegram"]; *tg.HistoryLimit != 1 || *tg.DMHistoryLimit != 6 || *channels["irc"].HistoryLimit != 2 {
		t.Errorf("channels are %+v", channels)
	}
	if same, _ := mustResolve(t, r, cfg, "same", "s"); same.Retriever.Options["limit"] != int64(1) || same.Retriever.Options["wait"] != "3s" {
		t.Errorf("same type: %v", same.Retriever)
	}
	if typ, _ := mustResolve(t, r, cfg, "type", "s"); typ.Retriever.String() != `{"limit":8,"type":"recent"}` || typ.Store.Options["path"] != "base.db" {
		t.Errorf("other type: %v, %v", typ.Retriever, typ.Store)
	}
	if eng, _ := mustResolve(t, r, cfg, "engine", "s"); eng.Retriever.Type != "recent" || eng.Store.Options["path"] != "x.db" {
		t.Errorf("other engine: %v, %v", eng.Retriever, eng.Store)
	}
	other, info := mustResolve(t, r, cfg, "other", "s")
	if other.Retriever.Options["limit"] != int64(7) || info.Name != "" || info.Share != 1 {
		t.Errorf("another agent has %v, %+v", other.Retriever, info)
	}
	if after := cfg.String(); after != before {
		t.Errorf("resolving changed the base from\n%s to\n%s", before, after)
	}
}

// TestOverridesOfSeveralSources: a later source's override is merged over an earlier one's.
func TestOverridesOfSeveralSources(t *testing.T) {
	r := newRegistry(t, &shop{})
	cfg := mustLoad(t, r,
		yaml("agents: {a: {retriever: {type: hybrid, limit: 1, weights: {b: 2}}, window: {high: 0.8}, store: {type: disk, path: p}}}"),
		yaml("agents: {a: {retriever: {limit: 2}, window: {low: 0.5}, store: memory}, b: {recentMessages: 1}}"))
	got, _ := mustResolve(t, r, cfg, "a", "s")
	if o := got.Retriever.Options; o["limit"] != int64(2) || o["weights"].(map[string]any)["b"] != 2.0 {
		t.Errorf("retriever is %v", got.Retriever)
	}
	if got.Core.Window.High != 0.8 || got.Core.Window.Low != 0.5 || got.Store.Type != "memory" {
		t.Errorf("window %+v, store %v", got.Core.Window, got.Store)
	}
}

func TestArmsAreStickyAndWeighted(t *testing.T) {
	r := newRegistry(t, &shop{})
	const text = "arms: [{name: a, weight: 1}, {name: b, weight: 2}, {name: only, agents: [x], weight: 1}, {name: never, weight: 0}]"
	cfg, again := mustLoad(t, r, yaml(text)), mustLoad(t, r, yaml(text))
	const n = 100_000
	for agent, want := range map[string]map[string]float64{
		"y": {"a": 1.0 / 3, "b": 2.0 / 3},
		"x": {"a": 0.25, "b": 0.5, "only": 0.25},
	} {
		got := map[string]float64{}
		for i := range n {
			session := fmt.Sprintf("session-%d", i)
			name, share := registry.PickArm(cfg, agent, session)
			got[name]++
			if math.Abs(share-want[name]) > 1e-9 {
				t.Fatalf("agent %s: arm %q has share %v, want %v", agent, name, share, want[name])
			}
			if other, _ := registry.PickArm(again, agent, session); other != name {
				t.Fatalf("agent %s, session %s: arm %q, then %q", agent, session, name, other)
			}
		}
		for name, share := range want {
			if off := math.Abs(got[name]/n - share); off > 0.01 {
				t.Errorf("agent %s: arm %q got %.4f of the sessions, want %.4f", agent, name, got[name]/n, share)
			}
			delete(got, name)
		}
		if len(got) > 0 {
			t.Errorf("agent %s: unexpected arms %v", agent, got)
		}
	}
	// pinned: a new version must not move sessions to other arms
	var names []string
	for i := range 8 {
		_, info := mustResolve(t, r, cfg, "x", fmt.Sprint(i))
		names = append(names, info.Name)
	}
	if got := strings.Join(names, " "); got != wantArms {
		t.Errorf("arms are %q, want %q", got, wantArms)
	}
}

const wantArms = "only b b only a only only b"

func TestConfigID(t *testing.T) {
	r := newRegistry(t, &shop{})
	id := func(text string) string {
		_, info := mustResolve(t, r, mustLoad(t, r, yaml(text)), "a", "s")
		return info.Config
	}
	if a, b := id("{}"), id("{engine: composed, retriever: {type: hybrid, limit: 5}, recentMessages: 20}"); a != b {
		t.Errorf("the defaults written out have another id: %s, %s", a, b)
	}
	if a, b := id("{}"), id("recentMessages: 21"); a == b {
		t.Errorf("another configuration has the same id %s", a)
	}
}

func TestSecretsAreHidden(t *testing.T) {
	r := newRegistry(t, &shop{})
	const secret = "sk-very-secret"
	cfg := mustLoad(t, r, yaml(`
model: {type: openai, apiKey: `+secret+`, baseUrl: "http://user:`+secret+`@example.com/v1?k=`+secret+`"}
agents: {a: {model: {type: openai, apiKey: `+secret+`}}}
arms: [{name: x, override: {model: {type: openai, apiKey: `+secret+`}}}]
`))
	resolved, _ := mustResolve(t, r, cfg, "a", "s")
	if resolved.Model.Options["apiKey"] != secret {
		t.Fatalf("the secret is lost: %q", resolved.Model.Options["apiKey"])
	}
	asJSON, err := json.Marshal(map[string]any{"c": cfg, "m": cfg.Model, "o": cfg.Agents, "s": cfg.Searchers, "r": cfg.Redacted()})
	if err != nil {
		t.Fatal(err)
	}
	var log strings.Builder
	slog.New(slog.NewTextHandler(&log, nil)).Info("loaded", "config", cfg, "model", cfg.Model, "agents", cfg.Agents)
	for _, text := range []string{
		fmt.Sprint(cfg), fmt.Sprintf("%v %+v %#v %s", cfg, cfg, cfg, cfg), fmt.Sprintf("%+v %#v", cfg.Model, cfg.Model),
		fmt.Sprintf("%+v %#v", cfg.Agents, cfg.Agents), fmt.Sprintf("%+v %#v", cfg.Arms, cfg.Arms), string(asJSON), log.String(),
	} {
		if strings.Contains(text, secret) {
			t.Errorf("a secret is in %s", text)
		}
		if !strings.Contains(text, "openai") {
			t.Errorf("nothing to hide in %s", text)
		}
	}
	for _, text := range []string{
		"{store: " + secret + ": x}", "apiKey: {a: " + secret, "- " + secret, secret, "model: {type: openai, apiKey: [" + secret + "]}",
		"model: {type: openai, apiKey: {" + secret + ": 1}}", "recall: {deadline: " + secret + "}",
		"{model: {type: openai, apiKey: " + secret + ", apiKey: " + secret + "}}",
	} {
		for _, format := range []string{"yaml", "json", "json5", "toml"} {
			if _, err := r.Load(registry.Bytes("f", format, []byte(text))); err == nil || strings.Contains(err.Error(), secret) {
				t.Errorf("%s as %s: error is %v", text, format, err)
			}
		}
	}
}

// TestArmsOfProviders: an arm with providers is given to sessions that begin with one of these, also where the provider is known late, and kept whatever serves them later.
func TestArmsOfProviders(t *testing.T) {
	r := newRegistry(t, &shop{})
	cfg := mustLoad(t, r, yaml("store: memory\narms: [{name: a, providers: [house]}, {name: b, providers: [house, garden], agents: [main]}]"))
	i, err := r.Build(t.Context(), cfg, registry.BuildOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = i.Close(t.Context()) }()
	arm := func(agent, session string) registry.ArmInfo {
		t.Helper()
		_, info, err := i.Engine(t.Context(), agent, session)
		if err != nil {
			t.Fatal(err)
		}
		return info
	}
	if got := arm("main", "s"); got.Name != "" {
		t.Errorf("without a provider: %+v", got)
	}
	i.SetProvider("main", "s", "Garden")
	if got := arm("main", "s"); got.Name != "b" || got.Share != 1 {
		t.Errorf("garden: %+v", got)
	}
	i.SetProvider("main", "s", "nobody")
	if got := arm("main", "s"); got.Name != "b" {
		t.Errorf("with another provider afterwards: %+v", got)
	}
	i.SetProvider("other", "s", "garden")
	if got := arm("other", "s"); got.Name != "" {
		t.Errorf("an agent that the arm does not take: %+v", got)
	}
	seen := make(map[string]int)
	for n := range 200 {
		session := fmt.Sprint(n)
		i.SetProvider("main", session, "house")
		got := arm("main", session)
		if seen[got.Name]++; got.Share != 0.5 {
			t.Fatalf("house: %+v", got)
		}
	}
	if seen["a"] < 50 || seen["b"] < 50 {
		t.Errorf("arms of house: %v", seen)
	}
	_, err = r.Load(yaml("store: memory\narms: [{name: a, providers: [House, '']}]"))
	for _, at := range []string{"arms.0.providers.0", "arms.0.providers.1"} {
		if err == nil || !strings.Contains(err.Error(), at+": must be the host's name of a provider") {
			t.Errorf("%s: %v", at, err)
		}
	}
}

// TestArmsOfSessions: a single session has settings of its own by an arm, and nobody else has them.
// TestSessionsThatAnArmNames: an experiment beside an arm that names sessions does not take any of them.
func TestSessionsThatAnArmNames(t *testing.T) {
	r := newRegistry(t, &shop{})
	cfg := mustLoad(t, r, yaml("store: memory\narms: [{name: control}, {name: wider, weight: 5}, {name: passing, sessions: ['agent:*:cron:*'], weight: 0.1}, {name: never, sessions: ['*'], weight: 0}]"))
	seen := map[string]int{}
	for i := range 100 {
		for kind, passing := range map[string]bool{"cron": true, "chat": false} {
			_, arm, err := r.Resolve(cfg, "main", fmt.Sprintf("agent:main:%s:%d", kind, i))
			if err != nil || (arm.Name == "passing") != passing {
				t.Fatalf("%s %d: arm %+v, %v", kind, i, arm, err)
			}
			seen[arm.Name]++
		}
	}
	if seen["control"] == 0 || seen["wider"] <= seen["control"] || seen["control"]+seen["wider"] != 100 {
		t.Errorf("arms: %v", seen)
	}
}

func TestArmsOfSessions(t *testing.T) {
	r := newRegistry(t, &shop{})
	cfg := mustLoad(t, r, yaml("store: memory\nrecentMessages: 20\narms: [{name: own, sessions: ['agent:main:irc:direct:ann'], override: {recentMessages: 3}}]"))
	for session, want := range map[string]int{"agent:main:irc:direct:ann": 3, "agent:main:irc:direct:bob": 20} {
		got, arm, err := r.Resolve(cfg, "main", session)
		if err != nil || got.Core.RecentMessages != want || (arm.Name == "own") != (want == 3) || arm.Share != 1 {
			t.Errorf("%s: %d recent messages, arm %+v, %v; want %d", session, got.Core.RecentMessages, arm, err, want)
		}
	}
	cfg = mustLoad(t, r, yaml("store: memory\nrecentMessages: 20\narms: [{name: own, sessions: ['agent:*:cron:*', '*:hook:*:end', 'all*', 'a*b*ab'], override: {recentMessages: 3}}]"))
	for session, want := range map[string]bool{
		"agent:main:cron:daily": true, "agent::cron:": true, "agent:main:cron": false, "my agent:main:cron:x": false, "x:hook:/a/b:end": true, "x:hook:end": false,
		"all": true, "all of it": true, "al": false, "abab": true, "ab": false, "aab": false, "": false,
	} {
		if _, arm, err := r.Resolve(cfg, "main", session); err != nil || (arm.Name == "own") != want {
			t.Errorf("%q: arm %+v, %v, want it: %v", session, arm, err, want)
		}
	}
}
