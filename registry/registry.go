package registry

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/nearest"
)

// Kind says what a registered part is.
type Kind string

// The kinds of parts.
const (
	KindEngine    Kind = "engine"
	KindStore     Kind = "store"
	KindRetriever Kind = "retriever"
	KindCompactor Kind = "compactor"
	KindSearcher  Kind = "searcher"
	KindModel     Kind = "model"
	KindTokenizer Kind = "tokenizer"
)

var kinds = [...]Kind{KindEngine, KindStore, KindRetriever, KindCompactor, KindSearcher, KindModel, KindTokenizer}

// Registry maps names to the factories of parts. The zero value is empty and ready. Fill it with the Add functions at
// start-up, from one goroutine; from then on it is only read, and safe for concurrent use.
type Registry struct {
	parts map[Kind]map[string]*part
	// released are what older versions were made of, oldest first.
	released []Released
}

// part is a registered factory. The type of its configuration is known to the closures only.
type part struct {
	kind      Kind
	name, doc string
	owner     string
	refreshes bool
	// config is the configuration's type; defaults returns a new value of it.
	config     reflect.Type
	defaults   func() reflect.Value
	open       func(ctx context.Context, cfg reflect.Value, env Env) (any, error)
	parts      Parts
	plugins    []string
	pluginKeys []string
	// samples are configurations that need nothing outside, by variant.
	samples []sample
	prompts func() ([]Prompt, error)
}

// Prompt is a text that a part asks models with.
type Prompt struct {
	Name string `json:"name"`
	// Version is recorded with what a model answered.
	Version string `json:"version"`
	Text    string `json:"text"`
}

type sample struct {
	variant string
	config  func() reflect.Value
	typ     reflect.Type
}

// Model is what a registered model can do. One of the fields may be nil.
type Model struct {
	Completer core.Completer
	Embedder  core.Embedder
}

// Parts names what an engine is made of where the configuration does not say.
type Parts struct {
	Store, Retriever, Compactor string
	// Searchers are indexes beside the store's own search.
	Searchers []string
}

// PartOption sets what only some parts need.
type PartOption func(*part)

// CoreOwner owns the parts that nobody else claims.
const CoreOwner = "core"

// Owner says whose part it is: the id of a plugin or of a program. Nobody else can register the same name. Without it the part is CoreOwner's.
func Owner(id string) PartOption {
	return func(p *part) { p.owner = id }
}

// Refresh lets an owner put a part in the place of its own one with the same name.
func Refresh() PartOption {
	return func(p *part) { p.refreshes = true }
}

// Conformance offers a configuration with which the part needs nothing outside the process. It is called once for
// every use and may return something new each time. Parts with one take part in Combinations; a part may have several
// under different variant names, and "" is the part's own name.
func Conformance[C any](variant string, config func() C) PartOption {
	return func(p *part) {
		p.samples = append(p.samples, sample{
			variant: variant, typ: reflect.TypeFor[C](),
			config: func() reflect.Value { return settable(config()) },
		})
	}
}

// Prompts says what a part asks models with unless it is configured otherwise.
func Prompts(list func() ([]Prompt, error)) PartOption {
	return func(p *part) { p.prompts = list }
}

// Defaults names the parts an engine is made of where the configuration does not say. Only engines have it.
func Defaults(parts Parts) PartOption {
	return func(p *part) { p.parts = parts }
}

// PluginKeys names keys of a host plugin's configuration that concern the plugin alone, such as how it reaches this program. They are passed
// over. Only engines have it.
func PluginKeys(keys ...string) PartOption {
	return func(p *part) { p.pluginKeys = append(p.pluginKeys, keys...) }
}

// Plugins names host plugins, besides one with the engine's own name, whose configuration belongs to the engine. Only
// engines have it.
func Plugins(ids ...string) PartOption {
	return func(p *part) { p.plugins = append(p.plugins, ids...) }
}

// AddStore registers a store. defaults returns the configuration that holds where a file says nothing; the fields of C
// are the keys a file may have, see the package comment. open gets C as the operator completed it and validates it.
// The error is ErrConflict when the name is taken, see Owner, and ErrInvalid when the name or C cannot be used; so it is with all Add functions.
func AddStore[C any](r *Registry, name, doc string, defaults func() C,
	open func(ctx context.Context, cfg C, env Env) (core.Store, error), opts ...PartOption,
) error {
	return add(r, KindStore, name, doc, defaults, open, opts)
}

// AddRetriever registers a retrieval strategy. Env holds the store and the searchers it may ask. A nil Retriever means that
// nothing is recalled.
func AddRetriever[C any](r *Registry, name, doc string, defaults func() C,
	open func(ctx context.Context, cfg C, env Env) (core.Retriever, error), opts ...PartOption,
) error {
	return add(r, KindRetriever, name, doc, defaults, open, opts)
}

// AddCompactor registers a compaction strategy.
func AddCompactor[C any](r *Registry, name, doc string, defaults func() C,
	open func(ctx context.Context, cfg C, env Env) (core.Compactor, error), opts ...PartOption,
) error {
	return add(r, KindCompactor, name, doc, defaults, open, opts)
}

// AddSearcher registers an index that answers searches over a store. It is opened once per store, attached when
// it is a core.Attacher, and told of every change when it is a core.Observer; retrievers get at it with Env.Searcher.
func AddSearcher[C any](r *Registry, name, doc string, defaults func() C,
	open func(ctx context.Context, cfg C, env Env) (core.Searcher, error), opts ...PartOption,
) error {
	return add(r, KindSearcher, name, doc, defaults, open, opts)
}

