package conformance_test

import (
	"cmp"
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/contextengine/contextengine/conformance"
	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/message"
	"github.com/contextengine/contextengine/core/window"
	"github.com/contextengine/contextengine/strategies/archive"
	"github.com/contextengine/contextengine/strategies/index"
)

// byItself is a compactor that asks a model for one text about all that may go, and writes a line itself where that gives none. It is sound without a write of its own.
type byItself struct {
	model *conformance.Model
	// write writes the line in another way.
	write func(c core.Compaction, line string) string
	// dear lets the text cost what it will.
	dear bool
}

func (*byItself) OwnsCompaction() bool { return true }

func (b *byItself) Compact(ctx context.Context, c core.Compaction) (core.Patch, error) {
	if err := ctx.Err(); err != nil {
		return core.Patch{}, fmt.Errorf("by itself: %w", err)
	}
	n := len(c.Entries) - c.Protected
	if n <= 0 || c.Tokens <= c.Target && !c.Force {
		return core.Patch{Reason: core.ReasonAlreadyCompacted}, nil
	}
	cost := 0
	rep := core.Replacement{Kind: "summary"}
	prompt := c.Instructions
	for i, e := range c.Entries[:n] {
		rep.Entries = append(rep.Entries, e.ID)
		cost += c.Cost[i]
		if !e.Hidden() {
			prompt += "\n" + e.Message.Text()
		}
	}
	p := core.Patch{Reason: "what stays costs more than the target"}
	limit := min(c.SummaryTokens, cost/2)
	asked, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
	defer cancel()
	answer, err := b.model.Complete(asked, core.CompletionRequest{Prompt: prompt, MaxTokens: limit})
	if rep.Text = answer.Text; err != nil || window.Blank(rep.Text) || c.Count(rep.Text) > limit {
		rep.Kind, rep.Text = "fallback", fmt.Sprintf("%d earlier messages, until %s.", n, c.Entries[n-1].Time.UTC().Format(time.DateTime))
		if b.write != nil {
			rep.Text = b.write(c, rep.Text)
		}
		p.Warnings = []string{"the model gave no text"}
	}
	if c.Count(rep.Text)+4 >= cost && (!b.dear || cost == 0) {
		return core.Patch{Reason: core.ReasonAlreadyCompacted, Warnings: p.Warnings}, nil
	}
	p.Replace = []core.Replacement{rep}
	return p, nil
}

// writers are ways in which what a compactor writes by itself is not a function of its task alone; each makes one for one compactor.
var writers = []struct {
	name string
	each func() func(c core.Compaction, line string) string
}{
	{"the machine's time", func() func(core.Compaction, string) string {
		return func(_ core.Compaction, line string) string {
			return line + " Written " + time.Now().Format(time.RFC3339)
		}
	}},
	{"a number that grows", func() func(core.Compaction, string) string {
		var mu sync.Mutex
		n := 0
		return func(_ core.Compaction, line string) string {
			mu.Lock()
			defer mu.Unlock()
			n++
			return fmt.Sprint(line, " Note ", n)
		}
	}},
	{"tools named in any order", func() func(core.Compaction, string) string {
		return func(c core.Compaction, line string) string {
			names := map[string]bool{"one": true, "two": true, "three": true, "four": true, "five": true}
			for _, e := range c.Entries {
				for _, part := range e.Message.Calls() {
					names[part.Name] = true
				}
			}
			for name := range names {
				line += " " + name
			}
			return line
		}
	}},
	{"the line of the task before", func() func(core.Compaction, string) string {
		var mu sync.Mutex
		before := map[core.SessionID]string{}
		return func(c core.Compaction, line string) string {
			mu.Lock()
			defer mu.Unlock()
			before[c.Session] = cmp.Or(before[c.Session], line)
			return before[c.Session]
		}
	}},
	{"one place for the lines of all tasks", func() func(core.Compaction, string) string {
		var mu sync.Mutex // what is shared is wrong all the same
		var shared []byte
		return func(c core.Compaction, line string) string {
			mu.Lock()
			shared = append(shared[:0], line...)
			shared = append(shared, c.Entries[0].Message.Text()...)
			mu.Unlock()
			_ = c.Count(line)
			runtime.Gosched()
			mu.Lock()
			defer mu.Unlock()
			return string(shared[:min(len(shared), len(line)+20)])
		}
	}},
}

