package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"regexp"
	"runtime"
	"slices"
	"strings"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/nearest"
	"github.com/contextengine/contextengine/registry"
)

// unexpanded is what other programs replace by a variable, and nothing here does.
var unexpanded = regexp.MustCompile(`\$\{[A-Za-z_][A-Za-z0-9_]*\}`)

// variableIn returns the variable that a value, or an address in one, holds the name of; elsewhere in a text it may be meant.
func variableIn(text string) string {
	m := unexpanded.FindString(text)
	if m == text || strings.Contains(text, "://") {
		return m
	}
	return ""
}

// configFindings look at what is configured, as opposed to what comes of it.
func (a *app) configFindings(file string, cfg registry.Config, agent string) []finding {
	var out []finding
	for _, at := range placeholders(cfg) {
		out = append(out, finding{
			Name: "variables", Status: "fail", Text: at.path + ": " + at.text + " is taken as it stands: variables in a file are not replaced",
			Do: "take the key out of the file and set " + at.variable + " in the environment",
		})
	}
	if f, ok := a.readableByOthers(file); ok {
		out = append(out, f)
	}
	known := slices.Sorted(maps.Keys(cfg.Agents))
	if best, ok := nearest.Of(agent, known); ok && best != agent && !slices.Contains(known, agent) {
		out = append(out, finding{
			Name: "agents", Status: "note", Text: fmt.Sprintf("there is no agent %q in the configuration: what holds for all is looked at", agent), Do: fmt.Sprintf("did you mean %q?", best),
		})
	}
	if len(cfg.Arms) > 0 && !slices.ContainsFunc(cfg.Arms, func(arm registry.Arm) bool { return arm.Weight > 0 }) {
		out = append(out, finding{Name: "arms", Status: "note", Text: "every arm has the weight 0: no session is given one", Do: "give those a weight that are to get sessions, or leave out arms"})
	}
	for _, arm := range cfg.Arms {
		for _, agent := range arm.Agents {
			if best, ok := nearest.Of(agent, known); ok && best != agent && !slices.Contains(known, agent) {
				out = append(out, finding{
					Name: "arms", Status: "note", Text: fmt.Sprintf("arm %q takes sessions of agent %q, which agents does not name", arm.Name, agent), Do: fmt.Sprintf("did you mean %q?", best),
				})
			}
		}
	}
	return out
}

// placeholder is an option that holds the name of a variable.
type placeholder struct{ path, text, variable string }

// placeholders finds options that hold the name of a variable, of parts, agents and arms.
func placeholders(cfg registry.Config) []placeholder {
	var out []placeholder
	eachText(cfg, func(path, text string) string {
		if name := variableIn(text); name != "" {
			out = append(out, placeholder{path, name, variableOf(path)})
		}
		return text
	})
	return out
}

// eachText puts what change says in the place of every text in the options of parts, agents and arms.
func eachText(cfg registry.Config, change func(path, text string) string) {
	var walk func(path string, v any) any
	walk = func(path string, v any) any {
		switch v := v.(type) {
		case map[string]any:
			for _, k := range slices.Sorted(maps.Keys(v)) {
				v[k] = walk(strings.TrimPrefix(path+"."+k, "."), v[k])
			}
		case []any:
			for i, e := range v {
				v[i] = walk(fmt.Sprintf("%s.%d", path, i), e)
			}
		case string:
			return change(path, v)
		}
		return v
	}
	for _, c := range []struct {
		key    string
		choice registry.Choice
	}{{"engine", cfg.Engine}, {"store", cfg.Store}, {"retriever", cfg.Retriever}, {"compactor", cfg.Compactor}, {"model", cfg.Model}, {"embedder", cfg.Embedder}} {
		walk(c.key, c.choice.Options)
	}
	for _, name := range slices.Sorted(maps.Keys(cfg.Searchers)) {
		walk("searchers."+name, cfg.Searchers[name])
	}
	for _, agent := range slices.Sorted(maps.Keys(cfg.Agents)) {
		walk("agents."+agent, map[string]any(cfg.Agents[agent]))
	}
	for _, arm := range cfg.Arms {
		walk("arms."+arm.Name, map[string]any(arm.Override))
	}
}

