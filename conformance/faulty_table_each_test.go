package conformance_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/contextengine/contextengine/conformance"
	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/message"
	"github.com/contextengine/contextengine/core/window"
	"github.com/contextengine/contextengine/internal/needs"
)

// compactCall is one call of a compactor around a sound one.
type compactCall = func(ctx context.Context, c core.Compaction, m *conformance.Model, s soundCompact) (core.Patch, error)

// tableEachCall are compactors whose mistake shows in what they leave behind, in what stands beside a part, or with a model, a runtime or a text of another kind.
func tableEachCall() []broken {
	var out []broken
	call := func(id, base, name string, f compactCall) {
		out = append(out, brokenCompactorOf("each call", base, name, f, conformance.WithClaims(id)))
	}
	each := func(id, base, name string, f func() compactCall) {
		out = append(out, brokenCompactorEach("each call", base, name, f, conformance.WithClaims(id)))
	}
	texts := func(id, base, name string, f func(c core.Compaction, text string) string) {
		call(id, base, name, func(ctx context.Context, c core.Compaction, _ *conformance.Model, s soundCompact) (core.Patch, error) {
			p, err := s(ctx, c)
			for i := range p.Replace {
				p.Replace[i].Text = f(c, p.Replace[i].Text)
			}
			return p, err
		})
	}
	asking := core.CompletionRequest{Prompt: "sum up", Purpose: "summary"}

	call("patch.quotes", "archive", "the purpose is what the first message says", func(ctx context.Context, c core.Compaction, m *conformance.Model, s soundCompact) (core.Patch, error) {
		_, _ = m.Complete(ctx, core.CompletionRequest{Prompt: "sum up", Purpose: "summary of " + c.Entries[0].Message.Text()})
		return s(ctx, c)
	})
	call("patch.soon", "archive", "waits for no model, and leaves it asked", func(ctx context.Context, c core.Compaction, m *conformance.Model, s soundCompact) (core.Patch, error) {
		go func() {
			own, cancel := context.WithTimeout(context.WithoutCancel(ctx), 4*time.Second)
			defer cancel()
			_, _ = m.Complete(own, asking)
		}()
		time.Sleep(time.Millisecond)
		return s(ctx, c)
	})
	call("patch.soon", "archive", "waits for a model that fails", func(ctx context.Context, c core.Compaction, m *conformance.Model, s soundCompact) (core.Patch, error) {
		for range 3 {
			if _, err := m.Complete(ctx, asking); !errors.Is(err, core.ErrUnavailable) {
				break
			}
			time.Sleep(time.Second)
		}
		return s(ctx, c)
	})
	call("patch.soon", "archive", "waits for every letter", func(ctx context.Context, c core.Compaction, _ *conformance.Model, s soundCompact) (core.Patch, error) {
		n := 0
		for _, e := range c.Entries {
			n += len(e.Message.Text())
		}
		time.Sleep(time.Duration(n) * 5 * time.Microsecond)
		return s(ctx, c)
	})
	each("patch.tries", "archive", "a model that failed three times is never asked again", func() compactCall {
		var failed atomic.Int64
		return func(ctx context.Context, c core.Compaction, m *conformance.Model, s soundCompact) (core.Patch, error) {
			if failed.Load() < 3 {
				if _, err := m.Complete(ctx, asking); err != nil {
					failed.Add(1)
				}
			}
			return s(ctx, c)
		}
	})
	out = append(out, brokenOwner())
	call("patch.hangs", "archive", "publishes in the time that the model had", func(ctx context.Context, c core.Compaction, m *conformance.Model, s soundCompact) (core.Patch, error) {
		limit := time.Minute
		if end, ok := ctx.Deadline(); ok {
			limit = time.Until(end) / 2
		}
		own, cancel := context.WithTimeout(ctx, limit)
		defer cancel()
		_, _ = m.Complete(own, asking)
		p, err := s(ctx, c)
		if err != nil || p.Empty() {
			return p, err
		}
		return core.Patch{Reason: "published"}, c.Publish(own, p)
	})

	texts("patch.scripts", "archive", "four letters are a token", func(c core.Compaction, text string) string {
		var all strings.Builder
		all.WriteString(text + "\n")
		for _, e := range c.Entries[:len(c.Entries)-c.Protected] {
			all.WriteString(e.Text() + "\n")
		}
		letters := []rune(all.String())
		return string(letters[:min(len(letters), 4*c.SummaryTokens)])
	})
	for _, kind := range []string{"host", "summary"} {
		texts("patch.scripts", "archive", "repeats what is of kind "+kind, func(c core.Compaction, text string) string {
			for _, s := range c.Summaries {
				if s.Kind == kind {
					text += "\n" + s.Text
				}
			}
			return text
		})
	}
	texts("deterministic.patch", "archive", "says when it was by the host's clock", func(c core.Compaction, text string) string {
		return text + " " + c.Host.Now().Format(time.DateOnly)
	})
	onePlace := map[string]string{"by": "all"}
	var mu sync.Mutex
	call("patch.pure", "archive", "one place for what all compactors say of themselves", func(ctx context.Context, c core.Compaction, _ *conformance.Model, s soundCompact) (core.Patch, error) {
		p, err := s(ctx, c)
		mu.Lock()
		defer mu.Unlock()
		for i := range p.Replace {
			p.Replace[i].Meta = onePlace
		}
		return p, err
	})
	shapedWrong(call)
	return append(out, slowlyPassedOn()...)
}

