package rpc_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/engine"
	"github.com/contextengine/contextengine/hosts/rpc"
)

// recalling is a fake engine that answers the reads.
type recalling struct {
	*fake
	search func(ctx context.Context, req engine.SearchRequest) (engine.SearchResult, error)
}

func (r *recalling) Search(ctx context.Context, req engine.SearchRequest) (engine.SearchResult, error) {
	if r.search == nil {
		return engine.SearchResult{}, nil
	}
	return r.search(ctx, req)
}

func (r *recalling) Expand(context.Context, engine.ExpandRequest) (engine.ExpandResult, error) {
	return engine.ExpandResult{}, nil
}

func (r *recalling) Describe(_ context.Context, req engine.DescribeRequest) (engine.DescribeResult, error) {
	return engine.DescribeResult{Session: req.Session}, nil
}

// remember stores n turns of a session, the third of them with a long answer.
func remember(t *testing.T, c *rpc.Client, id core.SessionID, n int) (long string) {
	t.Helper()
	long = strings.Repeat("<nothing> & \"nothing\"\n", 300) + "fatal: E-4711/b in module kestrel\n" + strings.Repeat("nor \\ here\t\n", 300)
	for i := range n {
		text := fmt.Sprintf("answer %d", i)
		if i == 3 {
			text = long
		}
		_, err := c.CommitTurn(t.Context(), rpc.CommitTurnParams{
			Session: id, AdvancementKey: fmt.Sprint("turn", i),
			Messages: raws([][]byte{user(fmt.Sprintf("question %d", i), 2*i), answer(text, 2*i+1)}),
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return long
}

// What a window does not show any more is found and read page by page, byte for byte, by its own agent only.
func TestTheWayBack(t *testing.T) {
	t.Parallel()
	host := rpc.NewHost()
	c := open(t, newServer(t, one{composed(t, host)}, host), rpc.ClientOptions{})
	id := sid("s")
	long := remember(t, c, id, 30)
	found, err := c.Search(t.Context(), rpc.SearchParams{SearchRequest: engine.SearchRequest{Session: id, Query: "E-4711/b"}})
	if err != nil || len(found.Found) != 1 || found.Tokens > engine.DefaultAnswer {
		t.Fatalf("Search = %+v, %v", found, err)
	}
	if !strings.Contains(found.Text, fmt.Sprintf(" #%d]", found.Found[0].Seq)) || !strings.Contains(found.Found[0].Excerpt, "fatal: E-4711/b in module kestrel") {
		t.Errorf("found %+v", found)
	}
	var whole strings.Builder
	req := engine.ExpandRequest{Session: id, ID: "#" + found.Found[0].ID, Tokens: 400}
	for range 100 {
		page, err := c.Expand(t.Context(), rpc.ExpandParams{ExpandRequest: req})
		if err != nil || len(page.Found) != 1 || page.Tokens > 400 || page.Total != len(long) {
			t.Fatalf("Expand = %+v, %v", page, err)
		}
		whole.WriteString(page.Found[0].Excerpt)
		if req.Offset = page.Next; req.Offset == 0 {
			break
		}
	}
	if diff := cmp.Diff(long, whole.String()); diff != "" {
		t.Errorf("the entry came back changed: %s", diff)
	}
	d, err := c.Describe(t.Context(), rpc.DescribeParams{DescribeRequest: engine.DescribeRequest{Session: id}})
	if err != nil || d.Entries != 60 || d.Turns != 30 || d.First.IsZero() || d.Text == "" {
		t.Errorf("Describe = %+v, %v", d, err)
	}
	other := core.SessionID{Agent: "b", Session: "s"}
	if res, err := c.Search(t.Context(), rpc.SearchParams{SearchRequest: engine.SearchRequest{Session: other, Query: "E-4711/b"}}); err != nil || len(res.Found) > 0 || res.Text != "" {
		t.Errorf("another agent finds %+v, %v", res, err)
	}
	_, err = c.Expand(t.Context(), rpc.ExpandParams{ExpandRequest: engine.ExpandRequest{Session: other, ID: found.Found[0].ID}})
	if wantCode(t, "another agent's Expand", err, rpc.CodeNotFound); !errors.Is(err, core.ErrNotFound) {
		t.Errorf("Expand = %v", err)
	}
}

// The largest answers stay far below the bound of a frame.
func TestAnswersOfReadsAreBounded(t *testing.T) {
	t.Parallel()
	host := rpc.NewHost()
	c := open(t, newServer(t, one{composed(t, host)}, host), rpc.ClientOptions{MaxFrame: 1 << 20})
	id := sid("s")
	for i := range 60 {
		if _, err := c.Ingest(t.Context(), rpc.IngestParams{Session: id, Message: user(strings.Repeat("lots of herons ", 4000), i)}); err != nil {
			t.Fatal(err)
		}
	}
	for req := (engine.SearchRequest{Session: id, Query: "herons", Limit: engine.MaxFound, Tokens: engine.MaxAnswer}); ; {
		res, err := c.Search(t.Context(), rpc.SearchParams{SearchRequest: req})
		if err != nil || res.Tokens > engine.MaxAnswer {
			t.Fatalf("Search = %d tokens, %v", res.Tokens, err)
		}
		if req.Offset = res.Next; req.Offset == 0 {
			break
		}
	}
}

func TestReadsRefuse(t *testing.T) {
	t.Parallel()
	c := open(t, newServer(t, one{&recalling{fake: &fake{}}}, nil), rpc.ClientOptions{})
	search := func(edit func(*engine.SearchRequest)) error {
		req := engine.SearchRequest{Session: sid("s"), Query: "x"}
		edit(&req)
		_, err := c.Search(t.Context(), rpc.SearchParams{SearchRequest: req})
		return err
	}
	expand := func(edit func(*engine.ExpandRequest)) error {
		req := engine.ExpandRequest{Session: sid("s"), ID: "x"}
		edit(&req)
		_, err := c.Expand(t.Context(), rpc.ExpandParams{ExpandRequest: req})
		return err
	}
	_, nobody := c.Describe(t.Context(), rpc.DescribeParams{DescribeRequest: engine.DescribeRequest{Session: core.SessionID{Agent: "a"}}})
	for _, r := range []struct {
		field string
		err   error
	}{
		{"query", search(func(r *engine.SearchRequest) { r.Query = " \n" })},
		{"limit", search(func(r *engine.SearchRequest) { r.Limit = engine.MaxFound + 1 })},
		{"offset", search(func(r *engine.SearchRequest) { r.Offset = -1 })},
		{"offset", search(func(r *engine.SearchRequest) { r.Offset = 1 << 40 })},
		{"tokens", search(func(r *engine.SearchRequest) { r.Tokens = engine.MaxAnswer + 1 })},
		{"session.agent", search(func(r *engine.SearchRequest) { r.Session.Agent = "" })},
		{"id", expand(func(r *engine.ExpandRequest) { r.ID = " #" })},
		{"before", expand(func(r *engine.ExpandRequest) { r.Before = -1 })},
		{"after", expand(func(r *engine.ExpandRequest) { r.After = engine.MaxFound + 1 })},
		{"offset", expand(func(r *engine.ExpandRequest) { r.Offset = -1 })},
		{"tokens", expand(func(r *engine.ExpandRequest) { r.Tokens = -1 })},
		{"session.session", nobody},
	} {
		if e := wantCode(t, r.field, r.err, rpc.CodeInvalidParams); e.Data.Field != r.field {
			t.Errorf("%v names %q, want %q", r.err, e.Data.Field, r.field)
		}
	}
	_, err := open(t, newServer(t, one{&fake{}}, nil), rpc.ClientOptions{}).Search(t.Context(), rpc.SearchParams{SearchRequest: engine.SearchRequest{Session: sid("s"), Query: "x"}})
	wantCode(t, "Search of an engine that has none", err, rpc.CodeUnsupported)
}

// Reads do not wait for the turn that is under way, and nothing waits for them.
func TestReadsRunBesideATurn(t *testing.T) {
	t.Parallel()
	begun, free := make(chan string, 10), make(chan struct{})
	hold := func(ctx context.Context, what string) {
		begun <- what
		select {
		case <-free:
		case <-ctx.Done():
		}
	}
	e := &recalling{fake: &fake{assemble: func(ctx context.Context, _ core.AssembleRequest) (core.AssembleResult, error) {
		hold(ctx, "assemble")
		return core.AssembleResult{PromptAuthority: core.AuthorityAssembled}, nil
	}}}
	e.search = func(ctx context.Context, req engine.SearchRequest) (engine.SearchResult, error) {
		if req.Query == "slow" {
			hold(ctx, "search")
		}
		return engine.SearchResult{}, nil
	}
	c := open(t, newServer(t, one{e}, nil), rpc.ClientOptions{})
	done := make(chan error, 2)
	go func() {
		_, err := c.Assemble(t.Context(), rpc.AssembleParams{Session: sid("s"), Budget: 100})
		done <- err
	}()
	receive(t, "assemble", begun)
	if res, err := c.Search(t.Context(), rpc.SearchParams{SearchRequest: engine.SearchRequest{Session: sid("s"), Query: "x"}}); err != nil || res.Found == nil {
		t.Errorf("Search during Assemble = %+v, %v", res, err)
	}
	if _, err := c.Expand(t.Context(), rpc.ExpandParams{ExpandRequest: engine.ExpandRequest{Session: sid("s"), ID: "x"}}); err != nil {
		t.Errorf("Expand during Assemble = %v", err)
	}
	if _, err := c.Describe(t.Context(), rpc.DescribeParams{DescribeRequest: engine.DescribeRequest{Session: sid("s")}}); err != nil {
		t.Errorf("Describe during Assemble = %v", err)
	}
	go func() {
		_, err := c.Search(t.Context(), rpc.SearchParams{SearchRequest: engine.SearchRequest{Session: sid("t"), Query: "slow"}})
		done <- err
	}()
	receive(t, "search", begun)
	if _, err := c.Ingest(t.Context(), rpc.IngestParams{Session: sid("t"), Message: user("hello", 1)}); err != nil {
		t.Errorf("Ingest during Search = %v", err)
	}
	close(free)
	for range 2 {
		if err := receive(t, "end", done); err != nil {
			t.Error(err)
		}
	}
}

func TestScore(t *testing.T) {
	t.Parallel()
	host := rpc.NewHost()
	e := composed(t, host)
	c := open(t, newServer(t, one{e}, host), rpc.ClientOptions{})
	id := sid("s")
	value := func(f float64) *float64 { return &f }
	for _, p := range []rpc.ScoreParams{
		{Session: id, Name: "thumbs", Value: value(1)}, {Session: id, Name: "thumbs", Value: value(0)}, {Session: id, Turn: 2, Name: "thumbs", Value: value(-1.5)},
	} {
		if err := c.Score(t.Context(), p); err != nil {
			t.Fatal(err)
		}
	}
	got, err := e.Outcomes(t.Context(), id.Agent)
	if err != nil || len(got) != 2 || got[0].Value != 0 || got[1].Value != -1.5 || got[1].Turn != 2 || got[0].Time.IsZero() {
		t.Errorf("Outcomes = %+v, %v", got, err)
	}
	wantCode(t, "Score without a value", c.Score(t.Context(), rpc.ScoreParams{Session: id, Name: "thumbs"}), rpc.CodeInvalidParams)
	wantCode(t, "Score with a bad name", c.Score(t.Context(), rpc.ScoreParams{Session: id, Name: "thumbs up", Value: value(1)}), rpc.CodeInvalidParams)
	wantCode(t, "Score with an arm", c.Call(t.Context(), rpc.MethodScore, map[string]any{"session": id, "name": "n", "value": 1, "arm": "b"}, &rpc.NoResult{}), rpc.CodeInvalidParams)
}

// A session that is new has nothing in force; the client then hands over what it has.
func TestBootstrapSaysWhatIsKnown(t *testing.T) {
	t.Parallel()
	host := rpc.NewHost()
	c := open(t, newServer(t, one{composed(t, host)}, host), rpc.ClientOptions{})
	for _, step := range []struct {
		transcript *rpc.TranscriptParams
		known      int
	}{
		{nil, 0},
		{&rpc.TranscriptParams{Messages: raws([][]byte{user("one", 0), answer("two", 1)})}, 2},
		{nil, 2},
	} {
		res, err := c.Bootstrap(t.Context(), rpc.BootstrapParams{Session: sid("s"), Transcript: step.transcript})
		if err != nil || res.Known != step.known {
			t.Errorf("Bootstrap = %+v, %v, want %d known", res, err, step.known)
		}
	}
}
