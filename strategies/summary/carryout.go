package summary

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/internal/compacting"
	"github.com/contextengine/contextengine/internal/compacting/inventory"
)

// carryOut makes the texts of a plan. Each is published as soon as it is there; the last one is returned.
func (w *work) carryOut(ctx context.Context, p plan) (core.Patch, error) {
	b := &builder{work: w, plan: p, all: w.living(), out: publisher{publish: w.c.Publish}}
	ctxCalls, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	results := make([]chan outcome, len(p.parts))
	// A part starts when the one Parallel places before it has been dealt with. What it knows of earlier failures is
	// then the same in every run.
	start := func(i int) {
		if i >= len(p.parts) {
			return
		}
		results[i] = make(chan outcome, 1)
		if cause := w.mayAsk(p.parts[i].text); cause != "" {
			results[i] <- outcome{cause: cause}
			return
		}
		wg.Go(func() { results[i] <- w.summarise(ctxCalls, p.parts[i], w.said(p.parts[i].limit)) })
	}
	for i := range min(w.cfg.Parallel, len(p.parts)) {
		start(i)
	}
	paused := false
	for i := 0; i < len(p.parts); {
		o := <-results[i]
		if o.cause != "" && ctx.Err() != nil {
			return b.out.patch(), fmt.Errorf("summary: compact: %w", ctx.Err())
		}
		w.note(o)
		if o.cause == causeSpent && o.calls == 0 && !w.c.Force {
			paused = true
			break
		}
		span := p.parts[i]
		n := 1
		if o.cause != "" && o.calls == 0 {
			// Nobody can be asked: what was not asked about yet needs no text for every part.
			n = b.join(&span, p.parts[i:], results[i:])
		}
		rep, err := b.leaf(ctx, span, o)
		if err != nil {
			return b.out.patch(), fmt.Errorf("summary: compact: %w", err)
		}
		i += n
		if err := b.add(ctx, rep, span.to-span.from, i == len(p.parts)); err != nil {
			return b.out.patch(), err
		}
		// Condensing asks too: it comes before the next part, so that never more than Parallel calls are under way, nor paid for and not published.
		if err := b.condense(ctx, i == len(p.parts)); err != nil {
			return b.out.patch(), err
		}
		for j := i - n; j < i; j++ {
			if at := j + w.cfg.Parallel; at >= i {
				start(at)
			}
		}
	}
	if len(p.parts) == 0 {
		if err := b.condense(ctx, true); err != nil {
			return b.out.patch(), err
		}
	}
	if err := ctx.Err(); err != nil {
		return b.out.patch(), fmt.Errorf("summary: compact: %w", err)
	}
	patch := b.out.patch()
	if paused {
		patch.Reason = "the spend limit is reached: the rest of the history is compacted later"
	}
	return patch, nil
}

// builder puts the texts of a compaction together.
type builder struct {
	*work
	plan plan
	// all are the summaries as they are now.
	all  []live
	out  publisher
	refs int
}

// join widens span by the parts behind the first of parts that nobody was asked about, so that those left become at most half of the
// summaries that have room. It returns the number of parts that span has then.
func (b *builder) join(span *part, parts []part, results []chan outcome) int {
	most := max(b.plan.most/2, 1)
	n := 1
	for want := (len(parts) + most - 1) / most; n < want; n++ {
		if results[n] != nil {
			o := <-results[n]
			results[n] <- o
			if o.cause == "" || o.calls > 0 {
				break
			}
		}
		span.to = parts[n].to
		span.cost += parts[n].cost
		span.limit = min(span.limit+parts[n].limit, b.limit(span.cost), max(b.plan.room/b.plan.most-compacting.Overhead, shortText))
	}
	return n
}

