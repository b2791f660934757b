package cli_test

import (
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/contextengine/contextengine/hosts/cli"
)

// Every way of being installed and not used is found, alone, with what to do.
func TestDoctorOfOpenClawFinds(t *testing.T) {
	const entry = "plugins/entries/openbrain"
	failure := []struct {
		name  string
		code  int
		spoil func(i *installation)
		want  []string
	}{
		{"no file", cli.ExitUsage, func(i *installation) { i.config = nil }, []string{"openclaw.json is not there", "OPENCLAW_CONFIG_PATH"}},
		{"malformed", cli.ExitUsage, func(i *installation) {
			i.file("state/openclaw.json", "{\n\"token\": \"s3cr3t\n", 0o600)
		}, []string{"is no valid JSON5, see line"}},
		{"no object", cli.ExitUsage, func(i *installation) { i.file("state/openclaw.json", "[\"s3cr3t\"]", 0o600) }, []string{"holds no object"}},
		{"plugins disabled", cli.ExitUsage, func(i *installation) { i.set("plugins/enabled", false) }, []string{"plugins.enabled is false", "set plugins.enabled to true"}},
		{"denied", cli.ExitUsage, func(i *installation) { i.set("plugins/deny", []any{"openbrain"}) }, []string{"plugins.deny has openbrain", "take it out"}},
		{"not allowed", cli.ExitUsage, func(i *installation) { i.set("plugins/allow", []any{"s3cr3t"}) }, []string{"plugins.allow does not have openbrain", "add it"}},
		{"entry disabled", cli.ExitUsage, func(i *installation) { i.set(entry+"/enabled", false) }, []string{"entries.openbrain.enabled is false"}},
		{"slot empty", cli.ExitUsage, func(i *installation) { i.set("plugins/slots", nil) }, []string{"contextEngine is not set", `to "openbrain"`}},
		{"slot legacy", cli.ExitUsage, func(i *installation) { i.set("plugins/slots/contextEngine", "legacy") }, []string{"is legacy, the host's own"}},
		{"slot mistyped", cli.ExitUsage, func(i *installation) { i.set("plugins/slots/contextEngine", "openbrian") }, []string{"probably mistyped"}},
		{"slot of another", cli.ExitUsage, func(i *installation) { i.set("plugins/slots/contextEngine", "s3cr3t-engine") }, []string{"names another engine"}},
		{"no plugin", cli.ExitUsage, func(i *installation) { i.set("plugins/load", nil) }, []string{"it is in none of", "openclaw plugins install"}},
		{"manifest missing", cli.ExitUsage, func(i *installation) { i.remove("plugin/openclaw.plugin.json") }, []string{"openclaw.plugin.json is missing"}},
		{"manifest id", cli.ExitUsage, func(i *installation) {
			i.file("plugin/openclaw.plugin.json", `{"id": "other", "kind": "context-engine"}`, 0o644)
		}, []string{"the manifest's id", "install the plugin again"}},
		{"manifest kind", cli.ExitUsage, func(i *installation) {
			i.file("plugin/openclaw.plugin.json", `{"id": "openbrain", "kind": ["memory"]}`, 0o644)
		}, []string{"the manifest's kind"}},
		{"no dist", cli.ExitUsage, func(i *installation) { i.remove("plugin/dist") }, []string{"built files are missing", "npm run build"}},
		{"no entry", cli.ExitUsage, func(i *installation) {
			i.file("plugin/package.json", `{"name": "openclaw-openbrain-context"}`, 0o644)
		}, []string{"names no openclaw.extensions"}},
		{"no fence", cli.ExitUsage, func(i *installation) {
			i.file("plugin/dist/index.js", "class Engine { async commitTurn(params) {} }", 0o644)
		}, []string{"does not declare the contract of durable turns"}},
		{"no commitTurn", cli.ExitUsage, func(i *installation) {
			i.file("plugin/dist/index.js", goodBuild[:len(goodBuild)/2+60], 0o644)
		}, []string{"does not declare the contract of durable turns"}},
		{"host too old", cli.ExitUsage, func(i *installation) {
			i.file("host/package.json", `{"name": "openclaw", "version": "2026.5.22"}`, 0o644)
		}, []string{"2026.5.22 (the program on PATH) is too old"}},
		{"no sidecar", cli.ExitUsage, func(i *installation) { i.setting("allowLaunch", nil) }, []string{"neither a socket nor allowLaunch"}},
		{"packaged, forbidden", cli.ExitUsage, func(i *installation) { i.packaged(); i.setting("allowLaunch", false) }, []string{"neither a socket nor allowLaunch"}},
		{"packaged, another named", cli.ExitUsage, func(i *installation) {
			i.packaged()
			i.setting("allowLaunch", nil)
			i.setting("command", "contextengine")
		}, []string{"neither a socket nor allowLaunch"}},
		{"unknown key", cli.ExitUsage, func(i *installation) { i.setting("alowLaunch", true) }, []string{`unknown key "alowLaunch"`, `did you mean "allowLaunch"?`}},
		{"wrong type", cli.ExitUsage, func(i *installation) { i.setting("allowLaunch", "s3cr3t") }, []string{"config.allowLaunch has the wrong type", "boolean"}},
		{"no command", cli.ExitUsage, func(i *installation) { i.setting("command", "contextengine-s3cr3t") }, []string{"is not found, neither as a path nor on PATH"}},
		{"relative command", cli.ExitUsage, func(i *installation) { i.setting("command", "./bin/contextengine") }, []string{"command is a relative path"}},
		{"command not executable", cli.ExitUsage, func(i *installation) { i.setting("command", i.path("host/package.json")) }, []string{"is not executable", "chmod +x"}},
		{"another program", cli.ExitUsage, func(i *installation) {
			i.program("other")
			i.setting("command", "other")
		}, []string{"is not contextengine"}},
		{"no serve", cli.ExitUsage, func(i *installation) {
			i.program("old")
			i.setting("command", "old")
		}, []string{"is an older contextengine, without serve"}},
		{"hanging command", cli.ExitFailure, func(i *installation) {
			i.program("slow")
			i.setting("command", "slow")
			i.args = []string{"--openclaw-wait", "50ms"}
		}, []string{"did not say its version in 50ms"}},
		{"socket missing", cli.ExitFailure, func(i *installation) { i.setting("socket", i.path("no.sock")) }, []string{"is not there: no sidecar runs", "contextengine serve --socket"}},
		{"relative socket", cli.ExitUsage, func(i *installation) { i.setting("socket", "no.sock") }, []string{"is no absolute path"}},
		{"no socket", cli.ExitUsage, func(i *installation) { i.setting("socket", i.path("gateway.log")) }, []string{"is no socket"}},
		{"socket dead", cli.ExitFailure, func(i *installation) {
			path, ln := listen(i.t)
			ln.SetUnlinkOnClose(false)
			_ = ln.Close()
			i.setting("socket", path)
		}, []string{"is dead: nobody listens"}},
		{"socket silent", cli.ExitFailure, func(i *installation) {
			path, _ := listen(i.t) // nobody accepts
			i.setting("socket", path)
			i.args = []string{"--openclaw-wait", "50ms"}
		}, []string{"did not answer in 50ms"}},
		{"engine of the sidecar", cli.ExitFailure, func(i *installation) {
			i.setting("socket", sidecar(i.t, write(i.t, "engine.yaml", "engine: composed\nstore: {type: sqlite, path: "+i.path("gateway.log/db")+"}\n")))
		}, []string{"cannot make its engine", "the sidecar's own configuration"}},
		{"no baseUrl", cli.ExitUsage, func(i *installation) { i.setting("baseUrl", " ") }, []string{"baseUrl is missing", "OPENBRAIN_URL"}},
		{"no apiKey", cli.ExitUsage, func(i *installation) { i.setting("apiKey", nil) }, []string{"apiKey is missing", "OPENBRAIN_API_KEY"}},
		{"no configFile", cli.ExitUsage, func(i *installation) { i.setting("configFile", i.path("no.yaml")) }, []string{"no.yaml is not there", "contextengine init"}},
		{"configFile below the home", cli.ExitUsage, func(i *installation) {
			i.t.Setenv("HOME", i.dir)
			i.setting("configFile", "~/no.yaml")
		}, []string{"/no.yaml is not there"}},
		{"configFile of another's home", cli.ExitUsage, func(i *installation) { i.setting("configFile", "~bob/no.yaml") }, []string{`only "~" itself stands for a home`}},
		{"relative configFile", cli.ExitUsage, func(i *installation) { i.setting("configFile", "no.yaml") }, []string{"is no absolute path"}},
		{"configFile is invalid", cli.ExitUsage, func(i *installation) {
			i.setting("configFile", write(i.t, "e.yaml", "retreiver: s3cr3t\n"))
		}, []string{`did you mean "retriever"?`}},
		{"configFile says legacy", cli.ExitUsage, func(i *installation) {
			i.setting("configFile", write(i.t, "e.yaml", "engine: legacy\n"))
		}, []string{"chooses legacy"}},
		{"no log", cli.ExitFailure, func(i *installation) { i.args = []string{"--openclaw-log", i.path("no.log")} }, []string{"no.log cannot be read", "--openclaw-log"}},
	}
	for _, tt := range failure {
		t.Run(tt.name, func(t *testing.T) {
			i := newInstallation(t)
			tt.spoil(i)
			got := i.doctor()
			got.want(t, tt.code, tt.want...)
			if n := got.statuses("fail"); n != 1 {
				t.Errorf("%d failures, want 1:\n%s", n, got.out)
			}
		})
	}
}

