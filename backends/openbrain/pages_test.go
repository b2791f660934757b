package openbrain_test

import (
	"bytes"
	"net/http"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/contextengine/contextengine/backends/openbrain"
	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/internal/openbraintest"
)

// A server that is restarted with smaller pages does not hide what is behind them.
func TestPagesThatShrink(t *testing.T) {
	for _, refuse := range []bool{false, true} {
		srv := openbraintest.New(t)
		s := open(t, srv)
		mustAppend(t, s, run("main", "s", 0, 60)...)
		for _, most := range []int{0, 40, 11, 3, 2, 1} {
			if most > 0 && most < 10 && !refuse {
				continue // no server is assumed to cut so short without a word
			}
			srv.Set(func(b *openbraintest.Behavior) { b.MaxLimit, b.RefuseLimit = most, refuse })
			if got := len(all(t, s, agentScope("main"), false, core.MaxPage)); got != 60 {
				t.Errorf("pages of %d, refused %t: %d entries, want 60", most, refuse, got)
			}
		}
		srv.Set(func(b *openbraintest.Behavior) { b.MaxLimit = 0 })
		if got := len(all(t, s, agentScope("main"), false, core.MaxPage)); got != 60 {
			t.Errorf("%d entries, want 60", got)
		}
	}
}

// What a server refused is not asked for again.
func TestPagesAreLearnt(t *testing.T) {
	for name, c := range map[string]struct {
		set  func(*openbraintest.Behavior)
		want int
	}{
		"refused":    {func(b *openbraintest.Behavior) { b.MaxLimit, b.RefuseLimit = 50, true }, 3},   // 50, 50 and the end
		"no offsets": {func(b *openbraintest.Behavior) { b.NoOffset = true }, 2},                      // all of it and the statistics
		"recent":     {func(b *openbraintest.Behavior) { b.NoList, b.NoOffset = true, true }, 2},      // the same: that there is no list is remembered
		"both":       {func(b *openbraintest.Behavior) { b.NoOffset, b.MaxLimit = true, 200 }, 2 + 0}, // as without offsets
	} {
		srv := openbraintest.New(t, c.set)
		s := open(t, srv, func(cfg *openbrain.Config) { cfg.PageSize = 60 })
		mustAppend(t, s, run("main", "s", 0, 80)...)
		for range 2 {
			srv.Forget()
			if got := len(all(t, s, agentScope("main"), false, core.MaxPage)); got != 80 {
				t.Errorf("%s: %d entries, want 80", name, got)
			}
		}
		if n := len(srv.Requests()); n != c.want {
			t.Errorf("%s: %d requests for a listing, want %d", name, n, c.want)
		}
	}
}

// Pages that hold more than can be read are asked for in parts.
func TestPagesThatAreTooLarge(t *testing.T) {
	srv := openbraintest.New(t)
	s := open(t, srv, func(c *openbrain.Config) { c.PageSize = 10 })
	want := run("main", "s", 0, 25)
	mustAppend(t, s, want...)
	filler := bytes.Repeat([]byte(" "), 65<<20)
	srv.Inject(openbraintest.Fault{Method: "GET", Path: "=/v1/thoughts", Times: -1, Do: func(w http.ResponseWriter, r *http.Request, serve http.HandlerFunc) {
		limit, _ := strconv.Atoi(r.URL.Query().Get("limit"))
		offset, _ := strconv.Atoi(r.URL.Query().Get("offset"))
		if limit > 6 && offset > 0 || limit > 3 && offset > 10 {
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write(filler)
			return
		}
		serve(w, r)
	}})
	if diff := cmp.Diff(want, all(t, s, agentScope("main"), false, core.MaxPage)); diff != "" {
		t.Errorf("entries (-want +got):\n%s", diff)
	}
}
