package registry

import (
	"cmp"
	"fmt"
	"maps"
	"path/filepath"
	"reflect"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/history"
	"github.com/contextengine/contextengine/internal/homepath"
)

// Factory is what a host knows when it makes an engine for an agent. The zero Factory is that of a host that says nothing.
type Factory struct {
	// AgentDir and WorkspaceDir are folders on this machine, absolute; empty when there are none. Files that a configuration names with relative paths lie in
	// AgentDir. A store without a path has one file for all agents: a subagent may belong to another agent than its parent.
	AgentDir     string
	WorkspaceDir string
	// Limits are those of the host's own configuration; what the engines' configuration says goes before.
	Limits history.Limits
}

// check names the folder that is none.
func (f Factory) check() error {
	for _, d := range []struct{ key, dir string }{{"agentDir", f.AgentDir}, {"workspaceDir", f.WorkspaceDir}} {
		if d.dir != "" && !filepath.IsAbs(d.dir) {
			return fmt.Errorf("%s: must be an absolute path: %w", d.key, core.ErrInvalid)
		}
	}
	return nil
}

// place returns where a file lies that a configuration names. Paths below a home are left to those who open them.
func (f Factory) place(file string) string {
	if f.AgentDir == "" || file == "" || filepath.IsAbs(file) {
		return file
	}
	if path, err := homepath.Expand(file); err != nil || path != file {
		return file
	}
	return filepath.Join(f.AgentDir, file)
}

// located returns a configuration whose files lie where the factory says.
func (r *Registry) located(cfg Config, f Factory) Config {
	if f.AgentDir == "" {
		return cfg
	}
	for kind, c := range map[Kind]*Choice{KindStore: &cfg.Store, KindRetriever: &cfg.Retriever, KindCompactor: &cfg.Compactor} {
		*c = r.locatedChoice(kind, *c, f)
	}
	cfg.Searchers = maps.Clone(cfg.Searchers)
	for name, options := range cfg.Searchers {
		cfg.Searchers[name] = r.locatedChoice(KindSearcher, Choice{Type: name, Options: options}, f).Options
	}
	return cfg
}

func (r *Registry) locatedChoice(kind Kind, c Choice, f Factory) Choice {
	if p := r.parts[kind][c.Type]; p != nil {
		c.Options = r.locatedOptions(p.config, c.Options, f)
	}
	return c
}

// locatedOptions goes through the options of a part, and of those that it stands in front of.
func (r *Registry) locatedOptions(t reflect.Type, options map[string]any, f Factory) map[string]any {
	out := maps.Clone(options)
	for _, field := range fieldsOf(t) {
		switch v := out[field.key].(type) {
		case string:
			if field.isFile {
				out[field.key] = f.place(v)
			}
		case map[string]any:
			switch {
			case field.typ == choiceType:
				out[field.key] = r.locatedTree(field.kind, v, f)
			case field.typ.Kind() == reflect.Struct:
				out[field.key] = r.locatedOptions(field.typ, v, f)
			}
		case []any:
			if field.typ.Kind() == reflect.Slice && field.typ.Elem() == choiceType {
				list := make([]any, len(v))
				for i, item := range v {
					if list[i] = item; typeOf(item) != "" {
						list[i] = r.locatedTree(field.kind, item, f)
					}
				}
				out[field.key] = list
			}
		}
	}
	return out
}

// locatedTree is locatedChoice for a choice as a file holds it.
func (r *Registry) locatedTree(kind Kind, v any, f Factory) any {
	m, _ := v.(map[string]any)
	options := without(m, []string{typeKey})
	return r.locatedChoice(kind, Choice{Type: typeOf(v), Options: options}, f).tree()
}

// SetFactory says what the host knows about an agent, or, with an empty name, about those that nothing else is said of; it holds for all of their engines from then on. It is to be said before the agent's first call: folders that
// are known stay as long as the Instance, because what is stored lies there. Limits may change at any time. ErrInvalid names a folder that is no absolute path.
func (i *Instance) SetFactory(agent string, f Factory) error {
	if err := f.check(); err != nil {
		return fmt.Errorf("registry: factory of %q: %w", agent, err)
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	old, known := i.factories[agent]
	f.AgentDir, f.WorkspaceDir = cmp.Or(old.AgentDir, f.AgentDir), cmp.Or(old.WorkspaceDir, f.WorkspaceDir)
	if known && reflect.DeepEqual(old, f) {
		return nil
	}
	i.factories[agent] = f
	maps.DeleteFunc(i.built, func(p place, _ made) bool {
		_, told := i.factories[p.agent]
		return p.agent == agent || agent == "" && !told
	})
	return nil
}

// factory returns what the host said about an agent, else what holds for all, and whether it said something.
func (i *Instance) factory(agent string) (Factory, bool) {
	i.mu.RLock()
	defer i.mu.RUnlock()
	return i.said(agent)
}

// said is factory for those who hold the lock.
func (i *Instance) said(agent string) (Factory, bool) {
	if f, ok := i.factories[agent]; ok {
		return f, true
	}
	if f, ok := i.factories[""]; ok {
		return f, false
	}
	return i.maker.base.Factory, false
}
