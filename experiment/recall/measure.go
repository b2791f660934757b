package recall

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/message"
	"github.com/contextengine/contextengine/core/upkeep"
	"github.com/contextengine/contextengine/experiment/questions"
)

// closing bounds how long cleaning up may take once a measurement ended.
const closing = time.Minute

// cell is one arm being measured.
type cell struct {
	plan     *Plan
	arm      Arm
	sub      Subject
	measures []Measure
	// quiet is held for writing while memory is compared, so that no other measurement disturbs that.
	quiet *sync.RWMutex
	asked func()
	chats []stored
	out   ArmResult
}

// stored is a conversation in the store.
type stored struct {
	*questions.Conversation
	agent string
	last  core.SessionID
	now   time.Time
	// ids maps the ids of entries to those of the data set's messages.
	ids map[string]string
}

// measure asks one arm all questions.
func (c *cell) measure(ctx context.Context) error {
	c.out = ArmResult{Name: c.arm.Name, Config: c.arm.Digest, Parts: c.arm.Parts, Searchers: c.arm.Searchers, Settings: c.arm.Settings}
	for _, budget := range c.plan.Windows {
		if err := c.opened(ctx, func() error { return c.window(ctx, budget) }); err != nil {
			return err
		}
	}
	if len(c.plan.Windows) > 0 {
		return nil
	}
	return c.opened(ctx, func() error {
		if err := c.load(ctx); err != nil {
			return err
		}
		for i := range c.chats {
			if err := c.ask(ctx, &c.chats[i]); err != nil {
				return err
			}
		}
		return nil
	})
}

// opened opens the subject for as long as a function takes, and erases what that stored.
func (c *cell) opened(ctx context.Context, use func() error) (err error) {
	c.chats = nil
	if c.sub, err = c.arm.Open(ctx); err != nil {
		return err
	}
	if c.sub.Warnings == nil {
		c.sub.Warnings = &Warnings{}
	}
	defer func() {
		c.quiet.RLock()
		defer c.quiet.RUnlock()
		end, cancel := context.WithTimeout(context.WithoutCancel(ctx), closing)
		defer cancel()
		err = errors.Join(err, c.erase(end))
		if c.sub.Close != nil {
			err = errors.Join(err, c.sub.Close(end))
		}
	}()
	err = use()
	c.out.Warnings = append(c.out.Warnings, c.sub.Warnings.List()...)
	return err
}

// load stores all conversations and builds the indexes.
func (c *cell) load(ctx context.Context) error {
	c.quiet.Lock()
	defer c.quiet.Unlock()
	empty, began := heap(), time.Now()
	for i := range c.plan.Dataset.Conversations {
		if err := c.store(ctx, &c.plan.Dataset.Conversations[i]); err != nil {
			return err
		}
	}
	c.out.Index.ImportSeconds = time.Since(began).Seconds()
	full := heap()
	c.out.Index.StoreMemory = max(full-empty, 0)
	var cold time.Duration
	for i := range c.chats {
		chat := &c.chats[i]
		if err := c.prepare(ctx, chat); err != nil {
			return err
		}
		began := time.Now()
		if _, err := c.retrieve(ctx, chat, chat.Questions[0].Text, cmp.Or(c.sub.Limit, c.plan.Candidates)); err != nil && ctx.Err() != nil {
			return ctx.Err()
		}
		cold += time.Since(began)
	}
	c.out.Latency.Cold = ms(cold) / float64(len(c.chats))
	c.out.Index.Memory = max(heap()-full, 0)
	if c.sub.Store == nil {
		return nil
	}
	if s, ok := core.As[upkeep.Statter](c.sub.Store); ok {
		if st, err := s.Stats(ctx); err == nil {
			c.out.Index.StoreBytes = st.Bytes
		}
	}
	return nil
}

// prepare lets a subject finish what it does once a conversation is stored. The error is the context's.
func (c *cell) prepare(ctx context.Context, chat *stored) error {
	if c.sub.Prepare == nil {
		return nil
	}
	if err := c.sub.Prepare(ctx, chat.agent); err != nil && ctx.Err() == nil {
		c.sub.Warnings.add("recall: not everything could be prepared", err.Error())
	}
	return ctx.Err()
}

// store takes a conversation in. One without questions to measure is left out: it would be another agent's anyway.
func (c *cell) store(ctx context.Context, conversation *questions.Conversation) error {
	asked := false
	for _, q := range conversation.Questions {
		asked = asked || len(q.Evidence) > 0
	}
	if !asked {
		return nil
	}
	chat := stored{Conversation: conversation, agent: conversation.ID, ids: make(map[string]string, conversation.Messages())}
	if c.sub.Agent != nil {
		chat.agent = c.sub.Agent(conversation.ID)
	}
	// It is on the list before anything is stored, so that what is stored of it is erased.
	c.chats = append(c.chats, chat)
	at := len(c.chats) - 1
	for _, s := range conversation.Sessions {
		chat.last = core.SessionID{Agent: chat.agent, Session: s.ID}
		if c.plan.Joined {
			chat.last.Session = joined
		}
		messages := make([]message.Message, len(s.Messages))
		for i, m := range s.Messages {
			messages[i] = m.Message
			if m.Time.After(chat.now) {
				chat.now = m.Time
			}
		}
		res, err := c.sub.Engine.IngestBatch(ctx, core.IngestBatchRequest{Session: chat.last, Messages: messages})
		if err != nil {
			return fmt.Errorf("recall: store conversation %q: %w", conversation.ID, err)
		}
		if len(res.IDs) != len(messages) {
			return fmt.Errorf("recall: store conversation %q: the engine returned %d ids for %d messages", conversation.ID, len(res.IDs), len(messages))
		}
		for i, id := range res.IDs {
			chat.ids[id] = s.Messages[i].ID
		}
		c.out.Index.Entries += len(messages)
	}
	if chat.now.IsZero() {
		chat.now = time.Now()
	}
	c.chats[at] = chat
	return nil
}

