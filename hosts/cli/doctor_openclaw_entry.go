package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/contextengine/contextengine/core/nearest"
	"github.com/contextengine/contextengine/internal/homepath"
	"github.com/contextengine/contextengine/registry"
)

// entryName is the finding's name for the plugin's own configuration.
const entryName = "plugin config"

// configKey is where a key of the plugin's configuration stands.
func configKey(key string) string { return "plugins.entries." + openClawPlugin + ".config." + key }

// entry says whether the plugin's configuration lets it reach or start a sidecar that works.
func (o *inspection) entry(ctx context.Context, c hostConfig, p pluginFiles) {
	before := o.fails
	if !o.keys(c, p) {
		return
	}
	s := c.settings()
	socket, packaged := s.text("socket"), packagedProgram(p.folder)
	switch {
	case socket != "":
		o.socket(ctx, socket)
		return // that sidecar has its own configuration and key
	case s.text("command") == "" && packaged != "" && s["allowLaunch"] != false:
		o.command(ctx, s, packaged)
	case s["allowLaunch"] == true:
		o.command(ctx, s, cmp.Or(s.text("command"), "contextengine"))
	default:
		o.wrong(entryName, "there is neither a socket nor allowLaunch: the plugin has no sidecar and never does anything",
			"set "+configKey("allowLaunch")+" to true and "+configKey("command")+` to the program's path, or run "contextengine serve --socket PATH" and set `+configKey("socket"))
	}
	o.credentials(s)
	o.configFile(s)
	if o.fails == before {
		o.ok(entryName, "it says all that is needed")
	}
}

// keys checks names and types of the settings. The manifest of the plugin that was found says what they are.
func (o *inspection) keys(c hostConfig, p pluginFiles) bool {
	good := true
	if config := c.pluginEntry()["config"]; config != nil && c.settings() == nil {
		o.wrong(entryName, "plugins.entries."+openClawPlugin+".config is no object", "correct the file")
		return false
	}
	known := p.manifest.at("configSchema").at("properties")
	if len(known) == 0 {
		return true
	}
	names := slices.Sorted(maps.Keys(known))
	for _, key := range slices.Sorted(maps.Keys(c.settings())) {
		schema := known.at(key)
		switch {
		case schema == nil:
			do := "take it out: the host refuses the whole configuration. Known are " + strings.Join(names, ", ")
			if best, ok := nearest.Of(key, names); ok {
				do = fmt.Sprintf("the host refuses the whole configuration; did you mean %q?", best)
			}
			o.wrong(entryName, fmt.Sprintf("unknown key %q", key), do)
			good = false
		case !hasType(c.settings()[key], schema.text("type")):
			o.wrong(entryName, configKey(key)+" has the wrong type", "make it a JSON "+schema.text("type")+": the host refuses the whole configuration")
			good = false
		}
	}
	return good
}

// hasType reports whether a value has a type of JSON Schema. Numbers' ranges are the host's to check.
func hasType(v any, kind string) bool {
	var ok bool
	switch kind {
	case "string":
		_, ok = v.(string)
	case "boolean":
		_, ok = v.(bool)
	case "array":
		_, ok = v.([]any)
	case "object":
		_, ok = v.(map[string]any)
	case "integer", "number":
		_, ok = v.(float64)
	default:
		ok = true
	}
	return ok
}

// credentials says whether the engine openbrain has its server's address and key. It prints neither.
func (o *inspection) credentials(s object) {
	if s.text("configFile") != "" || cmp.Or(s.text("engine"), openClawPlugin) != openClawPlugin {
		return
	}
	for _, need := range []struct{ key, env string }{{"baseUrl", "OPENBRAIN_URL"}, {"apiKey", "OPENBRAIN_API_KEY"}} {
		value, env := s.text(need.key), strings.TrimSpace(o.app.getenv(need.env))
		switch {
		case value == "" && env == "":
			o.wrong(entryName, need.key+" is missing: the engine openbrain does not start without it",
				"set "+configKey(need.key)+", or "+need.env+" in the gateway's environment; or name another engine's configuration with configFile")
		case value == "":
			o.note(entryName, need.key+" comes from "+need.env+", which doctor has", "see that the gateway's environment, such as its service file, has it too")
		case isReference(value) && o.app.getenv(value[2:len(value)-1]) == "":
			o.note(entryName, need.key+" refers to an environment variable that doctor does not have", "see that the gateway's environment has it: without it the host refuses the configuration")
		}
	}
}

// configFile says whether the sidecar can use the engine configuration that the plugin names.
func (o *inspection) configFile(s object) {
	const name = "configFile"
	path := s.text("configFile")
	if path == "" {
		return
	}
	path, err := homepath.Expand(path) // as the sidecar does
	if err != nil {
		o.wrong(name, err.Error(), "write the whole path")
		return
	}
	if !filepath.IsAbs(path) {
		o.wrong(name, "it is no absolute path: it means another file wherever the gateway is started", "write the whole path")
		return
	}
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		o.wrong(name, path+" is not there", `correct the path, or write one with "contextengine init"`)
		return
	case err != nil:
		o.broken(name, path+" cannot be read: "+causeOf(err).Error(), "run doctor as the user that the gateway runs as")
		return
	case info.IsDir():
		o.wrong(name, path+" is a folder", "name a file")
		return
	}
	cfg, err := o.app.reg.Load(registry.File(path), registry.Environ(o.sidecarEnviron(s)))
	switch {
	case err != nil:
		o.wrong(name, err.Error(), `correct the file; "contextengine list" shows all keys`)
	case cfg.Engine.Type == registry.LegacyEngine:
		o.wrong(name, path+" chooses legacy, which is no engine of the sidecar", "choose another engine, or set plugins.slots.contextEngine to legacy")
	default:
		o.ok(name, "%s", configText(cfg))
	}
}

// sidecarEnviron is what of the environment the plugin gives to a sidecar, as far as it configures the engine.
func (o *inspection) sidecarEnviron(s object) []string {
	var out []string
	for _, name := range s.texts("passEnv") {
		if v := o.app.getenv(name); v != "" {
			out = append(out, name+"="+v)
		}
	}
	if engine := s.text("engine"); engine != "" {
		out = append(out, registry.EnvPrefix+"ENGINE="+engine)
	}
	return out
}
