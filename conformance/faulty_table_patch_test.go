package conformance_test

import (
	"context"
	"slices"

	"github.com/contextengine/contextengine/conformance"
	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/capability"
	"github.com/contextengine/contextengine/core/window"
)

// tablePatches are compactors that break one sentence of the contract, found by somebody who read nothing else.
func tablePatches() []broken {
	var out []broken
	call := func(class, base, name string, f func(ctx context.Context, c core.Compaction, s soundCompact) (core.Patch, error)) {
		out = append(out, brokenCompactorOf(class, base, name, func(ctx context.Context, c core.Compaction, _ *conformance.Model, s soundCompact) (core.Patch, error) {
			return f(ctx, c, s)
		}))
	}
	replacements := func(base, name string, f func(c core.Compaction, r *core.Replacement)) {
		call("replacements", base, name, func(ctx context.Context, c core.Compaction, s soundCompact) (core.Patch, error) {
			change := func(p core.Patch) core.Patch {
				for i := range p.Replace {
					f(c, &p.Replace[i])
				}
				return p
			}
			publish := c.Publish
			c.Publish = func(ctx context.Context, p core.Patch) error { return publish(ctx, change(p)) }
			p, err := s(ctx, c)
			return change(p), err
		})
	}
	for _, base := range []string{"archive", "summary"} {
		replacements(base, "a text without a shape", func(_ core.Compaction, r *core.Replacement) { r.Text = "\u200b \n" })
		replacements(base, "a kind of its own where there are wishes", func(c core.Compaction, r *core.Replacement) {
			if c.Instructions != "" {
				r.Kind = "wish"
			}
		})
	}
	// ends lets the first replacement end the earlier summaries of a kind, whatever its text says.
	ends := func(base, kind string) {
		replacements(base, "and what is of kind "+kind+" ends unread", func(c core.Compaction, r *core.Replacement) {
			for _, s := range c.Summaries {
				if s.Kind == kind && len(r.Entries) > 0 && !slices.Contains(r.Summaries, s.ID) {
					r.Summaries = append(slices.Clone(r.Summaries), s.ID)
				}
			}
		})
	}
	ends("archive", "host")
	ends("archive", "summary")
	ends("index", "host")
	call("stubs", "mask", "of texts without a shape", func(ctx context.Context, c core.Compaction, s soundCompact) (core.Patch, error) {
		p, err := s(ctx, c)
		for id, stub := range p.Stubs {
			texts := map[int]string{}
			for i := range stub.Texts {
				texts[i] = "\u2060\ufeff"
			}
			p.Stubs[id] = window.Stub{Kind: stub.Kind, Texts: texts, Tokens: stub.Tokens}
		}
		return p, err
	})

	// asks asks a host for a text that does not list it.
	asks := func(name string, lists ...capability.Name) {
		call("models", "archive", name, func(ctx context.Context, c core.Compaction, s soundCompact) (core.Patch, error) {
			have := c.Host.Capabilities()
			if !slices.Contains(have, capability.Complete) && !slices.ContainsFunc(lists, func(n capability.Name) bool { return !slices.Contains(have, n) }) {
				_, _ = c.Host.Complete(ctx, core.CompletionRequest{Prompt: "sum up", MaxTokens: c.SummaryTokens})
			}
			return s(ctx, c)
		})
	}
	asks("a host is asked that lists no model")
	asks("a host is asked for a text that only compacts", capability.DelegateHost)

	result := func(name string, f func(c core.Compaction, r *core.CompactResult)) {
		call("what a delegate passes on", "delegate", name, func(ctx context.Context, c core.Compaction, s soundCompact) (core.Patch, error) {
			p, err := s(ctx, c)
			if p.Delegated != nil {
				f(c, p.Delegated)
			}
			return p, err
		})
	}
	result("the cost that the host believes in", func(c core.Compaction, r *core.CompactResult) {
		if r.TokensBefore == 0 {
			r.TokensBefore = c.Request.CurrentTokens
		}
	})
	result("what is kept as before", func(_ core.Compaction, r *core.CompactResult) {
		if !r.Compacted && r.TokensAfter == 0 {
			r.TokensAfter = r.TokensBefore
		}
		if !r.Compacted && r.Reason == "" {
			r.Reason = core.ReasonBelowThreshold
		}
	})
	result("the session as its own successor", func(c core.Compaction, r *core.CompactResult) {
		if r.Successor == (core.SessionID{}) {
			r.Successor = c.Session
		}
	})
	result("well where nothing was done", func(_ core.Compaction, r *core.CompactResult) { r.OK = true })
	return out
}
