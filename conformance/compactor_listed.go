package conformance

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/capability"
)

// listedHost is a host that counts what it is asked beyond what it lists.
type listedHost struct {
	*Host
	lists []capability.Name
	// beyond counts calls of what is not listed.
	beyond atomic.Int64
}

func (h *listedHost) Capabilities() []capability.Name { return slices.Clone(h.lists) }

func (h *listedHost) Compact(ctx context.Context, req core.CompactRequest) (core.CompactResult, error) {
	if slices.Contains(h.lists, capability.DelegateHost) {
		return h.Host.Compact(ctx, req)
	}
	h.beyond.Add(1)
	return core.NoHost{}.Compact(ctx, req)
}

func (h *listedHost) Complete(ctx context.Context, req core.CompletionRequest) (core.Completion, error) {
	if slices.Contains(h.lists, capability.Complete) {
		return h.Host.Complete(ctx, req)
	}
	h.beyond.Add(1)
	return core.NoHost{}.Complete(ctx, req)
}

// patchListed hands over hosts that offer less than all.
func patchListed(r *compactorRun) string {
	least := core.NoHost{}.Capabilities()
	for _, lists := range [][]capability.Name{least, append(slices.Clone(least), capability.DelegateHost), append(slices.Clone(least), capability.Complete)} {
		host := &listedHost{Host: r.host, lists: lists}
		if q, ok := r.compactor.(capability.Requirer); ok && q.Requires().Check(host, host.Name()) != nil {
			continue // no engine is made of the two
		}
		r.published = nil
		c := r.task(true)
		c.Host = host
		patches, text := r.run(c)
		if text == "" {
			text = r.progress(c, patches)
		}
		if n := host.beyond.Load(); text == "" && n > 0 {
			text = fmt.Sprintf("it is asked %d times for what it does not list", n)
		}
		if text != "" {
			return fmt.Sprintf("on a host that lists %q: %s", lists, text)
		}
	}
	return ""
}
