// Command customstore is contextengine with two parts of its own: the store "ledger" and the retriever "facts", which remembers what
// the user said about themselves. Start with main, then store.go and retriever.go; customstore_test.go holds both to the promises.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/hosts/cli"
	"github.com/contextengine/contextengine/registry"
	"github.com/contextengine/contextengine/registry/builtin"
)

func main() {
	reg, err := newRegistry()
	if err != nil {
		fmt.Fprintln(os.Stderr, "error: "+err.Error())
		os.Exit(cli.ExitFailure)
	}
	os.Exit(cli.Main(reg))
}

// newRegistry returns the built-in parts and the two of this program. Conformance offers the parts to replay --combinations.
func newRegistry() (*registry.Registry, error) {
	reg := builtin.New()
	return reg, errors.Join(
		registry.AddStore(reg, "ledger", "a table in this process; gone when it ends", noOptions,
			func(context.Context, struct{}, registry.Env) (core.Store, error) { return NewLedger(), nil },
			registry.Conformance("", noOptions)),
		registry.AddRetriever(reg, "facts", "recalls what the user asked to remember, prefers or is", DefaultFactsConfig,
			func(_ context.Context, cfg FactsConfig, _ registry.Env) (core.Retriever, error) { return NewFacts(cfg) },
			registry.Conformance("", DefaultFactsConfig)))
}

// noOptions is the configuration of a part that has nothing to configure.
func noOptions() struct{} { return struct{}{} }
