package conformance

import (
	"fmt"
	"math/rand"
	"slices"
	"strings"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/engine"
	"github.com/contextengine/contextengine/core/message"
)

// headChecks hold engines to what the beginning of a transcript means.
var headChecks = []Check{
	{ID: "head.system", Promise: 5, Suite: SuiteEngine, prompt: headSystem,
		Rule: "the system messages that a transcript begins with stand in front, and none that stood there before"},
	{ID: "head.filler", Promise: 5, Suite: SuiteEngine, prompt: headFiller, final: headFillerStored,
		Rule: "what a host says it made itself is neither shown nor stored"},
	{ID: "head.kept", Promise: 2, Suite: SuiteEngine, Needs: []Need{NeedRecaller}, final: headKept,
		Rule: "what a host leaves out at the beginning of its transcript, without a word, stays in force: it is found whatever line stands in its place"},
}

// lineKind is what a host puts in front of a transcript that it cut.
type lineKind int

// The kinds of lines.
const (
	lineNone   lineKind = iota
	lineFiller          // one that the engine is told about
	lineSame            // one that nobody knows, ever the same
	lineNew             // one that nobody knows, ever new
	lineAnswer          // the same, in the assistant's name
	lineResult          // a result without a call
	lineKinds
)

// heads says how a host begins its transcripts.
type heads struct {
	// Bound is how many bytes of messages it hands over, the newest ones; 0 is no bound.
	Bound int
	Line  lineKind
	// Systems is how many system messages stand in front; the last of them is another one in each turn.
	Systems int
	// Whole declares transcripts whole that are.
	Whole bool
}

func (h heads) String() string {
	return fmt.Sprintf("at most %d bytes, line %d, %d system messages, whole %t", h.Bound, h.Line, h.Systems, h.Whole)
}

func genHeads(r *rand.Rand) heads {
	var h heads
	if r.Intn(2) == 0 {
		h.Bound, h.Line = 200+r.Intn(3000), lineKind(r.Intn(int(lineKinds)))
	}
	if r.Intn(3) == 0 {
		h.Systems = 1 + r.Intn(2)
	}
	h.Whole = r.Intn(4) == 0
	return h
}

// fillerText is what the simulated host's own lines say.
const (
	fillerText = "(the host had to begin somewhere)"
	lineText   = "(earlier messages were cut)"
)

// handed is the transcript as the host hands it over: its log, or the newest part of it, behind what it puts in front.
func (d *driver) handed(t *track) *core.Transcript {
	from := d.cutAt(t)
	t.leftOut = from
	list := slices.Concat(d.systems(t), d.line(t, from), t.log[from:])
	return &core.Transcript{Messages: messagesOf(list), Whole: d.plan.Heads.Whole && from == 0}
}

// cutAt returns how many messages the host leaves out: none that the engine was never told of, and not all that it has. Of a list that has nothing in
// common with what was before nobody can tell that it is no new conversation, and where all of that was said twice, behind which of both it goes on.
func (d *driver) cutAt(t *track) int {
	if d.plan.Heads.Bound == 0 || t.parent != nil {
		return 0
	}
	last, news := -1, false
	for i, it := range t.log {
		times := said(t.stored, it) + t.loose[it.wire]
		if news = news || !t.told[it.wire] && said(t.stored, it) == 0; !news && plain(it) && times < 2 {
			last = i
		}
	}
	from, room := len(t.log), d.plan.Heads.Bound
	for from > 0 && (from > last || room >= len(t.log[from-1].wire)) {
		from--
		room -= len(t.log[from].wire)
	}
	if last < 0 {
		return 0
	}
	return from
}

// tell notes that the engine has a transcript.
func (t *track) tell(req core.AssembleRequest) {
	if req.Transcript == nil || req.Call == core.CallLoop {
		return // it may be the engine's own output
	}
	for _, it := range t.log {
		t.told[it.wire] = true
	}
}

