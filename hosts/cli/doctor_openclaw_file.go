package cli

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/titanous/json5"

	"github.com/contextengine/contextengine/core"
)

// Bounds of the JSON5 files that are read: no real one comes near.
const (
	maxHostFile  = 4 << 20
	maxHostDepth = 1000
)

// object is a JSON object.
type object map[string]any

// at returns the object under a key; nil, which can be read like an empty one, when there is none.
func (t object) at(key string) object {
	m, _ := t[key].(map[string]any)
	return m
}

// text returns the string under a key, without the space around it.
func (t object) text(key string) string {
	s, _ := t[key].(string)
	return strings.TrimSpace(s)
}

// texts returns the strings of the list under a key.
func (t object) texts(key string) []string {
	list, _ := t[key].([]any)
	var out []string
	for _, v := range list {
		if s, ok := v.(string); ok {
			out = append(out, s)
		}
	}
	return out
}

// hostConfig is what an OpenClaw host is told.
type hostConfig struct {
	path string
	mode fs.FileMode
	tree object
	// state is the folder in which the host keeps its own things.
	state string
}

// plugins is the section that says which plugins are used.
func (c hostConfig) plugins() object { return c.tree.at("plugins") }

// pluginEntry is what the host is told about the plugin.
func (c hostConfig) pluginEntry() object { return c.plugins().at("entries").at(openClawPlugin) }

// settings is the plugin's configuration.
func (c hostConfig) settings() object { return c.pluginEntry().at("config") }

// home returns the home folder, as the environment says.
func (a *app) home() string {
	return cmp.Or(a.getenv("OPENCLAW_HOME"), a.getenv("HOME"), a.getenv("USERPROFILE"))
}

// expand replaces a leading "~" as the host does.
func (a *app) expand(path string) string {
	if path == "~" || strings.HasPrefix(path, "~/") {
		return filepath.Join(a.home(), path[1:])
	}
	return path
}

// hostPlaces returns the host's configuration file and the folder of its state.
func (a *app) hostPlaces(file string) (config, state string) {
	state = filepath.Join(a.home(), ".openclaw")
	if s := strings.TrimSpace(a.getenv("OPENCLAW_STATE_DIR")); s != "" {
		state = a.expand(s)
	}
	switch named := strings.TrimSpace(a.getenv("OPENCLAW_CONFIG_PATH")); {
	case file != usualPlace:
		config = file
	case named != "":
		config = a.expand(named)
	default:
		config = filepath.Join(state, "openclaw.json")
	}
	return config, state
}

// readHost reads the host's configuration.
func (o *inspection) readHost() (hostConfig, bool) {
	const name = "openclaw.json"
	path, state := o.app.hostPlaces(o.flags.file)
	c := hostConfig{path: path, state: state}
	if info, err := os.Stat(path); err == nil {
		c.mode = info.Mode().Perm()
	}
	tree, err := readJSON5(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		o.wrong(name, path+" is not there", `name the file: "doctor --openclaw FILE"; or set OPENCLAW_CONFIG_PATH or OPENCLAW_STATE_DIR as the gateway has them; or run "openclaw onboard" first`)
		return c, false
	case errors.Is(err, core.ErrInvalid):
		o.wrong(name, path+" "+err.Error(), "correct the file; the host does not start with it")
		return c, false
	case err != nil:
		o.broken(name, path+" cannot be read: "+causeOf(err).Error(), "run doctor as the user that the gateway runs as")
		return c, false
	}
	c.tree = tree
	o.ok(name, "%s is read", path)
	if tree["$include"] != nil || c.plugins()["$include"] != nil {
		o.note(name, "it includes other files, which doctor does not read", `where a finding below does not fit, look at "openclaw config get plugins"`)
	}
	if key := c.settings().text("apiKey"); key != "" && !isReference(key) && c.mode&0o077 != 0 && runtime.GOOS != "windows" {
		o.note("file mode", fmt.Sprintf("%s holds the plugin's apiKey, and others than its owner may use the file (mode %04o)", path, c.mode), "chmod 600 "+path)
	}
	return c, true
}

// isReference reports whether a value stands for a variable of the environment.
func isReference(s string) bool { return strings.HasPrefix(s, "${") && strings.HasSuffix(s, "}") }

// causeOf takes the path out of an error that is named with it anyway.
func causeOf(err error) error {
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		return p.Err
	}
	return err
}

// readJSON5 reads a file that holds a JSON5 object. What is wrong with its text is a core.ErrInvalid that repeats nothing of it.
func readJSON5(path string) (object, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil && !info.Mode().IsRegular() {
		return nil, malformed("is no file")
	}
	data, err := io.ReadAll(io.LimitReader(f, maxHostFile+1))
	if err != nil {
		return nil, err
	}
	return parseJSON5(data)
}

// malformed is the error for a file that holds something else than it should.
type malformed string

func (m malformed) Error() string { return string(m) }

func (malformed) Unwrap() error { return core.ErrInvalid }

func parseJSON5(data []byte) (object, error) {
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	if len(data) > maxHostFile {
		return nil, malformed("is larger than 4 MiB")
	}
	depth := 0
	for _, b := range data {
		switch b {
		case '[', '{':
			if depth++; depth > maxHostDepth {
				return nil, malformed("is nested too deep")
			}
		case ']', '}':
			depth = max(0, depth-1)
		}
	}
	var v any
	if err := json5.Unmarshal(data, &v); err != nil {
		if s, ok := errors.AsType[*json5.SyntaxError](err); ok {
			before := data[:min(max(0, int(s.Offset)), len(data))]
			return nil, malformed(fmt.Sprintf("is no valid JSON5, see line %d", 1+bytes.Count(before, []byte("\n"))))
		}
		return nil, malformed("is no valid JSON5")
	}
	m, ok := v.(map[string]any)
	if !ok {
		return nil, malformed("holds no object")
	}
	return m, nil
}
