package conformance

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/contextengine/contextengine/core"
)

// hangingChecks look at what a compactor does while a model hangs.
func hangingChecks() []Check {
	return []Check{
		{ID: "patch.hangs", Promise: 4, Suite: SuiteCompactor, compactor: patchHangs, Needs: []Need{NeedOwner}, once: true,
			Rule: "a model that hangs takes a compactor's time and not its progress: given a second or two, it returns a fallback"},
		{ID: "patch.quotes", Promise: 9, Suite: SuiteCompactor, compactor: patchQuotes,
			Rule: "neither the error of a compaction whose time is over nor what it says of the model holds what a message says, nor does the purpose that a model is asked for"},
	}
}

// hangingTimes are how long a compaction may take, one after the other: the second is for a machine that stood still during the first.
var hangingTimes = []time.Duration{500 * time.Millisecond, 1800 * time.Millisecond}

// patchHangs gives a hanging model time enough for a compactor to keep some of it for itself.
func patchHangs(r *compactorRun) string {
	r.pieces = make([]piece, 24)
	for i := range r.pieces {
		r.pieces[i] = piece{Calls: i % 2, Size: 120}
	}
	r.model.Set(Hanging)
	text := ""
	for _, d := range hangingTimes {
		r.watch.patient(d)
		c := r.task(true)
		ctx, cancel := context.WithTimeout(r.ctx(), d)
		p, err := r.compactor.Compact(ctx, c)
		over := ctx.Err() != nil
		cancel()
		if err != nil && !over {
			return fmt.Sprintf("Compact while a model hangs: error %v before its time was over", err)
		}
		if text = r.progress(c, r.all(p)); text == "" {
			return ""
		}
		text = fmt.Sprintf("Compact while a model hangs, %s long: %s, error %v", d, text, err)
		if !over {
			return text
		}
	}
	return text
}

// patchQuotes ends a compaction's time beforehand, and while the first and the second question are asked.
func patchQuotes(r *compactorRun) string {
	defer r.model.overAfter(0, nil)
	for answers := range 3 {
		c := r.rich(true)
		ctx, cancel := cancellable(r.ctx())
		c.Host = &lateHost{Host: r.host, asked: cancel}
		if r.compactor.OwnsCompaction() {
			c.Host = r.host
		}
		if answers == 0 {
			cancel()
		}
		r.model.overAfter(answers-1, cancel)
		p, err := r.compactor.Compact(ctx, c)
		cancel()
		if err != nil && !errors.Is(err, context.Canceled) {
			return fmt.Sprintf("Compact that is cut short: error %.200v, want none or context.Canceled", err)
		}
		told := slices.Clone(p.Warnings)
		if err != nil {
			told = append(told, err.Error())
		}
		for _, says := range told {
			if quotesTask(c, says) {
				return fmt.Sprintf("Compact that is cut short says what a message says: %.200q", says)
			}
		}
	}
	return ""
}

// quotesTask reports whether an error, a warning or a purpose repeats some of a task: a mark, the wishes, or a row of letters of an entry or an earlier summary.
func quotesTask(c core.Compaction, says string) bool {
	const row = 24
	if len(marksIn(says)) > 0 || c.Instructions != "" && strings.Contains(says, c.Instructions) {
		return true
	}
	if len(says) < row {
		return false
	}
	var texts strings.Builder
	for _, e := range c.Entries {
		texts.WriteString(e.Message.Text() + "\n")
	}
	for _, s := range c.Summaries {
		texts.WriteString(s.Text + "\n")
	}
	all := texts.String()
	for i := range len(says) - row + 1 {
		if strings.Contains(all, says[i:i+row]) {
			return true
		}
	}
	return false
}