// line is what the host puts in front of a list that begins with message from.
func (d *driver) line(t *track, from int) []item {
	kind := d.plan.Heads.Line
	if from == 0 || kind == lineNone {
		return nil
	}
	d.items++
	var it item
	var err error
	switch kind {
	case lineFiller:
		it, err = d.author.say(message.User, fillerText, false)
		it.msg.Type = message.Filler
	case lineNew:
		it, err = d.author.say(message.User, fmt.Sprintf("%s at %d", lineText, d.items), false)
	case lineAnswer:
		it, err = d.author.say(message.Assistant, lineText, false)
	case lineResult:
		var results []item
		id := fmt.Sprintf("cut%d", d.items)
		if results, err = d.author.results(map[string]string{id: lineText}, []string{id}, true); err == nil {
			it = results[0]
		}
	default:
		it, err = d.author.say(message.User, lineText, false)
	}
	if err != nil {
		d.tb.Fatalf("conformance: %v", err)
	}
	t.lines = append(t.lines, it)
	return []item{it}
}

// systems are the system messages in front of a transcript.
func (d *driver) systems(t *track) []item {
	n := d.plan.Heads.Systems
	if n == 0 {
		return nil
	}
	for len(t.system) < n || t.systemTurn != t.turn {
		if len(t.system) == n {
			t.system = t.system[: n-1 : n-1]
		}
		it := d.say(t, op{Size: 5, N: 1}, message.System)
		t.system, t.systemTurn = append(t.system, it), t.turn
		for _, m := range it.marks {
			d.system[m] = true
		}
	}
	return t.system
}

// edited replaces the first message of a transcript that is declared whole.
func (d *driver) edited(t *track, o op) bool {
	if !d.plan.Heads.Whole || o.N%4 != 3 || d.cutAt(t) > 0 || t.parent != nil || len(t.log) < 2 || !plainUser(t.log[0]) || !plain(t.log[1]) {
		return false
	}
	it := d.say(t, op{Size: 3, N: 1}, message.User)
	t.loose[it.wire]++
	t.log = slices.Concat([]item{it}, t.log[1:])
	t.prev, t.compacted = nil, true
	t.turn++
	d.show(t)
	return true
}

func headSystem(p *prompt) string {
	var want, got []string
	for _, it := range p.system {
		want = append(want, it.marks...)
	}
	for i := range p.wire {
		for _, m := range marksIn(strings.Join(p.history(i), "\n")) {
			if !p.d.system[m] {
				if len(got) < len(want) {
					return fmt.Sprintf("message %d shows %s in front of the system messages %q", i, m, want[len(got):])
				}
				continue
			}
			got = append(got, m)
		}
	}
	if !slices.Equal(got, want) {
		return fmt.Sprintf("the system messages %q are shown, the transcript begins with %q", got, want)
	}
	return ""
}

func headFiller(p *prompt) string {
	for i, w := range p.wire {
		if strings.Contains(w.text(), fillerText) {
			return fmt.Sprintf("message %d shows the host's own line", i)
		}
	}
	return ""
}

func headFillerStored(d *driver) string {
	for _, t := range d.tracks {
		if t == nil {
			continue
		}
		for wire := range d.storedWires(t) {
			if strings.Contains(wire, fillerText) {
				return fmt.Sprintf("the host's own line is stored in session %s: %s", t.id, shorten(wire))
			}
		}
	}
	return ""
}

func headKept(d *driver) string {
	r, ok := d.engine.(engine.Recaller)
	if !ok {
		return ""
	}
	for _, t := range d.tracks {
		if t == nil {
			continue
		}
		left := slices.DeleteFunc(slices.Clone(t.log[:min(t.leftOut, len(t.log))]), func(it item) bool { return !plain(it) || it.inherited })
		for i := range min(lookedFor, len(left)) {
			if text := d.lookFor(r, t, left[i*len(left)/min(lookedFor, len(left))]); text != "" {
				return fmt.Sprintf("the newest transcript left out %d messages; %s", t.leftOut, text)
			}
		}
	}
	return ""
}
