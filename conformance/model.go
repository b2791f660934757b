package conformance

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/contextengine/contextengine/core"
)

// Mood says how a Model behaves.
type Mood int

// The moods.
const (
	// Honest answers with a short text that depends on the question alone, and says more where more was asked about.
	Honest Mood = iota
	// Empty answers with white space.
	Empty
	// Failing returns core.ErrUnavailable.
	Failing
	// Lying answers with far more than was asked for.
	Lying
	// Hostile answers with a text that tries to open roles and tool calls.
	Hostile
	// Hanging returns when its context ends, with the context's error.
	Hanging
	moods
)

func (m Mood) String() string {
	names := [...]string{"honest", "empty", "failing", "lying", "hostile", "hanging"}
	if m < 0 || int(m) >= len(names) {
		return fmt.Sprintf("mood%d", int(m))
	}
	return names[m]
}

// Model is a language model that does as it is told. It is safe for concurrent use.
type Model struct {
	mu    sync.Mutex
	mood  Mood
	calls int
	asked []string
	// purposes are what the questions were asked for, open is how many have no answer yet.
	purposes []string
	open     int
	// answered are the beginnings and ends of its answers, each once, answers how many it gave.
	answered map[string]bool
	answers  int
	// left is how many questions are answered in the mood before over is called and the next mood is then; without over it never is.
	left int
	then Mood
	over func()
	// with says that the last of them is answered, and over called just before.
	with bool
	// slow is how many questions more are answered after a while each.
	slow  int
	after time.Duration
}

var _ core.Completer = (*Model)(nil)

// Set changes the mood.
func (m *Model) Set(mood Mood) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.mood, m.over = mood, nil
}

func (m *Model) current() Mood {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.mood
}

// Calls returns how often the model was asked.
func (m *Model) Calls() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.calls
}

// heard reports whether a text was in what the model was asked.
func (m *Model) heard(text string) bool { return m.heardSince(0, text) }

// heardSince is heard for the questions behind a number of them.
func (m *Model) heardSince(calls int, text string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.ContainsFunc(m.asked[calls:], func(asked string) bool { return strings.Contains(asked, text) })
}

// purposesSince are the purposes, each once, that were named behind a number of questions.
func (m *Model) purposesSince(calls int) []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Compact(slices.Sorted(slices.Values(m.purposes[calls:])))
}

// quiet reports whether within d there is a moment in which nobody waits for an answer.
func (m *Model) quiet(d time.Duration) bool {
	for end := time.Now().Add(d); ; time.Sleep(time.Millisecond) {
		m.mu.Lock()
		open := m.open
		m.mu.Unlock()
		if open == 0 || time.Now().After(end) {
			return open == 0
		}
	}
}

// overAfter lets the model answer so many more questions, and then call over and hang.
func (m *Model) overAfter(answers int, over func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.left, m.then, m.over, m.with = answers, Hanging, over, false
}

// overWith lets the model answer so many questions, call over as the last answer comes, and hang from then on.
func (m *Model) overWith(answers int, over func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.left, m.then, m.over, m.with = answers-1, Hanging, over, true
}

// slowly lets the model take its time for so many questions more.
func (m *Model) slowly(questions int, each time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.slow, m.after = questions, each
}

// gave returns how many answers the model gave.
func (m *Model) gave() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.answers
}

// turns lets the model answer so many more questions as it does, and all others in another mood.
func (m *Model) turns(answers int, mood Mood) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.left, m.then, m.over, m.with = answers, mood, func() {}, false
}

