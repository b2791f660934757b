package summary

import (
	"context"
	"fmt"
	"sync"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/internal/compacting"
)

// carryOut makes the texts of a plan and publishes all but the last of them.
func (w *work) carryOut(ctx context.Context, p plan) (core.Patch, error) {
	out := publisher{publish: w.c.Publish}
	if len(p.condense) > 0 {
		rep, err := w.condense(ctx, p)
		if err != nil {
			return out.patch(), fmt.Errorf("summary: compact: %w", err)
		}
		if err := out.add(ctx, rep, len(p.leaves) == 0); err != nil {
			return out.patch(), err
		}
	}

	var parts []part
	var limits []int
	for _, l := range p.leaves {
		for _, t := range l.parts {
			parts = append(parts, t)
			limits = append(limits, w.partLimit(l, t))
		}
	}
	ctxCalls, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	results := make([]chan outcome, len(parts))
	// A part starts when the one Parallel places before it has been dealt with. What it knows of earlier failures is
	// then the same in every run.
	start := func(i int) {
		if i >= len(parts) {
			return
		}
		results[i] = make(chan outcome, 1)
		broken := w.broken()
		wg.Go(func() { results[i] <- w.summarise(ctxCalls, parts[i], limits[i], broken) })
	}
	for i := range min(w.cfg.Parallel, len(parts)) {
		start(i)
	}
	i := 0
	for n, l := range p.leaves {
		var made []outcome
		for range l.parts {
			o := <-results[i]
			if o.cause != "" && ctx.Err() != nil {
				return out.patch(), fmt.Errorf("summary: compact: %w", ctx.Err())
			}
			w.note(o)
			made = append(made, o)
			i++
			start(i - 1 + w.cfg.Parallel)
		}
		rep, err := w.finish(ctx, l, made)
		if err != nil {
			return out.patch(), fmt.Errorf("summary: compact: %w", err)
		}
		if err := out.add(ctx, rep, n == len(p.leaves)-1); err != nil {
			return out.patch(), err
		}
	}
	if err := ctx.Err(); err != nil {
		return out.patch(), fmt.Errorf("summary: compact: %w", err)
	}
	return out.patch(), nil
}

// partLimit bounds the text about one part: that of its summary, or less where texts are merged.
func (w *work) partLimit(l leaf, t part) int {
	if len(l.parts) == 1 {
		return w.bodyLimit(l.limit)
	}
	return min(w.summaryTokens(), w.cfg.ChunkTokens/3, max(smallText, int(w.cfg.Ratio*float64(t.tokens))))
}

// note counts failures in a row.
func (w *work) note(o outcome) {
	switch {
	case o.cause == "":
		w.failures = 0
	case o.calls > 0:
		w.failures++
	}
}

// broken reports whether models failed too often to be asked again.
func (w *work) broken() bool { return w.failures >= w.cfg.Failures }

// finish makes the replacement of a leaf from the outcomes of its parts.
func (w *work) finish(ctx context.Context, l leaf, made []outcome) (core.Replacement, error) {
	t := tallyOf(w.prompts.chunk.version)
	for _, o := range made {
		t.add(o)
	}
	span := compacting.Unit{From: l.parts[0].from, To: l.parts[len(l.parts)-1].to}
	var text string
	switch {
	case t.usable == 0:
		text = w.digest(span.From, span.To, w.bodyLimit(l.limit))
	case len(made) == 1:
		text = made[0].text
	default:
		texts := make([]string, len(made))
		for i, o := range made {
			if texts[i] = o.text; o.cause != "" {
				texts[i] = w.digest(l.parts[i].from, l.parts[i].to, w.partLimit(l, l.parts[i]))
			}
		}
		var err error
		if text, err = w.merge(ctx, texts, w.bodyLimit(l.limit), &t); err != nil {
			return core.Replacement{}, err
		}
	}
	return core.Replacement{
		Entries: compacting.IDs(w.c, span),
		Text:    w.headed(w.header(t.kind(), span.To-span.From, w.period(span), l.limit), text, l.limit),
		Kind:    t.kind(),
		Meta:    t.meta(),
	}, nil
}

// condense makes one text of all earlier summaries.
func (w *work) condense(ctx context.Context, p plan) (core.Replacement, error) {
	rep := core.Replacement{}
	covers := 0
	texts := make([]string, 0, len(p.condense))
	for _, s := range p.condense {
		rep.Summaries = append(rep.Summaries, s.ID)
		covers += s.Covers
		texts = append(texts, clean(s.Text))
	}
	t := tallyOf(w.prompts.combine.version)
	text, err := w.merge(ctx, texts, w.bodyLimit(p.condenseLimit), &t)
	if err != nil {
		return rep, err
	}
	rep.Kind, rep.Meta = t.kind(), t.meta()
	rep.Text = w.headed(w.header(rep.Kind, covers, "", p.condenseLimit), text, p.condenseLimit)
	return rep, nil
}

// publisher hands finished replacements on, in order.
type publisher struct {
	publish func(context.Context, core.Patch) error
	rest    []core.Replacement
}

// add publishes rep, or keeps it for the patch: the last one, where publishing is not possible, and what follows one that was kept.
func (p *publisher) add(ctx context.Context, rep core.Replacement, last bool) error {
	if last || p.publish == nil || len(p.rest) > 0 || ctx.Err() != nil {
		p.rest = append(p.rest, rep)
		return nil
	}
	err := p.publish(ctx, core.Patch{Replace: []core.Replacement{rep}})
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		p.rest = append(p.rest, rep)
		return nil
	}
	return fmt.Errorf("summary: publish: %w", err)
}

func (p *publisher) patch() core.Patch { return core.Patch{Replace: p.rest} }
