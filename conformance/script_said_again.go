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

// saidAgainChecks look at hosts that drop what was erased.
var saidAgainChecks = []Check{
	{ID: "contract.said-again", Promise: 1, Suite: SuiteEngine, script: scriptSaidAgain,
		Rule: "what is said in the words of something that was erased, and that the host has dropped, is a new message where the host keeps its names: it is stored and shown, whether it was erased while its turn ran, whatever list the host shows, and however often it happens"},
}

// scriptSaidAgain plays hosts that keep the names that they give, or the ids of calls alone. What was erased they drop, and say the same again.
func scriptSaidAgain(s *script) string {
	if _, ok := s.engine.(engine.Forgetter); !ok {
		return ""
	}
	rng := rand.New(rand.NewSource(s.seed)) //nolint:gosec // what is drawn is no secret
	long := rng.Intn(3) == 0
	for n := range 8 {
		s.id = recallSession(fmt.Sprintf("said again %d", n))
		h := turnHost{script: s, rng: rng, names: []string{"id", "", "time", "key"}[n%4], list: []message.Message{}}
		newest, times := 0, 2+rng.Intn(3)
		if rng.Intn(2) == 0 {
			newest = 4 + rng.Intn(5)
		}
		if n == 0 && long {
			times = 36 // more than anybody keeps in mind
		}
		h.does("messages named by %q, the newest %d shown", h.names, newest)
		for range times {
			if text := h.saysAgain(newest); text != "" {
				return fmt.Sprintf("%s: %s", strings.Join(h.did, "; "), text)
			}
		}
	}
	return ""
}

// saysAgain plays a turn of which something is erased, and said again: in it, while it runs, or in the next one.
func (h *turnHost) saysAgain(newest int) string {
	h.turns++
	runs := h.rng.Intn(2) == 0
	from, to := 1, 3 // the call and its result
	if h.names != "" {
		part := [][2]int{{1, 3}, {3, 4}, {1, 4}}[h.rng.Intn(3)]
		from, to = part[0], part[1]
	}
	turn, alike := h.looks(), h.names != "" && h.turns > 1 && h.rng.Intn(2) == 0
	if alike {
		turn[0].Parts = message.New(message.User, "go on").Parts
	}
	before := len(h.list)
	h.does("turn %d", h.turns)
	if text := h.seen(newest, turn[:1], core.CallPrompt); text != "" {
		return text
	}
	if runs {
		if text := h.seen(newest, turn[:to], core.CallLoop); text != "" {
			return text
		}
	} else if text := h.accept(h.rng.Intn(2) == 0, turn); text != "" {
		return text
	}
	gone := copiedMessages(turn[from:to])
	if text := h.erasesAll(gone); text != "" {
		return text
	}
	without := 1
	if runs {
		h.does("its messages %d to %d are erased while it runs, dropped and said again", from+1, to)
		without = from
		turn = slices.Concat(turn[:from], h.anewly(gone), turn[to:])
	} else {
		h.does("its messages %d to %d are erased, dropped and said again", from+1, to)
		h.list = slices.Delete(h.list, before+from, before+to)
		turn = slices.Concat([]message.Message{h.says(message.User, "asks again")}, h.anewly(gone))
	}
	if h.rng.Intn(2) == 0 {
		h.does("a list without them")
		if text := h.seen(newest, turn[:without], core.CallLoop); text != "" {
			return text
		}
	}
	if h.rng.Intn(2) == 0 {
		h.does("shown as they are said")
		if text := h.seen(newest, turn, core.CallLoop); text != "" {
			return text
		}
	}
	if text := h.accept(h.rng.Intn(2) == 0, turn); text != "" {
		return text
	}
	return h.holdsAll(newest, turn)
}

// anewly returns messages that say the same under other names, with other ids of calls.
func (h *turnHost) anewly(said []message.Message) []message.Message {
	h.n++
	said = copiedMessages(said)
	for i := range said {
		h.named(&said[i])
		for p := range said[i].Parts {
			if part := &said[i].Parts[p]; part.CallID != "" {
				part.CallID = fmt.Sprintf("call-%d", h.n-i)
			}
		}
	}
	return said
}

// seen asks for the window with the newest messages of the transcript, or with all of it.
func (h *turnHost) seen(newest int, shown []message.Message, call core.Call) string {
	list := h.list
	if n := len(list) + len(shown); newest > 0 && n > newest {
		h.list = list[min(n-newest, len(list)):]
	}
	prompt := ""
	if shown == nil {
		prompt = "and now"
	}
	text := h.asks(shown, prompt, call)
	h.list = list
	return text
}

// erasesAll erases messages by their ids in the store.
func (h *turnHost) erasesAll(said []message.Message) string {
	req := engine.ForgetRequest{Scope: h.id.Scope()}
	for _, m := range said {
		held := h.held(h.id)
		at := slices.IndexFunc(held, func(e core.Entry) bool { return e.Type == core.TypeMessage && sayingOf(e.Message) == sayingOf(m) })
		if at < 0 {
			return fmt.Sprintf("what was shown or accepted is not stored: %q", sayingOf(m))
		}
		req.Entries = append(req.Entries, held[at].ID)
	}
	if _, err := h.forgets(req); err != nil {
		return fmt.Sprintf("forget: error %v", err)
	}
	if h.rng.Intn(3) == 0 && h.restarts() {
		h.does("a restart")
		h.reopen(true)
	}
	return ""
}

// holdsAll looks whether all that the transcript says is stored as often as it says it, and the newest turn shown.
func (h *turnHost) holdsAll(newest int, turn []message.Message) string {
	if text := h.seen(newest, nil, core.CallPrompt); text != "" {
		return text
	}
	stored, said := h.counts(), map[string]int{}
	for _, m := range h.list {
		said[sayingOf(m)]++
	}
	for _, m := range h.list {
		if is := sayingOf(m); stored[is] != said[is] {
			return fmt.Sprintf("what the host says %d times is stored %d times: %q", said[is], stored[is], is)
		}
	}
	for _, m := range turn {
		if !slices.ContainsFunc(h.got.Messages, func(is message.Message) bool { return strings.Contains(is.Text(), m.Text()) }) {
			return fmt.Sprintf("what was accepted last is not shown: %q", sayingOf(m))
		}
	}
	return ""
}
