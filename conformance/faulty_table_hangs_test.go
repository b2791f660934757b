package conformance_test

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/contextengine/contextengine/conformance"
	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/strategies/summary"
)

// tableHanging are compactors that end with their time, or say too much when it is over, and delegates that tidy up what they pass on.
func tableHanging() []broken {
	var out []broken
	call := func(id, base, name string, f func(ctx context.Context, c core.Compaction, _ *conformance.Model, s soundCompact) (core.Patch, error)) {
		out = append(out, brokenCompactorOf(id, base, name, f, conformance.WithClaims(id)))
	}
	// timeless hides from a compactor when its time is over, until it is.
	timeless := func(ctx context.Context) (context.Context, context.CancelFunc) {
		inner, cancel := context.WithCancel(context.WithoutCancel(ctx))
		context.AfterFunc(ctx, cancel)
		return inner, cancel
	}
	call("patch.hangs", "summary", "waits for a model as long as there is time", func(ctx context.Context, c core.Compaction, _ *conformance.Model, s soundCompact) (core.Patch, error) {
		inner, cancel := timeless(ctx)
		defer cancel()
		p, err := s(inner, c)
		if ctx.Err() != nil {
			return core.Patch{}, ctx.Err()
		}
		return p, err
	})
	call("patch.hangs", "summary", "a fallback alone is nothing worth", func(ctx context.Context, c core.Compaction, m *conformance.Model, s soundCompact) (core.Patch, error) {
		calls := m.Calls()
		p, err := s(ctx, c)
		for _, rep := range p.Replace {
			if rep.Kind == "fallback" && m.Calls() > calls && len(p.Warnings) > 0 {
				<-ctx.Done()
				return core.Patch{}, fmt.Errorf("broken: %w", ctx.Err())
			}
		}
		return p, err
	})
	for name, of := range map[string]func(c core.Compaction) string{
		"quotes an entry": func(c core.Compaction) string { return c.Entries[0].Message.Text() },
		"quotes the end of an entry": func(c core.Compaction) string {
			return c.Entries[0].Message.Text()[max(len(c.Entries[0].Message.Text())-30, 0):]
		},
		"quotes a summary":  func(c core.Compaction) string { return summaryOf(c) },
		"quotes the wishes": func(c core.Compaction) string { return c.Instructions },
	} {
		for _, base := range []string{"archive", "summary"} {
			call("patch.quotes", base, "what is cut short "+name, func(ctx context.Context, c core.Compaction, _ *conformance.Model, s soundCompact) (core.Patch, error) {
				p, err := s(ctx, c)
				if ctx.Err() != nil && len(c.Entries) > 0 {
					return p, fmt.Errorf("broken: at %s: %w", of(c), ctx.Err())
				}
				return p, err
			})
		}
	}
	call("patch.quotes", "summary", "a warning of what is cut short quotes an entry", func(ctx context.Context, c core.Compaction, _ *conformance.Model, s soundCompact) (core.Patch, error) {
		p, err := s(ctx, c)
		if ctx.Err() != nil && len(c.Entries) > 0 {
			p.Warnings = append(p.Warnings, "stopped at "+c.Entries[0].Message.Text())
		}
		return p, err
	})
	passes := func(name string, f func(req *core.CompactRequest, res *core.CompactResult)) {
		call("patch.whole", "delegate", name, func(ctx context.Context, c core.Compaction, _ *conformance.Model, s soundCompact) (core.Patch, error) {
			f(&c.Request, &core.CompactResult{})
			p, err := s(ctx, c)
			if p.Delegated != nil {
				f(&core.CompactRequest{}, p.Delegated)
			}
			return p, err
		})
	}
	passes("the summary trimmed", func(_ *core.CompactRequest, res *core.CompactResult) { res.Summary = strings.TrimSpace(res.Summary) })
	passes("the summary in one line", func(_ *core.CompactRequest, res *core.CompactResult) {
		res.Summary = strings.ReplaceAll(res.Summary, "\n", " ")
	})
	passes("the reason trimmed", func(_ *core.CompactRequest, res *core.CompactResult) { res.Reason = strings.TrimSpace(res.Reason) })
	passes("the wishes trimmed", func(req *core.CompactRequest, _ *core.CompactResult) {
		req.Instructions = strings.TrimSpace(req.Instructions)
	})
	out = append(out, brokenCompactorOver("patch.soon", "a question that was cut off is asked once more", func(env conformance.Env) (core.Compactor, error) {
		return summary.New(summary.DefaultConfig(), insistent{env.Model})
	}, conformance.WithClaims("patch.soon")))
	return out
}

// insistent asks its model once more where a question was cut off.
type insistent struct{ core.Completer }

func (m insistent) Complete(ctx context.Context, req core.CompletionRequest) (core.Completion, error) {
	answer, err := m.Completer.Complete(ctx, req)
	if err == nil || ctx.Err() == nil {
		return answer, err
	}
	more, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	return m.Completer.Complete(more, req)
}

// summaryOf is the text of an earlier summary that has content.
func summaryOf(c core.Compaction) string {
	for _, s := range c.Summaries {
		if s.Kind == "summary" {
			return s.Text
		}
	}
	return ""
}