// brokenOwner leaves compaction to the runtime once its model failed often.
func brokenOwner() broken {
	return broken{class: "compactor: each call", name: "owns no compaction once a model failed five times", find: func(t *testing.T, only ...conformance.Option) []conformance.Finding {
		t.Helper()
		return early(8, only, func(opts ...conformance.Option) []conformance.Finding {
			return conformance.ExamineCompactor(t, func(tb testing.TB, m *conformance.Model) core.Compactor {
				tb.Helper()
				c, err := compactors["archive"](conformance.Env{Host: conformance.NewHost(m), Model: m})
				if err != nil {
					tb.Fatal(err)
				}
				var failed atomic.Int64
				return &compacts{Compactor: c, owns: func() bool { return failed.Load() < 5 }, f: func(ctx context.Context, c core.Compaction, s soundCompact) (core.Patch, error) {
					if _, err := m.Complete(ctx, core.CompletionRequest{Prompt: "sum up"}); err != nil {
						failed.Add(1)
					}
					return s(ctx, c)
				}}
			}, opts...)
		}, conformance.WithClaims("patch.owns"))
	}}
}

// shapedWrong are stubs that go wrong where a message has parts of several kinds.
func shapedWrong(call func(id, base, name string, f compactCall)) {
	// adds adds a stub to each entry that may get one; nil is none.
	adds := func(name string, f func(c core.Compaction, e core.Entry) *window.Stub) {
		call("patch.shapes", "mask", name, func(ctx context.Context, c core.Compaction, _ *conformance.Model, s soundCompact) (core.Patch, error) {
			p, err := s(ctx, c)
			gone := map[string]bool{}
			for _, rep := range p.Replace {
				for _, id := range rep.Entries {
					gone[id] = true
				}
			}
			for _, e := range c.Entries[:len(c.Entries)-c.Protected] {
				if st := f(c, e); st != nil && !gone[e.ID] && err == nil {
					if p.Stubs == nil {
						p.Stubs = map[string]window.Stub{}
					}
					p.Stubs[e.ID] = *st
				}
			}
			return p, err
		})
	}
	const short = "this is […] of it"
	long := func(p message.Part) bool { return len(p.Text) > 400 }
	shortened := func(c core.Compaction, e core.Entry, part int) *window.Stub {
		saved := c.Count(e.Message.Parts[part].Text) - c.Count(short)
		return &window.Stub{Kind: window.Clipped, Texts: map[int]string{part: short}, Tokens: e.Tokens - saved}
	}
	adds("nothing where a result begins with an empty line", func(c core.Compaction, e core.Entry) *window.Stub {
		for i, p := range e.Message.Parts {
			if p.Kind == message.ToolResult && long(p) && len(e.Message.Parts) == 1 {
				line, _, _ := strings.Cut(p.Text, "\n")
				st := shortened(c, e, i)
				st.Texts[i] = strings.TrimSpace(line)
				return st
			}
		}
		return nil
	})
	adds("texts are counted, not parts", func(c core.Compaction, e core.Entry) *window.Stub {
		texts := 0
		for i, p := range e.Message.Parts {
			if p.Kind != message.Text {
				continue
			}
			if texts++; long(p) && e.Message.HasCalls() {
				st := shortened(c, e, i)
				st.Texts = map[int]string{texts - 1: short}
				return st
			}
		}
		return nil
	})
	adds("what was shortened before counts whole", func(c core.Compaction, e core.Entry) *window.Stub {
		for i, p := range e.Message.Parts {
			before, ok := c.Stubs[e.ID]
			if _, done := before.Texts[i]; ok && !done && long(p) {
				if st := shortened(c, e, i); st.Tokens < before.Tokens {
					return st
				}
			}
		}
		return nil
	})
	adds("images beside a text cost nothing", func(c core.Compaction, e core.Entry) *window.Stub {
		images := 0
		for _, p := range e.Message.Parts {
			if p.Kind == message.Image {
				images++
			}
		}
		for i, p := range e.Message.Parts {
			if images > 0 && long(p) {
				st := shortened(c, e, i)
				st.Tokens -= images * window.ImageTokens
				return st
			}
		}
		return nil
	})
}

