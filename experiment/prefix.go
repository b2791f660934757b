package experiment

// stripped returns the messages of p without its recall block and, if history is set, without its newest turn.
func (p *prompt) stripped(history bool) []sent {
	out := make([]sent, 0, len(p.msgs))
	for i, m := range p.msgs {
		if history && i >= p.newest {
			break
		}
		if i >= p.recall[0] && i < p.recall[1] {
			continue
		}
		out = append(out, m)
	}
	return out
}

// common returns how many messages a and b have in common at the beginning, and their bytes.
func common(a, b []sent) (n, bytes int) {
	for n < len(a) && n < len(b) && a[n].sum == b[n].sum {
		bytes += a[n].size
		n++
	}
	return n, bytes
}

func sizeOf(msgs []sent) int {
	n := 0
	for _, m := range msgs {
		n += m.size
	}
	return n
}

// prefix verifies that what was sent is still in front, byte for byte.
func (v *verifier) prefix(prev, cur *prompt, loop bool) {
	if prev.addition != cur.addition {
		v.fail(RulePrefix, "the addition to the system prompt changed")
	}
	if loop {
		if n, _ := common(prev.msgs, cur.msgs); n < len(prev.msgs) {
			v.fail(RuleLoop, "message %d of the call before is not there any more", n)
		}
		return
	}
	if n, _, of := kept(prev, cur); n < len(of) {
		v.fail(RulePrefix, "message %d of %d of the call before is not there any more", n, len(of))
	}
}

// kept returns how many messages of the earlier prompt's history are still in front, and their bytes. The recall block need not be among them; it is where it
// stands in the midst of a turn whose beginning the host took away, and stays there.
func kept(prev, cur *prompt) (n, bytes int, of []sent) {
	of = prev.stripped(true)
	n, bytes = common(of, cur.stripped(false))
	if whole := prev.msgs[:min(prev.newest, len(prev.msgs))]; n < len(of) {
		if all, size := common(whole, cur.msgs); all == len(whole) {
			return all, size, whole
		}
	}
	return n, bytes, of
}

// overlap is what two prompts in a row have in common.
type overlap struct {
	// kept is the share of the earlier prompt's history (recall block and newest turn left out) that is still in front, raw that of
	// the whole earlier prompt.
	kept, raw float64
	// cached is the number of bytes of the later prompt that a prompt cache has.
	cached int
}

func overlapOf(prev, cur *prompt) overlap {
	o := overlap{kept: 1, raw: 1}
	if prev.addition != cur.addition {
		return overlap{}
	}
	_, still, old := kept(prev, cur)
	if size := sizeOf(old); size > 0 {
		o.kept = float64(still) / float64(size)
	}
	_, n := common(prev.msgs, cur.msgs)
	o.cached = n + len(cur.addition)
	if prev.size > 0 {
		o.raw = float64(o.cached) / float64(prev.size)
	}
	return o
}
