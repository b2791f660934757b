package cli

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/capability"
	"github.com/contextengine/contextengine/experiment/recall"
	"github.com/contextengine/contextengine/experiment/sweep"
	"github.com/contextengine/contextengine/registry"
)

// The names of built-in parts that an evaluation makes use of where they are registered.
const (
	// singleRetriever asks one searcher, which its key "searcher" names.
	singleRetriever = "semantic"
	searcherKey     = "searcher"
	limitKey        = "limit"
	pathKey         = "path"
)

// retrieverOwner is an engine whose retriever can be asked alone.
type retrieverOwner interface {
	core.BatchIngester
	Retriever() core.Retriever
	Store() core.Store
}

// evaluated returns an arm for every configuration file with every choice of parts and every point of the grid. Files of stores go to a folder.
func (a *app) evaluated(ctx context.Context, f evaluateFlags, files string) ([]recall.Arm, error) {
	grid, err := sweep.Parse(f.settings)
	if err != nil {
		return nil, fmt.Errorf("--set: %w", err)
	}
	e := evaluator{app: a, flags: f, files: files, names: make(map[string]bool)}
	for _, file := range orEmpty(f.configs) {
		for _, retriever := range orEmpty(f.retrievers) {
			for _, store := range orEmpty(f.stores) {
				for _, point := range grid.Points() {
					if err := e.configuration(ctx, file, retriever, store, point); err != nil {
						return nil, err
					}
				}
			}
		}
	}
	return e.arms, nil
}

// evaluator collects arms.
type evaluator struct {
	*app
	flags evaluateFlags
	files string
	names map[string]bool
	arms  []recall.Arm
}

// configuration adds the arms of one configuration: itself, or each of the arms of an experiment that it describes.
func (e *evaluator) configuration(ctx context.Context, file, retriever, store string, point sweep.Point) error {
	over := make(map[string]any)
	for key, name := range map[string]string{"retriever": retriever, "store": store} {
		if name != "" {
			over[key] = name
		}
	}
	point.Set(over, func(key string) []string { return e.reg.Names(registry.Kind(key)) })
	cfg, err := e.loadForReplay(file, over)
	if err != nil {
		return err
	}
	arms := cfg.Arms
	if len(arms) == 0 {
		return e.add(ctx, file, "", cfg, point)
	}
	for _, arm := range arms {
		both := maps.Clone(map[string]any(arm.Override))
		if both == nil {
			both = make(map[string]any)
		}
		maps.Copy(both, over)
		if cfg, err = e.loadForReplay(file, both); err != nil {
			return fmt.Errorf("arm %q: %w", arm.Name, err)
		}
		if err := e.add(ctx, file, arm.Name, cfg, point); err != nil {
			return err
		}
	}
	return nil
}

// add adds a configuration and, if asked for, its parts.
func (e *evaluator) add(ctx context.Context, file, arm string, cfg registry.Config, point sweep.Point) error {
	cfg.Agents, cfg.Arms = nil, nil
	prefix := ""
	if len(e.flags.configs) > 1 {
		prefix = strings.TrimSuffix(filepath.Base(file), filepath.Ext(file)) + ":"
	}
	if arm != "" {
		prefix += arm + ":"
	}
	searchers := slices.Sorted(maps.Keys(cfg.Searchers))
	if e.searches(ctx, cfg) {
		searchers = append([]string{registry.StoreSearcher}, searchers...)
	}
	if err := e.arm(prefix, cfg, point, searchers); err != nil {
		return err
	}
	if !e.flags.parts || cfg.Retriever.Type == singleRetriever || !slices.Contains(e.reg.Names(registry.KindRetriever), singleRetriever) {
		return nil
	}
	for _, name := range searchers {
		part := cfg
		part.Retriever = registry.Choice{Type: singleRetriever, Options: map[string]any{searcherKey: name}}
		if name != registry.StoreSearcher {
			part.Searchers = registry.Searchers{name: cfg.Searchers[name]}
		} else {
			part.Searchers = registry.Searchers{}
		}
		if err := e.arm(prefix, part, point, []string{name}); err != nil {
			return err
		}
	}
	return nil
}

// searches reports whether a configuration's store has a search of its own. A store that cannot be opened has none: the measurement will say why.
func (e *evaluator) searches(ctx context.Context, cfg registry.Config) bool {
	cfg = e.placed(cfg)
	store, err := e.reg.OpenStore(ctx, cfg.Store, registry.BuildOptions{Getenv: e.getenv})
	if err != nil {
		return false
	}
	defer func() { _ = store.Close() }() // nothing was written
	_, ok := core.As[core.Searcher](store)
	return ok
}