// AddModel registers a model endpoint, for the keys "model" and "embedder" of a configuration.
func AddModel[C any](r *Registry, name, doc string, defaults func() C,
	open func(ctx context.Context, cfg C, env Env) (Model, error), opts ...PartOption,
) error {
	return add(r, KindModel, name, doc, defaults, open, opts)
}

// AddTokenizer registers a way to count tokens. It is loaded once, when an engine needs it.
func AddTokenizer(r *Registry, name, doc string, load func() (core.TokenCounter, error)) error {
	return add(r, KindTokenizer, name, doc, none,
		func(context.Context, struct{}, Env) (core.TokenCounter, error) { return load() }, nil)
}

// AddEngine registers an engine under the id that hosts select it by. The factory most often ends in Env.Compose.
func AddEngine[C any](r *Registry, id, doc string, defaults func() C,
	open func(ctx context.Context, cfg C, env Env) (core.ContextEngine, error), opts ...PartOption,
) error {
	return add(r, KindEngine, id, doc, defaults, open, opts)
}

// none is the configuration of a part that has nothing to configure.
func none() struct{} { return struct{}{} }

func add[C, P any](r *Registry, kind Kind, name, doc string, defaults func() C,
	open func(context.Context, C, Env) (P, error), opts []PartOption,
) error {
	fail := func(cause string, sentinel error) error {
		return fmt.Errorf("registry: add %s %q: %s: %w", kind, name, cause, sentinel)
	}
	if r == nil || name == "" || strings.TrimSpace(name) != name {
		return fail("a part needs a registry and a name without spaces around it", core.ErrInvalid)
	}
	if defaults == nil || open == nil {
		return fail("defaults and factory must not be nil", core.ErrInvalid)
	}
	typ := reflect.TypeFor[C]()
	if err := checkConfigType(typ); err != nil {
		return fail(err.Error(), core.ErrInvalid)
	}
	p := &part{
		kind: kind, name: name, doc: doc, owner: CoreOwner, config: typ,
		defaults: func() reflect.Value { return settable(defaults()) },
		open: func(ctx context.Context, cfg reflect.Value, env Env) (any, error) {
			c, ok := reflect.TypeAssert[C](cfg)
			if !ok {
				return nil, fmt.Errorf("registry: open %s %q: configuration is a %s, want %s: %w", kind, name, cfg.Type(), typ, core.ErrInvalid)
			}
			v, err := open(ctx, c, env)
			if err != nil {
				return nil, err
			}
			return v, nil
		},
	}
	for _, o := range opts {
		o(p)
	}
	if p.owner == "" || strings.TrimSpace(p.owner) != p.owner {
		return fail("an owner needs a name without spaces around it", core.ErrInvalid)
	}
	if had := r.parts[kind][name]; had != nil && (had.owner != p.owner || !p.refreshes) {
		return fail(fmt.Sprintf("the name is taken: it belongs to %q", had.owner), core.ErrConflict)
	}
	for _, s := range p.samples {
		if s.typ != typ {
			return fail(fmt.Sprintf("the conformance configuration is a %s, want %s", s.typ, typ), core.ErrInvalid)
		}
	}
	if r.parts == nil {
		r.parts = make(map[Kind]map[string]*part)
	}
	if r.parts[kind] == nil {
		r.parts[kind] = make(map[string]*part)
	}
	r.parts[kind][name] = p
	return nil
}

// settable returns v as an addressable value.
func settable[T any](v T) reflect.Value {
	return reflect.ValueOf(&v).Elem()
}

// Names returns the names of all parts of a kind, sorted.
func (r *Registry) Names(kind Kind) []string {
	return slices.Sorted(maps.Keys(r.parts[kind]))
}

// Owner returns whose part a name is, and "" when nobody has registered it.
func (r *Registry) Owner(kind Kind, name string) string {
	if p := r.parts[kind][name]; p != nil {
		return p.owner
	}
	return ""
}

// look returns a part, or an error that helps to find the name that was meant.
func (r *Registry) look(kind Kind, name string) (*part, error) {
	if p := r.parts[kind][name]; p != nil {
		return p, nil
	}
	return nil, unknown(string(kind), name, r.Names(kind))
}

// engineOf returns the id of the engine that a host means by an engine id or the id of a plugin.
func (r *Registry) engineOf(id string) string {
	if r.parts[KindEngine][id] != nil {
		return id
	}
	for _, name := range r.Names(KindEngine) {
		if slices.Contains(r.parts[KindEngine][name].plugins, id) {
			return name
		}
	}
	return id
}

// unknown is the error for a name that nobody registered, or a key that nobody reads.
func unknown(what, name string, known []string) error {
	text := fmt.Sprintf("unknown %s %q", what, clip(name))
	if best, ok := nearest.Of(name, known); ok {
		text += fmt.Sprintf(", did you mean %q?", best)
	}
	return fmt.Errorf("%s (known: %s): %w", text, list(known), core.ErrInvalid)
}

// list writes names for an error message.
func list(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}

// clip bounds a name from outside for an error message.
func clip(s string) string {
	if r := []rune(s); len(r) > 60 {
		return string(r[:60]) + "…"
	}
	return s
}
