package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/experiment"
	"github.com/contextengine/contextengine/internal/homepath"
	"github.com/contextengine/contextengine/registry"
)

// selection says which configurations to use.
type selection struct {
	configs                        []string
	stores, retrievers, compactors []string
	combinations                   string
	// build completes what engines are built with; nil leaves out models.
	build func(*registry.BuildOptions)
	// rehearsal keeps what is replayed in memory, whatever store is configured.
	rehearsal bool
}

// options are what engines are built with.
func (s *selection) options(a *app) registry.BuildOptions {
	o := registry.BuildOptions{Getenv: a.getenv, NoModels: s.build == nil}
	if s.build != nil {
		s.build(&o)
	}
	return o
}

// configFile is the configuration file that a flag names, or the environment; empty when neither does.
func (a *app) configFile(flag string) (string, error) {
	if flag != "" {
		return flag, nil
	}
	const name = registry.EnvPrefix + "CONFIG"
	file, err := homepath.Expand(a.getenv(name))
	if err != nil {
		err = fmt.Errorf("%s: %w", name, err)
	}
	return file, err
}

// load reads a configuration file and the environment on top of it. Without a name it is the file that CONTEXTENGINE_CONFIG names, or the
// defaults.
func (a *app) load(file string, over map[string]any) (registry.Config, error) {
	file, err := a.configFile(file)
	if err != nil {
		return registry.Config{}, err
	}
	var sources []registry.Source
	if file != "" {
		sources = append(sources, registry.File(file))
	}
	sources = append(sources, registry.Environ(a.Environ))
	if len(over) > 0 {
		sources = append(sources, registry.Values("command line", over))
	}
	cfg, err := a.reg.Load(sources...)
	if errors.Is(err, fs.ErrNotExist) {
		err = &exitError{code: ExitUsage, err: fmt.Errorf("%w; \"contextengine init\" writes one", err)}
	}
	return cfg, err
}

