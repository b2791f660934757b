package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/models/tiktoken"
	"github.com/contextengine/contextengine/registry"
)

const modelHelp = `No model is asked unless --model is given: configured ones may cost money. Summaries are then made as they are when a model fails. With --model the command
first rehearses with a model that costs nothing, prints how many calls and tokens that took, and prints afterwards what it was. --price adds the price.`

// modelFlags say whether models may be asked.
type modelFlags struct {
	ask   bool
	price []float64
}

func (f *modelFlags) register(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&f.ask, "model", false, "let the configured models be asked, embedders too; that may cost money")
	cmd.Flags().Float64SliceVar(&f.price, "price", nil, "with --model: prices of a million tokens that a model reads, and that it writes, such as 2.5,10")
}

func (f *modelFlags) validate() error {
	switch {
	case len(f.price) > 0 && !f.ask:
		return fmt.Errorf("--price: goes with --model: %w", core.ErrInvalid)
	case len(f.price) != 0 && len(f.price) != 2 || slices.ContainsFunc(f.price, func(p float64) bool { return p < 0 }):
		return fmt.Errorf("--price: give two prices that are not negative, such as 2.5,10: %w", core.ErrInvalid)
	}
	return nil
}

// asking runs a measurement under the rules for models: measure gets what the engines are to be built with, and may be run twice.
func (a *app) asking(ctx context.Context, f modelFlags, s selection, measure func(context.Context, selection) error) error {
	if err := f.validate(); err != nil {
		return err
	}
	models, embedders, err := a.modelsOf(s)
	if err != nil {
		return err
	}
	switch {
	case len(models)+len(embedders) == 0:
		if f.ask {
			fmt.Fprintln(a.Stderr, "note: no model is configured: --model changes nothing")
		}
		return measure(ctx, s)
	case !f.ask && len(embedders) > 0:
		return fmt.Errorf("the configuration embeds messages with %s: --model lets it be asked, or leave out the searcher that needs it: %w", strings.Join(embedders, " and "), core.ErrInvalid)
	case !f.ask:
		fmt.Fprintf(a.Stderr, "note: %s is configured and not asked; --model asks it\n", strings.Join(models, " and "))
		return measure(ctx, s)
	}
	rehearsed, err := newTally()
	if err != nil {
		return err
	}
	s.build = func(o *registry.BuildOptions) { o.Models = rehearsed.rehearse }
	s.rehearsal = true
	if err := measure(ctx, s); err != nil {
		return err
	}
	fmt.Fprintf(a.Stderr, "models: about %s, as rehearsed\n", rehearsed.text(f.price))
	asked, err := newTally()
	if err != nil {
		return err
	}
	s.build = func(o *registry.BuildOptions) { o.Models = asked.count }
	s.rehearsal = false
	err = measure(ctx, s)
	fmt.Fprintf(a.Stderr, "models: %s\n", asked.text(f.price))
	return err
}

// modelsOf returns the models and embedders that configurations name, those of their agents and arms too.
func (a *app) modelsOf(s selection) (models, embedders []string, err error) {
	if s.combinations != "" {
		return nil, nil, nil // they need nothing outside
	}
	cfgs, err := a.configurations(s)
	if err != nil {
		return nil, nil, err
	}
	add := func(list *[]string, name string) {
		if name != "" && !slices.Contains(*list, name) {
			*list = append(*list, name)
		}
	}
	for _, c := range cfgs {
		cfg, _, err := a.reg.Resolve(c.cfg, "replay", "")
		if err != nil {
			return nil, nil, err
		}
		add(&models, cfg.Model.Type)
		add(&embedders, cfg.Embedder.Type)
		for _, arm := range c.cfg.Arms {
			add(&models, nameIn(arm.Override["model"]))
			add(&embedders, nameIn(arm.Override["embedder"]))
		}
	}
	return models, embedders, nil
}

// nameIn is the name of a part as a file holds it.
func nameIn(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case map[string]any:
		name, _ := v["type"].(string)
		return name
	}
	return ""
}

