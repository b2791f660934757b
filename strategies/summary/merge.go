package summary

import (
	"context"
	"strconv"
	"strings"

	"github.com/contextengine/contextengine/internal/compacting"
	"github.com/contextengine/contextengine/internal/compacting/inventory"
)

// merge makes one text of several, of at most limit tokens. Where they are too long for one call they are merged in batches first.
// It returns an error only when ctx has ended.
func (w *work) merge(ctx context.Context, texts []string, limit int, t *tally) (string, error) {
	t.prompt = w.prompts.combine.version
	// Half a batch at most, so that every round at least halves their number.
	most := w.cfg.ChunkTokens/2 - 20
	for {
		var batches [][]string
		var batch []string
		tokens := 0
		for _, text := range texts {
			text = compacting.Clip(text, most, w.c.Count)
			n := w.c.Count(text) + 10
			if len(batch) > 0 && tokens+n > w.cfg.ChunkTokens {
				batches, batch, tokens = append(batches, batch), nil, 0
			}
			batch, tokens = append(batch, text), tokens+n
		}
		batches = append(batches, batch)
		if len(batches) == 1 {
			return w.mergeBatch(ctx, batch, limit, t)
		}
		texts = nil
		for _, b := range batches {
			text, err := w.mergeBatch(ctx, b, max(limit, min(w.summaryTokens(), most)), t)
			if err != nil {
				return "", err
			}
			texts = append(texts, text)
		}
	}
}

func (w *work) mergeBatch(ctx context.Context, texts []string, limit int, t *tally) (string, error) {
	var b strings.Builder
	for i, text := range texts {
		b.WriteString("[text " + strconv.Itoa(i+1) + " of " + strconv.Itoa(len(texts)) + "]\n")
		quote(&b, text)
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