// arms returns what a replay compares.
func (a *app) arms(s selection) ([]experiment.Arm, error) {
	switch s.combinations {
	case "":
		return a.configured(s)
	case "all":
	default:
		return nil, unknownName("value of --combinations", s.combinations, []string{"all"})
	}
	if len(s.configs) > 0 {
		return nil, fmt.Errorf("--combinations uses no configuration file: leave out --config: %w", core.ErrInvalid)
	}
	for _, f := range []struct {
		kind  registry.Kind
		names []string
	}{{registry.KindStore, s.stores}, {registry.KindRetriever, s.retrievers}, {registry.KindCompactor, s.compactors}} {
		for _, n := range f.names {
			if !slices.Contains(a.reg.Names(f.kind), n) {
				return nil, unknownName(string(f.kind), n, a.reg.Names(f.kind))
			}
		}
	}
	var out []experiment.Arm
	for _, c := range a.reg.Combinations() {
		if wanted(s.stores, c.Store) && wanted(s.retrievers, c.Retriever) && wanted(s.compactors, c.Compactor) {
			out = append(out, experiment.Arm{Name: c.Name(), Open: func(ctx context.Context, host core.Host, session core.SessionID) (experiment.Subject, error) {
				engine, err := c.New(ctx, host, experiment.IDs(session))
				if err != nil {
					return experiment.Subject{}, err
				}
				return experiment.Subject{Engine: engine, Close: engine.Dispose}, nil
			}})
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("no combination has these parts and needs nothing outside; configure others with --config: %w", core.ErrInvalid)
	}
	return out, nil
}

// wanted reports whether a part is in a list, or the list empty. A variant is named after a slash.
func wanted(names []string, label string) bool {
	name, _, _ := strings.Cut(label, "/")
	return len(names) == 0 || slices.Contains(names, name) || slices.Contains(names, label)
}

// named is a configuration and what it is called.
type named struct {
	name string
	cfg  registry.Config
}

// configured returns an arm for every configuration file with every choice of parts on the command line.
func (a *app) configured(s selection) ([]experiment.Arm, error) {
	list, err := a.configurations(s)
	if err != nil {
		return nil, err
	}
	var out []experiment.Arm
	for _, c := range list {
		out = append(out, a.arm(c.name, c.cfg, s.options(a)))
	}
	return out, nil
}

func (a *app) configurations(s selection) ([]named, error) {
	var out []named
	for _, file := range orEmpty(s.configs) {
		for _, retriever := range orEmpty(s.retrievers) {
			for _, compactor := range orEmpty(s.compactors) {
				for _, store := range orEmpty(s.stores) {
					over := make(map[string]any)
					for key, name := range map[string]string{"retriever": retriever, "compactor": compactor, "store": store} {
						if name != "" {
							over[key] = name
						}
					}
					cfg, err := a.loadForReplay(file, over)
					if err != nil {
						return nil, err
					}
					name := armName(file, cfg, len(s.configs) > 1)
					if s.rehearsal && slices.Contains(a.reg.Names(registry.KindStore), memoryStore) {
						cfg.Store = registry.Choice{Type: memoryStore}
					}
					out = append(out, named{name, cfg})
				}
			}
		}
	}
	return out, nil
}

// loadForReplay is load, with the memory store where nobody chose one: what is replayed does not belong among what people keep.
func (a *app) loadForReplay(file string, over map[string]any) (registry.Config, error) {
	cfg, err := a.load(file, over)
	if err != nil || over["store"] != nil {
		return cfg, err
	}
	unsaid, err := a.reg.Load()
	if err != nil || !reflect.DeepEqual(cfg.Store, unsaid.Store) || !slices.Contains(a.reg.Names(registry.KindStore), memoryStore) {
		return cfg, err
	}
	over = maps.Clone(over)
	over["store"] = memoryStore
	return a.load(file, over)
}

func orEmpty(list []string) []string {
	if len(list) == 0 {
		return []string{""}
	}
	return list
}

// armName says what a configuration is made of, and which file it is from where there are several.
func armName(file string, cfg registry.Config, several bool) string {
	name := cfg.Engine.Type
	if cfg.Engine.Type == registry.DefaultEngine {
		name = cfg.Retriever.Type + "+" + cfg.Compactor.Type + "+" + cfg.Store.Type
	}
	if several {
		name = strings.TrimSuffix(filepath.Base(file), filepath.Ext(file)) + ":" + name
	}
	return name
}

// memoryStore is the one store that is known to be gone after a replay.
const memoryStore = "memory"

// arm makes engines of a configuration, each replay its own.
func (a *app) arm(name string, cfg registry.Config, opts registry.BuildOptions) experiment.Arm {
	lasting := cfg.Store.Type != memoryStore
	redact, _ := cfg.Core.Redactor() // a configuration that was loaded is valid
	return experiment.Arm{Name: name, Window: cfg.Core.Window, Lasting: lasting, Redact: redact, Open: func(ctx context.Context, host core.Host, session core.SessionID) (experiment.Subject, error) {
		opts := opts
		opts.Host = host
		if !lasting {
			opts.IDs = experiment.IDs(session)
		}
		instance, err := a.reg.Build(ctx, cfg, opts)
		if err != nil {
			return experiment.Subject{}, err
		}
		engine, _, err := instance.Engine(ctx, session.Agent, session.Session)
		if err != nil {
			return experiment.Subject{}, closing(ctx, instance, err)
		}
		// What cannot be used says so here, in words meant for people.
		if b, ok := engine.(core.Bootstrapper); ok {
			if _, err := b.Bootstrap(ctx, core.BootstrapRequest{Session: session}); err != nil {
				return experiment.Subject{}, closing(ctx, instance, err)
			}
		}
		return experiment.Subject{Engine: engine, Close: instance.Close}, nil
	}}
}

// closing closes an instance that is of no use because of err, and returns err.
func closing(ctx context.Context, instance *registry.Instance, err error) error {
	if cerr := instance.Close(context.WithoutCancel(ctx)); cerr != nil {
		return fmt.Errorf("%w (and closing failed: %w)", err, cerr)
	}
	return err
}
