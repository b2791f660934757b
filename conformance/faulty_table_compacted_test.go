package conformance_test

import (
	"context"
	"slices"
	"strings"

	"github.com/contextengine/contextengine/conformance"
	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/window"
)

// tableCompacted are engines whose prompts are wrong behind a compaction.
func tableCompacted() []broken {
	out := tableOpened()
	silent := func(name string, is func(method string) bool) {
		out = append(out, caughtBy("contract.addition", name, recalling(nil), func(w *wrongEngine) {
			last := ""
			w.after = func(method string, res any) {
				if a, ok := res.(*core.AssembleResult); ok && is(last) {
					a.Stepped = false
				}
				last = method
			}
		}))
	}
	silent("it comes in silence after a compaction", func(last string) bool { return last == "Compact" })
	silent("it comes in silence in a new process", func(last string) bool { return last == "" })
	silent("it goes in silence with a smaller budget", func(last string) bool { return last == "Assemble" })
	out = append(out, caughtBy("contract.pairs", "one entry more is taken than a group has", recalling(nil), func(w *wrongEngine) {
		w.after = func(_ string, res any) {
			if c, ok := res.(*core.CompactResult); ok {
				c.FirstKept = behind(w.Store(), c.FirstKept)
			}
		}
	}))
	return out
}

// behind returns the entry that stands behind another one in its session.
func behind(s core.Store, id string) string {
	got, err := s.Get(context.Background(), core.Scope{Agent: "agent-a"}, []string{id})
	if err != nil {
		return id
	}
	next, err := s.Scan(context.Background(), core.ScanQuery{Scope: got[0].SessionID().Scope(), FromSeq: got[0].Seq + 1, Limit: 1})
	if err != nil || len(next.Entries) == 0 {
		return id
	}
	return next.Entries[0].ID
}

// believing is a compactor that puts what a model says, or what was said, where the archive puts its note, as it is.
type believing struct {
	core.Compactor
	model core.Completer
}

func (b believing) Compact(ctx context.Context, c core.Compaction) (core.Patch, error) {
	p, err := b.Compactor.Compact(ctx, c)
	if err != nil || len(p.Replace) == 0 {
		return p, err
	}
	r := &p.Replace[0]
	text := allText(c.Entries[:len(r.Entries)])
	if b.model != nil {
		answer, err := answerOf(ctx, b.model, r.Text+c.Instructions)
		if err != nil || strings.TrimSpace(answer.Text) == "" {
			r.Kind, p.Warnings = "fallback", append(p.Warnings, "the model gave no text; a note stands in its place")
			return p, nil
		}
		text = answer.Text
	}
	cost := 0
	for _, n := range c.Cost[:len(r.Entries)] {
		cost += n
	}
	for c.Count(text) > c.SummaryTokens || 2*c.Count(text) > cost {
		text = text[:len(text)*3/4]
	}
	if strings.TrimSpace(text) != "" {
		r.Text, r.Kind = text, "summary"
	}
	return p, nil
}

// compactFunc is a compactor of its one method.
type compactFunc func(context.Context, core.Compaction) (core.Patch, error)

func (compactFunc) OwnsCompaction() bool { return true }

func (f compactFunc) Compact(ctx context.Context, c core.Compaction) (core.Patch, error) {
	return f(ctx, c)
}

// allText is what entries say.
func allText(entries []core.Entry) string {
	var b strings.Builder
	for _, e := range entries {
		b.WriteString(e.Text() + "\n")
	}
	return b.String()
}

// believe makes an engine of a compactor that believes the model, or what was said, and tells of its patches.
func believe(model bool, patched func(core.Patch)) setup {
	return setup{retriever: words, compacts: func(env conformance.Env) (core.Compactor, error) {
		c, err := compactors["archive"](env)
		b := believing{Compactor: c}
		if model {
			b.model = env.Model
		}
		return compactFunc(func(ctx context.Context, c core.Compaction) (core.Patch, error) {
			p, err := b.Compact(ctx, c)
			if err == nil {
				patched(p)
			}
			return p, err
		}), err
	}}
}

// tableOpened are engines that show what a compactor made as it is.
func tableOpened() []broken {
	var out []broken
	for name, model := range map[string]bool{"a model's words stand as they are": true, "what was said stands as it is": false} {
		var texts []string
		s := believe(model, func(p core.Patch) {
			for _, r := range p.Replace {
				texts = append(texts, r.Text)
			}
		})
		out = append(out, caughtBy("contract.unopened", name, s, func(w *wrongEngine) {
			w.after = func(_ string, res any) {
				a, ok := res.(*core.AssembleResult)
				for i := 0; ok && i < len(a.Messages); i++ {
					m := &a.Messages[i]
					m.Parts = slices.Clone(m.Parts)
					for _, text := range texts {
						m.Parts[0].Text = strings.ReplaceAll(m.Parts[0].Text, window.Neutral(text), text)
					}
				}
			}
		}))
	}
	return out
}
