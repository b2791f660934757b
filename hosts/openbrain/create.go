package openbrain

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/contextengine/contextengine/core"
)

// maxKey is the longest Idempotency-Key header, in bytes.
const maxKey = 1024

// headerPosition names the position that a thought is to have in its source, in the client's words. One thought is stored at each; the answer repeats the
// header, so that clients know.
const headerPosition = "OpenBrain-Position"

// newThought is a request to create a thought.
type newThought struct {
	content, source, key string
	metadata             []byte
}

// readThought reads what a POST sends.
func (s *Server) readThought(r *http.Request) (newThought, error) {
	b, err := readBody(r)
	if err != nil {
		return newThought{}, err
	}
	t, err := b.thought(s.cfg.DefaultSource)
	if err != nil {
		return newThought{}, err
	}
	if key := r.Header.Get("Idempotency-Key"); key != "" {
		if len(key) > maxKey {
			return newThought{}, refuse(http.StatusBadRequest, "Idempotency-Key is too long")
		}
		t.key = key
	}
	if place := r.Header.Get(headerPosition); place != "" {
		if len(place) > maxKey {
			return newThought{}, refuse(http.StatusBadRequest, headerPosition+" is too long")
		}
		t.key = "position " + place
	}
	return t, nil
}

func (b body) thought(defaultSource string) (newThought, error) {
	t := newThought{source: defaultSource, metadata: []byte("{}")}
	if !b.has("content") {
		return t, unprocessable(bodyProblem("missing", "content", "Field required"))
	}
	var err error
	if t.content, err = b.content(); err != nil {
		return t, err
	}
	if b.has("source") {
		if t.source, err = b.text("source"); err != nil {
			return t, err
		}
		if msg := checkSource(t.source); msg != "" {
			return t, unprocessable(bodyProblem("value_error", "source", "Value error, source "+msg))
		}
	}
	if b.has("metadata") {
		if t.metadata, err = b.object("metadata"); err != nil {
			return t, err
		}
		t.key = keyIn(t.metadata)
	}
	return t, nil
}

// content returns the content field, which must not be empty.
func (b body) content() (string, error) {
	text, err := b.text("content")
	if err == nil && text == "" {
		return "", unprocessable(bodyProblem("string_too_short", "content", "String should have at least 1 character"))
	}
	return text, err
}

func (s *Server) postThought(w http.ResponseWriter, r *http.Request, who *caller) error {
	in, err := s.readThought(r)
	if err != nil {
		return err
	}
	if r.Header.Get(headerPosition) != "" {
		w.Header().Set(headerPosition, "kept")
	}
	if !who.may(in.source) {
		return errSource
	}
	t, isNew, err := s.create(r.Context(), in)
	if err != nil {
		return err
	}
	status := http.StatusOK
	if isNew {
		status = http.StatusCreated
	}
	return answer(w, status, t.wire())
}

// create stores a thought, or returns the one that the same request stored before.
func (s *Server) create(ctx context.Context, in newThought) (t thought, isNew bool, err error) {
	src, err := s.catalogue.register(ctx, in.source, s.nextSeq())
	if err != nil {
		return thought{}, false, err
	}
	// A known thought may be deleted between the append and the look at it, and another server may have given out the same Seq.
	for try := range 5 {
		e, known, err := s.append(ctx, src, in)
		if errors.Is(err, core.ErrConflict) && try < 4 {
			src.met.Store(false)
			continue
		}
		if err != nil {
			return thought{}, false, fmt.Errorf("openbrain: create: %w", err)
		}
		if known == "" {
			src.tail.note(e.ID, e.Seq)
			s.appended(ctx, []core.Entry{e})
			t, _ := thoughtOf(e)
			return t, true, nil
		}
		found, err := s.store.Get(ctx, src.scope(), []string{known})
		if errors.Is(err, core.ErrNotFound) {
			continue
		}
		if err != nil {
			return thought{}, false, fmt.Errorf("openbrain: create: %w", err)
		}
		t, ok := thoughtOf(found[0])
		if !ok || found[0].Meta[metaRequest] != e.Meta[metaRequest] {
			return thought{}, false, refuse(http.StatusConflict, "Another thought of this source was created with the same key")
		}
		return t, false, nil
	}
	return thought{}, false, fmt.Errorf("openbrain: create: the thought keeps changing: %w", core.ErrConflict)
}

// append stores a thought; known is the id of the thought that has its key already.
func (s *Server) append(ctx context.Context, src *source, in newThought) (e core.Entry, known string, err error) {
	if !src.met.Load() {
		if err := src.meet(ctx, s.store); err != nil {
			return e, "", err
		}
	}
	src.writes.RLock()
	defer src.writes.RUnlock()
	e = entryOf(in.source, in.content, in.metadata, in.key, src.next(s.nextSeq()))
	res, err := s.store.Append(ctx, []core.Entry{e})
	switch {
	case err != nil:
		return e, "", err
	case len(res.IDs) != 1:
		return e, "", fmt.Errorf("store returned %d ids for one entry", len(res.IDs))
	case res.Duplicates > 0:
		return e, res.IDs[0], nil
	}
	src.created.Add(1)
	return e, "", nil
}