// slowlyPassedOn are delegates that do not get on with a slow runtime, or with an error of another kind.
func slowlyPassedOn() []broken {
	var out []broken
	add := func(id, name string, f func() compactCall) {
		out = append(out, brokenCompactorEach("each call", "delegate", name, f, conformance.WithClaims(id)))
	}
	add("patch.concurrent", "calls for one session share an answer", func() compactCall {
		type flight struct {
			done chan struct{}
			p    core.Patch
			err  error
		}
		var mu sync.Mutex
		flights := map[core.SessionID]*flight{}
		return func(ctx context.Context, c core.Compaction, _ *conformance.Model, s soundCompact) (core.Patch, error) {
			mu.Lock()
			if f := flights[c.Session]; f != nil {
				mu.Unlock()
				<-f.done
				return f.p, f.err
			}
			f := &flight{done: make(chan struct{})}
			flights[c.Session] = f
			mu.Unlock()
			f.p, f.err = s(ctx, c)
			mu.Lock()
			defer mu.Unlock()
			delete(flights, c.Session)
			close(f.done)
			return f.p, f.err
		}
	})
	for _, again := range []error{core.ErrConflict, core.ErrBudget, context.DeadlineExceeded} {
		add("patch.host-fails", fmt.Sprintf("once more where the runtime says %q", again), func() compactCall {
			return func(ctx context.Context, c core.Compaction, _ *conformance.Model, s soundCompact) (core.Patch, error) {
				p, err := s(ctx, c)
				if errors.Is(err, again) {
					return s(ctx, c)
				}
				return p, err
			}
		})
	}
	add("patch.runtime", "what comes late is lost", func() compactCall {
		return func(ctx context.Context, c core.Compaction, _ *conformance.Model, s soundCompact) (core.Patch, error) {
			p, err := s(ctx, c)
			if ctx.Err() != nil {
				return core.Patch{}, ctx.Err()
			}
			return p, err
		}
	})
	for _, limit := range []time.Duration{300 * time.Millisecond, time.Minute} {
		add("patch.runtime", fmt.Sprintf("gives the runtime %s", limit), func() compactCall {
			return func(ctx context.Context, c core.Compaction, _ *conformance.Model, s soundCompact) (core.Patch, error) {
				own, cancel := context.WithTimeout(ctx, limit)
				defer cancel()
				return s(own, c)
			}
		})
	}
	return out
}

// TestCompactorsThatWriteToTheirTask: what a task holds is the compactor's own. One that writes to all of it is sound.
func TestCompactorsThatWriteToTheirTask(t *testing.T) {
	needs.NoRace(t)
	t.Parallel()
	for _, base := range []string{"archive", "summary", "mask", "index", "delegate"} {
		t.Run(base, func(t *testing.T) {
			t.Parallel()
			conformance.TestCompactor(t, func(tb testing.TB, m *conformance.Model) core.Compactor {
				tb.Helper()
				c, err := compactors[base](conformance.Env{Host: conformance.NewHost(m), Model: m})
				if err != nil {
					tb.Fatal(err)
				}
				return &compacts{Compactor: c, f: func(ctx context.Context, c core.Compaction, s soundCompact) (core.Patch, error) {
					p, err := s(ctx, c)
					writeTo(&c)
					return p, err
				}}
			}, conformance.WithCases(5), conformance.WithClaims("patch.pure", "patch.alone", "patch.concurrent", "patch.rounds", "patch.whole", "patch.oldest", "deterministic"))
		})
	}
}

// writeTo writes to all that a task holds.
func writeTo(c *core.Compaction) {
	for i := range c.Entries {
		e := &c.Entries[i]
		for j := range e.Message.Parts {
			for k := range e.Message.Parts[j].Raw {
				e.Message.Parts[j].Raw[k] = 'x'
			}
			e.Message.Parts[j].Text = "x"
		}
		if e.Meta != nil {
			e.Meta["written"] = "to"
		}
		e.ID, e.Tokens, c.Cost[i] = "x", 0, 0
	}
	_ = append(c.Entries, core.Entry{ID: "mine"})
	for i := range c.Summaries {
		for j := range c.Summaries[i].Of {
			c.Summaries[i].Of[j].From++
		}
		c.Summaries[i].ID, c.Summaries[i].Text = "x", "x"
	}
	clear(c.Stubs)
	if t := c.Request.Transcript; t != nil {
		clear(t.Messages)
	}
}
