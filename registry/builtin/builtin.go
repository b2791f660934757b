// Package builtin registers the parts of this repository.
//
//	r := builtin.New()
//	// add parts of your own with registry.AddStore and its like
//	cfg, err := r.LoadFile("contextengine.yaml")
package builtin

import (
	"embed"
	"errors"
	"io/fs"

	"github.com/contextengine/contextengine/backends/memory"
	"github.com/contextengine/contextengine/backends/postgres"
	"github.com/contextengine/contextengine/backends/sqlite"
	"github.com/contextengine/contextengine/models/ollama"
	"github.com/contextengine/contextengine/models/openai"
	"github.com/contextengine/contextengine/registry"
	"github.com/contextengine/contextengine/strategies/archive"
	"github.com/contextengine/contextengine/strategies/hybrid"
	"github.com/contextengine/contextengine/strategies/index"
	"github.com/contextengine/contextengine/strategies/lexical"
	"github.com/contextengine/contextengine/strategies/mask"
	"github.com/contextengine/contextengine/strategies/recent"
	"github.com/contextengine/contextengine/strategies/semantic"
)

// New returns a new registry with all parts of this repository.
func New() *registry.Registry {
	r := &registry.Registry{}
	_ = errors.Join(Add(r), addReleased(r)) // an empty registry has no name that could be taken, and the package's test sees the rest
	return r
}

// released are what configurations of older versions were made of, a file for each version; docs/releasing.md says how it is made.
//
//go:embed released/*.json
var released embed.FS

func addReleased(r *registry.Registry) error {
	names, err := fs.Glob(released, "released/*.json")
	for _, name := range names {
		data, readErr := released.ReadFile(name)
		err = errors.Join(err, readErr, registry.AddReleased(r, data))
	}
	return err
}

// Add registers all parts of this repository. Where a name is taken it keeps what is there, goes on, and returns core.ErrConflict.
func Add(r *registry.Registry) error {
	return errors.Join(
		registry.AddEngine(r, "composed", "the parts named by this configuration", nothing, composed, registry.Defaults(composedParts())),
		registry.AddEngine(r, "legacy", "hands back the host's own messages and stores nothing", nothing, legacy),
		registry.AddEngine(r, "openbrain", "keeps everything on this machine and on an OpenBrain server, which also searches", openBrainDefaults, openBrain,
			registry.Plugins("openclaw-openbrain-context"), registry.PluginKeys(pluginKeys()...), registry.Defaults(openBrainParts())),

		registry.AddStore(r, "memory", "in this process; gone when it ends", memory.DefaultConfig, memoryStore, registry.Conformance("", memory.DefaultConfig)),
		registry.AddStore(r, "openbrain", "on an OpenBrain server, which also searches", openBrainStoreDefaults, openBrainStore),
		registry.AddStore(r, "outbox", "a store on this machine in front of another one, which gets everything when it can be reached", outboxDefaults, outboxStore),
		registry.AddStore(r, "postgres", "on a PostgreSQL server, which also searches; with pgvector also by meaning", postgres.DefaultConfig, postgresStore),
		registry.AddStore(r, "sqlite", "in one file on this machine", sqlite.DefaultConfig, sqliteStore),

		registry.AddRetriever(r, "recent", "recalls nothing: all of the budget shows the newest messages", recent.DefaultConfig, recentRetriever,
			registry.Conformance("", recent.DefaultConfig)),
		registry.AddRetriever(r, "semantic", "asks one searcher: vectors or a store that compares meaning, and where neither is configured only words", semanticDefaults, semanticRetriever,
			registry.Conformance("", semanticDefaults)),
		registry.AddRetriever(r, "hybrid", "fuses what all searchers find", hybrid.DefaultConfig, hybridRetriever,
			registry.Conformance("", hybrid.DefaultConfig)),

		registry.AddCompactor(r, "archive", "leaves a note; the messages stay where recall finds them", archive.DefaultConfig, archiveCompactor,
			registry.Conformance("", archive.DefaultConfig)),
		registry.AddCompactor(r, "mask", "old tool results give way to a line; oversized ones keep head and tail", mask.DefaultConfig, maskCompactor,
			registry.Conformance("", mask.DefaultConfig)),
		registry.AddCompactor(r, "index", "identifiers, paths, numbers, rules and open tasks stand for what leaves, exact to the byte", index.DefaultConfig, indexCompactor,
			registry.Conformance("", index.DefaultConfig)),
		registry.AddCompactor(r, "chain", "several compactors one after the other, until the target is reached", chainDefaults, chainCompactor,
			registry.Conformance("", chainDefaults)),
		registry.AddCompactor(r, "summary", "a model writes summaries", summaryDefaults, summaryCompactor,
			registry.Conformance("", summaryDefaults), registry.Prompts(summaryPrompts)),
		registry.AddCompactor(r, "delegate", "asks the host to compact", nothing, delegateCompactor,
			registry.Conformance("", nothing)),

		registry.AddSearcher(r, "lexical", "finds words", lexical.DefaultConfig, lexicalSearcher),
		registry.AddSearcher(r, "vector", "finds meaning; needs an embedder", semantic.DefaultVectorConfig, vectorSearcher),

		registry.AddModel(r, "ollama", "vectors from an Ollama server", ollama.DefaultConfig, ollamaModel),
		registry.AddModel(r, "openai", "any endpoint that speaks OpenAI's API", openai.DefaultConfig, openAIModel),

		registry.AddTokenizer(r, "o200k_base", "GPT-4o and later", tokenizer("o200k_base")),
		registry.AddTokenizer(r, "cl100k_base", "GPT-4 and GPT-3.5", tokenizer("cl100k_base")),
	)
}
