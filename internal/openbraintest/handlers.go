package openbraintest

import (
	"bytes"
	"encoding/json"
	"io"
	"maps"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// serve records the request, lets a fault have it, or handles it.
func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the client is gone
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	s.mu.Lock()
	authorized := r.Header.Get("Authorization") == "Bearer "+s.key
	s.requests = append(s.requests, Request{
		Method: r.Method, Path: r.URL.EscapedPath(), Query: r.URL.RawQuery, Authorized: authorized, Body: string(body),
	})
	fault := s.fault(r)
	s.mu.Unlock()
	if fault != nil {
		fault(w, r, s.handle)
		return
	}
	s.handle(w, r)
}

// handle answers as the documented server does.
func (s *Server) handle(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if stopped(r) {
		return
	}
	if r.Header.Get("Authorization") != "Bearer "+s.key {
		answer(w, http.StatusUnauthorized, detail("Invalid authentication credentials"))
		return
	}
	if s.behavior.Strict && !allowed(w, r) {
		return
	}
	path := r.URL.EscapedPath()
	id, named := strings.CutPrefix(path, "/v1/thoughts/")
	b := s.behavior
	switch {
	case path != "/" && strings.HasSuffix(path, "/"):
		w.Header().Set("Location", s.URL()+strings.TrimRight(path, "/"))
		w.WriteHeader(http.StatusTemporaryRedirect)
	case path == "/v1/thoughts" && r.Method == http.MethodPost:
		s.create(w, r)
	case path == "/v1/thoughts" && r.Method == http.MethodGet && !b.NoList:
		s.list(w, r.URL.Query(), true)
	case path == "/v1/thoughts" && r.Method == http.MethodDelete:
		s.bulk(w, r.URL.Query())
	case path == "/v1/thoughts":
		answer(w, http.StatusMethodNotAllowed, detail("Method Not Allowed"))
	case path == "/v1/thoughts/recent" && r.Method == http.MethodGet && !b.NoRecent:
		s.list(w, r.URL.Query(), !b.RecentIgnoresSource)
	case path == "/v1/search" && r.Method == http.MethodPost:
		s.search(w, r)
	case path == "/v1/stats" && r.Method == http.MethodGet && !b.NoStats:
		s.stats(w)
	case named && !strings.Contains(id, "/") && id != "recent":
		if id, err := url.PathUnescape(id); err == nil {
			s.single(w, r, id)
			return
		}
		fallthrough
	default:
		answer(w, http.StatusNotFound, detail("Not Found"))
	}
}

type thoughtBody struct {
	Content  *string        `json:"content"`
	Source   *string        `json:"source"`
	Metadata map[string]any `json:"metadata"`
}

// read decodes a body as FastAPI does, and refuses what PostgreSQL refuses.
func read(w http.ResponseWriter, r *http.Request, into any) bool {
	body, _ := io.ReadAll(r.Body)
	if !strings.HasPrefix(r.Header.Get("Content-Type"), "application/json") || !utf8.Valid(body) || json.Unmarshal(body, into) != nil {
		answer(w, http.StatusUnprocessableEntity, Validation([]any{"body"}, "Input should be a valid dictionary", string(body)))
		return false
	}
	if bytes.Contains(body, []byte(`\u0000`)) && hasNUL(into) {
		w.Header().Set("Content-Type", "text/plain")
		w.WriteHeader(http.StatusInternalServerError)
		_, _ = io.WriteString(w, "Internal Server Error")
		return false
	}
	return true
}

// hasNUL reports whether a decoded value holds a NUL, which neither text nor jsonb columns take.
func hasNUL(v any) bool {
	b, _ := json.Marshal(v)
	return bytes.Contains(bytes.ReplaceAll(b, []byte(`\\`), nil), []byte(`\u0000`))
}

func (s *Server) create(w http.ResponseWriter, r *http.Request) {
	var in thoughtBody
	if !read(w, r, &in) {
		return
	}
	if in.Content == nil || strings.TrimSpace(*in.Content) == "" {
		answer(w, http.StatusUnprocessableEntity, Validation([]any{"body", "content"}, "Field required", in))
		return
	}
	source := ""
	if in.Source != nil {
		source = *in.Source
	}
	t := s.store(*in.Content, source, in.Metadata)
	answer(w, http.StatusCreated, s.behavior.created(t))
}

func (s *Server) list(w http.ResponseWriter, q url.Values, filtered bool) {
	limit, ok := s.limit(w, q.Get("limit"), 20)
	if !ok {
		return
	}
	offset, _ := strconv.Atoi(q.Get("offset"))
	if s.behavior.NoOffset {
		offset = 0
	}
	source, total := q.Get("source"), 0
	var elements []map[string]any
	for _, t := range slices.Backward(s.thoughts) {
		if filtered && source != "" && t.Source != source {
			continue
		}
		if total++; total > offset && len(elements) < limit {
			elements = append(elements, s.behavior.element(t, math.NaN()))
		} else if len(elements) == limit && !s.behavior.Total {
			break // nobody is told how many there are
		}
	}
	answer(w, http.StatusOK, s.behavior.list(elements, total))
}

// limit reads a limit and applies MaxLimit.
func (s *Server) limit(w http.ResponseWriter, text string, otherwise int) (int, bool) {
	limit := otherwise
	if text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			answer(w, http.StatusUnprocessableEntity, Validation([]any{"query", "limit"}, "Input should be greater than or equal to 1", text))
			return 0, false
		}
		limit = n
	}
	if most := s.behavior.MaxLimit; most > 0 && limit > most {
		if s.behavior.RefuseLimit {
			answer(w, http.StatusUnprocessableEntity, TooLarge(limit, most))
			return 0, false
		}
		limit = most
	}
	return limit, true
}

