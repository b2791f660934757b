// Package registry maps names to the factories of parts, and configuration to engines.
//
// A Registry is filled once at start-up (package builtin holds the parts of this repository), then read:
//
//	r := builtin.New()
//	cfg, err := r.LoadFile("contextengine.yaml")
//	instance, err := r.Build(ctx, cfg, registry.BuildOptions{})
//	engine, arm, err := instance.Engine(ctx, "coder", "session-1")
//
// # A configuration file
//
// JSON, JSON5, YAML or TOML, by its ending; Registry.Template writes one with every key. The environment goes on top of it, see Environ.
//
//	engine: composed
//	store: memory                        # a name, or
//	retriever: {type: hybrid, limit: 10} # an object with options
//	compactor: archive
//	window: {high: 0.9}                  # keys of engine.Config stand at the top level
//	agents:                              # changes for single agents, merged over what is above
//	  coder: {retriever: recent}
//	arms:                                # an experiment: every session keeps its arm
//	  - {name: a, override: {}}
//	  - {name: b, weight: 2, override: {compactor: summary}}
//
// A host's configuration is read too, see Registry.Load.
//
// # A part of your own
//
// A part needs a struct for its options, a function that returns the defaults, and a factory:
//
//	type Config struct {
//		Limit int `koanf:"limit" doc:"largest number of results"`
//	}
//
//	err := registry.AddRetriever(r, "mine", "what it does, in a sentence",
//		func() Config { return Config{Limit: 10} },
//		func(ctx context.Context, cfg Config, env registry.Env) (core.Retriever, error) {
//			searcher, err := env.Searcher(ctx, "")
//			if err != nil {
//				return nil, err
//			}
//			return mine.New(cfg.Limit, searcher), nil
//		},
//		registry.Conformance("", func() Config { return Config{Limit: 10} }))
//
// Fields are booleans, strings, numbers, durations (written "2s"), structs, and lists, maps and pointers of these. The tag koanf names the
// key (else it is the field's name with a small first letter), "-" hides a field and ",squash" lends the keys of a
// struct; the tag doc explains it. Keys whose names end in key, secret, token, password, credential, dsn, authorization or the like
// are never printed. Factories validate what they get.
package registry
