package summary

import (
	"context"
	"strconv"
	"strings"

	"github.com/contextengine/contextengine/internal/compacting"
	"github.com/contextengine/contextengine/internal/compacting/inventory"
)

// quoteOverhead is more than the line in front of a text costs in a question, in tokens.
const quoteOverhead = 10

// quoteTokens is what a question shows of one of the texts that it merges: two always have room.
func (w *work) quoteTokens() int { return w.cfg.ChunkTokens/2 - 2*quoteOverhead }

// merge makes one text of several, of at most limit tokens, in one call. It returns an error only when ctx has ended.
func (w *work) merge(ctx context.Context, texts []string, limit int, t *tally) (string, error) {
	t.prompt = w.prompts.combine.version
	var b strings.Builder
	for i, text := range texts {
		b.WriteString("[text " + strconv.Itoa(i+1) + " of " + strconv.Itoa(len(texts)) + "]\n")
		quote(&b, compacting.Clip(text, w.quoteTokens(), w.c.Count))
	}
	source := b.String()
	o := outcome{cause: w.mayAsk(source)}
	if o.cause == "" {
		o = w.ask(ctx, question{prompt: w.prompts.combine, source: source, sourceTokens: w.c.Count(source), limit: limit})
	}
	if o.cause != "" && ctx.Err() != nil {
		return "", ctx.Err()
	}
	w.note(o)
	t.add(o)
	if o.cause == "" {
		return o.text, nil
	}
	// Without a model every text keeps its beginning and end. What is kept word for word is added behind them again.
	share := limit / len(texts)
	var parts []string
	for _, text := range texts {
		text = inventory.Strip(text)
		if text = compacting.Clip(text, share-2, w.c.Count); text != "" {
			parts = append(parts, text)
		}
	}
	return compacting.Clip(strings.Join(parts, "\n"), limit, w.c.Count), nil
}
