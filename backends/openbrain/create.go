package openbrain

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/contextengine/contextengine/core"
)

var (
	// errMerged says that the server answered a create with a thought that it had before, errUnseen that it may have done so.
	errMerged = fmt.Errorf("server merged the entry into a thought it had, and would lose it: turn off its removal of duplicates: %w",
		errors.ErrUnsupported)
	errUnseen = fmt.Errorf("server says that it stored the entry, and does not show it: %w", core.ErrUnavailable)
)

// create stores one entry and returns the id that the server gave it, and when it was stored. The entry is where that id says when it returns: the server has shown it.
func (s *Store) create(ctx context.Context, g *agent, r record) (id string, at time.Time, err error) {
	text := content(r.entry, s.cfg.MaxContent)
	t, err := s.post(ctx, r, text)
	if errors.Is(err, errMerged) || errors.Is(err, errUnseen) {
		// The content is only what is searched: one that nobody else has may get a thought of its own.
		mark := "\n(entry " + clean(r.entry.ID) + ")"
		t, err = s.post(ctx, r, clip(text, max(s.cfg.MaxContent-len(mark), 0))+mark)
	}
	if err == nil && g.thoughts[t.ID] && !s.client.places.Load() { // a server that keeps positions gives the id of one that is gone to the next at its position
		err = fmt.Errorf("server wrote the entry over another one, which is lost: turn off its removal of duplicates: %w", errors.ErrUnsupported)
	}
	if err != nil {
		return "", time.Time{}, err
	}
	return t.ID, t.Created, nil
}

// post sends one entry as a thought of this content.
func (s *Store) post(ctx context.Context, r record, text string) (thought, error) {
	metadata, err := s.cfg.metadata(r, false)
	if err != nil {
		return thought{}, err
	}
	var found thought
	look := func(ctx context.Context) (ok bool, err error) {
		found, ok, err = s.locate(ctx, "append", r)
		return ok, err
	}
	body, err := s.client.doUnless(ctx, "append", call{
		method: http.MethodPost, path: pathThoughts, place: placeKey(r.entry), key: requestKey(r, text), sure: s.cfg.Keep == KeepText,
		body: map[string]any{"content": text, "source": s.cfg.source(r.entry.Agent), "metadata": metadata},
	}, look)
	if err != nil || found.ID != "" {
		return found, err
	}
	if t, ok := decodeOne(body); ok {
		return s.proven(ctx, r, t)
	}
	// 2xx without an id: only what can be read back is stored.
	if ok, err := look(ctx); err != nil || ok {
		return found, err
	}
	return thought{}, errUnseen
}

// requestKey names the create of an entry with this content.
func requestKey(r record, text string) string {
	h := sha256.New()
	h.Write(fmt.Appendf(nil, "%q %q %q %q %d %t ", r.entry.Session, r.entry.ID, r.entry.Fingerprint, r.batch.ID, r.batch.Index, r.batch.End))
	h.Write([]byte(text))
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// placeKey names the position of an entry within its source. A server that keeps positions stores one thought at each, so that of several writers one gets
// it, and the others core.ErrConflict. Other servers ignore it.
func placeKey(e core.Entry) string {
	sum := sha256.Sum256([]byte(e.Session))
	return "place-" + hex.EncodeToString(sum[:16]) + "-" + strconv.FormatInt(e.Seq, 10)
}

// proven returns the thought that a create was answered with, when that holds the entry: servers that remove duplicates
// answer with the thought they had. An answer that does not show the metadata is checked by reading the thought.
func (s *Store) proven(ctx context.Context, r record, t thought) (thought, error) {
	if s.cfg.holds(t, r) {
		return t, nil
	}
	read, ok, err := s.fetch(ctx, "append", t.ID)
	switch {
	case err != nil:
		return thought{}, err
	case ok && s.cfg.holds(read, r):
		return read, nil
	case ok:
		return thought{}, errMerged
	}
	// The server has no call to read one thought.
	found, ok, err := s.locate(ctx, "append", r)
	switch {
	case err != nil || ok:
		return found, err
	case t.Meta != nil:
		return thought{}, errMerged
	}
	return thought{}, errUnseen
}

// holds reports whether a thought is this record.
func (c Config) holds(t thought, want record) bool {
	r, ok := c.record(t, want.entry.Agent)
	if c.Keep == KeepText {
		return ok && r.entry.ID == want.entry.ID
	}
	return ok && r.entry.ID == want.entry.ID && r.key() == want.key() && r.batch == want.batch
}
