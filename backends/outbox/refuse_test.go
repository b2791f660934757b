package outbox_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/contextengine/contextengine/backends/memory"
	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/message"
	"github.com/contextengine/contextengine/internal/openbraintest"
)

// refuses makes a remote refuse appends with one of these ids.
type refuses struct {
	mu  sync.Mutex
	ids map[string]error
}

func (r *refuses) set(id string, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ids[id] = err
}

func (r *refuses) fail(op string, ids []string, after bool) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, id := range ids {
		if err := r.ids[id]; err != nil && !after && op != "delete" {
			return fmt.Errorf("remote: %s %q: %w", op, id, err)
		}
	}
	return nil
}

var errTooLarge = fmt.Errorf("server answered 413: %w", core.ErrInvalid)

func TestPoison(t *testing.T) {
	t.Parallel()
	local, far := kept{memory.New()}, newRemote()
	poison := &refuses{ids: map[string]error{entry(ann, 2).ID: errTooLarge, entry(ann, 5).ID: errors.ErrUnsupported}}
	far.fail = poison.fail
	cfg := durable(t)
	s := open(t, cfg, local, far)
	mustAppend(t, s, entries(ann, 0, 8)...)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	left, err := s.Drain(ctx)
	if left != 2 || err == nil || !strings.Contains(err.Error(), "DeadLetters") {
		t.Fatalf("Drain = %d, %v, want the two that are refused and why", left, err)
	}
	without := entries(ann, 0, 8)
	without = slices.Delete(slices.Delete(without, 5, 6), 2, 3)
	holds(t, "remote", far.Store, ann, without)
	holds(t, "local", s, ann, entries(ann, 0, 8))

	// They are listed, and known after a restart.
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = open(t, cfg, local, far)
	dead, err := s.DeadLetters(t.Context())
	if err != nil || len(dead) != 2 || dead[0].ID != entry(ann, 2).ID || dead[0].Reason != "invalid" || dead[0].Session != ann ||
		dead[0].Op != "append" || dead[0].Attempts != cfg.MaxAttempts && dead[0].Attempts != 5 || dead[1].Reason != "unsupported" {
		t.Fatalf("DeadLetters = %+v, %v", dead, err)
	}
	if st := status(t, s); st.DeadLetters != 2 || st.Waiting != 0 || st.Delivered != 6 {
		t.Errorf("Status = %+v", st)
	}

	// Retried in vain they come back, retried with success they are gone.
	if n, err := s.Retry(t.Context(), entry(ann, 2).ID); n != 1 || err != nil {
		t.Fatalf("Retry = %d, %v", n, err)
	}
	if left, _ := s.Drain(ctx); left != 2 {
		t.Errorf("after retrying in vain %d are left, want 2", left)
	}
	poison.set(entry(ann, 2).ID, nil)
	if n, err := s.Retry(t.Context()); n != 2 || err != nil {
		t.Fatalf("Retry = %d, %v", n, err)
	}
	if left, _ := s.Drain(ctx); left != 1 {
		t.Errorf("after retrying one with success %d are left, want 1", left)
	}
	// An update that the remote accepts settles the other one.
	poison.set(entry(ann, 5).ID, nil)
	m := message.New(message.User, "shorter")
	change := core.Change{Message: &m, Tokens: 2, Fingerprint: message.Fingerprint(m)}
	if err := s.Update(t.Context(), ann.Scope(), entry(ann, 5).ID, change); err != nil {
		t.Fatal(err)
	}
	mustDrain(t, s)
	holds(t, "remote", far.Store, ann, all(t, s, ann.Scope()))
}

// TestDeadLettersOfErasedEntries: deleting a refused entry leaves nothing of it, here or there.
func TestDeadLettersOfErasedEntries(t *testing.T) {
	t.Parallel()
	far := newRemote()
	far.fail = (&refuses{ids: map[string]error{entry(ann, 1).ID: errTooLarge}}).fail
	s := open(t, durable(t), memory.New(), far)
	mustAppend(t, s, entries(ann, 0, 3)...)
	if left, _ := s.Drain(t.Context()); left != 1 {
		t.Fatalf("%d are left, want 1", left)
	}
	if _, err := s.Delete(t.Context(), ann.Scope(), []string{entry(ann, 1).ID}); err != nil {
		t.Fatal(err)
	}
	mustDrain(t, s)
	if dead, err := s.DeadLetters(t.Context()); len(dead) != 0 || err != nil {
		t.Errorf("DeadLetters = %+v, %v", dead, err)
	}
	holds(t, "remote", far.Store, ann, []core.Entry{entry(ann, 0), entry(ann, 2)})
}

