package registry

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
)

// Load reads sources in their order, each on top of the ones before, and completes the result: every part is named and
// every option written out. Without a source it returns the defaults.
//
// A source is this package's own form, or a host's. It is a host's when it has the key "plugins", or "contextEngine" below
// an agent, or was made with HostFile or HostValues. Of a host's configuration only these keys are read:
//
//	plugins.slots.contextEngine        the engine's id; legacy when it is not set, the plugin or all plugins are disabled
//	plugins.entries.<plugin>.config    for that engine: its own options, and any key of the own form beside them
//	agents.defaults.contextEngine      an engine's id, or an object: its id under "engine" or "type", the rest as above,
//	                                   either beside it or under "config"; on top of what the slot says
//	agents.<id>.contextEngine          the same for one agent; also as an item of agents.list with its id
//
// Everything but the key "$schema" is strict: an unknown key or name is an ErrInvalid that names source, place, what is known, and what was most
// likely meant; a wrong type one that says what was wanted and found. Values never appear in errors. Null means not set.
func (r *Registry) Load(sources ...Source) (Config, error) {
	cfg := DefaultConfig()
	host := false
	var names []string
	var found mistakes
	for _, s := range sources {
		names = append(names, s.name)
		tree, err := s.read()
		if err != nil {
			return Config{}, fmt.Errorf("registry: load %q: %w", s.name, err)
		}
		d := decoder{r: r}
		delete(tree, schemaKey)
		if s.host || isHost(tree) {
			host = true
			err = d.host(tree, &cfg)
		} else {
			err = d.overlay(tree, &cfg, nil, configFields())
		}
		found.add(err)
		found.add(r.readOverrides(cfg))
		if len(found) > 0 {
			names = []string{s.name}
			break
		}
	}
	if cfg.Engine.Type == "" && host {
		cfg.Engine.Type = LegacyEngine
	}
	full, err := r.check(cfg) // what could be read, too: it may be out of range
	found.add(err)
	if len(found) > 0 {
		return Config{}, fmt.Errorf("registry: load %q: %w", strings.Join(names, ", "), found.err())
	}
	return full, nil
}

// LoadFile loads a file and, on top of it, the process environment.
func (r *Registry) LoadFile(name string) (Config, error) {
	return r.Load(File(name), Environ(os.Environ()))
}

// readOverrides reads all overrides once, for errors that still know which source they came from.
func (r *Registry) readOverrides(cfg Config) error {
	read := func(o Override, at path) error {
		scratch := cfg
		d := decoder{r: r}
		return d.overlay(o, &scratch, at, overrideFields())
	}
	var found mistakes
	for _, agent := range slices.Sorted(maps.Keys(cfg.Agents)) {
		found.add(read(cfg.Agents[agent], path{"agents", agent}))
	}
	for i, a := range cfg.Arms {
		found.add(read(a.Override, path{"arms", strconv.Itoa(i), "override"}))
	}
	return found.err()
}
