package summary

import (
	"strconv"
	"strings"

	"github.com/contextengine/contextengine/internal/compacting"
)

// header says what a text is: the window shows summaries as messages of their own. Long headers are for long texts only.
func (w *work) header(kind string, covers int, period string, limit int) string {
	what := "Summary of "
	if kind == kindFallback {
		what = "Digest, made without a model, of "
	}
	messages := strconv.Itoa(covers) + " earlier messages"
	switch {
	case limit >= 2*smallText:
		return "[" + what + messages + period + "]"
	case limit >= shortText:
		return "[" + what + messages + "]"
	}
	return "[" + messages + "]"
}

// bodyLimit is what a text of at most limit tokens has left behind its header.
func (w *work) bodyLimit(limit int) int {
	const period = ", " + timeLayout + " to " + timeLayout + " UTC"
	longest := w.header(kindFallback, 99999, period, limit)
	return max(limit-w.c.Count(longest+"\n")-1, limit/4)
}

// headed puts the header in front of text, within limit tokens and never empty.
func (w *work) headed(header, text string, limit int) string {
	out := header
	if room := limit - w.c.Count(header+"\n") - 1; room > 0 && strings.TrimSpace(text) != "" {
		out += "\n" + compacting.Clip(text, room, w.c.Count)
	}
	if out = strings.TrimRight(compacting.Head(out, limit, w.c.Count), "\n"); out == "" {
		return "…"
	}
	return out
}

// period says when the entries of u were made, for a header.
func (w *work) period(u compacting.Unit) string {
	first, last := compacting.Period(w.c.Entries[u.From:u.To])
	if first.IsZero() {
		return ""
	}
	return ", " + first.Format(timeLayout) + " to " + last.Format(timeLayout) + " UTC"
}
