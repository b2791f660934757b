package conformance_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/contextengine/contextengine/conformance"
	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/message"
	"github.com/contextengine/contextengine/core/window"
)

// compacts is a compactor around a sound one.
type compacts struct {
	core.Compactor
	f    func(ctx context.Context, c core.Compaction, sound func(context.Context, core.Compaction) (core.Patch, error)) (core.Patch, error)
	owns func() bool
}

func (b *compacts) OwnsCompaction() bool {
	if b.owns != nil {
		return b.owns()
	}
	return b.Compactor.OwnsCompaction()
}

func (b *compacts) Compact(ctx context.Context, c core.Compaction) (core.Patch, error) {
	return b.f(ctx, c, b.Compactor.Compact)
}

type soundCompact = func(context.Context, core.Compaction) (core.Patch, error)

// answerOf asks a model, and asks none where time is over: that is right of all that use it.
func answerOf(ctx context.Context, m core.Completer, prompt string) (core.Completion, error) {
	if err := ctx.Err(); err != nil {
		return core.Completion{}, err
	}
	return m.Complete(ctx, core.CompletionRequest{Prompt: prompt})
}

func brokenCompactorOf(class, base, name string, f func(ctx context.Context, c core.Compaction, m *conformance.Model, sound soundCompact) (core.Patch, error), opts ...conformance.Option) broken {
	return brokenCompactorEach(class, base, name, func() func(context.Context, core.Compaction, *conformance.Model, soundCompact) (core.Patch, error) {
		return f
	}, opts...)
}

// brokenCompactorEach is brokenCompactorOf where each compactor remembers something of its own.
func brokenCompactorEach(class, base, name string, each func() func(context.Context, core.Compaction, *conformance.Model, soundCompact) (core.Patch, error), opts ...conformance.Option) broken {
	over := func(env conformance.Env) (core.Compactor, error) {
		c, err := compactors[base](env)
		f := each()
		return &compacts{Compactor: c, f: func(ctx context.Context, c core.Compaction, s soundCompact) (core.Patch, error) {
			return f(ctx, c, env.Model, s)
		}}, err
	}
	return brokenCompactorOver(class, base+", "+name, over, opts...)
}

// brokenCompactorOver is a compactor that is built broken.
func brokenCompactorOver(class, name string, over func(conformance.Env) (core.Compactor, error), opts ...conformance.Option) broken {
	return broken{class: "compactor: " + class, name: name, part: part{compactor: over}, find: func(t *testing.T, only ...conformance.Option) []conformance.Finding {
		t.Helper()
		return early(8, only, func(opts ...conformance.Option) []conformance.Finding {
			return conformance.ExamineCompactor(t, func(tb testing.TB, m *conformance.Model) core.Compactor {
				tb.Helper()
				c, err := over(conformance.Env{Host: conformance.NewHost(m), Model: m})
				if err != nil {
					tb.Fatal(err)
				}
				return c
			}, opts...)
		}, opts...)
	}}
}