// tally counts what models are asked. It is safe for concurrent use.
type tally struct {
	tokens core.TokenCounter

	mu sync.Mutex
	// calls are those that complete text; read and wrote are tokens, those that were embedded among them.
	calls, read, wrote int
	// embedded are texts, embedding the calls for them.
	embedded, embedding int
}

func newTally() (*tally, error) {
	counter, err := tiktoken.New(tiktoken.DefaultEncoding)
	if err != nil {
		return nil, err
	}
	return &tally{tokens: counter.Count}, nil
}

// text says what was asked, and what it costs.
func (t *tally) text(price []float64) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	out := fmt.Sprintf("%s, %s tokens read, %s written", count(t.calls, "call"), short(float64(t.read)), short(float64(t.wrote)))
	if t.embedded > 0 {
		out += fmt.Sprintf("; %s embedded in %s", count(t.embedded, "text"), count(t.embedding, "call"))
	}
	if len(price) == 2 {
		out += fmt.Sprintf("; %.4f at %v and %v a million", (float64(t.read)*price[0]+float64(t.wrote)*price[1])/1e6, price[0], price[1])
	}
	return out
}

func (t *tally) completed(req core.CompletionRequest, c core.Completion) {
	read, wrote := c.InputTokens, c.OutputTokens
	if read == 0 {
		read = t.tokens(req.System) + t.tokens(req.Prompt)
	}
	if wrote == 0 {
		wrote = t.tokens(c.Text)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.calls++
	t.read += read
	t.wrote += wrote
}

func (t *tally) vectors(texts []string) {
	n := 0
	for _, text := range texts {
		n += t.tokens(text)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.embedding++
	t.embedded += len(texts)
	t.read += n
}

// count lets models be asked and counts it.
func (t *tally) count(_ string, m registry.Model) registry.Model {
	if m.Completer != nil {
		m.Completer = countedCompleter{m.Completer, t}
	}
	if m.Embedder != nil {
		m.Embedder = countedEmbedder{m.Embedder, t}
	}
	return m
}

// rehearse puts models in the place of others that cost nothing, and counts what those would be asked.
func (t *tally) rehearse(_ string, m registry.Model) registry.Model {
	if m.Completer != nil {
		m.Completer = countedCompleter{rehearsing{}, t}
	}
	if m.Embedder != nil {
		m.Embedder = countedEmbedder{rehearsing{}, t}
	}
	return m
}

type countedCompleter struct {
	core.Completer
	tally *tally
}

// Complete implements core.Completer.
func (c countedCompleter) Complete(ctx context.Context, req core.CompletionRequest) (core.Completion, error) {
	res, err := c.Completer.Complete(ctx, req)
	c.tally.completed(req, res) // what failed may cost, too
	return res, err
}

type countedEmbedder struct {
	core.Embedder
	tally *tally
}

// Embed implements core.Embedder.
func (e countedEmbedder) Embed(ctx context.Context, texts []string) ([][]float32, error) {
	e.tally.vectors(texts)
	return e.Embedder.Embed(ctx, texts)
}

// rehearsing answers with a quarter of what it is told, and with the lengths of texts for vectors.
type rehearsing struct{}

// Complete implements core.Completer.
func (rehearsing) Complete(ctx context.Context, req core.CompletionRequest) (core.Completion, error) {
	most := len(req.Prompt) / 4
	if req.MaxTokens > 0 {
		most = min(most, 3*req.MaxTokens)
	}
	return core.Completion{Text: strings.ToValidUTF8(req.Prompt[:most], ""), StopReason: "stop"}, ctx.Err()
}

// Embed implements core.Embedder.
func (rehearsing) Embed(ctx context.Context, texts []string) ([][]float32, error) {
	out := make([][]float32, len(texts))
	for i, text := range texts {
		out[i] = []float32{1, float32(len(text)) / 1000}
	}
	return out, ctx.Err()
}

// Dimensions implements core.Embedder.
func (rehearsing) Dimensions() int { return 2 }

// Model implements core.Embedder.
func (rehearsing) Model() string { return "rehearsal" }