func (s *Server) bulk(w http.ResponseWriter, q url.Values) {
	source, id := q.Get("source"), q.Get("metadata_id")
	if source == "" && id == "" {
		answer(w, http.StatusBadRequest, detail("source and/or metadata_id required"))
		return
	}
	n := s.remove(func(t *Thought) bool {
		return (source == "" || t.Source == source) && (id == "" || t.Metadata["id"] == id)
	})
	s.gone(w, map[string]any{"deleted": n})
}

func (s *Server) gone(w http.ResponseWriter, body any) {
	if s.behavior.NoContentDelete {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusNoContent)
		return
	}
	answer(w, http.StatusOK, body)
}

func (s *Server) single(w http.ResponseWriter, r *http.Request, id string) {
	i := slices.IndexFunc(s.thoughts, func(t *Thought) bool { return t.ID == id })
	if s.behavior.NoGet && r.Method == http.MethodGet {
		answer(w, http.StatusMethodNotAllowed, detail("Method Not Allowed"))
		return
	}
	if i < 0 {
		answer(w, http.StatusNotFound, detail("Thought not found"))
		return
	}
	switch t := s.thoughts[i]; r.Method {
	case http.MethodGet:
		answer(w, http.StatusOK, s.behavior.one(t))
	case http.MethodDelete:
		s.thoughts = slices.Delete(s.thoughts, i, i+1)
		s.gone(w, map[string]any{"status": "deleted", "id": s.behavior.id(t)})
	case http.MethodPatch:
		var in thoughtBody
		if !read(w, r, &in) {
			return
		}
		changed := *t // Thoughts hands out copies: the maps in them must not change
		if in.Content != nil {
			changed.Content = *in.Content
		}
		if in.Metadata != nil {
			changed.Metadata = map[string]any{}
			if s.behavior.MergePatch {
				maps.Copy(changed.Metadata, t.Metadata)
			}
			maps.Copy(changed.Metadata, in.Metadata)
		}
		changed.Updated, changed.Patches = s.tick(), t.Patches+1
		s.thoughts[i] = &changed
		s.gone(w, s.behavior.one(&changed))
	default:
		answer(w, http.StatusMethodNotAllowed, detail("Method Not Allowed"))
	}
}

func (s *Server) search(w http.ResponseWriter, r *http.Request) {
	var in struct {
		Query  string  `json:"query"`
		Limit  int     `json:"limit"`
		Source *string `json:"source"`
	}
	if !read(w, r, &in) {
		return
	}
	switch b := s.behavior.SearchSource; {
	case b == SourceIgnored:
		in.Source = nil
	case b == SourceHonoured:
		w.Header().Set("OpenBrain-Search", "words")
	case in.Source != nil && b == SourceForbidden:
		problem := Validation([]any{"body", "source"}, "Extra inputs are not permitted", *in.Source)
		answer(w, http.StatusUnprocessableEntity, problem)
		return
	case in.Source != nil && b == SourceRefused:
		answer(w, http.StatusBadRequest, detail("Bad request"))
		return
	}
	limit := in.Limit
	if !s.behavior.Strict { // the document bounds recent; what a search may ask for it does not say
		var ok bool
		if limit, ok = s.limit(w, strconv.Itoa(max(in.Limit, 1)), 5); !ok {
			return
		}
	}
	type hit struct {
		t     *Thought
		score float64
	}
	var hits []hit
	query := words(in.Query)
	for _, t := range slices.Backward(s.thoughts) {
		if in.Source != nil && t.Source != *in.Source {
			continue
		}
		if score := overlap(query, words(t.Content)); score > 0 || s.behavior.SearchAll {
			hits = append(hits, hit{t, score})
		}
	}
	slices.SortStableFunc(hits, func(a, b hit) int {
		switch {
		case a.score > b.score:
			return -1
		case a.score < b.score:
			return 1
		}
		return 0
	})
	var elements []map[string]any
	for _, h := range hits[:min(limit, len(hits))] {
		b := s.behavior
		if b.SearchNoID {
			b.IDField = ""
		}
		elements = append(elements, b.element(h.t, h.score))
	}
	answer(w, http.StatusOK, s.behavior.list(elements, len(hits)))
}

func (s *Server) stats(w http.ResponseWriter) {
	by := map[string]int{}
	for _, t := range s.thoughts {
		by[t.Source]++
	}
	answer(w, http.StatusOK, map[string]any{"total": len(s.thoughts), "embedded": len(s.thoughts), "by_source": by})
}

// words returns the set of words of a text.
func words(text string) map[string]bool {
	set := map[string]bool{}
	for _, word := range strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }) {
		set[word] = true
	}
	return set
}

// overlap is the cosine of two sets of words.
func overlap(a, b map[string]bool) float64 {
	n := 0
	for word := range a {
		if b[word] {
			n++
		}
	}
	if n == 0 {
		return 0
	}
	return float64(n) / math.Sqrt(float64(len(a))*float64(len(b)))
}

func detail(text string) any { return map[string]any{"detail": text} }

// answer writes a JSON answer; a nil body writes none.
func answer(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	if body != nil {
		_ = json.NewEncoder(w).Encode(body)
	}
}