// tableByThemselves are compactors of which only what they write without a model is wrong, and such as forget what earlier texts said.
func tableByThemselves() []broken {
	out := make([]broken, 0, len(writers)+8)
	own := func(name string, build func(m *conformance.Model) core.Compactor) {
		over := func(env conformance.Env) (core.Compactor, error) { return build(env.Model), nil }
		out = append(out, broken{class: "compactor: by itself", name: name, part: part{compactor: over}, find: func(t *testing.T, only ...conformance.Option) []conformance.Finding {
			t.Helper()
			return early(8, only, func(opts ...conformance.Option) []conformance.Finding {
				return conformance.ExamineCompactor(t, func(_ testing.TB, m *conformance.Model) core.Compactor { return build(m) }, opts...)
			})
		}})
	}
	for _, w := range writers {
		own(w.name, func(m *conformance.Model) core.Compactor { return &byItself{model: m, write: w.each()} })
	}
	own("dearer than what little it stands for", func(m *conformance.Model) core.Compactor { return &byItself{model: m, dear: true} })
	for _, f := range forgetting {
		out = append(out, brokenCompactorOf("by itself", f.base, f.name, func(ctx context.Context, c core.Compaction, _ *conformance.Model, s soundCompact) (core.Patch, error) {
			return f.compact(ctx, c, s)
		}))
	}
	out = append(out, brokenCompactorOf("stubs", "mask", "of calls with long arguments where results are masked", func(ctx context.Context, c core.Compaction, _ *conformance.Model, s soundCompact) (core.Patch, error) {
		p, err := s(ctx, c)
		return callsToo(c, p), err
	}))
	return out
}

// callsToo adds stubs for calls with long arguments to a patch that has stubs.
func callsToo(c core.Compaction, p core.Patch) core.Patch {
	if len(p.Stubs) == 0 {
		return p
	}
	const long, saved = 400, 50
	for i, e := range c.Entries[:len(c.Entries)-c.Protected] {
		for n, part := range e.Message.Parts {
			if part.Kind == message.ToolCall && len(part.Args) > long {
				p.Stubs[e.ID] = window.Stub{Kind: window.Masked, Texts: map[int]string{n: "[a call]"}, Tokens: c.Cost[i] - saved}
			}
		}
	}
	return p
}

// forgetting are ways to end earlier texts of one's own without what they say. unread leaves those out that the sound one is not shown.
var forgetting = []struct {
	name, base string
	compact    func(ctx context.Context, c core.Compaction, s soundCompact) (core.Patch, error)
}{
	{"notes end unread", "archive", func(ctx context.Context, c core.Compaction, s soundCompact) (core.Patch, error) {
		return unread(ctx, c, s, 0)
	}},
	{"all notes but the first end unread", "archive", func(ctx context.Context, c core.Compaction, s soundCompact) (core.Patch, error) {
		return unread(ctx, c, s, 1)
	}},
	{"indexes end unread", "index", func(ctx context.Context, c core.Compaction, s soundCompact) (core.Patch, error) {
		return unread(ctx, c, s, 0)
	}},
	{"all indexes but the first end unread", "index", func(ctx context.Context, c core.Compaction, s soundCompact) (core.Patch, error) {
		return unread(ctx, c, s, 1)
	}},
	{"notes count one message each", "archive", func(ctx context.Context, c core.Compaction, s soundCompact) (core.Patch, error) {
		c.Summaries = slices.Clone(c.Summaries)
		for i := range c.Summaries {
			c.Summaries[i].Covers = 1
		}
		return s(ctx, c)
	}},
	{"all notes but the newest two end unread", "archive", func(ctx context.Context, c core.Compaction, s soundCompact) (core.Patch, error) {
		return oldUnread(ctx, c, s, 2)
	}},
	{"all indexes but the newest five end unread", "index", func(ctx context.Context, c core.Compaction, s soundCompact) (core.Patch, error) {
		return oldUnread(ctx, c, s, 5)
	}},
	{"notes count what was given back", "archive", func(ctx context.Context, c core.Compaction, s soundCompact) (core.Patch, error) {
		c.Summaries = slices.Clone(c.Summaries)
		for i := range c.Summaries {
			if n := madeOf(c.Summaries[i]); n > 0 {
				c.Summaries[i].Covers = n
			}
		}
		return s(ctx, c)
	}},
	{"notes count what those before them say", "archive", func(ctx context.Context, c core.Compaction, s soundCompact) (core.Patch, error) {
		c.Summaries = slices.Clone(c.Summaries)
		for i := range c.Summaries {
			_, _ = fmt.Sscanf(c.Summaries[i].Text, "[%d earlier messages", &c.Summaries[i].Covers)
		}
		return s(ctx, c)
	}},
	{"notes forget since when", "archive", func(ctx context.Context, c core.Compaction, s soundCompact) (core.Patch, error) {
		c.Summaries = slices.Clone(c.Summaries)
		for i := range c.Summaries {
			c.Summaries[i].Text = "earlier messages"
		}
		return s(ctx, c)
	}},
}

