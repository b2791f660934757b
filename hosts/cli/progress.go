package cli

import (
	"io"
	"time"

	"github.com/schollz/progressbar/v3"

	"github.com/contextengine/contextengine/internal/waiting"
)

// progress is a bar on a terminal, with the time left, and nothing anywhere else. Until there is something to count it says what goes on.
type progress struct {
	w     io.Writer
	what  string // what is counted
	begun func() // ends the time before the first count
	bar   *progressbar.ProgressBar
}

func newProgress(w io.Writer, what string) *progress {
	return &progress{w: w, what: what, begun: waiting.Say(w, "starting")}
}

// set draws the bar; a total of -1 is one that nobody knows.
func (p *progress) set(done, total int) {
	if !waiting.Terminal(p.w) {
		return
	}
	p.begun()
	if p.bar == nil {
		p.bar = progressbar.NewOptions(total, progressbar.OptionSetWriter(p.w), progressbar.OptionSetDescription(p.what), progressbar.OptionShowCount(),
			progressbar.OptionSetPredictTime(total > 0), progressbar.OptionThrottle(100*time.Millisecond), progressbar.OptionFullWidth(), progressbar.OptionClearOnFinish())
	}
	_ = p.bar.Set(done) // a bar that cannot be drawn is no reason to stop
}

// done takes the bar away. Whatever ends the work, it has to be called before anything is printed.
func (p *progress) done() {
	p.begun()
	if p.bar != nil {
		_ = p.bar.Finish()
		p.bar = nil
	}
}

// saying runs what takes a while and cannot be counted.
func (a *app) saying(what string, do func() error) error {
	defer waiting.Say(a.Stderr, what)()
	return do()
}
