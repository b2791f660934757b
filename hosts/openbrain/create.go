package openbrain

import (
	"context"
	"encoding/json"
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

// headerBatch is in the answers to lists: POST /v1/thoughts/batch is there, and takes a body of so many bytes.
const headerBatch = "OpenBrain-Batch"

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
		t.key = positionKey(place)
	}
	return t, nil
}

func positionKey(place string) string { return "position " + place }

// readThoughts reads what a POST of a batch sends.
func (s *Server) readThoughts(r *http.Request) ([]newThought, error) {
	b, err := readBody(r)
	if err != nil {
		return nil, err
	}
	source := s.cfg.DefaultSource
	if b.has("source") {
		if source, err = b.text("source"); err != nil {
			return nil, err
		}
	}
	var parts []json.RawMessage
	if !b.has("thoughts") || json.Unmarshal(b["thoughts"], &parts) != nil || len(parts) == 0 || len(parts) > maxBatch {
		return nil, unprocessable(bodyProblem("list_type", "thoughts", fmt.Sprintf("Input should be a valid list of 1 to %d", maxBatch)))
	}
	out := make([]newThought, len(parts))
	seen := make(map[string]bool, len(parts))
	for i, raw := range parts {
		part, err := parseBody(raw)
		if err != nil {
			return nil, err
		}
		delete(part, "source") // one for all
		if out[i], err = part.thought(source); err != nil {
			return nil, err
		}
		if msg := checkSource(source); msg != "" {
			return nil, unprocessable(bodyProblem("value_error", "source", "Value error, source "+msg))
		}
		if part.has("position") {
			place, err := part.text("position")
			if err != nil {
				return nil, err
			}
			if len(place) > maxKey {
				return nil, unprocessable(bodyProblem("string_too_long", "position", fmt.Sprintf("String should have at most %d characters", maxKey)))
			}
			out[i].key = positionKey(place)
		}
		if out[i].key == "" {
			return nil, unprocessable(bodyProblem("missing", "position", "Field required: a position, or an id in the metadata, by which a repeated request is known"))
		}
		if seen[out[i].key] {
			return nil, refuse(http.StatusConflict, "Two thoughts of the batch have the same key or position")
		}
		seen[out[i].key] = true
	}
	return out, nil
}

// maxBatch is how many thoughts one batch may have.
const maxBatch = 10_000

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

func (s *Server) postThought(w *recorder, r *http.Request, who *caller) error {
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
	made, isNew, err := s.create(r.Context(), []newThought{in})
	if err != nil {
		return err
	}
	return answerThought(w, created(isNew), made[0].wire())
}

func (s *Server) postBatch(w *recorder, r *http.Request, who *caller) error {
	in, err := s.readThoughts(r)
	if err != nil {
		return err
	}
	if !who.may(in[0].source) {
		return errSource
	}
	made, isNew, err := s.create(r.Context(), in)
	if err != nil {
		return err
	}
	type brief struct {
		ID        string `json:"id"`
		CreatedAt string `json:"created_at"`
	}
	briefs := make([]brief, len(made))
	for i, t := range made {
		briefs[i] = brief{t.ID, t.Created.Format(timeLayout)}
	}
	return answer(w, created(isNew), map[string]any{"thoughts": briefs})
}

func created(isNew bool) int {
	if isNew {
		return http.StatusCreated
	}
	return http.StatusOK
}

// create stores thoughts of one source, all or none, or returns those that the same requests stored before; and whether one at least was not there.
//
// The id of a thought with a key follows from the key, and the key of its entry from the request too: so the store itself refuses all of them where one is another
// request's, whichever server took that.
func (s *Server) create(ctx context.Context, in []newThought) ([]thought, bool, error) {
	src, err := s.catalogue.register(ctx, in[0].source, s.nextSeq())
	if err != nil {
		return nil, false, err
	}
	// A known thought may be deleted between the append and the look at it, and another server may have given out the same Seq.
	for range 5 {
		entries, known, err := s.append(ctx, src, in)
		refused := errors.Is(err, core.ErrConflict)
		if err != nil && !refused {
			return nil, false, fmt.Errorf("openbrain: create: %w", err)
		}
		there := map[string]core.Entry{}
		if refused || known > 0 {
			if there, err = s.before(ctx, src, entries); err != nil {
				return nil, false, err
			}
		}
		made, fresh := make([]thought, 0, len(entries)), make([]core.Entry, 0, len(entries))
		for i := range entries {
			e, was := entries[i], entries[i]
			if in[i].key != "" && (refused || known > 0) {
				was = there[e.ID]
			}
			if t, ok := thoughtOf(was); ok {
				made = append(made, t)
			}
			if was.Seq == e.Seq {
				fresh = append(fresh, e)
			}
		}
		if len(made) < len(entries) || refused && len(fresh) > 0 {
			src.met.Store(false)
			continue
		}
		for _, e := range fresh {
			src.tail.note(e.ID, e.Seq)
		}
		s.appended(ctx, fresh)
		return made, len(fresh) > 0, nil
	}
	return nil, false, fmt.Errorf("openbrain: create: what is there keeps changing: %w", core.ErrConflict)
}

// before returns what is stored under the ids of entries with a key. That another request stored one of them is an error.
func (s *Server) before(ctx context.Context, src *source, entries []core.Entry) (map[string]core.Entry, error) {
	there := make(map[string]core.Entry, len(entries))
	for _, e := range entries {
		if e.Meta[metaRequest] == "" {
			continue
		}
		found, err := s.store.Get(ctx, src.scope(), []string{e.ID})
		if errors.Is(err, core.ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("openbrain: create: %w", err)
		}
		if found[0].Meta[metaRequest] != e.Meta[metaRequest] {
			return nil, refuse(http.StatusConflict, "Another thought of this source was created with the same key")
		}
		there[e.ID] = found[0]
	}
	return there, nil
}

// append stores thoughts; known says how many of them were there.
func (s *Server) append(ctx context.Context, src *source, in []newThought) (entries []core.Entry, known int, err error) {
	if !src.met.Load() {
		if err := src.meet(ctx, s.store); err != nil {
			return nil, 0, err
		}
	}
	src.writes.RLock()
	defer src.writes.RUnlock()
	entries = make([]core.Entry, len(in))
	for i, t := range in {
		entries[i] = entryOf(t.source, t.content, t.metadata, t.key, src.next(s.nextSeq()))
	}
	res, err := s.store.Append(ctx, entries)
	switch {
	case err != nil:
		return entries, 0, err
	case len(res.IDs) != len(entries):
		return entries, 0, fmt.Errorf("store returned %d ids for %d entries", len(res.IDs), len(entries))
	}
	src.created.Add(int64(len(entries) - res.Duplicates))
	return entries, res.Duplicates, nil
}
