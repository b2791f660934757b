package cli_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/contextengine/contextengine/hosts/cli"
	"github.com/contextengine/contextengine/registry/builtin"
)

// installation is an OpenClaw host with the plugin, in a temporary folder. As it is made, only its sidecar is missing.
type installation struct {
	t      *testing.T
	dir    string
	config map[string]any
	env    []string
	args   []string
}

// secret is part of everything in an installation that doctor must not show.
const secret = "s3cr3t"

const (
	goodManifest = `{"id": "openbrain", "kind": "context-engine", "configSchema": {"type": "object", "properties": {
		"baseUrl": {"type": "string"}, "apiKey": {"type": "string"}, "engine": {"type": "string"}, "configFile": {"type": "string"}, "socket": {"type": "string"},
		"command": {"type": "string"}, "args": {"type": "array"}, "allowLaunch": {"type": "boolean"}, "passEnv": {"type": "array"}, "recentMessages": {"type": "integer"}}}}`
	goodPackage = `{"name": "openclaw-openbrain-context", "openclaw": {"extensions": ["./dist/index.js"]}}`
	goodBuild   = `const info = { transcriptSemantics: { currentTurnFence: "before-current-turn-entry-v1", turnAdvancementIdempotency: "atomic-idempotent-v1" } };
		class Engine { async commitTurn(params) {} }`
	goodEngine = "engine: composed\nstore: memory\nretriever: recent\ncompactor: archive\n"
)

func newInstallation(t *testing.T) *installation {
	t.Helper()
	i := &installation{t: t, dir: t.TempDir()}
	i.file("plugin/openclaw.plugin.json", goodManifest, 0o644)
	i.file("plugin/package.json", goodPackage, 0o644)
	i.file("plugin/dist/index.js", goodBuild, 0o644)
	i.program("contextengine")
	i.file("host/openclaw.mjs", "", 0o755)
	i.file("host/package.json", `{"name": "openclaw", "version": "2026.9.6"}`, 0o644)
	if err := os.Symlink("../host/openclaw.mjs", i.path("bin/openclaw")); err != nil {
		t.Fatal(err)
	}
	i.file("gateway.log", "2026-11-21T10:00:00.000Z [gateway] ready\n", 0o600)
	i.env = []string{"HOME=" + i.dir, "PATH=" + i.path("bin") + ":/usr/bin:/bin", "OPENCLAW_STATE_DIR=" + i.path("state")}
	i.config = map[string]any{
		"gateway": map[string]any{"auth": map[string]any{"token": secret + "-token"}},
		"logging": map[string]any{"file": i.path("gateway.log")},
		"plugins": map[string]any{
			"allow": []any{"openbrain"}, "slots": map[string]any{"contextEngine": "openbrain"}, "load": map[string]any{"paths": []any{i.path("plugin")}},
			"entries": map[string]any{"openbrain": map[string]any{"enabled": true, "config": map[string]any{
				"baseUrl": "http://127.0.0.1:1/" + secret, "apiKey": secret + "-key", "allowLaunch": true,
			}}},
		},
	}
	return i
}

func (i *installation) path(name string) string {
	return filepath.Join(i.dir, filepath.FromSlash(name))
}

func (i *installation) file(name, text string, mode os.FileMode) {
	i.t.Helper()
	path := i.path(name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		i.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		i.t.Fatal(err)
	}
}

// program puts one of the programs that TestMain plays into the installation.
func (i *installation) program(name string) {
	i.t.Helper()
	self, err := os.Executable()
	if err != nil {
		i.t.Fatal(err)
	}
	path := i.path("bin/" + name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		i.t.Fatal(err)
	}
	if err := os.Symlink(self, path); err != nil {
		i.t.Fatal(err)
	}
}

// packaged puts a program where npm puts the one that comes with the plugin.
func (i *installation) packaged() {
	i.t.Helper()
	system := map[string]string{"windows": "win32"}[runtime.GOOS]
	cpu := map[string]string{"amd64": "x64"}[runtime.GOARCH]
	i.program("../plugin/node_modules/contextengine-" + cmp.Or(system, runtime.GOOS) + "-" + cmp.Or(cpu, runtime.GOARCH) + "/bin/contextengine")
}

// set sets what stands at a path with slashes; nil takes it away.
func (i *installation) set(path string, value any) {
	keys := strings.Split(path, "/")
	at := i.config
	for _, k := range keys[:len(keys)-1] {
		at = at[k].(map[string]any)
	}
	if last := keys[len(keys)-1]; value == nil {
		delete(at, last)
	} else {
		at[last] = value
	}
}

func (i *installation) setting(key string, value any) {
	i.set("plugins/entries/openbrain/config/"+key, value)
}

// doctor writes the configuration, if there is any, and runs the command. No secret may be in what it says.
func (i *installation) doctor() outcome {
	i.t.Helper()
	if i.config != nil {
		b, err := json.MarshalIndent(i.config, "", "  ")
		if err != nil {
			i.t.Fatal(err)
		}
		if _, err := os.Stat(i.path("state/openclaw.json")); err != nil {
			i.file("state/openclaw.json", "// JSON5\n"+string(b), 0o600)
		}
	}
	var out, errs bytes.Buffer
	args := append([]string{"doctor", "--openclaw", "--openclaw-wait", "1m", "--timeout", "2m"}, i.args...)
	code := cli.Run(i.t.Context(), builtin.New(), args, cli.IO{Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errs, Environ: i.env})
	if strings.Contains(out.String()+errs.String(), secret) {
		i.t.Errorf("a secret is shown:\n%s%s", &out, &errs)
	}
	return outcome{code, out.String(), errs.String()}
}

