package recall

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/message"
	"github.com/contextengine/contextengine/core/window"
	"github.com/contextengine/contextengine/experiment/questions"
	"github.com/contextengine/contextengine/experiment/stats"
)

// joined is the session of a conversation whose sessions follow one another in one.
const joined = "joined"

// WindowQuestion is what of a question's evidence stands in the window that is assembled for it. Every count is of messages.
type WindowQuestion struct {
	Conversation string `json:"conversation"`
	// Question is its id within the conversation.
	Question string `json:"question"`
	Category string `json:"category,omitempty"`
	Budget   int    `json:"budget"`
	Evidence int    `json:"evidence"`
	// Touched stand there at least in part, Whole with at least nine of ten words.
	Touched int `json:"touched"`
	Whole   int `json:"whole"`
	// NotFound were neither shown nor proposed by the retriever, NotPacked proposed and had no room.
	NotFound  int `json:"notFound"`
	NotPacked int `json:"notPacked"`
	// Recalled are the tokens of what was recalled, Tokens all of the window's, by the engine's counter.
	Recalled int    `json:"recalledTokens"`
	Tokens   int    `json:"windowTokens"`
	Error    string `json:"error,omitempty"`
}

// Standing sums up what of the evidence stands in the windows of a budget. Shares are of the messages that hold the answer, means over questions.
type Standing struct {
	Group    string `json:"group"`
	Category bool   `json:"category,omitempty"`
	Budget   int    `json:"budget"`
	// Questions is their number.
	Questions int            `json:"questions"`
	Touched   stats.Interval `json:"touched"`
	Whole     stats.Interval `json:"whole"`
	// NotFound, NotPacked and Cut say why evidence does not stand there whole: not among the candidates, no room, quoted in part.
	NotFound  float64 `json:"notFound"`
	NotPacked float64 `json:"notPacked"`
	Cut       float64 `json:"cut"`
	// Recalled is the share of the budget that recall took, Filled that of the whole window.
	Recalled float64 `json:"recalled"`
	Filled   float64 `json:"filled"`
}

// standing sums up the windows of a group at a budget.
func standing(g questions.Group, category bool, budget int, list []WindowQuestion, opts stats.Options) Standing {
	out := Standing{Group: g.Name, Category: category, Budget: budget}
	mean := func(of func(WindowQuestion) float64) stats.Interval {
		return stats.Mean(clustered(g, list, func(q WindowQuestion) float64 {
			if q.Budget != budget {
				return math.NaN()
			}
			return of(q)
		}), opts)
	}
	share := func(of func(WindowQuestion) int) stats.Interval {
		return mean(func(q WindowQuestion) float64 { return float64(of(q)) / float64(q.Evidence) }).Within(0, 1)
	}
	out.Touched = share(func(q WindowQuestion) int { return q.Touched })
	out.Whole = share(func(q WindowQuestion) int { return q.Whole })
	out.Questions = out.Whole.N
	out.NotFound = share(func(q WindowQuestion) int { return q.NotFound }).Mean
	out.NotPacked = share(func(q WindowQuestion) int { return q.NotPacked }).Mean
	out.Cut = share(func(q WindowQuestion) int { return q.Touched - q.Whole }).Mean
	out.Recalled = mean(func(q WindowQuestion) float64 { return float64(q.Recalled) / float64(budget) }).Mean
	out.Filled = mean(func(q WindowQuestion) float64 { return float64(q.Tokens) / float64(budget) }).Mean
	return out
}