// oldUnread leaves all but so many of the newest out, and ends them.
func oldUnread(ctx context.Context, c core.Compaction, s soundCompact, newest int) (core.Patch, error) {
	of := 0
	for _, sum := range c.Summaries {
		if sum.Kind == "note" || sum.Kind == "index" {
			of++
		}
	}
	var ids []string
	c.Summaries = slices.DeleteFunc(slices.Clone(c.Summaries), func(sum core.Summary) bool {
		if sum.Kind != "note" && sum.Kind != "index" {
			return false
		}
		of--
		if of < newest {
			return false
		}
		ids = append(ids, sum.ID)
		return true
	})
	p, err := s(ctx, c)
	if len(p.Replace) > 0 {
		p.Replace[0].Summaries = append(slices.Clone(ids), p.Replace[0].Summaries...)
	}
	return p, err
}

// madeOf is how many entries a summary was made of.
func madeOf(s core.Summary) int {
	n := 0
	for _, span := range s.Of {
		n += span.Len()
	}
	return n
}

func unread(ctx context.Context, c core.Compaction, s soundCompact, but int) (core.Patch, error) {
	var shown []core.Summary
	var ids []string
	for _, sum := range c.Summaries {
		if but--; but >= 0 || sum.Kind != "note" && sum.Kind != "index" {
			shown = append(shown, sum)
			continue
		}
		ids = append(ids, sum.ID)
	}
	c.Summaries = shown
	p, err := s(ctx, c)
	if len(p.Replace) > 0 {
		p.Replace[0].Summaries = append(slices.Clone(p.Replace[0].Summaries), ids...)
	}
	return p, err
}

// byThemselves are compactors that the checks of what is written without a model must catch.
func byThemselves() []fault {
	sound := func() (core.Compactor, error) { return archive.New(archive.DefaultConfig()) }
	indexes := func() (core.Compactor, error) { return index.New(index.DefaultConfig()) }
	own := func(name string, build func(m *conformance.Model) core.Compactor, caught string, kin ...string) fault {
		return compactorFault(name, sound, func(b *brokenCompactor, m *conformance.Model) { b.Compactor = build(m) }, []string{caught}, kin...)
	}
	var out []fault
	for _, w := range writers {
		out = append(out, own(w.name+", where a model fails", func(m *conformance.Model) core.Compactor { return &byItself{model: m, write: w.each()} }, "deterministic.fallback", "deterministic.patch"))
	}
	out = append(out, own("dearer than what little it stands for", func(m *conformance.Model) core.Compactor { return &byItself{model: m, dear: true} }, "patch.worth",
		"patch.fallback", "patch.progress", "patch.deadline"))
	for _, f := range forgetting {
		if f.base == "archive" {
			out = append(out, compactorFault(f.name, sound, func(b *brokenCompactor, _ *conformance.Model) {
				b.Compactor = &compacts{Compactor: b.Compactor, f: f.compact}
			}, []string{"patch.included"}))
		}
	}
	return append(out, compactorFault("what indexes say stays as it is, however little a text may cost", indexes, func(b *brokenCompactor, _ *conformance.Model) {
		b.after = func(_ context.Context, c core.Compaction, p core.Patch) (core.Patch, error) {
			for i := range p.Replace {
				p.Replace[i].Text = wholeTexts(c, p.Replace[i])
			}
			return p, nil
		}
	}, []string{"patch.scripts"}))
}

// wholeTexts are the texts that a replacement ends, where they are together more than a text may cost; else its own.
func wholeTexts(c core.Compaction, rep core.Replacement) string {
	var texts []string
	for _, s := range c.Summaries {
		if s.Kind == "index" && slices.Contains(rep.Summaries, s.ID) {
			texts = append(texts, s.Text)
		}
	}
	if all := strings.Join(texts, "\n"); c.Count(all) > c.SummaryTokens {
		return all
	}
	return rep.Text
}