// leaf makes the replacement of a part's entries from what came of asking about it.
func (b *builder) leaf(ctx context.Context, t part, o outcome) (core.Replacement, error) {
	count := tallyOf(b.prompts.chunk.version)
	count.add(o)
	entries := b.c.Entries[t.from:t.to]
	inv := inventory.New()
	if err := inv.Read(ctx, entries); err != nil {
		return core.Replacement{}, err
	}
	src := sourceOf(inv, entriesText(entries), entries)
	said, words := o.text, wordsShare
	if o.cause != "" {
		said, words = b.digest(t.from, t.to, b.said(t.limit)*2/3), digestWordsShare
	}
	span := compacting.Unit{From: t.from, To: t.to}
	rep := core.Replacement{Entries: compacting.IDs(b.c, span), Kind: count.kind()}
	var f findings
	rep.Text, f = b.compose(b.header(rep.Kind, t.to-t.from, b.period(span), t.limit), said, src, words, t.limit)
	rep.Meta = count.meta(f)
	return rep, nil
}

// add publishes a replacement for entries, or keeps it for the patch when it is the last.
func (b *builder) add(ctx context.Context, rep core.Replacement, covers int, last bool) error {
	b.refs++
	rep.Ref = "summary:" + strconv.Itoa(b.refs)
	b.all = append(b.all, live{id: rep.Ref, text: rep.Text, tokens: b.c.Count(rep.Text) + compacting.Overhead, covers: covers})
	if last {
		_, _, limit := b.crowded(b.all, &b.plan)
		last = limit == 0
	}
	return b.out.add(ctx, rep, last)
}

// condense merges summaries as long as there are too many of them, or too long ones. It stops when the compaction's context ends: the texts are there.
func (b *builder) condense(ctx context.Context, last bool) error {
	for ctx.Err() == nil {
		from, to, limit := b.crowded(b.all, &b.plan)
		if limit == 0 || !b.c.Force && len(b.models) > 0 && b.exhausted() {
			return nil // or it waits for the next compaction: paid texts are not shortened without a model unasked
		}
		rep, node, err := b.node(ctx, b.all[from:to], limit)
		if err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return fmt.Errorf("summary: compact: %w", err)
		}
		b.refs++
		rep.Ref = "summary:" + strconv.Itoa(b.refs)
		node.id = rep.Ref
		b.all = append(append(append([]live(nil), b.all[:from]...), node), b.all[to:]...)
		_, _, more := b.crowded(b.all, &b.plan)
		if err := b.out.add(ctx, rep, last && more == 0); err != nil {
			return err
		}
	}
	return nil
}

// node makes one text of neighbouring summaries.
func (b *builder) node(ctx context.Context, these []live, limit int) (core.Replacement, live, error) {
	rep := core.Replacement{}
	var node live
	texts := make([]string, 0, len(these))
	inv := inventory.New()
	for _, l := range these {
		rep.Summaries = append(rep.Summaries, l.id)
		node.covers += l.covers
		texts = append(texts, clean(l.text))
		inv.Include(l.text)
	}
	count := tallyOf(b.prompts.combine.version)
	said, err := b.merge(ctx, texts, b.said(limit), &count)
	if err != nil {
		return rep, node, err
	}
	rep.Kind = count.kind()
	var f findings
	rep.Text, f = b.compose(b.header(rep.Kind, node.covers, "", limit), said, sourceOf(inv, strings.Join(texts, "\n"), nil), wordsShare, limit)
	rep.Meta = count.meta(f)
	node.text, node.tokens = rep.Text, b.c.Count(rep.Text)+compacting.Overhead
	return rep, node, nil
}

// note counts failures in a row.
func (w *work) note(o outcome) {
	if o.problem != "" && !slices.Contains(w.problems, o.problem) && len(w.problems) < mostProblems {
		w.problems = append(w.problems, o.problem)
	}
	switch {
	case o.cause == "":
		w.failures = 0
	case o.calls > 0:
		if w.failures++; w.failures == w.cfg.Failures {
			w.trip(o.problem)
		}
	}
}

// mostProblems bounds what a compaction reports of its models.
const mostProblems = 4

// broken reports whether models failed too often to be asked again.
func (w *work) broken() bool { return w.down || w.failures >= w.cfg.Failures }

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
