package cli

import (
	"context"
	"errors"
	"io"
	"os"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"

	"github.com/contextengine/contextengine/registry"
)

// countdown is a bar on a terminal that says how much time is left, and nothing anywhere else.
type countdown struct {
	w    io.Writer
	what string
	bar  *progressbar.ProgressBar
}

func newCountdown(w io.Writer, what string) *countdown {
	if f, ok := w.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		return &countdown{w: w, what: what}
	}
	return &countdown{}
}

// set draws the bar; the time left follows from how long it took so far.
func (c *countdown) set(done, total int) {
	if c.w == nil {
		return
	}
	if c.bar == nil {
		c.bar = progressbar.NewOptions(total, progressbar.OptionSetWriter(c.w), progressbar.OptionSetDescription(c.what),
			progressbar.OptionShowCount(), progressbar.OptionSetPredictTime(true), progressbar.OptionThrottle(100*time.Millisecond),
			progressbar.OptionFullWidth(), progressbar.OptionClearOnFinish())
	}
	_ = c.bar.Set(done) // a bar that cannot be drawn is no reason to stop
}

func (c *countdown) done() {
	if c.bar != nil {
		_ = c.bar.Finish()
	}
}

// prepared embeds an agent's messages, where the configuration keeps vectors.
func prepared(ctx context.Context, instance *registry.Instance, agent string) error {
	if err := instance.Reembed(ctx, agent, nil); err != nil && !errors.Is(err, errors.ErrUnsupported) {
		return err
	}
	return nil
}
