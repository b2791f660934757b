package cli_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/contextengine/contextengine/backends/memory"
	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/engine"
	"github.com/contextengine/contextengine/experiment/live"
	"github.com/contextengine/contextengine/hosts/cli"
	"github.com/contextengine/contextengine/registry"
	"github.com/contextengine/contextengine/registry/builtin"
)

func TestInspect(t *testing.T) {
	config, _ := keeping(t)
	run(t, builtin.New(), "", "import", "--config", config, "--agent", "ann", chat(t, "one", 60), chat(t, "two", 4)).want(t, cli.ExitOK)
	run(t, builtin.New(), "", "inspect", "--config", config, "--agent", "ann").want(t, cli.ExitOK, "one", "two", "30", "60")
	run(t, builtin.New(), "", "inspect", "--config", config, "--agent", "ann", "--session", "one", "--limit", "3").
		want(t, cli.ExitOK, "ann/one", "60 messages in 30 turns", "message 59 of one", "(3 of ")
	found := run(t, builtin.New(), "", "inspect", "--config", config, "--agent", "ann", "--session", "one", "--search", "message 17 of one", "--json")
	found.want(t, cli.ExitOK)
	var res engine.SearchResult
	if err := json.Unmarshal([]byte(found.out), &res); err != nil || len(res.Found) == 0 || res.Found[0].Excerpt != "message 17 of one" {
		t.Fatalf("%+v, %v", res, err)
	}
	run(t, builtin.New(), "", "inspect", "--config", config, "--agent", "ann", "--session", "one", "--expand", "#"+res.Found[0].ID, "--before", "1", "--after", "1").
		want(t, cli.ExitOK, "message 16 of one", "message 17 of one", "message 18 of one")
	run(t, builtin.New(), "", "inspect", "--config", config, "--agent", "ann", "--session", "three").want(t, cli.ExitFailure, `session "three"`, "--session")
	run(t, builtin.New(), "", "inspect", "--config", config, "--agent", "ann", "--session", "one", "--expand", "nobody").want(t, cli.ExitFailure, "nobody")
	run(t, builtin.New(), "", "inspect", "--config", config).want(t, cli.ExitUsage, "--agent")
}

func TestExperimentStatus(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s.db")
	config := write(t, "c.yaml", fmt.Sprintf("store: {type: sqlite, path: %s}\narms: [{name: plain}, {name: wide, override: {recentMessages: 40}}]\n", path))
	var files []string
	for i := range 12 {
		files = append(files, chat(t, fmt.Sprintf("chat%d", i), 4))
	}
	run(t, builtin.New(), "", append([]string{"import", "--config", config, "--agent", "ann"}, files...)...).want(t, cli.ExitOK)
	for i := range 12 {
		run(t, builtin.New(), "", "experiment", "score", "--config", config, "--agent", "ann", "--session", fmt.Sprintf("chat%d", i), "--metric", "resolved", fmt.Sprint(i%2)).want(t, cli.ExitOK)
	}
	run(t, builtin.New(), "", "experiment", "status", "--config", config).want(t, cli.ExitOK, "plain", "wide", "resolved", live.MetricTurns)
	got := run(t, builtin.New(), "", "experiment", "status", "--config", config, "--json")
	got.want(t, cli.ExitOK)
	var st live.Status
	if err := json.Unmarshal([]byte(got.out), &st); err != nil || len(st.Arms) != 2 || st.Arms[0].Sessions+st.Arms[1].Sessions != 12 || st.Unassigned != 0 {
		t.Errorf("%+v, %v", st, err)
	}
	page := filepath.Join(t.TempDir(), "live.html")
	status := []string{"experiment", "status", "--config", config, "--html", page}
	run(t, builtin.New(), "", status...).want(t, cli.ExitOK, "wrote "+page)
	run(t, builtin.New(), "", status...).want(t, cli.ExitFailure, page+" exists")
	run(t, builtin.New(), "", append(status, "--force")...).want(t, cli.ExitOK, "resolved")
	html, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"A running experiment with 2 arms", "Resolved", "At a glance", "<svg", "Turns per session: "} {
		if !strings.Contains(string(html), want) {
			t.Errorf("the report lacks %q", want)
		}
	}
	for _, c := range []struct{ args, want string }{
		{"--agent ann --session chat99 --metric resolved 1", "chat99"},
		{"--agent ann --session chat1 --turn 9 --metric resolved 1", "2 turns"},
		{"--agent ann --session chat1 --metric has,comma 1", "name"},
		{"--agent ann --session chat1 --metric resolved good", "VALUE"},
	} {
		if r := run(t, builtin.New(), "", append([]string{"experiment", "score", "--config", config}, strings.Fields(c.args)...)...); r.code == cli.ExitOK || !strings.Contains(r.errors, c.want) {
			t.Errorf("%s: code %d, %s", c.args, r.code, r.errors)
		}
	}
	run(t, builtin.New(), "", "experiment", "status").want(t, cli.ExitUsage, "arms")
}

// plainStore is a store without views, or anything else that only some have. It outlives the commands that open it.
type plainStore struct{ core.Store }

func (plainStore) Close() error { return nil }

// What is in the window and what is shown of a session's messages comes from the same place, also where a store keeps no views.
func TestInspectWithoutViews(t *testing.T) {
	kept := plainStore{memory.New()}
	reg := builtin.New()
	err := registry.AddStore(reg, "plain", "no views", func() struct{} { return struct{}{} },
		func(context.Context, struct{}, registry.Env) (core.Store, error) { return kept, nil })
	if err != nil {
		t.Fatal(err)
	}
	run(t, reg, "", "import", "--store", "plain", "--agent", "ann", chat(t, "one", 60)).want(t, cli.ExitOK)
	run(t, reg, "", "inspect", "--store", "plain", "--agent", "ann").want(t, cli.ExitFailure, "cannot list sessions")
	got := run(t, reg, "", "inspect", "--store", "plain", "--agent", "ann", "--session", "one", "--limit", "3")
	got.want(t, cli.ExitOK, "60 messages in 30 turns", "message 59 of one", "(3 of 60")
}
