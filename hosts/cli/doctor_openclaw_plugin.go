package cli

import (
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/contextengine/contextengine/core/nearest"
	"github.com/contextengine/contextengine/registry"
)

// engineIDs are the ids under which the plugin registers its engine.
func engineIDs(c hostConfig) []string {
	ids := []string{openClawPlugin, openClawPackage}
	if id := c.settings().text("engine"); id != "" {
		ids = append(ids, id)
	}
	return ids
}

// selection says whether the host is told to use the plugin and its engine.
func (o *inspection) selection(c hostConfig) {
	const name = "selection"
	plugins, before := c.plugins(), len(o.out)
	if plugins == nil && c.tree["plugins"] != nil {
		o.wrong(name, "plugins is no object", "correct the file")
		return
	}
	if plugins["enabled"] == false {
		o.wrong(name, "plugins.enabled is false: no plugin is used", "set plugins.enabled to true and restart the gateway")
	}
	if slices.Contains(plugins.texts("deny"), openClawPlugin) {
		o.wrong(name, "plugins.deny has "+openClawPlugin, "take it out of plugins.deny and restart the gateway")
	}
	if allow := plugins.texts("allow"); len(allow) > 0 && !slices.Contains(allow, openClawPlugin) {
		o.wrong(name, "plugins.allow does not have "+openClawPlugin, "add it to plugins.allow and restart the gateway")
	}
	if c.pluginEntry()["enabled"] == false {
		o.wrong(name, "plugins.entries."+openClawPlugin+".enabled is false", "set it to true and restart the gateway; after an uninstall it stays false")
	}
	o.slot(c)
	if len(o.out) == before {
		o.ok(name, "the plugin is enabled, and the slot names its engine")
	}
}

// slot says whether the slot names the plugin's engine.
func (o *inspection) slot(c hostConfig) {
	const name, do = "slot", `set plugins.slots.contextEngine to "` + openClawPlugin + `" and restart the gateway`
	slots := c.plugins().at("slots")
	switch id := slots.text("contextEngine"); {
	case id == "":
		o.wrong(name, "plugins.slots.contextEngine is not set: the host uses its own engine", do)
	case id == registry.LegacyEngine:
		o.wrong(name, "plugins.slots.contextEngine is legacy, the host's own engine", do)
	case !slices.Contains(engineIDs(c), id):
		text := "plugins.slots.contextEngine names another engine than the plugin's"
		if _, near := nearest.Of(id, engineIDs(c)[:2]); near {
			text = "plugins.slots.contextEngine has a name that is almost that of the plugin's engine: probably mistyped"
		}
		o.wrong(name, text, do)
	case id != openClawPlugin:
		o.note(name, "plugins.slots.contextEngine is another name of the plugin's engine; uninstalling will not reset it", do)
	}
}

// pluginFiles is what was found of the plugin.
type pluginFiles struct {
	folder   string
	manifest object
}

// pluginFolder finds the plugin and says whether the host can load it.
func (o *inspection) pluginFolder(c hostConfig) pluginFiles {
	const name = "plugin"
	p, looked := o.findPlugin(c)
	if p.folder == "" {
		o.wrong(name, "it is in none of the "+count(looked, "folder")+" that the host loads plugins from: those of plugins.load.paths, and below "+c.state,
			"openclaw plugins install -l path/to/hosts/openclaw/plugin --force --accept-capabilities")
		return p
	}
	again := "install the plugin again from an unchanged copy of hosts/openclaw/plugin"
	good := true
	if p.manifest == nil {
		o.wrong(name, filepath.Join(p.folder, "openclaw.plugin.json")+" is missing or malformed", again)
		return p
	}
	if p.manifest.text("id") != openClawPlugin {
		o.wrong(name, "the manifest's id in "+p.folder+" is not "+openClawPlugin+": the host looks for slot and configuration under another name", again)
		good = false
	}
	if kind := p.manifest["kind"]; kind != "context-engine" && !slices.Contains(p.manifest.texts("kind"), "context-engine") {
		o.wrong(name, "the manifest's kind in "+p.folder+" is not context-engine: the host does not offer it the slot", again)
		good = false
	}
	entries, err := entryFiles(p.folder)
	if err != nil {
		o.wrong(name, p.folder+": "+err.Error(), "in that folder: npm ci && npm run build")
		return p
	}
	if good {
		o.ok(name, "%s", p.folder)
	}
	if declaresDurableTurns(entries) {
		o.ok("durable turns", "the plugin declares the host's contract and stores turns")
	} else {
		o.wrong("durable turns", "the built plugin does not declare the contract of durable turns (transcriptSemantics, commitTurn): hosts from 2026.8.1 run every turn on legacy",
			"build the plugin from its present sources (npm ci && npm run build), or install a newer one")
	}
	return p
}

