package semantic_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/message"
	"github.com/contextengine/contextengine/strategies/semantic"
)

// scripted answers each scope with what it was given, and remembers the queries.
type scripted struct {
	hits    map[core.Scope][]core.Hit
	errs    map[core.Scope]error
	queries []core.SearchQuery
}

func (s *scripted) Search(_ context.Context, q core.SearchQuery) ([]core.Hit, error) {
	s.queries = append(s.queries, q)
	return s.hits[q.Scope], s.errs[q.Scope]
}

func newRetriever(t *testing.T, s core.Searcher) *semantic.Retriever {
	t.Helper()
	r, err := semantic.New(semantic.DefaultConfig(), s, semantic.WithSource("words"))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func hit(id, session string, score float64) core.Hit {
	return core.Hit{Entry: entry(id, session, 0, "text of "+id), Score: score}
}

func names(cs []core.Candidate) string {
	var out []string
	for _, c := range cs {
		out = append(out, c.Entry.ID)
	}
	return strings.Join(out, " ")
}

func TestRetrieveKeepsOrderAndPromises(t *testing.T) {
	scope := core.Scope{Agent: "ada", Session: "s"}
	beat := hit("beat", "s", 3)
	beat.Entry.Type = core.TypeHeartbeat
	part := hit("b", "s", 1)
	part.Passage = "of b"
	s := &scripted{hits: map[core.Scope][]core.Hit{scope: {
		hit("a", "s", 9), hit("shown", "s", 8), hit("elsewhere", "t", 7), beat, part, hit("a", "s", 1), hit("c", "s", 0.5),
	}}}
	q := core.Query{Scope: scope, Prompt: "where is the red kite now", Limit: 2, Tokens: 100, InWindow: func(id string) bool { return id == "shown" }}
	got, err := newRetriever(t, s).Retrieve(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	if names(got) != "a b" {
		t.Fatalf("candidates = %q, want %q", names(got), "a b")
	}
	if got[0].Score != 9 || got[0].Source != "words" || got[0].Text != "" || got[1].Text != "of b" {
		t.Errorf("candidates = %+v, want the scores, passages and source of the searcher", got)
	}
	if ex := s.queries[0].Exclude; ex == nil || !ex("shown") {
		t.Error("the searcher was not told what the window shows")
	}
}

func TestRetrieveFromGrantedScopes(t *testing.T) {
	own, parent := core.Scope{Agent: "ada", Session: "child"}, core.Scope{Agent: "ada", Session: "parent"}
	s := &scripted{
		hits: map[core.Scope][]core.Hit{own: {hit("o1", "child", 1), hit("o2", "child", 0.1)}, parent: {hit("p1", "parent", 90)}},
		errs: map[core.Scope]error{},
	}
	q := core.Query{Scope: own, Granted: []core.Scope{parent}, Prompt: "where is the red kite now", Limit: 10, Tokens: 100}
	r := newRetriever(t, s)
	got, err := r.Retrieve(t.Context(), q)
	if err != nil || names(got) != "o1 p1 o2" {
		t.Errorf("candidates = %q, %v, want the scopes to take turns", names(got), err)
	}
	for i := 1; i < len(got); i++ {
		if got[i].Score > got[i-1].Score {
			t.Errorf("scores rise at %d: %+v", i, got)
		}
	}
	s.errs[own] = core.ErrUnavailable
	if got, err := r.Retrieve(t.Context(), q); !errors.Is(err, core.ErrPartial) || !errors.Is(err, core.ErrUnavailable) || names(got) != "p1" {
		t.Errorf("candidates = %q, %v, want what the other scope has, and what is missing", names(got), err)
	}
	s.errs[parent] = core.ErrClosed
	if _, err := r.Retrieve(t.Context(), q); !errors.Is(err, core.ErrUnavailable) {
		t.Errorf("error = %v, want that of the first scope", err)
	}
}

// meaning is a searcher that compares what texts mean.
type meaning struct{ scripted }

func (*meaning) ByMeaning() bool { return true }

// TestWordsAreNotMeaning: over a searcher of words it says so, in the candidates' source and as a caveat.
func TestWordsAreNotMeaning(t *testing.T) {
	scope := core.Scope{Agent: "ada", Session: "s"}
	found := map[core.Scope][]core.Hit{scope: {hit("a", "s", 1)}}
	for _, c := range []struct {
		searcher core.Searcher
		source   string
		caveat   string
	}{
		{&scripted{hits: found}, "words", "set embedder and the searcher vector"},
		{&meaning{scripted{hits: found}}, "semantic", ""},
	} {
		r, err := semantic.New(semantic.DefaultConfig(), c.searcher)
		if err != nil {
			t.Fatal(err)
		}
		got, err := r.Retrieve(t.Context(), core.Query{Scope: scope, Prompt: "where is the red kite now", Limit: 1, Tokens: 100})
		if err != nil || len(got) != 1 || got[0].Source != c.source {
			t.Errorf("candidates = %+v, %v, want one with the source %q", got, err, c.source)
		}
		if text := r.Caveat(); !strings.Contains(text, c.caveat) || (text == "") != (c.caveat == "") {
			t.Errorf("Caveat() = %q, want %q", text, c.caveat)
		}
	}
}

func TestQueryText(t *testing.T) {
	say := func(role message.Role, text string) core.Entry {
		e := entry("x", "s", 0, text)
		e.Role, e.Message.Role = role, role
		return e
	}
	talk := []core.Entry{say(message.User, "which bird is that"), say(message.Assistant, "a red kite"), say(message.User, "go on")}
	rows := []struct {
		name   string
		prompt string
		recent []core.Entry
		want   string
	}{
		{"a prompt that stands alone", "where do red kites nest in winter", talk, "where do red kites nest in winter"},
		{"a short prompt", "go on", talk, "go on\na red kite\nwhich bird is that"},
		{"no prompt", "", talk, "go on\na red kite\nwhich bird is that"},
		{"nothing", " ", nil, ""},
		{"a long prompt", strings.Repeat("ä", 3000), nil, strings.Repeat("ä", 1000) + "\n" + strings.Repeat("ä", 1000)},
	}
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			s := &scripted{}
			_, err := newRetriever(t, s).Retrieve(t.Context(), core.Query{Scope: core.Scope{Agent: "ada"}, Prompt: r.prompt, Recent: r.recent, Limit: 3, Tokens: 9})
			if err != nil {
				t.Fatal(err)
			}
			if r.want == "" {
				if len(s.queries) != 0 {
					t.Errorf("asked for %q, want no search", s.queries[0].Text)
				}
				return
			}
			if got := s.queries[0].Text; got != r.want {
				t.Errorf("asked for %q, want %q", got, r.want)
			}
		})
	}
}

