package conformance

import (
	"fmt"
	"math/rand"
	"slices"
	"strings"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/message"
)

// courseScriptChecks look at hosts whose transcript does not only grow.
var courseScriptChecks = []Check{
	{ID: "contract.course", Promise: 5, Suite: SuiteEngine, script: scriptCourse,
		Rule: "a host that hands over all it has is shown just that, whatever became of its transcript: cut, and as it was again, with messages changed, deleted, moved, repeated or put in between"},
}

// courses and courseSteps are how many conversations are played, and how many transcripts each has.
const courses, courseSteps = 6, 9

func scriptCourse(s *script) string {
	rng := rand.New(rand.NewSource(s.seed)) //nolint:gosec // what is drawn is no secret
	for n := range courses {
		s.id = recallSession(fmt.Sprintf("course %d", n))
		c := course{script: s, rng: rng, named: n%2 == 0}
		for step := range courseSteps {
			c.turn()
			if rng.Intn(6) == 0 && s.restarts() {
				s.reopen(true)
			}
			for range 1 + rng.Intn(2) {
				if text := c.shown(); text != "" {
					return fmt.Sprintf("transcript %d (%s), the host has all of it: %s", step+1, strings.Join(c.did, ", "), text)
				}
			}
		}
	}
	return ""
}

// course is a host's transcript, what it was before, and what became of it.
type course struct {
	*script
	rng *rand.Rand
	// named says that the host gives messages ids.
	named  bool
	list   []message.Message
	before [][]message.Message
	did    []string
}

// says returns a new message.
func (c *course) says() message.Message {
	m := c.message([]message.Role{message.User, message.Assistant}[c.rng.Intn(2)], "in its course")
	if !c.named {
		m.ID, m.Key = "", ""
	}
	return m
}

// turn changes the transcript, and nearly always says something after it. The first message stays: one that is missing there may only not be shown.
func (c *course) turn() {
	c.before = append(c.before, c.list)
	list := slices.Clone(c.list)
	at := 1
	if len(list) > 2 {
		at += c.rng.Intn(len(list) - 1)
	}
	what := "grown"
	switch kind := c.rng.Intn(10); {
	case len(list) < 2:
		for range 2 + c.rng.Intn(6) {
			list = append(list, c.says())
		}
	case kind == 0:
		what, list = fmt.Sprintf("cut to %d", at), list[:at]
	case kind <= 2:
		back := 1 + c.rng.Intn(len(c.before)-1)
		what, list = fmt.Sprintf("as %d was", back), slices.Clone(c.before[back])
	case kind == 3:
		what, list = fmt.Sprintf("without message %d", at), slices.Delete(list, at, at+1)
	case kind == 4:
		m, to := list[at], 1+c.rng.Intn(len(list)-1)
		what, list = fmt.Sprintf("message %d moved to %d", at, to), slices.Insert(slices.Delete(list, at, at+1), to, m)
	case kind == 5:
		what, list[at] = fmt.Sprintf("message %d replaced", at), c.says()
	case kind == 6:
		what, list = fmt.Sprintf("a message in front of %d", at), slices.Insert(list, at, c.says())
	case kind == 7:
		what, list = fmt.Sprintf("message %d again at the end", at), append(list, list[at])
		if m := &list[len(list)-1]; c.named { // another message that says the same
			other := c.says()
			m.ID, m.Key = other.ID, other.Key
		}
	}
	if c.rng.Intn(8) > 0 {
		for range 1 + c.rng.Intn(3) {
			list = append(list, c.says())
		}
	}
	c.list, c.did = list, append(c.did, what)
}

// shown looks whether a prompt shows the transcript as it is.
func (c *course) shown() string {
	res, err := c.assemble(transcriptBudget, func(r *core.AssembleRequest) {
		r.Transcript = &core.Transcript{Messages: copiedMessages(c.list), Whole: true}
	})
	if err != nil {
		return fmt.Sprintf("assemble: error %v", err)
	}
	// What was taken back may be recalled where that is allowed.
	return sameTexts(slices.DeleteFunc(res.Messages, func(m message.Message) bool { return m.Entry == "" }), c.list)
}