// findPlugin returns the plugin that the host would load, and how many folders were looked at.
func (o *inspection) findPlugin(c hostConfig) (pluginFiles, int) {
	var roots []string
	for _, path := range c.plugins().at("load").texts("paths") {
		path = o.app.expand(path)
		if info, err := os.Stat(path); err == nil && !info.IsDir() {
			path = filepath.Dir(path)
		}
		roots = append(roots, path)
	}
	roots = append(roots, filepath.Join(c.state, "extensions"), filepath.Join(c.state, "npm", "node_modules"))
	projects, _ := filepath.Glob(filepath.Join(c.state, "npm", "projects", "*", "node_modules"))
	roots = append(roots, projects...)
	for _, root := range roots {
		folders := []string{root}
		children, _ := os.ReadDir(root)
		for _, child := range children {
			folders = append(folders, filepath.Join(root, child.Name()))
		}
		for _, folder := range folders {
			manifest, merr := readJSON5(filepath.Join(folder, "openclaw.plugin.json"))
			pkg, _ := readJSON5(filepath.Join(folder, "package.json"))
			if manifest.text("id") == openClawPlugin || pkg.text("name") == openClawPackage {
				if merr != nil {
					manifest = nil
				}
				return pluginFiles{folder: folder, manifest: manifest}, len(roots)
			}
		}
	}
	return pluginFiles{}, len(roots)
}

// entryFiles returns the files that the host executes.
func entryFiles(folder string) ([]string, error) {
	pkg, err := readJSON5(filepath.Join(folder, "package.json"))
	if err != nil {
		return nil, malformed("package.json is missing or malformed")
	}
	open := pkg.at("openclaw")
	entries := append(open.texts("extensions"), open.texts("runtimeExtensions")...)
	if len(entries) == 0 {
		return nil, malformed("package.json names no openclaw.extensions, so that nothing is loaded")
	}
	var out []string
	for _, e := range entries {
		if !filepath.IsLocal(filepath.FromSlash(strings.TrimPrefix(e, "./"))) {
			return nil, malformed("package.json names an entry outside of the folder")
		}
		path := filepath.Join(folder, filepath.FromSlash(e))
		if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() {
			return nil, malformed("its built files are missing (dist)")
		}
		out = append(out, path)
	}
	return out, nil
}

var (
	fenceSign  = regexp.MustCompile(`transcriptSemantics\s*[:=]`)
	commitSign = regexp.MustCompile(`\bcommitTurn\s*[(:=]`)
)

// declaresDurableTurns looks for the contract in the text of what the host executes: it cannot be asked for without running it.
func declaresDurableTurns(entries []string) bool {
	var text strings.Builder
	for _, e := range entries {
		_ = filepath.WalkDir(filepath.Dir(e), func(path string, d fs.DirEntry, err error) error {
			const most = 16 << 20
			switch {
			case err != nil || text.Len() > most:
				return fs.SkipAll
			case d.IsDir() && d.Name() == "node_modules":
				return fs.SkipDir
			case !d.Type().IsRegular() || !slices.Contains([]string{".js", ".mjs", ".cjs"}, filepath.Ext(path)):
				return nil
			}
			if f, err := os.Open(path); err == nil {
				_, _ = io.Copy(&text, io.LimitReader(f, maxHostFile))
				_ = f.Close()
			}
			return nil
		})
	}
	s := text.String()
	return fenceSign.MatchString(s) && commitSign.MatchString(s) &&
		strings.Contains(s, "before-current-turn-entry-v1") && strings.Contains(s, "atomic-idempotent-v1")
}
