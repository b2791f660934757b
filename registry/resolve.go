package registry

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/contextengine/contextengine/core"
)

// ArmInfo says what a session was given.
type ArmInfo struct {
	// Name is the arm's; empty when the session belongs to no arm.
	Name string `json:"name,omitempty"`
	// Share is the share of the agent's sessions that the arm gets, 0 to 1; 1 without arms.
	Share float64 `json:"share"`
	// Config identifies the resolved configuration, secrets left out: equal configurations have equal ids, in every process.
	Config string `json:"config"`
}

// Resolve returns the configuration that holds for a session: the base, with the agent's override and then that of the
// session's arm merged over it. Everything the registry's defaults decide is filled in, and Agents and Arms are empty. The
// arm is the one that a new session is given while its provider is unknown: it follows from agent, session and configuration alone. Errors are ErrInvalid and name the key.
func (r *Registry) Resolve(cfg Config, agent, session string) (Config, ArmInfo, error) {
	arm := cfg.pick(agent, session, "")
	out, err := r.resolve(cfg, agent, arm)
	if err != nil {
		return Config{}, ArmInfo{}, fmt.Errorf("registry: resolve %q: %w", agent, err)
	}
	return out, cfg.info(agent, session, "", arm, out.id()), nil
}

// pick returns the index of the arm that a new session is given, -1 for none. A session's place in
// [0, 1) is the SHA-256 of its name; the arms that take the agent divide that range by their weights, in their order.
func (c Config) pick(agent, session, provider string) int {
	total := 0.0
	for _, a := range c.Arms {
		total += a.weightFor(agent, session, provider)
	}
	if total <= 0 {
		return -1
	}
	name := binary.AppendUvarint(nil, uint64(len(agent)))
	sum := sha256.Sum256(append(append(name, agent...), session...))
	place := float64(binary.BigEndian.Uint64(sum[:])>>11) / (1 << 53) * total
	last := -1
	for i, a := range c.Arms {
		w := a.weightFor(agent, session, provider)
		if w <= 0 {
			continue
		}
		last = i
		if place < w {
			break
		}
		place -= w
	}
	return last
}

func (a Arm) weightFor(agent, session, provider string) float64 {
	if !a.takes(agent) || len(a.Sessions) > 0 && !slices.ContainsFunc(a.Sessions, func(pattern string) bool { return matches(pattern, session) }) ||
		len(a.Providers) > 0 && !slices.Contains(a.Providers, provider) {
		return 0
	}
	return a.Weight
}

// id hashes what a configuration says, without its secrets.
func (c Config) id() string {
	sum := sha256.Sum256([]byte(c.String()))
	return hex.EncodeToString(sum[:6])
}

// key identifies a configuration, or a part of one, within the process, secrets included.
func key(v any) string {
	sum := sha256.Sum256([]byte(text(encodeAny(v))))
	return string(sum[:])
}

// resolve lays the overrides of an agent and of an arm (-1 for none) over the base.
func (r *Registry) resolve(cfg Config, agent string, arm int) (Config, error) {
	out := cfg
	out.Agents, out.Arms = nil, nil
	out, err := r.fill(out, nil)
	if err != nil {
		return Config{}, err
	}
	if o, ok := cfg.Agents[agent]; ok {
		if out, err = r.override(out, o, path{"agents", agent}); err != nil {
			return Config{}, err
		}
	}
	if arm >= 0 {
		if out, err = r.override(out, cfg.Arms[arm].Override, path{"arms", strconv.Itoa(arm), "override"}); err != nil {
			return Config{}, err
		}
	}
	return out, nil
}

// override returns base with o merged over it.
func (r *Registry) override(base Config, o Override, at path) (Config, error) {
	d := decoder{r: r, engine: base.Engine.Type}
	var found mistakes
	found.add(d.overlay(o, &base, at, overrideFields()))
	out, err := r.fill(base, at)
	found.add(err)
	return out, found.err()
}

// overlay reads m on top of cfg. Choosing another engine drops the parts chosen for the one before.
func (d *decoder) overlay(m map[string]any, cfg *Config, at path, fields []field) error {
	before := cfg.Engine.Type
	d.engine = before
	if v, ok := m["engine"]; ok {
		if err := d.value(v, reflect.ValueOf(&cfg.Engine).Elem(), KindEngine, at.at("engine")); err != nil {
			return err
		}
		if before != "" && cfg.Engine.Type != before {
			cfg.Store, cfg.Retriever, cfg.Compactor, cfg.Searchers = Choice{}, Choice{}, Choice{}, nil
		}
		m = maps.Clone(m)
		delete(m, "engine")
	}
	return d.structure(m, reflect.ValueOf(cfg).Elem(), fields, at)
}

// configFields are the keys of a configuration, overrideFields those that one agent or arm can have of its own.
func configFields() []field { return fieldsOf(reflect.TypeFor[Config]()) }

func overrideFields() []field {
	return slices.DeleteFunc(configFields(), func(f field) bool { return f.key == "agents" || f.key == "arms" })
}

