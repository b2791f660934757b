// Package sharedtest lets several engines, in one process or in many, work on one session at the same time, and then looks whether every message
// that was acknowledged is there once.
//
// Together runs workers as goroutines, Processes in processes of their own that are killed now and then. Check comes last, when nobody works any more.
package sharedtest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/engine"
	"github.com/contextengine/contextengine/core/message"
)

// Budget is the token budget of the workers' prompts; a token is a word.
const Budget = 1500

// Worker says numbered messages in a session, and shows, compacts and forgets now and then. Every call has to succeed.
type Worker struct {
	Store   core.Store
	Session core.SessionID
	// Name tells its messages from those of other workers: letters only.
	Name string
	// From is the number of the first message, Messages how many there are.
	From, Messages int
	// Keyed messages have a key, so that one that may have been stored can be said again.
	Keyed bool
	// Again opens the store once more and closes it, as others in the same process may; nil does nothing.
	Again func() error
	// Log gets a line for everything that was acknowledged, "said NAME-3." and "forgot NAME-1.", and before something is forgotten "forgetting NAME-1.".
	Log io.Writer
}

// Engine returns an engine with a compactor that needs no model.
func Engine(store core.Store) (*engine.Engine, error) {
	cfg := engine.DefaultConfig()
	cfg.RecentMessages, cfg.Failure = 4, engine.FailStrict
	return engine.New(engine.Parts{Store: store, Compactor: noter{}, Counter: func(text string) int { return len(strings.Fields(text)) }}, cfg)
}

// noter replaces what may go by a line of text, which names the newest messages it stands for. It takes its time, as a model does.
type noter struct{}

// mention begins the words that name messages in a summary, and most bounds how many of them there are.
const (
	mention = "said:"
	most    = 160
)

func (noter) OwnsCompaction() bool { return true }

func (noter) Compact(_ context.Context, c core.Compaction) (core.Patch, error) {
	n := len(c.Entries) - c.Protected
	if n < 1 {
		return core.Patch{Reason: core.ReasonAlreadyCompacted}, nil
	}
	r := core.Replacement{Kind: "summary"}
	var names []string
	for _, s := range c.Summaries {
		r.Summaries = append(r.Summaries, s.ID)
		for f := range strings.FieldsSeq(s.Text) {
			if strings.HasPrefix(f, mention) {
				names = append(names, f)
			}
		}
	}
	for _, e := range c.Entries[:n] {
		r.Entries = append(r.Entries, e.ID)
		if e.Type == core.TypeMessage {
			names = append(names, mention+strings.TrimSuffix(word(e.Text()), "."))
		}
	}
	r.Text = "they talked " + strings.Join(names[max(len(names)-most, 0):], " ")
	time.Sleep(5 * time.Millisecond)
	return core.Patch{Replace: []core.Replacement{r}}, nil
}

// Text is what message n of a worker says.
func Text(name string, n int) string {
	return fmt.Sprintf("%s-%d. %s", name, n, strings.Repeat("word ", 20))
}

// word returns the first word of a message, which tells which one it is.
func word(text string) string {
	first, _, _ := strings.Cut(text, " ")
	return first
}

// Run says the messages.
func (w Worker) Run(ctx context.Context) error {
	v, err := w.Begin()
	if err != nil {
		return err
	}
	for n := w.From; n < w.From+w.Messages; n++ {
		if err := v.Say(ctx, n); err != nil {
			return err
		}
	}
	return nil
}

// Voice is a worker with an engine of its own, which says one message after the other.
type Voice struct {
	Worker
	engine *engine.Engine
	ids    map[int]string
}

// Begin returns the worker's voice.
func (w Worker) Begin() (*Voice, error) {
	e, err := Engine(w.Store)
	return &Voice{Worker: w, engine: e, ids: map[int]string{}}, err
}

