package engine_test

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"github.com/contextengine/contextengine/backends/memory"
	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/engine"
	"github.com/contextengine/contextengine/core/history"
	"github.com/contextengine/contextengine/core/message"
)

// TestUnknownProviderIsSaidOnce: a provider whose turn rules are not known is said once in the log and once in the warnings of each session, with what to do, and one whose
// model tells is not.
func TestUnknownProviderIsSaidOnce(t *testing.T) {
	var log bytes.Buffer
	parts := engine.Parts{Store: memory.New(), Compactor: &halver{}, Counter: wordCounter}
	e, err := engine.New(parts, engine.DefaultConfig(), engine.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
	if err != nil {
		t.Fatal(err)
	}
	for _, session := range []string{"s", "another"} {
		for i, s := range []core.RuntimeSettings{{}, {Provider: "mistral"}, {Provider: "house", Model: "claude-x"}, {Provider: "house", Model: "brain-7"}, {Provider: "house", Model: "brain-7"}} {
			req := core.AssembleRequest{Session: core.SessionID{Agent: "main", Session: session}, Budget: 1000, Settings: s}
			res, err := e.Assemble(t.Context(), req)
			if err != nil {
				t.Fatal(err)
			}
			if warned := len(res.Warnings) == 1 && strings.Contains(res.Warnings[0], `provider "house": `) && strings.Contains(res.Warnings[0], "history.provider"); warned != (i == 3) || len(res.Warnings) > 1 {
				t.Errorf("%s, call %d: warnings %q", session, i, res.Warnings)
			}
		}
	}
	if got := log.String(); strings.Count(got, "history.provider") != 1 || !strings.Contains(got, "provider=house") {
		t.Errorf("logged %q, want one line that names the provider and the key", got)
	}
}

// TestSettingsOfAProvider: limits and rules that are set for a provider hold while it serves the model, in all sessions, and others for the rest.
func TestSettingsOfAProvider(t *testing.T) {
	one, two, none := 1, 2, 0
	f := newFixture(t, func(c *engine.Config, _ *engine.Parts) {
		c.History.LimitTurns = 4
		c.History.Providers = map[string]engine.ProviderHistory{
			"house":  {Provider: "anthropic", LimitTurns: &two},
			"garden": {LimitTurns: &none, Limits: history.Limits{Channels: map[string]history.ChannelLimits{"irc": {HistoryLimit: &two}}}},
			"yard":   {Limits: history.Limits{Channels: map[string]history.ChannelLimits{"irc": {HistoryLimit: &one}}}},
		}
	})
	for _, c := range []struct {
		session, provider string
		most, least       int // user turns
		merged            bool
	}{
		{"s", "", 6, 4, false}, {"s2", "House", 3, 2, true}, {"s3", "garden", 9, 9, false}, {"agent:main:irc:group:g", "garden", 3, 2, false}, {"agent:main:irc:group:h", "yard", 2, 1, false},
	} {
		f.id.Session = c.session
		for range 8 {
			f.ingest(user("question"), assistant("answer"))
		}
		f.ingest(user("one more"), user("and this"), assistant("both"))
		res := f.assemble(10000, func(r *core.AssembleRequest) { r.Settings.Provider = c.provider })
		users := 0
		for _, m := range res.Messages {
			if m.Role == message.User {
				users++
			}
		}
		most, least := c.most+1, c.least
		if c.merged {
			most, least = c.most, c.least-1
		}
		if users > most || users < least {
			t.Errorf("%s with %q: %d messages of the user, want %d to %d", c.session, c.provider, users, least, most)
		}
		if merged := strings.Contains(shown(res), "one more | and this"); merged == c.merged {
			t.Errorf("%s with %q: %s", c.session, c.provider, shown(res))
		}
	}
	for key, bad := range map[string]engine.ProviderHistory{"House": {}, "": {}, "a": {Provider: "nosuch"}, "b": {LimitTurns: new(int)}} {
		if key == "b" {
			*bad.LimitTurns = -1
		}
		cfg := engine.DefaultConfig()
		cfg.History.Providers = map[string]engine.ProviderHistory{key: bad}
		if err := cfg.Validate(); err == nil || !strings.Contains(err.Error(), "history.providers."+key) {
			t.Errorf("%q: %v", key, err)
		}
	}
}
