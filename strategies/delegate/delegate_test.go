package delegate_test

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/capability"
	"github.com/contextengine/contextengine/strategies/delegate"
)

// runtime is a host that compacts, and remembers what it was asked.
type runtime struct {
	core.NoHost
	asked []core.CompactRequest
	res   core.CompactResult
	err   error
}

func (*runtime) Capabilities() []capability.Name { return []capability.Name{capability.DelegateHost} }

func (r *runtime) Compact(_ context.Context, req core.CompactRequest) (core.CompactResult, error) {
	r.asked = append(r.asked, req)
	return r.res, r.err
}

func TestCompactAsksTheRuntimeOnce(t *testing.T) {
	host := &runtime{res: core.CompactResult{OK: true, Compacted: true, Summary: "theirs", TokensBefore: 9, TokensAfter: 4}}
	d, err := delegate.New(host)
	if err != nil {
		t.Fatal(err)
	}
	if d.OwnsCompaction() {
		t.Error("OwnsCompaction = true")
	}
	req := core.CompactRequest{Session: core.SessionID{Agent: "a", Session: "s"}, Budget: 7, Instructions: "keep names", Trigger: "manual"}
	patch, err := d.Compact(t.Context(), core.Compaction{Host: host, Request: req})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(core.Patch{Delegated: &host.res}, patch); diff != "" {
		t.Errorf("patch (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]core.CompactRequest{req}, host.asked); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
}

func TestCompactPassesFailuresOnWithoutRetry(t *testing.T) {
	host := &runtime{err: core.ErrUnavailable}
	d, err := delegate.New(host)
	if err != nil {
		t.Fatal(err)
	}
	patch, err := d.Compact(t.Context(), core.Compaction{})
	if !errors.Is(err, core.ErrUnavailable) || !patch.Empty() {
		t.Errorf("Compact = %+v, %v, want nothing and ErrUnavailable", patch, err)
	}
	if len(host.asked) != 1 {
		t.Errorf("the runtime was asked %d times, want once", len(host.asked))
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := d.Compact(ctx, core.Compaction{}); !errors.Is(err, context.Canceled) || len(host.asked) != 1 {
		t.Errorf("Compact with a cancelled context = %v after %d requests, want context.Canceled after 1", err, len(host.asked))
	}
}

func TestHostsThatCannotCompactAreRefused(t *testing.T) {
	for name, host := range map[string]core.Host{"none": nil, "standalone": core.NoHost{}} {
		_, err := delegate.New(host)
		req, ok := errors.AsType[*capability.RequirementError](err)
		if !ok || !cmp.Equal(req.Missing, []capability.Name{capability.DelegateHost}) {
			t.Errorf("%s: New = %v, want a RequirementError that names %q", name, err, capability.DelegateHost)
		}
	}
	d, err := delegate.New(&runtime{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.Compact(t.Context(), core.Compaction{Host: core.NoHost{}}); !errors.Is(err, capability.ErrRequirement) {
		t.Errorf("Compact on another host = %v, want ErrRequirement", err)
	}
}
