package summary

import (
	"strconv"

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

// said is what the model, or a digest, may say in a text of at most limit tokens: the header and what is kept word for word have the rest.
func (w *work) said(limit int) int {
	const period = ", " + timeLayout + " to " + timeLayout + " UTC"
	room := limit - w.c.Count(w.header(kindFallback, 99999, period, limit)+"\n") - 1
	return max(int(float64(room)*(1-linesShare-wordsShare)), limit/4)
}

// period says when the entries of u were made, for a header.
func (w *work) period(u compacting.Unit) string {
	first, last := compacting.Period(w.c.Entries[u.From:u.To])
	if first.IsZero() {
		return ""
	}
	return ", " + first.Format(timeLayout) + " to " + last.Format(timeLayout) + " UTC"
}
