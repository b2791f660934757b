// Command abtest lets two retrievers compete in one program, from the configuration to the verdict: sessions are split among two arms, every session is asked for
// something that it said long before, and what the window had of it is the outcome.
package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"os"
	"slices"
	"strings"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/engine"
	"github.com/contextengine/contextengine/core/message"
	"github.com/contextengine/contextengine/experiment/live"
	"github.com/contextengine/contextengine/registry"
	"github.com/contextengine/contextengine/registry/builtin"
)

// config is what a file would hold. The arms differ in one key.
const config = `
store: memory
arms:
  - {name: newest alone, override: {retriever: recent}}
  - {name: with recall, override: {retriever: hybrid}}
`

func main() {
	if err := run(context.Background(), os.Stdout); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, out io.Writer) error {
	reg := builtin.New()
	cfg, err := reg.Load(registry.Bytes("abtest.yaml", "yaml", []byte(config)))
	if err != nil {
		return err
	}
	instance, err := reg.Build(ctx, cfg, registry.BuildOptions{})
	if err != nil {
		return err
	}
	defer instance.Close(ctx)
	var source live.Source
	for n := range 30 {
		session := core.SessionID{Agent: "concierge", Session: fmt.Sprintf("guest-%d", n)}
		eng, arm, err := instance.Engine(ctx, session.Agent, session.Session)
		if err != nil {
			return err
		}
		if err := talk(ctx, eng, session, n); err != nil {
			return fmt.Errorf("%s, %s: %w", session, arm.Name, err)
		}
		if store := eng.(*engine.Engine).Store(); !slices.Contains(source.Stores, store) {
			source.Stores = append(source.Stores, store)
		}
	}
	for _, arm := range cfg.Arms {
		source.Arms = append(source.Arms, arm.Name)
	}
	status, err := live.Read(ctx, source)
	if err != nil {
		return err
	}
	for _, arm := range status.Arms {
		fmt.Fprintf(out, "%s: %d sessions\n", arm.Name, arm.Sessions)
	}
	for _, d := range status.Differences {
		if d.Metric == "found" {
			fmt.Fprintf(out, "found: %s\n", d.Verdict)
		}
	}
	return nil
}

// talk is one session: a fact, much else, and the question. In a real one a model answers, and a user or a test says how well.
func talk(ctx context.Context, eng core.ContextEngine, session core.SessionID, n int) error {
	code := fmt.Sprintf("K%d-%d", 100+n, 7*n+3)
	question := "What was the code of the bicycle shed?"
	said := []message.Message{message.New(message.User, "The code of the bicycle shed is "+code+", please keep it.")}
	for i := range 40 {
		said = append(said, message.New(message.Assistant, "Done."), message.New(message.User, fmt.Sprintf("Next, book table %d for this evening and tell the others.", i)))
	}
	for _, m := range append(said, message.New(message.Assistant, "Done."), message.New(message.User, question)) {
		if _, err := eng.Ingest(ctx, core.IngestRequest{Session: session, Message: m}); err != nil {
			return err
		}
	}
	window, err := eng.Assemble(ctx, core.AssembleRequest{Session: session, Prompt: question, Budget: 900})
	if err != nil {
		return err
	}
	found := 0.0
	if slices.ContainsFunc(window.Messages, func(m message.Message) bool { return strings.Contains(m.Text(), code) }) {
		found = 1
	}
	return eng.(engine.Scorer).Score(ctx, engine.Outcome{Session: session, Name: "found", Value: found})
}