// What may be in order is a note, and no failure.
func TestDoctorOfOpenClawNotes(t *testing.T) {
	for _, tt := range []struct {
		name  string
		spoil func(i *installation)
		want  string
	}{
		{"mode", func(i *installation) {
			i.doctor()
			if err := os.Chmod(i.path("state/openclaw.json"), 0o644); err != nil {
				i.t.Fatal(err)
			}
		}, "chmod 600"},
		{"include", func(i *installation) { i.set("$include", "s3cr3t.json5") }, "it includes other files"},
		{"other name in the slot", func(i *installation) {
			i.set("plugins/slots/contextEngine", "openclaw-openbrain-context")
		}, "uninstalling will not reset it"},
		{"host unknown", func(i *installation) { i.remove("bin/openclaw") }, "note  host version   unknown"},
		{"host between", func(i *installation) {
			i.remove("bin/openclaw")
			i.set("meta", map[string]any{"lastTouchedVersion": "2026.7.3"})
		}, "2026.7.3 (the one that wrote the configuration) is between 2026.7 and 2026.8"},
		{"host with a known fault", func(i *installation) {
			i.file("host/package.json", `{"name": "openclaw", "version": "2026.8.1"}`, 0o644)
		}, "degrades fresh turns"},
		{"own arguments", func(i *installation) { i.setting("args", []any{"s3cr3t.mjs"}) }, "arguments of its own"},
		{"key of the environment", func(i *installation) {
			i.setting("apiKey", nil)
			i.env = append(i.env, "OPENBRAIN_API_KEY=s3cr3t")
		}, "apiKey comes from OPENBRAIN_API_KEY"},
		{"key by reference", func(i *installation) { i.setting("apiKey", "${NOT_THERE_s3cr3t}") }, "refers to an environment variable"},
		{"no log", func(i *installation) { i.remove("gateway.log") }, "none is found"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			i := newInstallation(t)
			tt.spoil(i)
			got := i.doctor()
			got.want(t, cli.ExitOK, tt.want)
			if n := got.statuses("note"); n != 1 {
				t.Errorf("%d notes, want 1:\n%s", n, got.out)
			}
		})
	}
}

func (i *installation) remove(name string) {
	i.t.Helper()
	if err := os.RemoveAll(i.path(name)); err != nil {
		i.t.Fatal(err)
	}
}

// listen makes a socket on which nobody answers.
func listen(t *testing.T) (string, *net.UnixListener) {
	t.Helper()
	dir, err := os.MkdirTemp("", "cli") //nolint:usetesting // TempDir is too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	path := filepath.Join(dir, "s")
	ln, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ln.Close() })
	return path, ln
}