func TestNewsReachTheSearcher(t *testing.T) {
	store := &listStore{}
	x, err := semantic.NewVector(semantic.DefaultVectorConfig(), &wordEmbedder{})
	if err != nil {
		t.Fatal(err)
	}
	r := newRetriever(t, x)
	if err := r.Attach(store); err != nil {
		t.Fatal(err)
	}
	ask := func() string {
		got, err := r.Retrieve(t.Context(), core.Query{Scope: core.Scope{Agent: "ada"}, Prompt: "red kite over the northern moor", Limit: 5, Tokens: 9})
		if err != nil {
			t.Fatal(err)
		}
		return names(got)
	}
	if got := ask(); got != "" {
		t.Fatalf("candidates of an empty store = %q", got)
	}
	e := entry("a", "s", 0, "red kite")
	store.add(e)
	if err := r.Appended(t.Context(), []core.Entry{e}); err != nil {
		t.Fatal(err)
	}
	if got := ask(); got != "a" {
		t.Errorf("candidates = %q, want %q", got, "a")
	}
	if err := r.Deleted(t.Context(), core.Scope{Agent: "ada"}, []string{"a"}); err != nil {
		t.Fatal(err)
	}
	if got := ask(); got != "" {
		t.Errorf("candidates after the deletion = %q, want none", got)
	}
	if _, err := semantic.New(semantic.DefaultConfig(), nil); !errors.Is(err, core.ErrInvalid) {
		t.Errorf("New(nil) error = %v, want core.ErrInvalid", err)
	}
}

// lateSearcher has something by now of what it was asked for in one scope.
type lateSearcher struct {
	scripted
	scope core.Scope
}

func (s *lateSearcher) Late(q core.SearchQuery) bool { return q.Scope == s.scope && q.Text != "" }

// TestLate: what the searcher has only now is asked for again, in any scope; one that has nothing more, or cannot tell, is left alone.
func TestLate(t *testing.T) {
	here, granted := core.Scope{Agent: "ada", Session: "s"}, core.Scope{Agent: "ada", Session: "parent"}
	q := core.Query{Scope: here, Granted: []core.Scope{granted}, Prompt: "where is the red kite now"}
	if !newRetriever(t, &lateSearcher{scope: granted}).Late(q) {
		t.Error("what came late is not asked for")
	}
	if newRetriever(t, &lateSearcher{scope: core.Scope{Agent: "eve"}}).Late(q) || newRetriever(t, &scripted{}).Late(q) {
		t.Error("something is asked for that nobody has")
	}
	q.Prompt = ""
	if newRetriever(t, &lateSearcher{scope: granted}).Late(q) {
		t.Error("nothing was asked")
	}
}
