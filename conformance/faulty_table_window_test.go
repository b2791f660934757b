package conformance_test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/contextengine/contextengine/conformance"
	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/message"
	"github.com/contextengine/contextengine/core/window"
)

// tableWindows are engines that change a little of what they show, say or are given.
func tableWindows() []broken {
	var out []broken
	summing, delegating := setup{compactor: "summary"}, setup{compactor: "delegate"}
	result := func(class, name string, s setup, f func(method string, res any)) {
		out = append(out, brokenEngineOf(class, name, s, func(w *wrongEngine) { w.after = f }))
	}
	request := func(class, name string, s setup, f func(method string, req any)) {
		out = append(out, brokenEngineOf(class, name, s, func(w *wrongEngine) { w.before = f }))
	}
	each := func(name string, f func(m *message.Message)) {
		result("what is shown", name, summing, func(_ string, res any) {
			if a, ok := res.(*core.AssembleResult); ok {
				for i := range a.Messages {
					f(&a.Messages[i])
				}
			}
		})
	}
	parts := func(name string, f func(p *message.Part)) {
		each(name, func(m *message.Message) {
			m.Parts = slices.Clone(m.Parts)
			for i := range m.Parts {
				f(&m.Parts[i])
			}
		})
	}
	each("without raw bytes", func(m *message.Message) { m.Raw = nil })
	each("without ids", func(m *message.Message) { m.ID = "" })
	each("without keys", func(m *message.Message) { m.Key = "" })
	each("without names", func(m *message.Message) { m.Name = "" })
	each("without times", func(m *message.Message) { m.Time = m.Time.Truncate(0).AddDate(-1, 0, 0) })
	each("without stop reasons", func(m *message.Message) { m.Stop = "" })
	each("without usage", func(m *message.Message) { m.Usage = message.Usage{} })
	each("without thinking", func(m *message.Message) {
		m.Parts = slices.DeleteFunc(slices.Clone(m.Parts), func(p message.Part) bool { return p.Kind == message.Thinking })
	})
	parts("without signatures", func(p *message.Part) { p.Signature = "" })
	parts("errors as successes", func(p *message.Part) { p.IsError = false })
	parts("arguments respaced", func(p *message.Part) { p.Args = strings.ReplaceAll(p.Args, " ", "") })
	parts("odd bytes mended", func(p *message.Part) { p.Text = strings.ToValidUTF8(p.Text, "?") })
	parts("without NUL", func(p *message.Part) { p.Text = strings.ReplaceAll(p.Text, "\x00", "") })

	out = append(out, brokenEngineOf("what is shown", "without the system message that came after an empty window", summing, func(w *wrongEngine) {
		var asked atomic.Value // the session of the call under way
		var empty sync.Map
		w.before = func(_ string, req any) {
			if r, ok := req.(*core.AssembleRequest); ok {
				asked.Store(r.Session)
			}
		}
		w.after = func(_ string, res any) {
			a, ok := res.(*core.AssembleResult)
			if !ok {
				return
			}
			if len(a.Messages) == 0 {
				empty.Store(asked.Load(), true)
			}
			if _, was := empty.Load(asked.Load()); was {
				a.Messages = slices.DeleteFunc(a.Messages, func(m message.Message) bool { return m.Role == message.System })
			}
		}
	}))

	choices := func(name string, s setup, f func(c []window.Choice) []window.Choice) {
		result("choices", name, s, func(_ string, res any) {
			if a, ok := res.(*core.AssembleResult); ok {
				a.Choices = f(a.Choices)
			}
		})
	}
	choices("nothing about what is out", summing, func(c []window.Choice) []window.Choice {
		return slices.DeleteFunc(c, func(c window.Choice) bool { return c.Message < 0 })
	})
	choices("nothing about what a rule made", summing, func(c []window.Choice) []window.Choice {
		return slices.DeleteFunc(c, func(c window.Choice) bool { return c.Message >= 0 && c.Entry == "" && c.Reason == window.ReasonNote })
	})
	choices("runs counted as one", summing, func(c []window.Choice) []window.Choice {
		for i := range c {
			c[i].Count = 1
		}
		return c
	})

	result("compactions", "the first entry is kept", summing, func(_ string, res any) {
		if c, ok := res.(*core.CompactResult); ok && c.FirstKept != "" {
			c.FirstKept = "id00001"
		}
	})
	result("compactions", "a reason that no host knows", summing, func(_ string, res any) {
		if c, ok := res.(*core.CompactResult); ok && !c.Compacted {
			c.Reason = "no wish to"
		}
	})
	for name, f := range map[string]func(*core.CompactRequest){
		"wishes":   func(r *core.CompactRequest) { r.Instructions = "" },
		"force":    func(r *core.CompactRequest) { r.Force = false },
		"settings": func(r *core.CompactRequest) { r.Settings = core.RuntimeSettings{} },
		"scope":    func(r *core.CompactRequest) { r.TranscriptScope = core.TranscriptScope{} },
	} {
		request("what a delegate passes on", name, delegating, func(_ string, req any) {
			if r, ok := req.(*core.CompactRequest); ok {
				f(r)
			}
		})
	}
	out = append(out, brokenEngineOf("what a delegate passes on", "maintain compacts as well", delegating, func(w *wrongEngine) {
		w.before = func(_ string, req any) {
			if r, ok := req.(*core.MaintainRequest); ok {
				_, _ = w.Engine.Compact(context.Background(), core.CompactRequest{Session: r.Session, Budget: r.Budget, Force: true})
			}
		}
	}))
	result("maintenance", "the contrary", summing, func(_ string, res any) {
		if m, ok := res.(*core.MaintainResult); ok {
			m.Changed = !m.Changed
		}
	})

	// What is given.
	request("what it is given", "turns round what the host says of its memory", summing, func(_ string, req any) {
		if r, ok := req.(*core.AssembleRequest); ok {
			slices.Reverse(r.Memory.Sections)
		}
	})
	messages := func(req any) []message.Message {
		switch r := req.(type) {
		case *core.IngestBatchRequest:
			return r.Messages
		case *core.CommitTurnRequest:
			return r.Messages
		case *core.AfterTurnRequest:
			return r.Messages
		}
		return nil
	}
	request("what it is given", "writes behind the messages", summing, func(_ string, req any) { _ = append(messages(req), message.New(message.User, "mine")) })
	request("what it is given", "writes to raw bytes", summing, func(_ string, req any) {
		for _, m := range messages(req) {
			for _, p := range m.Parts {
				if len(p.Raw) > 0 {
					p.Raw[0] ^= 1
				}
			}
		}
	})

	// Long sessions, and sessions whose names are alike.
	many := []conformance.Option{conformance.WithExactly(100, 20260301), conformance.WithClaims("contract")}
	out = append(out, brokenEngineOf("sessions", "one message of two hundred lost", summing, func(w *wrongEngine) {
		var n atomic.Int64
		w.around = func(ctx context.Context, method string, call func(context.Context) error) error {
			if method == "Ingest" && n.Add(1)%200 == 0 {
				return nil
			}
			return call(ctx)
		}
	}, many...))
	out = append(out, brokenEngineOf("sessions", "the first thousand of a batch", summing, func(w *wrongEngine) {
		w.before = func(_ string, req any) {
			if r, ok := req.(*core.IngestBatchRequest); ok {
				r.Messages = r.Messages[:min(len(r.Messages), 1000)]
			}
		}
	}, many...))
	names := func(name string, f func(string) string) {
		request("sessions", name, summing, func(_ string, req any) {
			switch r := req.(type) {
			case *core.CommitTurnRequest:
				r.Session.Session = f(r.Session.Session)
			case *core.IngestRequest:
				r.Session.Session = f(r.Session.Session)
			case *core.AssembleRequest:
				r.Session.Session = f(r.Session.Session)
			}
		})
	}
	names("names in lower case", strings.ToLower)
	names("names trimmed", strings.TrimSpace)

	whole := func(name string, to bool) {
		request("sessions", name, summing, func(_ string, req any) {
			if r, ok := req.(*core.AssembleRequest); ok && r.Transcript != nil {
				t := *r.Transcript
				t.Whole = to
				r.Transcript = &t
			}
		})
	}
	whole("no transcript is whole", false)
	whole("every transcript is whole", true)
	result("sessions", "a filler has an id", summing, func(_ string, res any) {
		if r, ok := res.(*core.IngestResult); ok {
			for i := range r.IDs {
				if r.IDs[i] == "" {
					r.IDs[i] = "filler"
				}
			}
		}
	})
	return slices.Concat(out, tableCalls())
}
