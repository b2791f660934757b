package engine_test

import (
	"testing"

	"github.com/contextengine/contextengine/backends/memory"
	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/engine"
)

// TestPurgedBeforeTheFirstView: what begins a session is stored, and then purged before the session's first view is published: it is stored once more, and the view shows it.
func TestPurgedBeforeTheFirstView(t *testing.T) {
	for at := int64(1); ; at++ {
		store := &numbered{Store: memory.New(), at: at}
		store.off.Store(true)
		f := newFixture(t, func(_ *engine.Config, p *engine.Parts) { p.Store = store })
		f.store = store.Store
		hooked := f.engine
		f.restart()
		came := false
		store.do = func() {
			came = true
			f.forget(engine.ForgetRequest{Scope: core.Scope{Agent: f.id.Agent}, Purge: true})
		}
		store.off.Store(false)
		_, err := hooked.Ingest(t.Context(), core.IngestRequest{Session: f.id, Message: user("hello")})
		store.off.Store(true)
		if err != nil {
			t.Fatal(err)
		}
		if !came {
			break
		}
		for n, e := range []*engine.Engine{hooked, f.engine} {
			res, err := e.Assemble(t.Context(), core.AssembleRequest{Session: f.id, Budget: 100})
			if got := shown(res); err != nil || got != "hello" {
				t.Errorf("purged before call %d: engine %d shows %q, %v", at, n, got, err)
			}
		}
	}
}
