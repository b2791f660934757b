package registry_test

import (
	"context"
	"errors"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/registry"
)

func TestAddErrors(t *testing.T) {
	r := newRegistry(t, &shop{})
	store := func(context.Context, nothing, registry.Env) (core.Store, error) { return nil, nil }
	none := func() nothing { return nothing{} }
	type bad struct{ F func() }
	type typed struct{ Type string }
	type loop struct{ Next []loop }
	for _, c := range []struct {
		err  error
		is   error
		want string
	}{
		{registry.AddStore(r, "memory", "", none, store), core.ErrConflict, `registry: add store "memory": the name is taken: it belongs to "core": conflict`},
		{registry.AddStore(r, "", "", none, store), core.ErrInvalid, `registry: add store "": a part needs a registry and a name without spaces around it: invalid`},
		{registry.AddStore(r, "x", "", nil, store), core.ErrInvalid, `registry: add store "x": defaults and factory must not be nil: invalid`},
		{registry.AddStore(r, "x", "", func() bad { return bad{} }, func(context.Context, bad, registry.Env) (core.Store, error) { return nil, nil }), core.ErrInvalid,
			`registry: add store "x": key "f": type func() cannot be read from a file; tag the field koanf:"-" when it is not for operators: invalid`},
		{registry.AddStore(r, "x", "", func() typed { return typed{} }, func(context.Context, typed, registry.Env) (core.Store, error) { return nil, nil }), core.ErrInvalid,
			`registry: add store "x": configuration key "type" is taken: it names the part: invalid`},
		{registry.AddStore(r, "x", "", func() loop { return loop{} }, func(context.Context, loop, registry.Env) (core.Store, error) { return nil, nil }), core.ErrInvalid,
			`registry: add store "x": key "next": type registry_test.loop contains itself: invalid`},
		{registry.AddStore(r, "x", "", func() int { return 0 }, func(context.Context, int, registry.Env) (core.Store, error) { return nil, nil }), core.ErrInvalid,
			`registry: add store "x": configuration int is not a struct: invalid`},
		{registry.AddStore(r, "x", "", none, store, registry.Conformance("", mixDefaults)), core.ErrInvalid,
			`registry: add store "x": the conformance configuration is a registry_test.mixConfig, want registry_test.nothing: invalid`},
	} {
		if c.err == nil || c.err.Error() != c.want || !errors.Is(c.err, c.is) {
			t.Errorf("got  %v\nwant %s", c.err, c.want)
		}
	}
	if err := registry.AddStore(r, "x", "", none, store); err != nil {
		t.Errorf("after the refusals: %v", err)
	}
	owned := func(name string, opts ...registry.PartOption) string {
		if err := registry.AddStore(r, name, "", none, store, opts...); err != nil {
			return err.Error()
		}
		return "owner " + r.Owner(registry.KindStore, name)
	}
	for _, c := range []struct{ got, want string }{
		{owned("mine", registry.Owner("acme")), "owner acme"},
		{owned("mine", registry.Owner("acme")), `registry: add store "mine": the name is taken: it belongs to "acme": conflict`},
		{owned("mine", registry.Owner("other"), registry.Refresh()), `registry: add store "mine": the name is taken: it belongs to "acme": conflict`},
		{owned("mine", registry.Refresh()), `registry: add store "mine": the name is taken: it belongs to "acme": conflict`},
		{owned("mine", registry.Owner("acme"), registry.Refresh()), "owner acme"},
		{owned("nobodys", registry.Owner(" ")), `registry: add store "nobodys": an owner needs a name without spaces around it: invalid`},
		{"owner " + r.Owner(registry.KindStore, "nobodys"), "owner "},
		{"owner " + r.Owner(registry.KindStore, "x"), "owner " + registry.CoreOwner},
	} {
		if c.got != c.want {
			t.Errorf("owners: got %s, want %s", c.got, c.want)
		}
	}
	i := mustBuild(t, r, "store: x", registry.BuildOptions{})
	if _, _, err := i.Engine(t.Context(), "a", "s"); err == nil || !strings.Contains(err.Error(), `open store "x": the factory returned none`) {
		t.Errorf("a factory that returns nothing: %v", err)
	}
}

func TestDescribe(t *testing.T) {
	r := newRegistry(t, &shop{})
	parts := map[string]registry.Part{}
	for _, p := range r.Describe() {
		parts[string(p.Kind)+" "+p.Name] = p
	}
	want := registry.Part{Kind: "retriever", Name: "hybrid", Doc: "mix", Offline: true, Keys: []registry.Key{
		{Path: "limit", Type: "integer", Default: int64(5)},
		{Path: "wait", Type: "duration", Default: "2s"},
		{Path: "names", Type: "list of string"},
		{Path: "weights", Type: "number by name", Default: map[string]any{"a": 1.0}},
		{Path: "deep.on", Type: "boolean", Default: false},
	}}
	if diff := cmp.Diff(want, parts["retriever hybrid"]); diff != "" {
		t.Errorf("Describe() (-want +got):\n%s", diff)
	}
	if got := parts["retriever recent"].Keys[0].Doc; got != "largest number of results" {
		t.Errorf("doc is %q", got)
	}
	if len(parts) != 13 {
		t.Errorf("%d parts, want 13", len(parts))
	}
	for _, k := range r.Keys() {
		if k.Doc == "" {
			t.Errorf("key %s has no explanation", k.Path)
		}
	}
}

func TestTemplate(t *testing.T) {
	r := newRegistry(t, &shop{})
	for format, wants := range map[string][]string{
		"yaml":  {"\n  high: 0.9\n", "\n    # largest number of results\n    limit: 3\n", "deadline: \"2m30s\"", "#   disk         on disk", "\nrecentMessages: 20\n", "\n# agents:\n#   coder:\n#     recentMessages: 30\n"},
		"yml":   {"\n  high: 0.9\n"},
		"toml":  {"\nwindow.high = 0.9\n", "\nrecentMessages = 20\n", "\n# agents.coder.recentMessages = 30\n", "# arms = [{name = \"a\", weight = 1}, "},
		"json5": {"\n    high: 0.9,\n", "\n  recentMessages: 20,\n", "\n  // agents: {\n    // coder: {\n", "//   disk         on disk"},
		"json":  {"\n    \"high\": 0.9,\n"},
	} {
		text, err := r.Template(format)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(mustLoad(t, r), mustLoad(t, r, registry.Bytes("template", format, text))); diff != "" {
			t.Errorf("the template in %s is not the defaults (-want +got):\n%s\n%s", format, diff, text)
		}
		for _, want := range wants {
			if !strings.Contains(string(text), want) {
				t.Errorf("the template in %s lacks %q:\n%s", format, want, text)
			}
		}
		for _, k := range r.Keys() {
			last := k.Path[strings.LastIndex(k.Path, ".")+1:]
			if format != "json" && !regexp.MustCompile(`(?m)(^|[ .])`+last+`( =|:|\.)`).Match(text) {
				t.Errorf("the template in %s lacks the key %s", format, k.Path)
			}
		}
	}
	if _, err := r.Template("ini"); !errors.Is(err, core.ErrInvalid) || !strings.Contains(err.Error(), "toml") {
		t.Errorf("another format: %v", err)
	}
}
