package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/contextengine/contextengine/core/capability"
	"github.com/contextengine/contextengine/hosts/rpc"
)

// pluginOffers is what the plugin tells a sidecar about the host: with less, some engines cannot be made. A sidecar asks the client whose
// call it serves, so that doctor is never asked for it.
var pluginOffers = []capability.Name{
	capability.DelegateHost, capability.Complete, capability.Bootstrap, capability.Assemble, capability.AfterTurn, capability.Maintain, capability.Compact,
	capability.CommitTurn, capability.SpawnSubagents,
}

// socket says whether a sidecar answers on the socket that the plugin is told to use.
func (o *inspection) socket(ctx context.Context, path string) {
	const name = "socket"
	start := fmt.Sprintf("start it: contextengine serve --socket %s", path)
	if !filepath.IsAbs(path) {
		o.wrong(name, "it is no absolute path: it means another file wherever the gateway is started", "write the whole path")
		return
	}
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		o.broken(name, path+" is not there: no sidecar runs", start)
		return
	case err != nil:
		o.broken(name, path+" cannot be reached: "+causeOf(err).Error(), "run doctor and the sidecar as the user that the gateway runs as")
		return
	case info.Mode().Type() != fs.ModeSocket:
		o.wrong(name, path+" is no socket", "correct the path")
		return
	}
	ctx, cancel := context.WithTimeout(ctx, o.flags.wait)
	defer cancel()
	client, err := rpc.Dial(ctx, path, rpc.ClientOptions{})
	if errors.Is(err, fs.ErrPermission) {
		o.broken(name, path+" belongs to another user", "run the sidecar as the user that the gateway runs as")
		return
	}
	if err != nil {
		o.broken(name, path+" is dead: nobody listens on it", start)
		return
	}
	defer client.Close()
	res, err := client.Initialize(ctx, rpc.InitializeParams{
		Client: rpc.Program{Name: "contextengine doctor", Version: version()}, Host: rpc.Program{Name: "openclaw"}, Capabilities: pluginOffers,
	})
	var health rpc.HealthResult
	if err == nil {
		health, err = client.Health(ctx)
	}
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		o.broken(name, fmt.Sprintf("the sidecar on %s did not answer in %s", path, o.flags.wait), "look at its log, then start it again")
	case err != nil:
		o.broken(name, "what listens on "+path+" does not speak the sidecar's protocol", "have contextengine serve listen there, of the same version as the plugin")
	case res.EngineError != nil:
		o.broken(name, "the sidecar on "+path+" cannot make its engine: "+res.EngineError.Message, `mend the sidecar's own configuration: "contextengine doctor --config FILE" checks it`)
	case len(health.Problems) > 0:
		p := health.Problems[0]
		o.broken(name, fmt.Sprintf("the sidecar on %s has %s; the first, of %s at %s, since %s: %s", path, count(len(health.Problems), "problem"),
			p.Part, p.Op, p.Since.UTC().Format(time.RFC3339), p.Text), "mend what the text names; where it says quarantined, type /openbrain retry in a chat, or start the sidecar again")
	case res.Engine == nil:
		o.ok(name, "a sidecar answers on %s", path)
	default:
		o.ok(name, "a sidecar answers on %s, with the engine %s", path, res.Engine.ID)
	}
}