// Say says message n, and does what comes between two messages.
func (v *Voice) Say(ctx context.Context, n int) error {
	res, err := v.engine.Ingest(ctx, core.IngestRequest{Session: v.Session, Message: v.message(n)})
	if err != nil {
		return fmt.Errorf("%s: message %d: %w", v.Name, n, err)
	}
	v.ids[n] = res.IDs[0]
	v.say("said %s-%d.", v.Name, n)
	if err := v.rest(ctx, v.engine, n, v.ids); err != nil {
		return fmt.Errorf("%s: after message %d: %w", v.Name, n, err)
	}
	return nil
}

// Repeat says message n of another voice, which has a key, once more: as a host does that got no answer from the other's process.
func (v *Voice) Repeat(ctx context.Context, of *Voice, n int) error {
	if _, err := v.engine.Ingest(ctx, core.IngestRequest{Session: v.Session, Message: of.message(n)}); err != nil {
		return fmt.Errorf("%s: message %d of %s again: %w", v.Name, n, of.Name, err)
	}
	return nil
}

// message returns message n.
func (w Worker) message(n int) message.Message {
	role := message.User
	if n%2 == 1 {
		role = message.Assistant
	}
	m := message.New(role, Text(w.Name, n))
	if w.Keyed {
		m.Key = fmt.Sprintf("%s-%d", w.Name, n)
	}
	return m
}

// rest does what comes between two messages.
func (w Worker) rest(ctx context.Context, e *engine.Engine, n int, ids map[int]string) error {
	if n%7 == 3 {
		if err := w.assemble(ctx, e); err != nil {
			return err
		}
	}
	if n%25 == 5 && w.Again != nil {
		if err := w.Again(); err != nil {
			return fmt.Errorf("the store once more: %w", err)
		}
	}
	if n%40 == 21 {
		res, err := e.Compact(ctx, core.CompactRequest{Session: w.Session, Budget: Budget, Force: n%80 == 21})
		if err != nil || !res.OK {
			return fmt.Errorf("compact: %+v: %w", res, err)
		}
	}
	if n%10 != 7 {
		return nil
	}
	gone := n - 3
	if n%20 == 7 {
		gone = n - 29 // it stands in a summary by now
	}
	if ids[gone] == "" {
		return nil
	}
	w.say("forgetting %s-%d.", w.Name, gone)
	if _, err := e.Forget(ctx, engine.ForgetRequest{Scope: w.Session.Scope(), Entries: []string{ids[gone]}}); err != nil {
		return fmt.Errorf("forget: %w", err)
	}
	w.say("forgot %s-%d.", w.Name, gone)
	return nil
}

// assemble shows the window, and nothing in it twice.
func (w Worker) assemble(ctx context.Context, e *engine.Engine) error {
	res, err := e.Assemble(ctx, core.AssembleRequest{Session: w.Session, Budget: Budget, PromptMode: core.PromptNone})
	if err != nil {
		return fmt.Errorf("assemble: %w", err)
	}
	var all strings.Builder
	for i := range res.Messages {
		all.WriteString(res.Messages[i].Text() + "\n")
	}
	seen := map[string]bool{}
	for f := range strings.FieldsSeq(all.String()) {
		if !strings.HasSuffix(f, ".") || !strings.Contains(f, "-") {
			continue
		}
		if seen[f] {
			return fmt.Errorf("assemble: %s is shown twice", f)
		}
		seen[f] = true
	}
	if len(seen) == 0 {
		return errors.New("assemble: no message is shown")
	}
	return nil
}

func (w Worker) say(format string, args ...any) {
	if w.Log != nil {
		_, _ = fmt.Fprintf(w.Log, format+"\n", args...)
	}
}