// retrieve asks the retriever.
func (c *cell) retrieve(ctx context.Context, chat *stored, text string, limit int) ([]core.Candidate, error) {
	if c.sub.Retriever == nil {
		return nil, ctx.Err()
	}
	tokens := 1
	for _, b := range c.plan.Budgets {
		tokens = max(tokens, b)
	}
	return c.sub.Retriever.Retrieve(ctx, core.Query{
		Session: chat.last, Scope: core.Scope{Agent: chat.agent}, Prompt: text,
		InWindow: func(string) bool { return false }, Now: chat.now, Tokens: tokens, Limit: limit,
	})
}

// ask asks all questions about a conversation.
func (c *cell) ask(ctx context.Context, chat *stored) error {
	p := newPacker(c.plan.Unit)
	for _, q := range chat.Questions {
		if len(q.Evidence) == 0 {
			continue
		}
		if err := c.question(ctx, chat, p, q); err != nil {
			return err
		}
		c.asked()
	}
	return nil
}

func (c *cell) question(ctx context.Context, chat *stored, p *packer, q questions.Question) error {
	c.quiet.RLock()
	defer c.quiet.RUnlock()
	before := c.sub.Warnings.count()
	began := time.Now()
	candidates, err := c.retrieve(ctx, chat, q.Text, cmp.Or(c.sub.Limit, c.plan.Candidates))
	took := time.Since(began)
	if (err == nil || errors.Is(err, core.ErrPartial)) && c.sub.Limit > 0 && c.sub.Limit != c.plan.Candidates {
		candidates, err = c.retrieve(ctx, chat, q.Text, c.plan.Candidates)
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	out := QuestionResult{Conversation: chat.ID, Question: q.ID, Category: q.Category, Evidence: len(q.Evidence), Ms: ms(took)}
	partial := errors.Is(err, core.ErrPartial)
	if err != nil && !partial {
		out.Error, candidates = err.Error(), nil
		c.out.Failed++
	}
	if out.Degraded = partial || c.sub.Warnings.count() > before; out.Degraded {
		c.out.Degraded++
	}
	if c.sub.Deadline > 0 && took > c.sub.Deadline {
		c.out.Latency.Late++
	}
	candidates = candidates[:min(len(candidates), c.plan.Candidates)]
	out.Candidates, out.Order = len(candidates), orderOf(candidates, chat.ids)
	p.score(&out, c.measures, q, candidates, chat.ids)
	c.out.Questions = append(c.out.Questions, out)
	return nil
}

// orderOf identifies candidates and their order by the data set's ids.
func orderOf(candidates []core.Candidate, ids map[string]string) string {
	h := sha256.New()
	for _, c := range candidates {
		fmt.Fprintf(h, "%s\x00", ids[c.Entry.ID])
	}
	return hex.EncodeToString(h.Sum(nil)[:6])
}

// erase takes what was stored out of a store that lasts.
func (c *cell) erase(ctx context.Context) error {
	if !c.sub.Lasting || c.sub.Store == nil {
		return nil
	}
	var errs []error
	for _, chat := range c.chats {
		var ids []string
		for entry, err := range core.All(ctx, c.sub.Store, core.Scope{Agent: chat.agent}, false) {
			if err != nil {
				errs = append(errs, fmt.Errorf("recall: erase %q: %w", chat.agent, err))
				break
			}
			ids = append(ids, entry.ID)
		}
		for len(ids) > 0 {
			n := min(len(ids), core.MaxPage)
			if _, err := c.sub.Store.Delete(ctx, core.Scope{Agent: chat.agent}, ids[:n]); err != nil {
				errs = append(errs, fmt.Errorf("recall: erase %q: %w", chat.agent, err))
				break
			}
			ids = ids[n:]
		}
		if views, ok := core.As[core.ViewStore](c.sub.Store); ok {
			for _, s := range chat.Sessions {
				if err := views.DeleteView(ctx, core.SessionID{Agent: chat.agent, Session: s.ID}); err != nil && !errors.Is(err, errors.ErrUnsupported) {
					errs = append(errs, fmt.Errorf("recall: erase %q: %w", chat.agent, err))
				}
			}
		}
	}
	return errors.Join(errs...)
}

// heap returns the live bytes of the heap.
func heap() int64 {
	runtime.GC()
	runtime.GC() // what pools hold lives for one more
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

func ms(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e6 }