// arm adds one arm, whose retriever has these searchers to ask.
func (e *evaluator) arm(prefix string, cfg registry.Config, point sweep.Point, searchers []string) error {
	if !e.flags.ownLimit && !setsLimit(point) {
		cfg.Retriever = raised(cfg.Retriever, e.flags.candidates)
	}
	cfg, info, err := e.reg.Resolve(cfg, "evaluate", "evaluate")
	if err != nil {
		return err
	}
	// What one searcher finds is its own, whatever the retriever that asks it is called.
	retriever := cfg.Retriever.Type
	if one, _ := cfg.Retriever.Options[searcherKey].(string); retriever == singleRetriever && one != "" {
		retriever, searchers = "only", []string{one}
	}
	name := cfg.Engine.Type
	if name == registry.DefaultEngine {
		name = orNone(retriever)
		if len(searchers) > 0 && cfg.Retriever.Type != "recent" {
			name += "(" + strings.Join(searchers, "+") + ")"
		}
		name += "+" + cfg.Store.Type
	}
	name = prefix + name
	if len(point) > 0 {
		name += " " + shownPoint(point).String()
	}
	unique := name
	for n := 2; e.names[unique]; n++ {
		unique = name + " #" + strconv.Itoa(n)
	}
	e.names[unique] = true
	e.arms = append(e.arms, recall.Arm{
		Name: unique, Digest: info.Config, Searchers: searchers, Settings: shownPoint(point).Map(),
		Parts: core.PartNames{Store: cfg.Store.Type, Retriever: retriever, Compactor: cfg.Compactor.Type},
		Open:  func(ctx context.Context) (recall.Subject, error) { return e.open(ctx, cfg, retriever) },
	})
	return nil
}

// setsLimit reports whether a sweep is about the limit itself.
func setsLimit(point sweep.Point) bool {
	return slices.ContainsFunc(point, func(s sweep.Setting) bool {
		return strings.HasPrefix(s.Key, "retriever.") && strings.HasSuffix(s.Key, "."+limitKey)
	})
}

// raised returns a retriever that proposes as many candidates as are asked for. One without such a limit stays as it is.
func raised(c registry.Choice, candidates int) registry.Choice {
	if limit, ok := c.Options[limitKey]; ok || c.Type == singleRetriever {
		if v, err := strconv.Atoi(fmt.Sprint(limit)); ok && (err != nil || v >= candidates) {
			return c
		}
		c.Options = maps.Clone(c.Options)
		c.Options[limitKey] = candidates
	}
	return c
}

// placed gives a store in a file a file of its own: measurements do not belong among what people keep.
func (e *evaluator) placed(cfg registry.Config) registry.Config {
	if cfg.Store.Type == fileStore {
		options := maps.Clone(cfg.Store.Options)
		if options == nil {
			options = make(map[string]any)
		}
		options[pathKey] = filepath.Join(e.files, rand.Text(), "store.db")
		cfg.Store.Options = options
	}
	return cfg
}

// measuringHost offers what engines may require; no engine asks for it while its retriever is measured.
type measuringHost struct{ core.NoHost }

func (measuringHost) Capabilities() []capability.Name {
	return append(core.NoHost{}.Capabilities(), capability.DelegateHost)
}

// open makes the engine of an arm, whose figures are reported as those of a retriever. One that is less than that name says is refused.
func (e *evaluator) open(ctx context.Context, cfg registry.Config, as string) (recall.Subject, error) {
	cfg = e.placed(cfg)
	sub := recall.Subject{
		Warnings: &recall.Warnings{}, Lasting: cfg.Store.Type != memoryStore && cfg.Store.Type != fileStore,
		Deadline: cfg.Core.Recall.Deadline, Limit: cfg.Core.Recall.Candidates,
	}
	run := ""
	if sub.Lasting {
		run = strings.ToLower(rand.Text()[:12]) // nobody else's agent, and nobody else's entries
		sub.Agent = func(conversation string) string { return "evaluate-" + run + "-" + conversation }
	}
	options := registry.BuildOptions{Host: measuringHost{}, Getenv: e.getenv, Version: version(), Logger: slog.New(sub.Warnings)}
	if len(e.flags.windows) == 0 { // what a quotation costs depends on the engine's own ids
		var n atomic.Int64
		options.IDs = func() string { return fmt.Sprintf("q%s%010d", run, n.Add(1)) }
	}
	instance, err := e.reg.Build(ctx, cfg, options)
	if err != nil {
		return recall.Subject{}, err
	}
	engine, _, err := instance.Engine(ctx, "evaluate", "evaluate")
	if err != nil {
		return recall.Subject{}, closing(ctx, instance, err)
	}
	if b, ok := engine.(core.Bootstrapper); ok {
		if _, err := b.Bootstrap(ctx, core.BootstrapRequest{Session: core.SessionID{Agent: "evaluate", Session: "evaluate"}}); err != nil {
			return recall.Subject{}, closing(ctx, instance, err)
		}
	}
	r, ok := engine.(retrieverOwner)
	if !ok {
		return recall.Subject{}, closing(ctx, instance, fmt.Errorf("engine %q has no retriever that can be asked alone: choose another with the key engine: %w", engine.Info().ID, core.ErrInvalid))
	}
	if caveat := caveatOf(engine); caveat != "" && as == cfg.Retriever.Type {
		return recall.Subject{}, closing(ctx, instance, fmt.Errorf("not reported as %q: %s: %w", as, caveat, core.ErrInvalid))
	}
	sub.Engine, sub.Retriever, sub.Store, sub.Close = r, r.Retriever(), r.Store(), instance.Close
	if cfg.Embedder.Type != "" {
		sub.Prepare = func(ctx context.Context, agent string) error { return prepared(ctx, instance, agent) }
	}
	return sub, nil
}

// revision identifies the program.
func revision() string {
	out := version()
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return out
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" || s.Key == "vcs.modified" {
			out += " " + s.Value
		}
	}
	return out
}

// prepared embeds an agent's messages, where the configuration keeps vectors.
func prepared(ctx context.Context, instance *registry.Instance, agent string) error {
	if err := instance.Reembed(ctx, agent, nil); err != nil && !errors.Is(err, errors.ErrUnsupported) {
		return err
	}
	return nil
}