// fill completes a configuration: it names the parts that the engine takes where nobody said otherwise, and writes out every
// option, so that configurations that mean the same are the same. The error is all that is wrong; then what is returned has
// the defaults in the places of it.
func (r *Registry) fill(cfg Config, at path) (Config, error) {
	if cfg.Engine.Type == "" {
		cfg.Engine.Type = DefaultEngine
	}
	d := decoder{r: r, engine: cfg.Engine.Type}
	var found mistakes
	for _, c := range []struct {
		kind   Kind
		key    string
		choice *Choice
	}{
		{KindEngine, "engine", &cfg.Engine},
		{KindStore, "store", &cfg.Store},
		{KindRetriever, "retriever", &cfg.Retriever},
		{KindCompactor, "compactor", &cfg.Compactor},
		{KindModel, "model", &cfg.Model},
		{KindModel, "embedder", &cfg.Embedder},
	} {
		if c.choice.Type == "" {
			c.choice.Type = d.preset(c.kind)
		}
		full, err := d.complete(*c.choice, c.kind, at.at(c.key))
		if found.add(err); err != nil {
			full, _ = d.complete(Choice{Type: d.preset(c.kind)}, c.kind, at.at(c.key))
		}
		*c.choice = full
	}
	searchers, err := d.completeSearchers(cfg.Searchers, at.at("searchers"))
	found.add(err)
	cfg.Searchers = searchers
	if cfg.Tokenizer == "" {
		cfg.Tokenizer = DefaultTokenizer
	}
	if cfg.Tokenizer != DefaultTokenizer {
		if _, err := r.look(KindTokenizer, cfg.Tokenizer); err != nil {
			found.add(fmt.Errorf("%s: %w", at.at("tokenizer"), err))
			cfg.Tokenizer = DefaultTokenizer
		}
	}
	if err := outOfRange(cfg.Core.Validate(), at); err != nil {
		found.add(err)
		cfg.Core = DefaultConfig().Core
	}
	return cfg, found.err()
}

// outOfRange takes apart what core has against a configuration, and says where it stands.
func outOfRange(err error, at path) error {
	list := []error{err}
	if joined, ok := err.(interface{ Unwrap() []error }); ok { // the joined error itself, not one in it
		list = joined.Unwrap()
	}
	var found mistakes
	for _, err := range list {
		if err != nil && len(at) > 0 {
			err = fmt.Errorf("%s: %w", at, err)
		}
		found.add(err)
	}
	return found.err()
}

// complete returns a Choice with all options written out.
func (d *decoder) complete(c Choice, kind Kind, at path) (Choice, error) {
	if c.Type == "" {
		if len(c.Options) > 0 {
			return Choice{}, fmt.Errorf(`%s: options need the key "type" beside them (known: %s): %w`, at, list(d.r.Names(kind)), core.ErrInvalid)
		}
		return Choice{}, nil
	}
	p, err := d.r.look(kind, c.Type)
	if err != nil {
		return Choice{}, fmt.Errorf("%s: %w", at, err)
	}
	cfg, err := d.options(p, c.Options, at)
	if err != nil {
		return Choice{}, err
	}
	return Choice{Type: c.Type, Options: encode(cfg)}, nil
}

func (d *decoder) completeSearchers(s Searchers, at path) (Searchers, error) {
	out := make(Searchers)
	if s == nil {
		if p := d.r.parts[KindEngine][d.engine]; p != nil {
			s = make(Searchers)
			for _, name := range p.parts.Searchers {
				s[name] = nil
			}
		}
	}
	var found mistakes
	for _, name := range slices.Sorted(maps.Keys(s)) {
		full, err := d.complete(Choice{Type: name, Options: s[name]}, KindSearcher, at.at(name))
		if found.add(err); err == nil {
			out[name] = full.Options
		}
	}
	return out, found.err()
}

// Check returns all that is wrong with a configuration, in any combination of agent and arm. It opens nothing.
func (r *Registry) Check(cfg Config) error {
	_, err := r.check(cfg)
	if err != nil {
		return fmt.Errorf("registry: check: %w", err)
	}
	return nil
}

// check returns the completed configuration.
func (r *Registry) check(cfg Config) (Config, error) {
	var found mistakes
	seen := make(map[string]bool)
	for i, a := range cfg.Arms {
		at := path{"arms", strconv.Itoa(i)}
		if a.Name == "" {
			found.add(fmt.Errorf("%s: an arm needs a name: %w", at.at("name"), core.ErrInvalid))
		} else if seen[a.Name] {
			found.add(fmt.Errorf("%s: the arm %q is there twice: %w", at.at("name"), clip(a.Name), core.ErrInvalid))
		}
		if a.Weight < 0 || math.IsNaN(a.Weight) || a.Weight > 1e9 {
			found.add(fmt.Errorf("%s: must be 0 to 1e9: %w", at.at("weight"), core.ErrInvalid))
		}
		for n, p := range a.Sessions {
			if fault := patternFault(p); fault != "" {
				found.add(fmt.Errorf("%s: %s: %w", at.at("sessions").at(strconv.Itoa(n)), fault, core.ErrInvalid))
			}
		}
		for n, p := range a.Providers {
			if p == "" || p != strings.ToLower(p) {
				found.add(fmt.Errorf("%s: must be the host's name of a provider, in lower case: %w", at.at("providers").at(strconv.Itoa(n)), core.ErrInvalid))
			}
		}
		seen[a.Name] = true
	}
	agents := slices.Sorted(maps.Keys(cfg.Agents))
	if slices.Contains(agents, "") {
		found.add(fmt.Errorf("%s: the agent's id is empty: %w", path{"agents", ""}, core.ErrInvalid))
	}
	full, err := r.fill(cfg, nil)
	found.add(err)
	for _, agent := range append([]string{""}, agents...) {
		for arm := -1; arm < len(cfg.Arms); arm++ {
			if arm >= 0 && agent != "" && (!cfg.Arms[arm].takes(agent) || cfg.Arms[arm].Weight == 0) {
				continue
			}
			_, err := r.resolve(full, agent, arm)
			found.add(err)
		}
	}
	if err := found.err(); err != nil {
		return Config{}, err
	}
	return full, nil
}