// sick is a remote that refuses everything, as a wrong address does, and whose Ping says so.
type sick struct{ *remote }

func (sick) Ping(context.Context) error { return fmt.Errorf("sick: %w", core.ErrNotFound) }

func TestNothingIsSetAsideWhileTheRemoteIsSick(t *testing.T) {
	t.Parallel()
	far := newRemote()
	poison := &refuses{ids: map[string]error{entry(ann, 0).ID: errors.ErrUnsupported}}
	far.fail = poison.fail
	s := open(t, volatile(), memory.New(), sick{far})
	mustAppend(t, s, entry(ann, 0))
	eventually(t, "the remote was tried often", func() bool { return status(t, s).Failing > 6 })
	if st := status(t, s); st.DeadLetters != 0 || st.Waiting != 1 {
		t.Errorf("Status = %+v", st)
	}
	is(t, "CheckRemote", s.CheckRemote(t.Context()), core.ErrNotFound)
	if err := s.Ping(t.Context()); err != nil {
		t.Errorf("Ping: %v", err)
	}
	poison.set(entry(ann, 0).ID, nil)
	mustDrain(t, s)
}

// TestPoisonOverHTTP: a server that refuses one message with 413, then with 422.
func TestPoisonOverHTTP(t *testing.T) {
	t.Parallel()
	for _, status := range []int{413, 422} {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			t.Parallel()
			server := openbraintest.New(t)
			server.Inject(openbraintest.Fault{Method: "POST", Path: "=/v1/thoughts", Times: -1,
				Do: openbraintest.Status(status, "application/json", `{"detail": "no"}`)})
			s := open(t, volatile(), memory.New(), openServer(t, server))
			mustAppend(t, s, entry(ann, 0))
			if left, _ := s.Drain(t.Context()); left != 1 {
				t.Fatalf("%d are left, want 1", left)
			}
			dead, err := s.DeadLetters(t.Context())
			if err != nil || len(dead) != 1 || !strings.Contains(dead[0].Detail, fmt.Sprint(status)) || strings.Contains(dead[0].Detail, server.Key()) {
				t.Errorf("DeadLetters = %+v, %v", dead, err)
			}
			server.Heal()
			if _, err := s.Retry(t.Context()); err != nil {
				t.Fatal(err)
			}
			mustDrain(t, s)
			holds(t, "remote", openServer(t, server), ann, entries(ann, 0, 1))
		})
	}
}

// TestErrorsShowNothing: what a remote says is shown without secrets and contents.
func TestErrorsShowNothing(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`refused: "text of ann-one-0" is too long`:                        "",
		"refused \x01 by https://user:pw@example.com/path?key=hidden now": "https://example.com now",
		"denied, Authorization: hidden":                                   "[removed]",
		"api_key=hidden is unknown":                                       "api_key=[removed] is unknown",
	} {
		far := newRemote()
		far.fail = func(op string, _ []string, _ bool) error {
			return fmt.Errorf("%s: %w", text, core.ErrInvalid)
		}
		s := open(t, volatile(), memory.New(), far)
		mustAppend(t, s, entry(ann, 0))
		if left, _ := s.Drain(t.Context()); left != 1 {
			t.Fatalf("%d are left, want 1", left)
		}
		dead, err := s.DeadLetters(t.Context())
		if err != nil || len(dead) != 1 {
			t.Fatalf("DeadLetters = %+v, %v", dead, err)
		}
		for _, shown := range []string{dead[0].Detail, status(t, s).LastError} {
			for _, secret := range []string{"text of", "hidden", "pw@", "\x01"} {
				if strings.Contains(shown, secret) {
					t.Errorf("%q is shown as %q", text, shown)
				}
			}
			if !strings.Contains(shown, want) || shown == "" {
				t.Errorf("%q is shown as %q, want %q in it", text, shown, want)
			}
		}
	}
}
