package conformance

import (
	"fmt"
	"math/rand"
	"slices"
	"strings"
	"time"

	"github.com/leanovate/gopter"

	"github.com/contextengine/contextengine/core/message"
)

// opKind says what happens.
type opKind int

// The kinds. Every one is legal in every state: what makes no sense at a point does nothing there.
const (
	opUser       opKind = iota // the user speaks; with a host, a turn begins
	opAnswer                   // the assistant speaks
	opTool                     // the assistant calls tools, and results come back
	opLate                     // a result comes for a call that had none
	opRepeat                   // the same message again: with its key, or as a new message
	opHeartbeat                // a timer speaks
	opEnd                      // a host's turn is accepted and committed
	opFail                     // a host's turn fails: it stands in the transcript only
	opAssemble                 // the next prompt is asked for
	opCompact                  // a compaction is asked for
	opMaintain                 // what can wait may be done
	opSpawn                    // a subagent starts from the session
	opEnded                    // the newest subagent is done
	opReset                    // the host's transcript begins anew
	opFork                     // the host's transcript is cut and goes on differently
	opRestart                  // a new engine over the same store
	opStoreFault               // a store call of the next operation fails
	opCancel                   // the next operation is cancelled
	opModel                    // the model's mood changes
	opWait                     // time passes
	opParallel                 // several sessions are written to at the same time
	opForget                   // a message is erased
	opKinds
)

var opNames = [...]string{
	"user", "answer", "tool", "late", "repeat", "heartbeat", "end", "fail", "assemble", "compact", "maintain", "spawn", "ended",
	"reset", "fork", "restart", "store-fault", "cancel", "model", "wait", "parallel", "forget",
}

// opWeights says how often each kind is generated.
var opWeights = [opKinds]int{
	opUser: 20, opAnswer: 14, opTool: 16, opLate: 2, opRepeat: 3, opHeartbeat: 2, opEnd: 12, opFail: 2, opAssemble: 26, opCompact: 6,
	opMaintain: 2, opSpawn: 2, opEnded: 2, opReset: 1, opFork: 1, opRestart: 2, opStoreFault: 2, opCancel: 2, opModel: 2, opWait: 2, opParallel: 1, opForget: 2,
}

// op is one step of a session: plain data, so that any part of a session is a session.
type op struct {
	Kind opKind
	// Who is the session meant: 0 main, 1 another session of the same agent, 2 another agent, 3 the newest subagent.
	Who  int
	Text textKind
	Size int
	// N chooses between variants of the kind.
	N int
}

func (o op) String() string {
	name := fmt.Sprintf("op%d", int(o.Kind))
	if o.Kind >= 0 && int(o.Kind) < len(opNames) {
		name = opNames[o.Kind]
	}
	return fmt.Sprintf("%-11s who=%d text=%s size=%d n=%d", name, o.Who, o.Text, o.Size, o.N)
}

// plan is a generated session.
type plan struct {
	// Managed hosts hand over their transcript and append the current turn themselves; otherwise everything is ingested.
	Managed bool
	// AfterTurn lets a managed host report turns with AfterTurn instead of CommitTurn.
	AfterTurn bool
	Format    string
	Provider  string
	Budget    int
	Heads     heads
	// Sparse stores answer with pages that hold nothing, or half, and have a Next.
	Sparse bool
	Ops    []op
}

// hanging is the variant of opModel that makes the model hang.
const hanging = 17

// hangs reports whether the model hangs in a session.
func (p plan) hangs() bool {
	return slices.ContainsFunc(p.Ops, func(o op) bool { return o.Kind == opModel && o.N == hanging })
}

// deadline is what a compaction or a recall may take in a session. Where nothing hangs it is more than what any part takes: on a busy machine two runs of one
// session would differ in what came in time.
func (p plan) deadline() time.Duration {
	if p.hangs() {
		return hangLimit
	}
	return callLimit / 2
}

func (p plan) String() string {
	var b strings.Builder
	style := "standalone"
	if p.Managed {
		style = "host-managed"
	}
	if p.AfterTurn {
		style += ", after-turn"
	}
	fmt.Fprintf(&b, "%s, format %q, provider %q, budget %d\n", style, p.Format, p.Provider, p.Budget)
	if p.Heads != (heads{}) {
		fmt.Fprintf(&b, "transcripts: %s\n", p.Heads)
	}
	if p.Sparse {
		b.WriteString("a store whose pages may hold nothing\n")
	}
	for _, o := range p.Ops {
		b.WriteString(o.String() + "\n")
	}
	return b.String()
}

