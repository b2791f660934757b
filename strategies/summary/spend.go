package summary

import (
	"sync"
	"time"

	"github.com/contextengine/contextengine/core"
)

// Spend limits what model calls may cost. Zero means no limit. What is paid for is always published; what is left over is made without a
// model when a compaction is forced, and waits for the next one otherwise.
type Spend struct {
	// Calls and Tokens bound one compaction; tokens are what models report as read and written.
	Calls  int `koanf:"calls" doc:"model calls of one compaction; 0 is no limit"`
	Tokens int `koanf:"tokens" doc:"tokens that one compaction's calls read and write; 0 is no limit"`
	// SessionCalls and SessionTokens bound all compactions of a session within Per.
	SessionCalls  int           `koanf:"sessionCalls" doc:"model calls of one session within per; 0 is no limit"`
	SessionTokens int           `koanf:"sessionTokens" doc:"tokens of one session's calls within per; 0 is no limit"`
	Per           time.Duration `koanf:"per" doc:"time in which a session's limits hold"`
}

// account is what a session spent since a time.
type account struct {
	since         time.Time
	calls, tokens int
}

// mostAccounts bounds the sessions that are remembered.
const mostAccounts = 4096

// purse is what a compactor remembers between compactions: what sessions spent, and whether models are down. It is safe for concurrent use.
type purse struct {
	mu       sync.Mutex
	accounts map[core.SessionID]*account
	// closed is until when no model is asked, why what the last one said.
	closed time.Time
	why    string
}

// account returns what a session spent in the current stretch of time.
func (p *purse) account(id core.SessionID, now time.Time, per time.Duration) *account {
	if p.accounts == nil {
		p.accounts = make(map[core.SessionID]*account)
	}
	a := p.accounts[id]
	if a == nil || per > 0 && !now.Before(a.since.Add(per)) {
		if a == nil && len(p.accounts) >= mostAccounts {
			p.forget(now, per)
		}
		a = &account{since: now}
		p.accounts[id] = a
	}
	return a
}

// forget drops sessions whose time is over, or all when there are none.
func (p *purse) forget(now time.Time, per time.Duration) {
	for id, a := range p.accounts {
		if !now.Before(a.since.Add(per)) {
			delete(p.accounts, id)
		}
	}
	if len(p.accounts) >= mostAccounts {
		clear(p.accounts)
	}
}

// reserve asks for one more call of a compaction; it counts it when it grants it.
func (w *work) reserve() bool {
	w.purse.mu.Lock()
	defer w.purse.mu.Unlock()
	a := w.purse.account(w.c.Session, w.c.Now, w.cfg.Spend.Per)
	if w.exceeded(a) {
		return false
	}
	w.spent.calls++
	a.calls++
	return true
}

// exhausted reports whether a limit is reached.
func (w *work) exhausted() bool {
	w.purse.mu.Lock()
	defer w.purse.mu.Unlock()
	return w.exceeded(w.purse.account(w.c.Session, w.c.Now, w.cfg.Spend.Per))
}

func (w *work) exceeded(a *account) bool {
	s := w.cfg.Spend
	return s.Calls > 0 && w.spent.calls >= s.Calls || s.Tokens > 0 && w.spent.tokens >= s.Tokens ||
		s.SessionCalls > 0 && a.calls >= s.SessionCalls || s.SessionTokens > 0 && a.tokens >= s.SessionTokens
}

// pay counts the tokens of a call.
func (w *work) pay(tokens int) {
	w.purse.mu.Lock()
	defer w.purse.mu.Unlock()
	w.spent.tokens += tokens
	w.purse.account(w.c.Session, w.c.Now, w.cfg.Spend.Per).tokens += tokens
}

// trip remembers that models failed too often.
func (w *work) trip(why string) {
	w.purse.mu.Lock()
	defer w.purse.mu.Unlock()
	if w.cfg.Cooldown > 0 {
		w.purse.closed, w.purse.why = w.c.Now.Add(w.cfg.Cooldown), why
	}
}

// tripped reports whether an earlier compaction found the models down a short while ago, and says until when they rest, and why.
func (w *work) tripped() (string, bool) {
	w.purse.mu.Lock()
	defer w.purse.mu.Unlock()
	if !w.c.Now.Before(w.purse.closed) {
		return "", false
	}
	return "no model is asked before " + w.purse.closed.UTC().Format(time.TimeOnly) + ", because too many calls failed: " + w.purse.why, true
}