// window assembles a window of a budget for every question, the question being the newest message, and looks for the evidence in it.
func (c *cell) window(ctx context.Context, budget int) error {
	engine, ok := c.sub.Engine.(core.ContextEngine)
	if !ok {
		return fmt.Errorf("recall: %q assembles no windows: %w", c.arm.Name, errors.ErrUnsupported)
	}
	p := newPacker(c.plan.Unit)
	for i := range c.plan.Dataset.Conversations {
		if err := c.store(ctx, &c.plan.Dataset.Conversations[i]); err != nil {
			return err
		}
	}
	for i := range c.chats {
		chat := &c.chats[i]
		if err := c.prepare(ctx, chat); err != nil {
			return err
		}
		known := make(map[string][]int32, len(chat.ids))
		for _, s := range chat.Sessions {
			for _, m := range s.Messages {
				known[m.ID] = p.sequence(m.Text())
			}
		}
		for _, q := range chat.Questions {
			if len(q.Evidence) == 0 {
				continue
			}
			res, err := engine.Assemble(ctx, core.AssembleRequest{Session: chat.last, Budget: budget, Prompt: q.Text})
			if ctx.Err() != nil {
				return ctx.Err()
			}
			out := WindowQuestion{Conversation: chat.ID, Question: q.ID, Category: q.Category, Budget: budget, Evidence: len(q.Evidence)}
			if err != nil {
				out.Error, out.NotFound = err.Error(), out.Evidence
				c.out.Failed++
			} else {
				p.look(&out, q, &res, chat.ids, known)
			}
			if len(res.Warnings) > 0 || res.Degraded != "" {
				c.out.Degraded++
			}
			c.out.Windows = append(c.out.Windows, out)
			c.asked()
		}
	}
	return nil
}

// sequence returns the words of a text in their order.
func (p *packer) sequence(text string) []int32 {
	words := wordsOf(text)
	out := make([]int32, len(words))
	for i, w := range words {
		out[i] = p.word(w)
	}
	return out
}

// look fills in what of the evidence stands in a window. What the window shows of a message, and the recall block if it quotes the message, is searched for
// its runs of words: how an engine writes quotations does not matter.
func (p *packer) look(out *WindowQuestion, q questions.Question, res *core.AssembleResult, ids map[string]string, known map[string][]int32) {
	shown := make(map[string][]int32)
	left := make(map[string]bool)
	for _, m := range res.Messages {
		if id, ok := ids[m.Entry]; ok {
			shown[id] = append(shown[id], p.sequence(textOf(m))...)
		}
	}
	for _, choice := range res.Choices {
		id := ids[choice.Entry]
		if res.RecallLen > 0 && choice.Message == res.RecallAt {
			out.Recalled += choice.Tokens // the block's own choice has them, those of what it quotes none
		}
		switch choice.Reason {
		case window.ReasonRecalled:
			if id != "" {
				shown[id] = append(shown[id], p.sequence(res.Messages[choice.Message].Text())...)
			}
		case window.OutAllowance:
			left[id] = true
		}
	}
	out.Tokens = res.EstimatedTokens
	for _, id := range q.Evidence {
		switch covered := coverage(known[id], shown[id]); {
		case covered >= 0.9:
			out.Whole++
			out.Touched++
		case covered > 0:
			out.Touched++
		case left[id]:
			out.NotPacked++
		default:
			out.NotFound++
		}
	}
}

// textOf is all that a message says in words.
func textOf(m message.Message) string {
	var b strings.Builder
	for _, part := range m.Parts {
		b.WriteString(part.Text + "\n" + part.Args + "\n")
	}
	return b.String()
}

// run is how many words behind one another count as standing there.
const run = 4

// coverage returns the share of the words of a message that stand in a text in runs of their order.
func coverage(words, text []int32) float64 {
	n := min(run, len(words))
	if n == 0 {
		return 1
	}
	var key [run]int32
	there := make(map[[run]int32]bool, len(text))
	for i := 0; i+n <= len(text); i++ {
		copy(key[:], text[i:i+n])
		there[key] = true
	}
	covered, until := 0, 0
	for i := 0; i+n <= len(words); i++ {
		copy(key[:], words[i:i+n])
		if there[key] {
			covered += i + n - max(i, until)
			until = i + n
		}
	}
	return float64(covered) / float64(len(words))
}