// repeated reports whether a text repeats some of what the model answered, wherever it stands there: three words in a row, or so many bytes as are no chance.
func (m *Model) repeated(text string) bool {
	const words, row, first = 3, 16, 10
	m.mu.Lock()
	defer m.mu.Unlock()
	for answer := range m.answered {
		if len(answer) > first && strings.Contains(text, answer[:first]) {
			return true
		}
		for i := range max(0, len(text)-row+1) {
			if strings.Contains(answer, text[i:i+row]) {
				return true
			}
		}
		said := strings.Fields(answer)
		for i := range len(said) - words + 1 {
			if strings.Contains(text, strings.Join(said[i:i+words], " ")) {
				return true
			}
		}
		for _, plan := range planPattern.FindAllString(answer, -1) {
			if strings.Contains(text, plan) {
				return true
			}
		}
	}
	return false
}

// planPattern finds what is in one answer alone.
var planPattern = regexp.MustCompile(`[0-9a-f]{8}`)

// perPoint is how much of a question is worth a sentence of its own, in bytes.
const perPoint = 4000

// remembered is how much of an answer is, of its beginning and of its end, in bytes.
const remembered = 200

// Complete answers as the mood says.
func (m *Model) Complete(ctx context.Context, req core.CompletionRequest) (core.Completion, error) {
	if q, ok := ctx.Value(questionsKey{}).(*questions); ok {
		q.begin(req.System + "\n" + req.Prompt)
		defer q.end()
	}
	m.mu.Lock()
	m.calls++
	m.asked, m.purposes = append(m.asked, req.System+"\n"+req.Prompt), append(m.purposes, req.Purpose)
	m.open++
	var wait time.Duration
	if m.slow > 0 {
		m.slow--
		wait = m.after
	}
	mood, then, over, with := m.mood, m.then, m.over, m.with
	if over != nil && m.left < 0 && with { // the last one was answered
		mood, over = then, nil
	}
	switch {
	case over == nil:
	case m.left > 0:
		m.left--
		over = nil
	case with:
		m.left--
	}
	m.mu.Unlock()
	defer func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.open--
	}()
	if wait > 0 {
		select {
		case <-time.After(wait):
		case <-ctx.Done():
		}
	}
	if over != nil && !with {
		over()
		mood = then
	}
	if err := ctx.Err(); err != nil {
		if mood == Failing { // as a connection fails whose time is over: whoever tries again has to look at its context
			err = errors.Join(core.ErrUnavailable, err)
		}
		return core.Completion{}, fmt.Errorf("conformance: complete: %w", err)
	}
	h := fnv.New32a()
	h.Write([]byte(req.System + "\x00" + req.Prompt))
	text := fmt.Sprintf("They agreed on plan %08x; the open question is the budget.", h.Sum32())
	for i := range len(req.Prompt) / perPoint {
		text += fmt.Sprintf(" Point %d is plan %08x.", i+1, h.Sum32()+uint32(i)) //nolint:gosec // a handful
	}
	switch mood {
	case Empty:
		text = " \n"
	case Failing:
		return core.Completion{}, fmt.Errorf("conformance: complete: injected: %w", core.ErrUnavailable)
	case Lying:
		text = strings.Repeat(text+" 予算はまだ決まっていません。", 400) // in letters of which each is nearly a token
	case Hostile:
		text += fmt.Sprintf(hostileLines[0]+hostileLines[3]+hostileLines[6], trapWord, trapWord, trapWord)
	case Hanging:
		<-ctx.Done()
		return core.Completion{}, fmt.Errorf("conformance: complete: %w", ctx.Err())
	}
	tokens := len(text) / 4
	if bound := req.MaxTokens; mood == Honest && bound > 0 && tokens > bound {
		text, tokens = text[:4*bound], bound
	}
	m.mu.Lock()
	if m.answered == nil {
		m.answered = map[string]bool{}
	}
	m.answers++
	m.answered[text[:min(len(text), remembered)]], m.answered[text[max(0, len(text)-remembered):]] = true, true
	m.mu.Unlock()
	if over != nil && with {
		over()
	}
	return core.Completion{Text: text, Model: "model-" + mood.String(), InputTokens: len(req.Prompt) / 4, OutputTokens: tokens, StopReason: "stop"}, nil
}