// Together runs workers at the same time.
func Together(ctx context.Context, workers ...Worker) error {
	errs := make([]error, len(workers))
	var wg sync.WaitGroup
	for i, w := range workers {
		wg.Go(func() { errs[i] = w.Run(ctx) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

// Log is a Worker.Log that several may share.
type Log struct {
	mu   sync.Mutex
	text strings.Builder
}

// Write implements io.Writer.
func (l *Log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

// String returns what was written so far.
func (l *Log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// Check fails the test with everything that Examine finds.
func Check(tb testing.TB, store core.Store, id core.SessionID, log string) {
	tb.Helper()
	for _, text := range Examine(tb.Context(), store, id, log) {
		tb.Error(text)
	}
	tb.Logf("%d messages were acknowledged, %d forgotten", strings.Count(log, "said "), strings.Count(log, "forgot "))
}

// Examine compares a session with what its workers logged: each message that was acknowledged is stored once, unless it was forgotten, positions exist once,
// and the view names every entry that is there, each once. What was never acknowledged may be there, once.
func Examine(ctx context.Context, store core.Store, id core.SessionID, log string) (found []string) {
	report := func(format string, args ...any) { found = append(found, fmt.Sprintf(format, args...)) }
	said, forgot, forgetting := map[string]bool{}, map[string]bool{}, map[string]bool{}
	for line := range strings.Lines(log) {
		what, which, ok := strings.Cut(strings.TrimSpace(line), " ")
		switch {
		case ok && what == "said":
			said[which] = true
		case ok && what == "forgot":
			forgot[which] = true
		case ok && what == "forgetting":
			forgetting[which] = true
		}
	}
	e, err := Engine(store)
	if err != nil {
		return append(found, err.Error())
	}
	if _, err := e.Assemble(ctx, core.AssembleRequest{Session: id, Budget: Budget, PromptMode: core.PromptNone}); err != nil {
		report("%v", err)
	}
	if _, err := e.Compact(ctx, core.CompactRequest{Session: id, Budget: Budget, Force: true}); err != nil {
		report("%v", err)
	}
	there, at := map[string]int{}, map[int64]string{}
	var places []int64
	for e, err := range core.All(ctx, store, id.Scope(), false) {
		if err != nil {
			return append(found, err.Error())
		}
		if other, taken := at[e.Seq]; taken {
			report("entries %q and %q have position %d", other, e.ID, e.Seq)
		}
		at[e.Seq] = e.ID
		if e.Type != core.TypeSummary && !strings.HasPrefix(e.Key, "c:") { // what is left of a summary
			places = append(places, e.Seq)
		}
		switch e.Type {
		case core.TypeMessage:
			there[word(e.Text())]++
		case core.TypeSummary:
			for f := range strings.FieldsSeq(e.Text()) {
				if which, ok := strings.CutPrefix(f, mention); ok && forgot[which+"."] {
					report("%s was forgotten and is in summary %s", which, e.ID)
				}
			}
		}
	}
	for which := range said {
		switch n := there[which]; {
		case n == 0 && !forgetting[which]:
			report("%s was acknowledged and is lost", which)
		case n > 0 && forgot[which]:
			report("%s was forgotten and is there", which)
		}
	}
	for which, n := range there {
		if n > 1 {
			report("%s is stored %d times", which, n)
		}
	}
	views, ok := core.As[core.ViewStore](store)
	if !ok {
		return found
	}
	v, err := views.LoadView(ctx, id)
	if err != nil {
		return append(found, err.Error())
	}
	var named []int64
	for _, sp := range v.Path {
		for seq := sp.From; seq < sp.To; seq++ {
			named = append(named, seq)
		}
	}
	slices.Sort(named)
	if !slices.Equal(named, places) {
		report("the view names %d positions, %d entries are there, and they are not the same", len(named), len(places))
	}
	return found
}

// Same compares the entries of a session in two stores: their ids, places and words.
func Same(tb testing.TB, one, other core.Store, id core.SessionID) {
	tb.Helper()
	var lists [2][]string
	for i, s := range []core.Store{one, other} {
		for e, err := range core.All(tb.Context(), s, id.Scope(), false) {
			if err != nil {
				tb.Fatal(err)
			}
			lists[i] = append(lists[i], fmt.Sprint(e.Seq, " ", e.ID, " ", e.Type, " ", e.Text()))
		}
	}
	if !slices.Equal(lists[0], lists[1]) {
		tb.Errorf("one store has %d entries of the session, the other %d, and they are not the same", len(lists[0]), len(lists[1]))
	}
}