// command says whether the program that the plugin starts is a sidecar.
func (o *inspection) command(ctx context.Context, s object, command string) {
	const name = "command"
	path, err := o.lookPath(command)
	set := "set " + configKey("command") + " to the path of contextengine"
	switch {
	case errors.Is(err, errRelative):
		o.wrong(name, err.Error(), set)
		return
	case errors.Is(err, fs.ErrPermission):
		o.wrong(name, path+" is not executable", "chmod +x "+path+", or "+set)
		return
	case err != nil:
		o.wrong(name, "the program that the plugin starts is not found, neither as a path nor on PATH", set)
		return
	}
	if args := s.texts("args"); len(args) > 0 && args[0] != "serve" {
		o.note(name, path+" is there; it is started with arguments of its own, which doctor does not try", "see in the gateway's log whether the sidecar starts")
		return
	}
	out, err := o.tryRun(ctx, path, "version")
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		o.broken(name, fmt.Sprintf("%s did not say its version in %s", path, o.flags.wait), "see that it is contextengine; "+set)
		return
	case err != nil || !strings.HasPrefix(out, "contextengine "):
		o.wrong(name, path+" is not contextengine, or cannot run here", set)
		return
	}
	out, err = o.tryRun(ctx, path, "serve", "--schema")
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		o.broken(name, fmt.Sprintf("%s did not print its protocol in %s", path, o.flags.wait), "see that the machine is not overloaded, and try again")
	case err != nil || !strings.Contains(out, "$defs"):
		o.wrong(name, path+" is an older contextengine, without serve", "install a newer one")
	default:
		o.ok(name, "%s can be started as a sidecar", path)
	}
}

// packagedProgram is the program that npm installed with the plugin, or empty. It is looked for as Node does: in the folders node_modules of the plugin's folder and of those above.
func packagedProgram(plugin string) string {
	if plugin == "" {
		return ""
	}
	system, cpu, file := runtime.GOOS, runtime.GOARCH, "contextengine"
	if system == "windows" {
		system, file = "win32", "contextengine.exe"
	}
	if cpu == "amd64" {
		cpu = "x64"
	}
	if real, err := filepath.EvalSymlinks(plugin); err == nil {
		plugin = real
	}
	for dir := plugin; ; dir = filepath.Dir(dir) {
		path := filepath.Join(dir, "node_modules", "contextengine-"+system+"-"+cpu, "bin", file)
		if _, err := os.Stat(path); err == nil {
			return path
		}
		if dir == filepath.Dir(dir) {
			return ""
		}
	}
}

var errRelative = malformed("command is a relative path: it means another program wherever the gateway is started")

// lookPath finds a program as the host does, on the PATH that doctor was given. With fs.ErrPermission the path is that of a file that cannot be executed.
func (o *inspection) lookPath(command string) (string, error) {
	if strings.ContainsRune(command, filepath.Separator) {
		if !filepath.IsAbs(command) {
			return "", errRelative
		}
		return command, executable(command)
	}
	for _, dir := range filepath.SplitList(o.app.getenv("PATH")) {
		if path := filepath.Join(dir, command); dir != "" && executable(path) == nil {
			return path, nil
		}
	}
	return "", fs.ErrNotExist
}

func executable(path string) error {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return err
	case !info.Mode().IsRegular():
		return fs.ErrPermission
	case info.Mode()&0o111 == 0 && runtime.GOOS != "windows":
		return fs.ErrPermission
	}
	return nil
}

// tryRun runs a program for a short time, with nothing of the environment that could be a key, and returns the beginning of its output.
func (o *inspection) tryRun(ctx context.Context, path string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, o.flags.wait)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, args...)
	out := &beginning{most: 1 << 20}
	cmd.Stdout, cmd.WaitDelay = out, 100*time.Millisecond
	cmd.Env = []string{}
	for _, name := range []string{"PATH", "HOME", "TMPDIR", "SystemRoot", "USERPROFILE"} {
		if v := o.app.getenv(name); v != "" {
			cmd.Env = append(cmd.Env, name+"="+v)
		}
	}
	err := cmd.Run()
	if ctx.Err() != nil {
		return "", ctx.Err()
	}
	return out.String(), err
}

// beginning keeps the first bytes that are written to it.
type beginning struct {
	buf  bytes.Buffer
	most int
}

func (b *beginning) Write(p []byte) (int, error) {
	b.buf.Write(p[:min(len(p), b.most-b.buf.Len())])
	return len(p), nil
}

func (b *beginning) String() string { return b.buf.String() }
