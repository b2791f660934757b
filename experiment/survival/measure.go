package survival

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/contextengine/contextengine/backends/memory"
	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/engine"
	"github.com/contextengine/contextengine/core/message"
	"github.com/contextengine/contextengine/experiment"
	"github.com/contextengine/contextengine/experiment/dataset"
)

// Arm is one way to compact.
type Arm struct {
	// Name is shown in results.
	Name string
	// Open makes the compactor for one measurement; nil compacts nothing.
	Open func() (core.Compactor, error)
	// Config changes the engine's configuration; it may be nil.
	Config func(*engine.Config)
	// Host is what the compactor may ask; when nil, one that offers nothing, and whose clock stands still.
	Host core.Host
}

// Spec is one measurement.
type Spec struct {
	Session dataset.Session
	Arms    []Arm
	// Keep are the shares of the history that a compaction is asked to keep, 0.1 to 0.9.
	Keep []float64
	// Cuts is the number of cuts, 5 when it is 0.
	Cuts int
	// Counter counts tokens. It should be o200k_base.
	Counter core.TokenCounter
	// LongArgs leaves out what is needed by arguments of more bytes than that, see Needed; 0 leaves out nothing.
	LongArgs int
}

// Row is what one arm kept at one cut.
type Row struct {
	Session string
	Arm     string
	// Cut is the number of messages before the cut, Keep the share that was asked for.
	Cut  int
	Keep float64
	// Needed is the number of identifiers needed later, Survived how many of them the prompt says, Bare how many it says without the texts of kind "index".
	Needed, Survived, Bare int
	// History is what the messages before the cut cost, Kept what the messages of the prompt cost, Index what texts of kind "index" among them
	// cost, in tokens.
	History, Kept, Index int
	// Lost are the identifiers that did not survive.
	Lost []string
}

// Measure measures every arm at every cut and share, in the order of cuts, shares, arms.
func Measure(ctx context.Context, spec Spec) ([]Row, error) {
	if spec.Counter == nil {
		return nil, fmt.Errorf("survival: counter is missing, use models/tiktoken: %w", core.ErrInvalid)
	}
	spec.Counter = remembering(spec.Counter)
	cuts := spec.Cuts
	if cuts <= 0 {
		cuts = 5
	}
	msgs := spec.Session.Messages
	var rows []Row
	for k := 1; k <= cuts; k++ {
		cut := len(msgs) * k / (cuts + 1)
		if cut == 0 {
			continue
		}
		needed := Needed(msgs, cut, spec.LongArgs)
		for _, keep := range spec.Keep {
			for _, arm := range spec.Arms {
				r, err := measure(ctx, spec, arm, cut, keep, needed)
				if err != nil {
					return rows, fmt.Errorf("survival: %q: cut %d: %s: %w", spec.Session.Name(), cut, arm.Name, err)
				}
				rows = append(rows, r)
			}
		}
	}
	return rows, nil
}

func measure(ctx context.Context, spec Spec, arm Arm, cut int, keep float64, needed []string) (Row, error) {
	row := Row{Session: spec.Session.Name(), Arm: arm.Name, Cut: cut, Keep: keep, Needed: len(needed)}
	msgs := spec.Session.Messages[:cut]
	row.History = cost(behind(msgs), spec.Counter)
	got, err := prompt(ctx, spec, arm, msgs, keep, row.History)
	if err != nil {
		return row, err
	}
	var whole, bare strings.Builder
	row.Kept = cost(behind(got), spec.Counter)
	for _, m := range got {
		text := said(m)
		whole.WriteString(text)
		if strings.HasPrefix(m.Text(), indexed) {
			row.Index += cost([]message.Message{m}, spec.Counter)
			continue
		}
		bare.WriteString(text)
	}
	for _, id := range needed {
		if strings.Contains(bare.String(), id) {
			row.Bare++
		}
		if strings.Contains(whole.String(), id) {
			row.Survived++
		} else {
			row.Lost = append(row.Lost, id)
		}
	}
	return row, nil
}

// indexed is how the text of an index begins.
const indexed = "[Index of "

// prompt returns what the engine shows of msgs after a forced compaction to a share of them.
func prompt(ctx context.Context, spec Spec, arm Arm, msgs []message.Message, keep float64, history int) ([]message.Message, error) {
	if arm.Open == nil {
		return msgs, nil
	}
	compactor, err := arm.Open()
	if err != nil {
		return nil, err
	}
	// A budget that has room for everything before the compaction, and that the share is a share of.
	budget := (history+cost(msgs[:len(msgs)-len(behind(msgs))], spec.Counter))*5/4 + 500
	cfg := engine.DefaultConfig()
	if arm.Config != nil {
		arm.Config(&cfg)
	}
	cfg.Failure = engine.FailStrict
	cfg.Compaction.Target = max(keep*float64(history)/float64(budget), 0.1)
	id := core.SessionID{Agent: "survival", Session: spec.Session.Name()}
	if arm.Host == nil {
		arm.Host = still{}
	}
	// Ids and times stand in prompts: the same ones in every measurement, so that it can be repeated.
	e, err := engine.New(engine.Parts{
		Store: memory.New(), OwnStore: true, Compactor: compactor, Counter: spec.Counter, Host: arm.Host,
	}, cfg, engine.WithIDs(experiment.IDs(id)))
	if err != nil {
		return nil, err
	}
	defer func() { _ = e.Dispose(context.WithoutCancel(ctx)) }()
	if _, err := e.IngestBatch(ctx, core.IngestBatchRequest{Session: id, Messages: msgs}); err != nil {
		return nil, err
	}
	req := core.AssembleRequest{Session: id, Budget: budget}
	req.Settings.Format = spec.Session.Format
	if _, err := e.Assemble(ctx, req); err != nil {
		return nil, err
	}
	if _, err := e.Compact(ctx, core.CompactRequest{Session: id, Budget: budget, Force: true, Trigger: "manual"}); err != nil {
		return nil, err
	}
	res, err := e.Assemble(ctx, req)
	if err != nil {
		return nil, err
	}
	return res.Messages, nil
}

// still is a host whose clock stands still.
type still struct{ core.NoHost }

func (still) Now() time.Time { return time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC) }

// behind returns msgs without the system messages they begin with: those always stay.
func behind(msgs []message.Message) []message.Message {
	n := 0
	for n < len(msgs) && msgs[n].Role == message.System {
		n++
	}
	return msgs[n:]
}

// remembering counts every text once. The result is not safe for concurrent use.
func remembering(count core.TokenCounter) core.TokenCounter {
	known := make(map[string]int)
	return func(text string) int {
		if len(text) < 64 {
			return count(text)
		}
		n, ok := known[text]
		if !ok {
			n = count(text)
			known[text] = n
		}
		return n
	}
}

// cost is what messages cost in a prompt, in tokens: role, text, tool names, arguments and results, and four per message.
func cost(msgs []message.Message, count core.TokenCounter) int {
	n := 0
	for _, m := range msgs {
		n += 4 + count(string(m.Role))
		for _, p := range m.Parts {
			switch p.Kind {
			case message.Text, message.ToolResult:
				n += count(p.Text) + count(p.Name)
			case message.ToolCall:
				n += count(p.Name) + count(p.Args)
			}
		}
	}
	return n
}
