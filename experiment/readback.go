package experiment

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"strconv"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/message"
)

// readBack reads every entry of the session and verifies that each message is there, byte for byte.
func (r *runner) readBack(ctx context.Context) error {
	if r.sub.Store == nil || r.stopped {
		r.rep.ReadBack = r.stopped
		return nil
	}
	r.rep.ReadBack = true
	byID := make(map[string]core.Entry)
	bySum := make(map[[sha256.Size]byte]int)
	last := -1
	for entry, err := range core.All(ctx, r.sub.Store, r.id.Scope(), false) {
		if err != nil {
			return fmt.Errorf("experiment: %q: read back: %w", r.id, err)
		}
		if entry.Type == core.TypeSummary {
			n, _ := strconv.Atoi(entry.Meta["calls"]) // 0 where no model was asked
			r.rep.ModelCalls += n
			continue
		}
		sum, err := r.sumOf(entry.Message)
		if err != nil {
			r.v.fail(RuleLost, "entry %q cannot be encoded: %v", entry.ID, err)
			continue
		}
		byID[entry.ID] = entry
		bySum[sum]++
		if int(entry.Seq) <= last {
			r.v.fail(RuleLost, "entry %q is read back behind its successor", entry.ID)
		}
		last = int(entry.Seq)
	}
	for i, m := range r.v.said {
		want := sha256.Sum256(m.Raw)
		if m.Raw == nil {
			var err error
			if want, err = r.sumOf(m); err != nil {
				return err
			}
		}
		if r.hosted {
			if bySum[want]--; bySum[want] < 0 {
				r.v.fail(RuleLost, "message %d is not in the store as it was", i)
			}
			continue
		}
		entry, ok := byID[r.ids[i]]
		if !ok {
			r.v.fail(RuleLost, "message %d, entry %q, is not in the store", i, r.ids[i])
			continue
		}
		if got, err := r.sumOf(entry.Message); err != nil || got != want {
			r.v.fail(RuleLost, "message %d, entry %q, is not what was ingested", i, r.ids[i])
		}
	}
	return nil
}

// sumOf hashes a message as its host wrote it; one without original bytes as its host would write it.
func (r *runner) sumOf(m message.Message) ([sha256.Size]byte, error) {
	raws, err := encode(m, r.spec.Session.Format)
	if err != nil {
		return [sha256.Size]byte{}, err
	}
	return sha256.Sum256(bytes.Join(raws, []byte{0})), nil
}

// erase takes the session out of a store that may outlive the replay.
func (r *runner) erase(ctx context.Context) error {
	if r.sub.Store == nil {
		return nil
	}
	var ids []string
	for entry, err := range core.All(ctx, r.sub.Store, r.id.Scope(), false) {
		if errors.Is(err, core.ErrClosed) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("experiment: %q: erase: %w", r.id, err)
		}
		ids = append(ids, entry.ID)
	}
	if len(ids) == 0 {
		return nil
	}
	if _, err := r.sub.Store.Delete(ctx, r.id.Scope(), ids); err != nil {
		return fmt.Errorf("experiment: %q: erase: %w", r.id, err)
	}
	if v, ok := core.As[core.ViewStore](r.sub.Store); ok {
		if err := v.DeleteView(ctx, r.id); err != nil {
			return fmt.Errorf("experiment: %q: erase: %w", r.id, err)
		}
	}
	return nil
}