// statuses counts the findings of a status.
func (o outcome) statuses(status string) (n int) {
	for line := range strings.Lines(o.out) {
		if strings.HasPrefix(line, status+" ") {
			n++
		}
	}
	return n
}

// sidecar serves on a socket until the end of the test.
func sidecar(t *testing.T, config string) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "cli") //nolint:usetesting // TempDir is too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	path := filepath.Join(dir, "s")
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan int, 1)
	var errs bytes.Buffer
	go func() {
		ended <- cli.Run(ctx, builtin.New(), []string{"serve", "--socket", path, "--config", config}, cli.IO{Stdin: strings.NewReader(""), Stdout: &errs, Stderr: &errs})
	}()
	t.Cleanup(func() {
		cancel()
		if code := <-ended; code != cli.ExitOK {
			t.Errorf("serve ended with %d:\n%s", code, &errs)
		}
	})
	for {
		if nc, err := net.Dial("unix", path); err == nil {
			_ = nc.Close()
			return path
		}
		select {
		case code := <-ended:
			ended <- code
			t.Fatal("serve ended")
		case <-time.After(time.Millisecond):
		}
	}
}

// findings counts the lines that begin one.
func findings(text string) int { return len(regexp.MustCompile(`(?m)^\S`).FindAllString(text, -1)) }

func TestDoctorOfOpenClawThatIsWell(t *testing.T) {
	t.Run("launched", func(t *testing.T) {
		got := newInstallation(t).doctor()
		got.want(t, cli.ExitOK, "ok    selection", "ok    plugin", "ok    durable turns", "ok    host version   2026.9.6 (the program on PATH)",
			"can be started as a sidecar", "ok    plugin config", "ok    gateway log")
		if n := got.statuses("ok"); n != 8 || n != findings(got.out) {
			t.Errorf("not all is ok:\n%s", got.out)
		}
	})
	t.Run("with the program that was installed with the plugin", func(t *testing.T) {
		i := newInstallation(t)
		i.remove("bin/contextengine")
		i.setting("allowLaunch", nil)
		i.packaged()
		i.doctor().want(t, cli.ExitOK, "ok    command", "node_modules/contextengine-", "can be started as a sidecar", "ok    plugin config")
	})
	t.Run("socket", func(t *testing.T) {
		i := newInstallation(t)
		i.set("plugins/entries/openbrain/config", map[string]any{"socket": sidecar(t, write(t, "engine.yaml", goodEngine))})
		got := i.doctor()
		got.want(t, cli.ExitOK, "ok    socket         a sidecar answers on", "with the engine composed")
		if got.statuses("ok") != findings(got.out) {
			t.Errorf("not all is ok:\n%s", got.out)
		}
	})
	t.Run("socket of a sidecar that asks the host for compaction", func(t *testing.T) {
		i := newInstallation(t)
		i.setting("socket", sidecar(t, write(t, "engine.yaml", "engine: composed\nstore: memory\nretriever: recent\ncompactor: delegate\n")))
		i.doctor().want(t, cli.ExitOK, "ok    socket")
	})
	t.Run("as JSON, by its own name", func(t *testing.T) {
		i := newInstallation(t)
		i.doctor()
		i.env = []string{"PATH=" + i.path("bin") + ":/usr/bin:/bin", "HOME=/nowhere"}
		i.args = []string{i.path("state/openclaw.json"), "--json"}
		i.doctor().want(t, cli.ExitOK, `"ok": true`, `"name": "durable turns"`)
	})
	t.Run("installed", func(t *testing.T) {
		for _, place := range []string{"state/extensions/openbrain", "state/npm/node_modules/x", "state/npm/projects/x/node_modules/openclaw-openbrain-context"} {
			i := newInstallation(t)
			i.set("plugins/load", nil)
			if err := os.MkdirAll(filepath.Dir(i.path(place)), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.Rename(i.path("plugin"), i.path(place)); err != nil {
				t.Fatal(err)
			}
			i.doctor().want(t, cli.ExitOK, "ok    plugin         "+i.path(place))
		}
	})
	t.Run("this repository's plugin", func(t *testing.T) {
		i := newInstallation(t)
		real, err := filepath.Abs("../openclaw/plugin")
		if err != nil {
			t.Fatal(err)
		}
		i.set("plugins/load/paths", []any{real})
		i.doctor().want(t, cli.ExitOK, "ok    plugin         "+real, "ok    durable turns")
	})
}

func TestDoctorOfOpenClawUsage(t *testing.T) {
	for _, args := range [][]string{
		{"doctor", "--openclaw", "a", "b"}, {"doctor", "a"}, {"doctor", "--openclaw=a", "b"}, {"doctor", "--openclaw-log", "a"}, {"doctor", "--openclaw", "--config", "a"},
	} {
		run(t, builtin.New(), "", args...).want(t, cli.ExitUsage)
	}
}