// tableCompactors are broken compactors.
func tableCompactors() []broken {
	var out []broken
	patch := func(class, base, name string, f func(c core.Compaction, p *core.Patch)) {
		out = append(out, brokenCompactorOf(class, base, name, func(ctx context.Context, c core.Compaction, _ *conformance.Model, s soundCompact) (core.Patch, error) {
			publish := c.Publish
			c.Publish = func(ctx context.Context, p core.Patch) error { f(c, &p); return publish(ctx, p) }
			p, err := s(ctx, c)
			f(c, &p)
			return p, err
		}))
	}
	replacements := func(f func(r *core.Replacement)) func(core.Compaction, *core.Patch) {
		return func(_ core.Compaction, p *core.Patch) {
			for i := range p.Replace {
				f(&p.Replace[i])
			}
		}
	}
	stubs := func(f func(id string, s *window.Stub)) func(core.Compaction, *core.Patch) {
		return func(_ core.Compaction, p *core.Patch) {
			for id, s := range p.Stubs {
				s.Texts = maps.Clone(s.Texts)
				f(id, &s)
				p.Stubs[id] = s
			}
		}
	}
	for _, base := range []string{"archive", "summary"} {
		patch("replacements", base, "the first entry left out", replacements(func(r *core.Replacement) { r.Entries = r.Entries[min(1, len(r.Entries)):] }))
		patch("replacements", base, "an entry in the middle left out", replacements(func(r *core.Replacement) {
			if n := len(r.Entries); n > 2 {
				r.Entries = slices.Delete(slices.Clone(r.Entries), n/2, n/2+1)
			}
		}))
		patch("replacements", base, "an entry twice", replacements(func(r *core.Replacement) {
			if len(r.Entries) > 0 {
				r.Entries = append(slices.Clone(r.Entries), r.Entries[0])
			}
		}))
		patch("replacements", base, "an unknown entry", replacements(func(r *core.Replacement) { r.Entries = append(slices.Clone(r.Entries), "nobody") }))
		patch("replacements", base, "backwards", replacements(func(r *core.Replacement) { r.Entries = slices.Clone(r.Entries); slices.Reverse(r.Entries) }))
		patch("replacements", base, "one entry too many", func(c core.Compaction, p *core.Patch) {
			if n := len(p.Replace); n > 0 {
				r := &p.Replace[n-1]
				at := slices.IndexFunc(c.Entries, func(e core.Entry) bool { return len(r.Entries) > 0 && e.ID == r.Entries[len(r.Entries)-1] })
				if at >= 0 && at+1 < len(c.Entries) {
					r.Entries = append(slices.Clone(r.Entries), c.Entries[at+1].ID)
				}
			}
		})
		patch("replacements", base, "a result left where a subagent ended in front of it", func(c core.Compaction, p *core.Patch) {
			for i := range p.Replace {
				ids := p.Replace[i].Entries
				at := slices.IndexFunc(c.Entries, func(e core.Entry) bool { return len(ids) > 1 && e.ID == ids[len(ids)-1] })
				if at > 0 && c.Entries[at].Role == message.Tool && c.Entries[at-1].Type == core.TypeSubagent {
					p.Replace[i].Entries = ids[:len(ids)-1]
				}
			}
		})
		patch("replacements", base, "everything, protected or not", func(c core.Compaction, p *core.Patch) {
			if n := len(p.Replace); n > 0 {
				p.Replace = p.Replace[:1]
				p.Replace[0].Entries = nil
				for _, e := range c.Entries {
					p.Replace[0].Entries = append(p.Replace[0].Entries, e.ID)
				}
			}
		})
		patch("replacements", base, "a kind of its own", replacements(func(r *core.Replacement) { r.Kind = "gist" }))
		patch("replacements", base, "less than asked, without a word", func(c core.Compaction, p *core.Patch) {
			for i := range p.Replace {
				for n, e := range c.Entries {
					if n > 0 && n < len(p.Replace[i].Entries) && !e.Message.HasResults() && e.ID == p.Replace[i].Entries[n] {
						p.Replace[i].Entries = p.Replace[i].Entries[:n]
						return
					}
				}
			}
		})
		patch("replacements", base, "no kind", replacements(func(r *core.Replacement) { r.Kind = "" }))
		patch("replacements", base, "a blank text", replacements(func(r *core.Replacement) { r.Text = " \n\t" }))
		patch("replacements", base, "no text", replacements(func(r *core.Replacement) { r.Text = "" }))
		patch("replacements", base, "an endless text", replacements(func(r *core.Replacement) { r.Text = strings.Repeat(r.Text+" ", 200) }))
		patch("replacements", base, "a text twice as long as allowed", replacements(func(r *core.Replacement) { r.Text += strings.Repeat(" and so on", 400) }))
		patch("replacements", base, "an unknown summary", replacements(func(r *core.Replacement) { r.Summaries = append(slices.Clone(r.Summaries), "nobody") }))
		patch("replacements", base, "a summary twice", func(c core.Compaction, p *core.Patch) {
			for i := range p.Replace {
				for range 2 {
					if len(c.Summaries) > 0 {
						p.Replace[i].Summaries = append(slices.Clone(p.Replace[i].Summaries), c.Summaries[0].ID)
					}
				}
			}
		})
		patch("replacements", base, "the same replacement twice", func(_ core.Compaction, p *core.Patch) { p.Replace = append(slices.Clone(p.Replace), p.Replace...) })
		patch("replacements", base, "replacements backwards", func(_ core.Compaction, p *core.Patch) {
			for i := range p.Replace {
				if n := len(p.Replace[i].Entries); n > 1 {
					first, second := p.Replace[i], p.Replace[i]
					first.Entries, second.Entries, second.Summaries = p.Replace[i].Entries[n/2:], p.Replace[i].Entries[:n/2], nil
					p.Replace = slices.Replace(slices.Clone(p.Replace), i, i+1, first, second)
					return
				}
			}
		})
		patch("replacements", base, "and a stub for what is replaced", func(_ core.Compaction, p *core.Patch) {
			for _, r := range p.Replace {
				if len(r.Entries) > 0 {
					p.Stubs = map[string]window.Stub{r.Entries[0]: {Kind: window.Masked, Texts: map[int]string{0: "[gone]"}, Tokens: 3}}
				}
			}
		})
		patch("replacements", base, "and a stub for the newest", func(c core.Compaction, p *core.Patch) {
			p.Stubs = map[string]window.Stub{c.Entries[len(c.Entries)-1].ID: {Kind: window.Masked, Texts: map[int]string{0: "[gone]"}, Tokens: 3}}
		})
		patch("replacements", base, "as if the runtime had done it", func(_ core.Compaction, p *core.Patch) { p.Delegated = &core.CompactResult{OK: true} })
		patch("replacements", base, "no reason for nothing", func(_ core.Compaction, p *core.Patch) { p.Reason = "" })
		patch("replacements", base, "one entry and no more", func(_ core.Compaction, p *core.Patch) {
			if len(p.Replace) > 0 {
				p.Replace = p.Replace[:1]
				p.Replace[0].Entries = p.Replace[0].Entries[:min(1, len(p.Replace[0].Entries))]
			}
		})
		patch("replacements", base, "another ref each time", replacements(func(r *core.Replacement) { r.Ref = fmt.Sprint(time.Now().UnixNano()) }))
		patch("replacements", base, "a text with the day", replacements(func(r *core.Replacement) { r.Text += " Made on " + time.Now().UTC().Format(time.DateOnly) + "." }))
		patch("replacements", base, "the minute in its metadata", replacements(func(r *core.Replacement) {
			r.Meta = maps.Clone(r.Meta)
			if r.Meta == nil {
				r.Meta = map[string]string{}
			}
			r.Meta["madeAt"] = time.Now().UTC().Format("2006-01-02T15:04Z07:00")
		}))
		patch("replacements", base, "a text with the time", replacements(func(r *core.Replacement) { r.Text += time.Now().String() }))
	}
	patch("stubs", "mask", "dearer than before", stubs(func(_ string, s *window.Stub) { s.Tokens += 100000 }))
	patch("stubs", "mask", "for nothing", stubs(func(_ string, s *window.Stub) { s.Tokens = 0 }))
	patch("stubs", "mask", "below nothing", stubs(func(_ string, s *window.Stub) { s.Tokens = -5 }))
	patch("stubs", "mask", "long and cheap", stubs(func(_ string, s *window.Stub) {
		for i := range s.Texts {
			s.Texts[i] = strings.Repeat("much more ", 200)
		}
	}))
	patch("stubs", "mask", "of no kind", stubs(func(_ string, s *window.Stub) { s.Kind = "" }))
	patch("stubs", "mask", "of a kind of its own", stubs(func(_ string, s *window.Stub) { s.Kind = "rolled" }))
	patch("stubs", "mask", "without texts", stubs(func(_ string, s *window.Stub) { s.Texts = nil }))
	patch("stubs", "mask", "of parts that are not there", stubs(func(_ string, s *window.Stub) { s.Texts[99] = "x" }))
	patch("stubs", "mask", "of a part before the first", stubs(func(_ string, s *window.Stub) { s.Texts[-1] = "x" }))
	patch("stubs", "mask", "of an unknown entry", func(_ core.Compaction, p *core.Patch) {
		p.Stubs = maps.Clone(p.Stubs)
		if p.Stubs == nil {
			p.Stubs = map[string]window.Stub{}
		}
		p.Stubs["nobody"] = window.Stub{Kind: window.Masked, Texts: map[int]string{0: "x"}, Tokens: 1}
	})
	patch("stubs", "mask", "of protected ones", func(c core.Compaction, p *core.Patch) {
		for _, e := range c.Entries[len(c.Entries)-c.Protected:] {
			p.Stubs = map[string]window.Stub{e.ID: {Kind: window.Masked, Texts: map[int]string{0: "x"}, Tokens: 1}}
		}
	})
	patch("stubs", "mask", "of blank texts", stubs(func(_ string, s *window.Stub) {
		for i := range s.Texts {
			s.Texts[i] = " "
		}
	}))
	patch("stubs", "mask", "of half characters", stubs(func(_ string, s *window.Stub) {
		for i := range s.Texts {
			s.Texts[i] += "\xe4\xb8"
		}
	}))
	patch("replacements", "archive", "tools named in any order", func(c core.Compaction, p *core.Patch) {
		names := map[string]bool{}
		for _, e := range c.Entries {
			for _, part := range e.Message.Calls() {
				names[part.Name] = true
			}
		}
		for i := range p.Replace {
			for n := range names {
				p.Replace[i].Text += " " + n
			}
		}
	})
	patch("replacements", "archive", "the ref of an earlier summary", func(c core.Compaction, p *core.Patch) {
		for i := range p.Replace {
			if len(c.Summaries) > 0 {
				p.Replace[i].Ref = c.Summaries[0].ID
			}
		}
	})
	patch("replacements", "archive", "a warning with the wishes", func(c core.Compaction, p *core.Patch) {
		if c.Instructions != "" {
			p.Warnings = append(p.Warnings, "nobody heeds "+c.Instructions)
		}
	})
	patch("stubs", "mask", "for what the texts alone cost", func(c core.Compaction, p *core.Patch) {
		for id, s := range p.Stubs {
			s.Tokens = 0
			for _, t := range s.Texts {
				s.Tokens += c.Count(t)
			}
			p.Stubs[id] = s
		}
	})
	patch("stubs", "mask", "of calls too", func(c core.Compaction, p *core.Patch) {
		for i, e := range c.Entries[:len(c.Entries)-c.Protected] {
			for n, part := range e.Message.Parts {
				if part.Kind == message.ToolCall && p.Stubs != nil {
					p.Stubs[e.ID] = window.Stub{Kind: window.Masked, Texts: map[int]string{n: "[call]"}, Tokens: min(10, c.Cost[i])}
				}
			}
		}
	})
	patch("stubs", "mask", "again and again", func(c core.Compaction, p *core.Patch) {
		if len(c.Entries) > c.Protected && p.Empty() {
			n := c.Cost[0]
			p.Stubs = map[string]window.Stub{c.Entries[0].ID: {Kind: window.Masked, Texts: map[int]string{0: "x"}, Tokens: n}}
		}
	})

	patch("stubs", "mask", "eight tokens too dear", stubs(func(_ string, s *window.Stub) { s.Tokens += 8 }))
	patch("stubs", "mask", "sixteen tokens too dear", stubs(func(_ string, s *window.Stub) { s.Tokens += 16 }))
	// An answer that is longer than asked for is given up without a word.
	out = append(out, brokenCompactorOf("models", "summary", "a text of its own without a word where an answer was too long", func(ctx context.Context, c core.Compaction, m *conformance.Model, s soundCompact) (core.Patch, error) {
		given, err := m.Complete(ctx, core.CompletionRequest{Prompt: "say something"})
		lies := err == nil && len(given.Text) > 4*c.SummaryTokens
		silent := func(p core.Patch) core.Patch {
			if lies {
				p.Replace, p.Warnings = slices.Clone(p.Replace), nil
				for i := range p.Replace {
					p.Replace[i].Kind, p.Replace[i].Text = "fallback", "something was said here"
				}
			}
			return p
		}
		publish := c.Publish
		c.Publish = func(ctx context.Context, p core.Patch) error { return publish(ctx, silent(p)) }
		p, err := s(ctx, c)
		return silent(p), err
	}))

	call := func(class, base, name string, f func(ctx context.Context, c core.Compaction, m *conformance.Model, s soundCompact) (core.Patch, error)) {
		out = append(out, brokenCompactorOf(class, base, name, f))
	}
	for _, base := range []string{"archive", "summary", "delegate"} {
		call("time", base, "an error of its own", func(ctx context.Context, c core.Compaction, _ *conformance.Model, s soundCompact) (core.Patch, error) {
			if ctx.Err() != nil {
				return core.Patch{}, errors.New("broken: stopped")
			}
			p, err := s(ctx, c)
			if err != nil && ctx.Err() != nil {
				err = errors.New("broken: stopped")
			}
			return p, err
		})
		call("time", base, "hangs", func(context.Context, core.Compaction, *conformance.Model, soundCompact) (core.Patch, error) {
			select {}
		})
		call("time", base, "panics", func(context.Context, core.Compaction, *conformance.Model, soundCompact) (core.Patch, error) {
			panic("broken")
		})
		call("time", base, "panics over few entries", func(ctx context.Context, c core.Compaction, _ *conformance.Model, s soundCompact) (core.Patch, error) {
			_ = c.Entries[2]
			return s(ctx, c)
		})
		call("time", base, "fails without force", func(ctx context.Context, c core.Compaction, _ *conformance.Model, s soundCompact) (core.Patch, error) {
			if !c.Force {
				return core.Patch{}, core.ErrInvalid
			}
			return s(ctx, c)
		})
	}
	for _, base := range []string{"archive"} {
		call("task", base, "nothing below the marks", func(ctx context.Context, c core.Compaction, _ *conformance.Model, s soundCompact) (core.Patch, error) {
			if c.Tokens <= c.Target {
				return core.Patch{Reason: core.ReasonUnderTarget}, nil
			}
			return s(ctx, c)
		})
		call("task", base, "an error over images", func(ctx context.Context, c core.Compaction, _ *conformance.Model, s soundCompact) (core.Patch, error) {
			for _, e := range c.Entries {
				if slices.ContainsFunc(e.Message.Parts, func(p message.Part) bool { return p.Kind == message.Image }) {
					return core.Patch{}, core.ErrInvalid
				}
			}
			return s(ctx, c)
		})
		call("task", base, "panics over messages without parts", func(ctx context.Context, c core.Compaction, _ *conformance.Model, s soundCompact) (core.Patch, error) {
			for _, e := range c.Entries {
				_ = e.Message.Parts[0]
			}
			return s(ctx, c)
		})
		call("task", base, "panics over a subagent's result", func(ctx context.Context, c core.Compaction, _ *conformance.Model, s soundCompact) (core.Patch, error) {
			for _, e := range c.Entries {
				if e.Type != core.TypeMessage {
					panic("broken: " + string(e.Type))
				}
			}
			return s(ctx, c)
		})
		call("task", base, "gives up over many entries", func(ctx context.Context, c core.Compaction, _ *conformance.Model, s soundCompact) (core.Patch, error) {
			if len(c.Entries) > 500 {
				return core.Patch{Reason: core.ReasonAlreadyCompacted}, nil
			}
			return s(ctx, c)
		})
		limited := func() func(context.Context, core.Compaction, *conformance.Model, soundCompact) (core.Patch, error) {
			var calls atomic.Int64
			return func(ctx context.Context, c core.Compaction, _ *conformance.Model, s soundCompact) (core.Patch, error) {
				if calls.Add(1) > 25 {
					return core.Patch{Reason: core.ReasonAlreadyCompacted}, nil
				}
				return s(ctx, c)
			}
		}
		out = append(out, brokenCompactorEach("task", base, "nothing after a while", limited))
	}
	out = append(out, brokenCompactorEach("task", "archive", "one list for all patches", func() func(context.Context, core.Compaction, *conformance.Model, soundCompact) (core.Patch, error) {
		var mu sync.Mutex
		var ids []string
		return func(ctx context.Context, c core.Compaction, _ *conformance.Model, s soundCompact) (core.Patch, error) {
			mu.Lock()
			defer mu.Unlock()
			p, err := s(ctx, c)
			for i := range p.Replace {
				ids = append(ids[:0], p.Replace[i].Entries...)
				p.Replace[i].Entries = ids
			}
			return p, err
		}
	}))
	call("task", "archive", "what entries cost, not what they cost now", func(ctx context.Context, c core.Compaction, _ *conformance.Model, s soundCompact) (core.Patch, error) {
		c.Cost = slices.Clone(c.Cost)
		for i := range c.Entries {
			c.Cost[i] = c.Entries[i].Tokens
		}
		return s(ctx, c)
	})
	patch("task", "archive", "what is hidden left out", func(c core.Compaction, p *core.Patch) {
		for i := range p.Replace {
			p.Replace[i].Entries = slices.DeleteFunc(slices.Clone(p.Replace[i].Entries), func(id string) bool {
				return slices.ContainsFunc(c.Entries, func(e core.Entry) bool { return e.ID == id && e.Hidden() })
			})
		}
	})
	for _, base := range []string{"archive", "summary"} {
		out = append(out, brokenCompactorEach("task", base, "the wish of the last", func() func(context.Context, core.Compaction, *conformance.Model, soundCompact) (core.Patch, error) {
			var mu sync.Mutex
			wish := ""
			return func(ctx context.Context, c core.Compaction, m *conformance.Model, s soundCompact) (core.Patch, error) {
				mu.Lock()
				wish = cmp.Or(c.Instructions, wish)
				c.Instructions = wish
				mu.Unlock()
				if base == "archive" {
					return believing{compactFunc(s), m}.Compact(ctx, c)
				}
				return s(ctx, c)
			}
		}))
	}
	call("models", "summary", "no word of a model that failed", func(ctx context.Context, c core.Compaction, _ *conformance.Model, s soundCompact) (core.Patch, error) {
		publish := c.Publish
		c.Publish = func(ctx context.Context, p core.Patch) error { p.Warnings = nil; return publish(ctx, p) }
		p, err := s(ctx, c)
		p.Warnings = nil
		return p, err
	})
	patch("models", "summary", "a fallback as if a model had said it", replacements(func(r *core.Replacement) { r.Kind = "summary" }))
	patch("models", "archive", "a note as if a model had said it", replacements(func(r *core.Replacement) { r.Kind = "summary" }))
	patch("models", "summary", "a summary as if no model had answered", replacements(func(r *core.Replacement) { r.Kind = "fallback" }))
	call("models", "summary", "what is not published is forgotten", func(ctx context.Context, c core.Compaction, _ *conformance.Model, s soundCompact) (core.Patch, error) {
		publish := c.Publish
		c.Publish = func(ctx context.Context, p core.Patch) error { _ = publish(ctx, p); return nil }
		return s(ctx, c)
	})
	call("delegating", "delegate", "publishes as well", func(ctx context.Context, c core.Compaction, _ *conformance.Model, s soundCompact) (core.Patch, error) {
		_ = c.Publish(ctx, core.Patch{Replace: []core.Replacement{{Entries: []string{c.Entries[0].ID}, Text: "gone", Kind: "note"}}})
		return s(ctx, c)
	})
	call("delegating", "delegate", "nothing without entries", func(ctx context.Context, c core.Compaction, _ *conformance.Model, s soundCompact) (core.Patch, error) {
		if len(c.Entries) == 0 {
			return core.Patch{Reason: core.ReasonAlreadyCompacted}, nil
		}
		return s(ctx, c)
	})
	patch("delegating", "delegate", "a reason beside the result", func(_ core.Compaction, p *core.Patch) { p.Reason = "the runtime did it" })
	patch("delegating", "delegate", "a warning beside the result", func(_ core.Compaction, p *core.Patch) { p.Warnings = []string{"the runtime did it"} })
	call("delegating", "delegate", "not below the marks", func(ctx context.Context, c core.Compaction, _ *conformance.Model, s soundCompact) (core.Patch, error) {
		if c.Tokens <= c.Target {
			return core.Patch{Reason: core.ReasonUnderTarget}, nil
		}
		return s(ctx, c)
	})
	call("delegating", "delegate", "again when nothing was compacted", func(ctx context.Context, c core.Compaction, _ *conformance.Model, s soundCompact) (core.Patch, error) {
		p, err := s(ctx, c)
		if p.Delegated != nil && !p.Delegated.Compacted {
			return s(ctx, c)
		}
		return p, err
	})
	out = append(out, brokenCompactorEach("delegating", "delegate", "the request of another", func() func(context.Context, core.Compaction, *conformance.Model, soundCompact) (core.Patch, error) {
		var mu sync.Mutex
		var current core.Compaction
		return func(ctx context.Context, c core.Compaction, _ *conformance.Model, s soundCompact) (core.Patch, error) {
			mu.Lock()
			current = c
			mu.Unlock()
			time.Sleep(time.Millisecond)
			mu.Lock()
			c = current
			mu.Unlock()
			return s(ctx, c)
		}
	}))
	call("models", "summary", "wishes ignored", func(ctx context.Context, c core.Compaction, _ *conformance.Model, s soundCompact) (core.Patch, error) {
		c.Instructions = ""
		return s(ctx, c)
	})
	call("models", "archive", "asks twice and takes what comes", func(ctx context.Context, c core.Compaction, m *conformance.Model, s soundCompact) (core.Patch, error) {
		p, err := s(ctx, c)
		answer, modelErr := answerOf(ctx, m, c.Instructions)
		for i := range p.Replace {
			p.Replace[i].Text = answer.Text
		}
		return p, errors.Join(err, modelErr)
	})
	call("models", "archive", "an empty answer is a text", func(ctx context.Context, c core.Compaction, m *conformance.Model, s soundCompact) (core.Patch, error) {
		p, err := s(ctx, c)
		answer, _ := answerOf(ctx, m, c.Instructions)
		for i := range p.Replace {
			p.Replace[i].Text = answer.Text
		}
		return p, err
	})
	call("models", "archive", "a long answer is a text", func(ctx context.Context, c core.Compaction, m *conformance.Model, s soundCompact) (core.Patch, error) {
		p, err := s(ctx, c)
		answer, _ := answerOf(ctx, m, c.Instructions)
		for i := range p.Replace {
			if strings.TrimSpace(answer.Text) != "" {
				p.Replace[i].Text = answer.Text
			}
		}
		return p, err
	})
	call("models", "summary", "the model's error is its error", func(ctx context.Context, c core.Compaction, m *conformance.Model, s soundCompact) (core.Patch, error) {
		if _, err := answerOf(ctx, m, c.Instructions); err != nil {
			return core.Patch{}, err
		}
		return s(ctx, c)
	})
	call("models", "summary", "nothing where the model fails", func(ctx context.Context, c core.Compaction, m *conformance.Model, s soundCompact) (core.Patch, error) {
		if _, err := answerOf(ctx, m, c.Instructions); err != nil {
			return core.Patch{Reason: "the model failed"}, nil
		}
		return s(ctx, c)
	})
	call("models", "summary", "what was paid for, with success alone", func(ctx context.Context, c core.Compaction, _ *conformance.Model, s soundCompact) (core.Patch, error) {
		var all []core.Replacement
		c.Publish = func(_ context.Context, p core.Patch) error { all = append(all, p.Replace...); return nil }
		p, err := s(ctx, c)
		if err != nil {
			return core.Patch{}, err
		}
		p.Replace = append(all, p.Replace...)
		return p, nil
	})
	call("models", "archive", "a warning with what the model answered", func(ctx context.Context, c core.Compaction, m *conformance.Model, s soundCompact) (core.Patch, error) {
		p, err := s(ctx, c)
		answer, modelErr := answerOf(ctx, m, c.Instructions)
		if modelErr != nil || strings.TrimSpace(answer.Text) == "" || c.Count(answer.Text) > c.SummaryTokens {
			p.Warnings = append(p.Warnings, "the model answered "+answer.Text)
		}
		return p, err
	})
	call("models", "archive", "the runtime is asked too", func(ctx context.Context, c core.Compaction, _ *conformance.Model, s soundCompact) (core.Patch, error) {
		_, _ = c.Host.Compact(ctx, c.Request)
		return s(ctx, c)
	})
	call("models", "archive", "published and returned", func(ctx context.Context, c core.Compaction, _ *conformance.Model, s soundCompact) (core.Patch, error) {
		p, err := s(ctx, c)
		_ = c.Publish(ctx, p)
		return p, err
	})
	call("models", "archive", "published, failed or not", func(ctx context.Context, c core.Compaction, _ *conformance.Model, s soundCompact) (core.Patch, error) {
		p, err := s(ctx, c)
		if p.Empty() {
			return p, err
		}
		_ = c.Publish(ctx, p)
		return core.Patch{Reason: "published"}, err
	})
	call("models", "archive", "a shared task", sharedTask())
	call("models", "archive", "busy", func() func(ctx context.Context, c core.Compaction, m *conformance.Model, s soundCompact) (core.Patch, error) {
		var mu sync.Mutex
		return func(ctx context.Context, c core.Compaction, _ *conformance.Model, s soundCompact) (core.Patch, error) {
			if !mu.TryLock() {
				return core.Patch{}, core.ErrUnavailable
			}
			defer mu.Unlock()
			time.Sleep(time.Millisecond)
			return s(ctx, c)
		}
	}())

	for _, l := range leaves(reflect.TypeFor[core.CompactRequest](), "", nil) {
		if !strings.HasPrefix(l.path, ".Session") {
			call("what a delegate passes on", "delegate", "without the request's "+l.path, func(ctx context.Context, c core.Compaction, _ *conformance.Model, s soundCompact) (core.Patch, error) {
				if c.Request.Transcript != nil {
					tr := *c.Request.Transcript
					tr.Messages = slices.Clone(tr.Messages)
					for i := range tr.Messages {
						tr.Messages[i].Parts = slices.Clone(tr.Messages[i].Parts)
					}
					c.Request.Transcript = &tr
				}
				l.clear(reflect.ValueOf(&c.Request).Elem())
				return s(ctx, c)
			})
		}
	}
	for _, l := range leaves(reflect.TypeFor[core.CompactResult](), "", nil) {
		if l.path != ".Delegated" {
			call("what a delegate passes on", "delegate", "without the result's "+l.path, func(ctx context.Context, c core.Compaction, _ *conformance.Model, s soundCompact) (core.Patch, error) {
				p, err := s(ctx, c)
				if p.Delegated != nil {
					l.clear(reflect.ValueOf(p.Delegated).Elem())
				}
				return p, err
			})
		}
	}
	task := func(name string, f func(*core.CompactRequest)) {
		call("what a delegate passes on", "delegate", name, func(ctx context.Context, c core.Compaction, _ *conformance.Model, s soundCompact) (core.Patch, error) {
			f(&c.Request)
			return s(ctx, c)
		})
	}
	task("forced, whatever was asked", func(r *core.CompactRequest) { r.Force = true })
	task("with a trigger of its own where none is named", func(r *core.CompactRequest) { r.Trigger = cmp.Or(r.Trigger, "manual") })
	call("what a delegate passes on", "delegate", "once more after a failure", func(ctx context.Context, c core.Compaction, _ *conformance.Model, s soundCompact) (core.Patch, error) {
		p, err := s(ctx, c)
		if err != nil && ctx.Err() == nil {
			return s(ctx, c)
		}
		return p, err
	})
	call("what a delegate passes on", "delegate", "a failure is nothing to do", func(ctx context.Context, c core.Compaction, _ *conformance.Model, s soundCompact) (core.Patch, error) {
		p, err := s(ctx, c)
		if err != nil {
			return core.Patch{Reason: core.ReasonBelowThreshold}, nil
		}
		return p, err
	})
	call("what a delegate passes on", "delegate", "a failure of its own", func(ctx context.Context, c core.Compaction, _ *conformance.Model, s soundCompact) (core.Patch, error) {
		p, err := s(ctx, c)
		if err != nil {
			return core.Patch{}, errors.New("broken: the runtime failed")
		}
		return p, err
	})
	call("what a delegate passes on", "delegate", "waits for a late runtime", func(ctx context.Context, c core.Compaction, _ *conformance.Model, s soundCompact) (core.Patch, error) {
		return s(context.WithoutCancel(ctx), c)
	})
	call("what a delegate passes on", "delegate", "only when forced", func(ctx context.Context, c core.Compaction, _ *conformance.Model, s soundCompact) (core.Patch, error) {
		if !c.Force {
			return core.Patch{Delegated: &core.CompactResult{OK: true}}, nil
		}
		return s(ctx, c)
	})
	call("what a delegate passes on", "delegate", "with a stub of its own", func(ctx context.Context, c core.Compaction, _ *conformance.Model, s soundCompact) (core.Patch, error) {
		p, err := s(ctx, c)
		p.Stubs = map[string]window.Stub{c.Entries[0].ID: {Kind: window.Masked}}
		return p, err
	})
	return slices.Concat(out, tablePatches(), tableByThemselves())
}

// sharedTask takes the task of whoever called last.
func sharedTask() func(ctx context.Context, c core.Compaction, m *conformance.Model, s soundCompact) (core.Patch, error) {
	var mu sync.Mutex
	var last core.Compaction
	return func(ctx context.Context, c core.Compaction, _ *conformance.Model, s soundCompact) (core.Patch, error) {
		mu.Lock()
		last = c
		mu.Unlock()
		time.Sleep(time.Millisecond)
		mu.Lock()
		c = last
		mu.Unlock()
		return s(ctx, c)
	}
}