func genPlan(r *rand.Rand) plan {
	p := plan{
		Managed:   r.Intn(2) == 0,
		AfterTurn: r.Intn(4) == 0,
		Format:    []string{"", message.FormatOpenAI, message.FormatAnthropic, message.FormatPi}[r.Intn(4)],
		Budget:    []int{300, 500, 800, 1500, 1500, 3000, 3000, 6000, 12000, 32000}[r.Intn(10)],
	}
	p.AfterTurn = p.AfterTurn && p.Managed
	if r.Intn(3) == 0 {
		p.Provider = map[string]string{
			"": "google", message.FormatOpenAI: "openai", message.FormatAnthropic: "anthropic", message.FormatPi: "anthropic",
		}[p.Format]
	}
	p.Ops = make([]op, 10+r.Intn(51))
	for i := range p.Ops {
		p.Ops[i] = genOp(r)
	}
	// Drawn from the session itself: what a seed stood for before, it still stands for.
	var seed int64
	for _, o := range p.Ops {
		seed = 31*seed + int64(o.Size*60+o.N)
	}
	p.Sparse = seed%3 == 0
	if p.Managed {
		p.Heads = genHeads(rand.New(rand.NewSource(seed))) //nolint:gosec // as all of the suite
	}
	return p
}

func genOp(r *rand.Rand) op {
	total := 0
	for _, w := range opWeights {
		total += w
	}
	pick, kind := r.Intn(total), opKind(0)
	for pick >= opWeights[kind] {
		pick -= opWeights[kind]
		kind++
	}
	o := op{Kind: kind, Size: r.Intn(25), N: r.Intn(60)}
	if r.Intn(3) == 0 {
		o.Text = textKind(r.Intn(int(textKinds)))
	}
	switch r.Intn(40) {
	case 0:
		o.Size = 1500
	case 1, 2, 3:
		o.Size = 150
	}
	if r.Intn(4) == 0 {
		o.Who = r.Intn(4)
	}
	return o
}

// plainer lists plans that differ from p in one thing that surrounds its ops, each nearer to the plainest plan there is.
func (p plan) plainer() []plan {
	var out []plan
	with := func(differs bool, change func(*plan)) {
		if differs {
			q := p
			change(&q)
			out = append(out, q)
		}
	}
	with(p.Managed, func(q *plan) { q.Managed, q.AfterTurn, q.Heads = false, false, heads{} })
	with(p.AfterTurn, func(q *plan) { q.AfterTurn = false })
	with(p.Heads != heads{}, func(q *plan) { q.Heads = heads{} })
	with(p.Sparse, func(q *plan) { q.Sparse = false })
	with(p.Format != "", func(q *plan) { q.Format, q.Provider = "", "" })
	with(p.Provider != "", func(q *plan) { q.Provider = "" })
	for _, budget := range []int{300, 1500, 6000} {
		with(p.Budget > budget, func(q *plan) { q.Budget = budget })
	}
	return out
}

// planShrinker removes ops and makes them, and what surrounds them, plainer.
func planShrinker() gopter.Shrinker {
	ops := sliceShrinker(func(o op) []op {
		var out []op
		if o.Text != textPlain {
			plain := o
			plain.Text = textPlain
			out = append(out, plain)
		}
		if o.Size > 1 {
			small := o
			small.Size /= 4
			out = append(out, small)
		}
		if o.Who > 0 {
			main := o
			main.Who = 0
			out = append(out, main)
		}
		if o.N > 0 {
			first := o
			first.N = 0
			out = append(out, first)
		}
		return out
	})
	return func(v any) gopter.Shrink {
		p, ok := v.(plan)
		if !ok {
			return gopter.NoShrink
		}
		inner, around := ops(p.Ops), listShrink(p.plainer())
		return func() (any, bool) {
			next, ok := inner()
			if !ok {
				return around()
			}
			smaller := p
			smaller.Ops, _ = next.([]op)
			return smaller, true
		}
	}
}
