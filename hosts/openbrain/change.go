package openbrain

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"maps"
	"net/http"
	"time"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/message"
)

// locate finds a thought by its id alone. Thoughts of sources that the caller may not use do not exist.
func (s *Server) locate(ctx context.Context, who *caller, id string) (*source, core.Entry, error) {
	tag, ok := tagIn(id)
	if !ok {
		return nil, core.Entry{}, errNoThought
	}
	tried := map[string]bool{}
	for again := range 2 {
		if again == 1 { // another server may have added the source
			if err := s.catalogue.refresh(ctx); err != nil {
				return nil, core.Entry{}, err
			}
		}
		for _, src := range s.catalogue.tagged(tag) {
			if tried[src.name] || !who.may(src.name) {
				continue
			}
			tried[src.name] = true
			got, err := s.store.Get(ctx, src.scope(), []string{id})
			if errors.Is(err, core.ErrNotFound) {
				continue
			}
			if err != nil {
				return nil, core.Entry{}, fmt.Errorf("openbrain: get: %w", err)
			}
			if _, ok := thoughtOf(got[0]); ok {
				return src, got[0], nil
			}
		}
	}
	return nil, core.Entry{}, errNoThought
}

// headerCreated is in a request about one thought: the created_at that the thought must have. One of another time is another thought, at whose position or with whose
// key this one was stored, and as good as not there.
const headerCreated = "OpenBrain-Created"

// meant is locate for a request that changes a thought and may name the time of its creation: then nothing is stored in the source until done is called, so that no
// other thought takes the place of this one meanwhile.
func (s *Server) meant(r *http.Request, who *caller) (src *source, e core.Entry, done func(), err error) {
	done = func() {}
	src, e, err = s.locate(r.Context(), who, r.PathValue("id"))
	text := r.Header.Get(headerCreated)
	if err != nil || text == "" {
		return src, e, done, err
	}
	at, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return nil, e, done, refuse(http.StatusBadRequest, headerCreated+" is no time")
	}
	src.writes.Lock()
	got, err := s.store.Get(r.Context(), src.scope(), []string{e.ID})
	if err == nil {
		if t, ok := thoughtOf(got[0]); ok && t.Created.Equal(at) {
			return src, got[0], src.writes.Unlock, nil
		}
	}
	src.writes.Unlock()
	if err != nil && !errors.Is(err, core.ErrNotFound) {
		return nil, e, done, fmt.Errorf("openbrain: get: %w", err)
	}
	return nil, e, done, errNoThought
}

func (s *Server) getThought(w *recorder, r *http.Request, who *caller) error {
	var t thought
	err := s.read(r.Context(), w, func() (int, error) {
		_, e, err := s.locate(r.Context(), who, r.PathValue("id"))
		if err != nil {
			return 0, err
		}
		t, _ = thoughtOf(e)
		return t.size(), nil
	})
	if err != nil {
		return err
	}
	return answerThought(w, http.StatusOK, t.wire())
}

// patch is what a PATCH sets; nil stays as it is.
type patch struct {
	content  *string
	metadata []byte
}

func (b body) patch() (p patch, err error) {
	if b.has("content") {
		text, err := b.content()
		if err != nil {
			return p, err
		}
		p.content = &text
	}
	if b.has("metadata") {
		if p.metadata, err = b.object("metadata"); err != nil {
			return p, err
		}
	}
	if p.content == nil && p.metadata == nil {
		return p, unprocessable(bodyProblem("missing", "", "Content or metadata required"))
	}
	return p, nil
}

var patchSeed = maphash.MakeSeed()

func (s *Server) patchThought(w *recorder, r *http.Request, who *caller) error {
	b, err := readBody(r)
	if err != nil {
		return err
	}
	p, err := b.patch()
	if err != nil {
		return err
	}
	t, err := s.patch(r, who, p)
	if err != nil {
		return err
	}
	if !s.answers.grow(w.held, t.size(), false) { // it is done, but the client will have to ask again
		return errFull
	}
	return answerThought(w, http.StatusOK, t.wire())
}

