package outbox

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/upkeep"
)

// Status is what there is to know of an outbox. Nothing in it is content.
type Status struct {
	// Journal is the file's path, empty for a queue in memory; JournalBytes its size.
	Journal      string `json:"journal,omitempty"`
	JournalBytes int64  `json:"journalBytes"`
	// Waiting counts the changes that are to be delivered, WaitingBytes the content of the entries among them.
	Waiting      int   `json:"waiting"`
	WaitingBytes int64 `json:"waitingBytes"`
	// Oldest is when the first of them was made, Age how long ago; zero when none waits.
	Oldest time.Time     `json:"oldest,omitzero"`
	Age    time.Duration `json:"age"`
	// Delivered counts the entries that the remote acknowledged since there is the journal. An entry counts again when it
	// was sent again.
	Delivered uint64 `json:"delivered"`
	// DeadLetters counts the changes that were set aside, see Store.DeadLetters.
	DeadLetters int `json:"deadLetters"`
	// Missing counts appends that stood for nothing when they were to be delivered: a crash came before they were acknowledged, or
	// the local store lost them.
	Missing uint64 `json:"missing"`
	// Bare counts the messages that were copied from the remote with their text alone, because it holds no more of them.
	Bare uint64 `json:"bare,omitempty"`
	// Delivering says that this process is the one that delivers. What follows is known to that one only.
	Delivering bool `json:"delivering"`
	// Failing counts the tries in a row that failed for everybody; RetryAt is when the next one is due, zero for now.
	Failing int       `json:"failing"`
	RetryAt time.Time `json:"retryAt,omitzero"`
	// LastError is what went wrong last, without secrets and contents, and LastErrorAt when; it stays after things went well again.
	LastError   string    `json:"lastError,omitempty"`
	LastErrorAt time.Time `json:"lastErrorAt,omitzero"`
	// Copying lists the agents whose remote history is being copied.
	Copying []string `json:"copying,omitempty"`
	// Full is why Append would be refused now; empty when it would not.
	Full string `json:"full,omitempty"`
}

// Status tells how the delivery is doing, for all processes together where they share it. It does not talk to the remote.
func (s *Store) Status(ctx context.Context) (Status, error) {
	if err := s.enter(ctx, "status"); err != nil {
		return Status{}, err
	}
	defer s.leave()
	if err := s.acquire(ctx); err != nil {
		return Status{}, failed("status", "", err)
	}
	defer s.release()
	s.mu.Lock()
	defer s.mu.Unlock()
	st := Status{
		Waiting: s.q.waiting, WaitingBytes: s.q.bytes, Delivered: s.q.delivered, DeadLetters: len(s.q.dead), Missing: s.q.missing, Bare: s.q.bare,
		Delivering: s.leads, Failing: s.fails, LastError: s.last.text, LastErrorAt: s.last.at, Copying: slices.Clone(s.wanted),
	}
	if s.j != nil {
		st.Journal, st.JournalBytes = s.j.path, s.j.offset
	}
	if at := s.q.oldest(); at > 0 {
		st.Oldest = time.UnixMilli(at).UTC()
		st.Age = max(0, s.now().Sub(st.Oldest))
	}
	if s.next.After(time.Now()) {
		st.RetryAt = s.next
	}
	if err := s.full(1, 0); err != nil {
		st.Full = err.Error()
	}
	return st, nil
}

// DeadLetter is a change that the remote refused for good. The entry itself is in the local store.
type DeadLetter struct {
	Session core.SessionID `json:"session"`
	ID      string         `json:"id"`
	// Op is "append", "update" or "delete".
	Op string `json:"op"`
	// Since is when it was set aside, Made when the change was made.
	Since time.Time `json:"since"`
	Made  time.Time `json:"made"`
	// Attempts is how often it was tried.
	Attempts int `json:"attempts"`
	// Reason is "invalid", "conflict" or "unsupported". Detail is what the remote said, without secrets and contents; it is not kept
	// over restarts.
	Reason string `json:"reason"`
	Detail string `json:"detail,omitempty"`
}

// DeadLetters lists the changes that were set aside, oldest first. They count for the bounds of the backlog. A later change of the
// same entry that is delivered makes them go: an update that the remote accepts, or a delete.
func (s *Store) DeadLetters(ctx context.Context) ([]DeadLetter, error) {
	if err := s.enter(ctx, "dead letters"); err != nil {
		return nil, err
	}
	defer s.leave()
	if err := s.refresh(ctx); err != nil {
		return nil, failed("dead letters", "", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []DeadLetter
	for _, seq := range slices.Sorted(maps.Keys(s.q.dead)) {
		d := s.q.dead[seq]
		out = append(out, DeadLetter{
			Session: d.session, ID: d.id, Op: d.op.String(), Since: time.UnixMilli(d.since).UTC(), Made: time.UnixMilli(d.at).UTC(),
			Attempts: d.attempts, Reason: d.reason, Detail: d.detail,
		})
	}
	return out, nil
}

// Retry queues changes again that were set aside: those of the entries with these ids, or all when none is given. It returns how many those
// are. Each keeps its place in the order of its session.
func (s *Store) Retry(ctx context.Context, ids ...string) (int, error) {
	if err := s.enter(ctx, "retry"); err != nil {
		return 0, err
	}
	defer s.leave()
	if err := s.acquire(ctx); err != nil {
		return 0, failed("retry", "", err)
	}
	defer s.nudge()
	defer s.release()
	s.mu.Lock()
	n := 0
	var records []record
	for _, seq := range slices.Sorted(maps.Keys(s.q.dead)) {
		if d := s.q.dead[seq]; len(ids) == 0 || slices.Contains(ids, d.id) {
			records = append(records, record{kind: kindRetry, session: d.session, seqs: []uint64{seq}})
			n++
		}
	}
	s.mu.Unlock()
	if n == 0 {
		return 0, nil
	}
	if err := s.j.write(records...); err != nil {
		return 0, failed("retry", "", err)
	}
	s.note(records...)
	return n, nil
}

// Ping implements core.Pinger: the outbox can be used as long as the local store can and the backlog has room. That the remote
// is down is no failure of an outbox; CheckRemote asks it.
func (s *Store) Ping(ctx context.Context) error {
	if err := s.enter(ctx, "ping"); err != nil {
		return err
	}
	defer s.leave()
	if p, ok := core.As[core.Pinger](s.local); ok {
		if err := p.Ping(ctx); err != nil {
			return failed("ping", "", err)
		}
	}
	if err := s.refresh(ctx); err != nil {
		return failed("ping", "", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.full(1, 0); err != nil {
		return failed("ping", "", err)
	}
	return nil
}

// CheckRemote returns nil when the remote store can be reached, as far as it can be asked.
func (s *Store) CheckRemote(ctx context.Context) error {
	if err := s.enter(ctx, "check remote"); err != nil {
		return err
	}
	defer s.leave()
	if p, ok := core.As[core.Pinger](s.far); ok {
		if err := p.Ping(ctx); err != nil {
			return fmt.Errorf("outbox: check remote: %w", err)
		}
	}
	return nil
}

// Backlog implements upkeep.Backlogger: the part of Status that concerns an operator.
func (s *Store) Backlog(ctx context.Context) (upkeep.Backlog, error) {
	st, err := s.Status(ctx)
	if err != nil {
		return upkeep.Backlog{}, err
	}
	return upkeep.Backlog{
		Waiting: st.Waiting, Bytes: st.WaitingBytes, Oldest: st.Oldest, SetAside: st.DeadLetters, Full: st.Full, LastError: st.LastError, Bare: int(st.Bare),
	}, nil
}