// variableOf is the variable of the environment that sets a key.
func variableOf(path string) string {
	var b strings.Builder
	for _, r := range path {
		switch {
		case r == '.':
			b.WriteString("__")
		case r >= 'A' && r <= 'Z':
			b.WriteString("_" + string(r))
		default:
			b.WriteString(strings.ToUpper(string(r)))
		}
	}
	return registry.EnvPrefix + b.String()
}

// readableByOthers says whether a file with a secret in it can be read by other users of the machine.
func (a *app) readableByOthers(file string) (finding, bool) {
	file, err := a.configFile(file)
	if err != nil || file == "" || runtime.GOOS == "windows" {
		return finding{}, false
	}
	info, err := os.Stat(file)
	if err != nil || info.Mode().Perm()&0o044 == 0 {
		return finding{}, false
	}
	cfg, err := a.reg.Load(registry.File(file))
	if err != nil || !holdsKey(cfg) {
		return finding{}, false
	}
	return finding{
		Name: "file", Status: "note", Text: fmt.Sprintf("%s holds a key, and others on this machine can read it (%s)", file, fs.FileMode(info.Mode().Perm())), Do: "chmod 600 " + quoted(file),
	}, true
}

// holdsKey reports whether a configuration, which it may change, holds a secret: the name of a variable is none.
func holdsKey(cfg registry.Config) bool {
	eachText(cfg, func(_, text string) string {
		if variableIn(text) != "" {
			return ""
		}
		return text
	})
	return strings.Contains(cfg.String(), `"***"`)
}

// others makes the engines of all agents and arms, those that doctor was not asked about by name too.
func others(ctx context.Context, instance *registry.Instance) (string, error) {
	cfg := instance.Config()
	if len(cfg.Agents)+len(cfg.Arms) == 0 {
		return "", nil
	}
	if _, err := instance.All(ctx); err != nil {
		return "", err
	}
	var what []string
	if n := len(cfg.Agents); n > 0 {
		what = append(what, "agents "+strings.Join(slices.Sorted(maps.Keys(cfg.Agents)), ", "))
	}
	if n := len(cfg.Arms); n > 0 {
		var names []string
		for _, arm := range cfg.Arms {
			names = append(names, arm.Name)
		}
		what = append(what, "arms "+strings.Join(names, ", "))
	}
	return strings.Join(what, "; ") + ": their engines can be made", nil
}

// embedders checks every embedder that is configured, once each.
func (a *app) embedders(ctx context.Context, base registry.Config, agent string) ([]finding, error) {
	var out []finding
	var errs []error
	seen := make(map[string]bool)
	for _, agent := range append([]string{agent}, slices.Sorted(maps.Keys(base.Agents))...) {
		cfg, _, err := a.reg.Resolve(base, agent, "doctor")
		if err != nil || cfg.Embedder.Type == "" || seen[cfg.Embedder.String()] {
			continue // what cannot be resolved was told before
		}
		seen[cfg.Embedder.String()] = true
		m, err := a.reg.OpenModel(ctx, cfg.Embedder, registry.BuildOptions{Getenv: a.getenv})
		if err == nil && m.Embedder == nil {
			continue // so is what makes no vectors
		}
		f := finding{Name: "embedder", Status: "fail"}
		if err == nil {
			f, err = embedderFinding(ctx, cfg.Embedder.Type, m.Embedder)
		} else {
			f.Text = err.Error()
		}
		out, errs = append(out, f), append(errs, err)
	}
	return out, errors.Join(errs...)
}

// embedderFinding asks an embedder for the vectors of two texts.
func embedderFinding(ctx context.Context, name string, e core.Embedder) (finding, error) {
	f := finding{Name: "embedder", Status: "ok"}
	vectors, err := e.Embed(ctx, []string{"doctor", "a longer window"})
	switch {
	case err != nil:
	case len(vectors) != 2 || len(vectors[0]) == 0:
		err = errors.New("it answers without a vector")
	case slices.Equal(vectors[0], vectors[1]):
		err = errors.New("it answers the same numbers for two different texts, so nothing can be found by meaning: look at the endpoint and its model")
	}
	if err != nil {
		f.Status, f.Text, f.Do = "fail", fmt.Sprintf("%s: %v", name, err), advice("embedder", err)
		return f, err
	}
	f.Text = fmt.Sprintf("%s answers: vectors of %d numbers by %s", name, len(vectors[0]), cmp.Or(e.Model(), "its model"))
	return f, nil
}