// patch changes a thought: what is given replaces what is there, all of the metadata too.
func (s *Server) patch(r *http.Request, who *caller, p patch) (thought, error) {
	ctx, id := r.Context(), r.PathValue("id")
	lock := &s.patching[maphash.String(patchSeed, id)%uint64(len(s.patching))]
	lock.Lock()
	defer lock.Unlock()
	src, e, done, err := s.meant(r, who)
	if err != nil {
		return thought{}, err
	}
	defer done()
	meta := maps.Clone(e.Meta)
	meta[metaUpdated] = s.now().UTC().Truncate(time.Microsecond).Format(time.RFC3339Nano)
	change := core.Change{Meta: meta}
	if p.metadata != nil {
		meta[metaMetadata] = string(p.metadata)
	}
	if p.content != nil {
		m := messageOf(*p.content, []byte(meta[metaMetadata]))
		change.Message, change.Tokens, change.Fingerprint = &m, tokensAtMost(*p.content), message.Fingerprint(m)
	}
	if err := s.store.Update(ctx, src.scope(), id, change); err != nil {
		return thought{}, fmt.Errorf("openbrain: patch: %w", err)
	}
	e.Meta = meta
	if change.Message != nil {
		e.Message, e.Tokens, e.Fingerprint = *change.Message, change.Tokens, change.Fingerprint
		s.tell(ctx, src.name, func(ctx context.Context, o core.Observer) error { return o.Updated(ctx, e) })
		if s.embedding != nil {
			s.embedding.enqueue(src.name)
		}
	}
	if err := s.changes.add(ctx, src.name); err != nil {
		return thought{}, err
	}
	t, _ := thoughtOf(e)
	return t, nil
}

func (s *Server) deleteThought(w *recorder, r *http.Request, who *caller) error {
	src, e, done, err := s.meant(r, who)
	if errors.Is(err, errNoThought) {
		return errors.Join(s.countMissing(r.Context(), who, r.PathValue("id")), err)
	}
	if err != nil {
		return err
	}
	n, err := func() (int, error) {
		defer done()
		return s.erase(r.Context(), src, []string{e.ID})
	}()
	if err != nil {
		return err
	}
	if err := s.changes.add(r.Context(), src.name); err != nil {
		return err
	}
	if n == 0 {
		return errNoThought // somebody else was faster
	}
	return answer(w, http.StatusOK, map[string]any{"status": "deleted", "id": e.ID, "deleted": n})
}

// countMissing counts a deletion of what is not there: a try before this one, which was cut off, may have deleted it and not counted.
func (s *Server) countMissing(ctx context.Context, who *caller, id string) error {
	tag, ok := tagIn(id)
	if !ok {
		return nil
	}
	for _, src := range s.catalogue.tagged(tag) {
		if who.may(src.name) {
			if err := s.changes.add(ctx, src.name); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *Server) deleteThoughts(w *recorder, r *http.Request, who *caller) error {
	q, err := parseQuery(r)
	if err != nil {
		return err
	}
	source, metadataID := q.Get("source"), q.Get("metadata_id")
	if source == "" && metadataID == "" {
		return refuse(http.StatusBadRequest, "source and/or metadata_id required")
	}
	// A filter that is there without a value is a mistake, and leaving it out would delete more.
	if (q.Has("source") && source == "") || (q.Has("metadata_id") && metadataID == "") || len(q["source"]) > 1 || len(q["metadata_id"]) > 1 {
		return refuse(http.StatusBadRequest, "each filter must be given once, with a value")
	}
	if source == "" { // erasing must reach what another server stored a moment ago
		if err := s.catalogue.refresh(r.Context()); err != nil {
			return err
		}
	}
	sources, err := s.sources(r.Context(), who, source)
	if err != nil {
		return err
	}
	n := 0
	for _, src := range sources {
		erased, err := s.eraseAll(r.Context(), src, metadataID)
		n += erased
		if err != nil {
			return err
		}
	}
	return answer(w, http.StatusOK, map[string]any{"status": "deleted", "deleted": n})
}

// eraseAll deletes the thoughts that a source has now, those with this id in their metadata when it is not empty.
func (s *Server) eraseAll(ctx context.Context, src *source, metadataID string) (int, error) {
	if err := src.meet(ctx, s.store); err != nil {
		return 0, fmt.Errorf("openbrain: delete: %w", err)
	}
	src.writes.Lock()
	end := src.next(s.nextSeq())
	src.writes.Unlock()
	q := core.ScanQuery{Scope: src.scope(), Limit: core.MaxPage, ToSeq: end}
	n := 0
	for {
		page, err := s.store.Scan(ctx, q)
		if err != nil {
			return n, fmt.Errorf("openbrain: delete: %w", err)
		}
		var ids []string
		for _, e := range page.Entries {
			t, ok := thoughtOf(e)
			if ok && (metadataID == "" || scalar(t.Metadata, "id") == metadataID) {
				ids = append(ids, t.ID)
			}
		}
		erased, err := s.erase(ctx, src, ids)
		n += erased
		if err != nil || page.Next == "" {
			return n, errors.Join(err, s.changes.add(ctx, src.name))
		}
		q.Cursor = page.Next
	}
}

func (s *Server) erase(ctx context.Context, src *source, ids []string) (int, error) {
	if len(ids) == 0 {
		return 0, nil
	}
	n, err := s.store.Delete(ctx, src.scope(), ids)
	src.deleted.Add(int64(n))
	if err != nil {
		return n, fmt.Errorf("openbrain: delete: %w", err)
	}
	s.tell(ctx, src.name, func(ctx context.Context, o core.Observer) error { return o.Deleted(ctx, src.scope(), ids) })
	return n, nil
}
