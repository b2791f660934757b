package published

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestKeep(t *testing.T) {
	const data = ` [ {"k":"a","t":"x , y : é 😀 \u00E9 \/ \\"} , {"k":"b"}, {"n": [1.50, -2e3 ,{}], "k":"c"} ] `
	for name, c := range map[string]struct {
		keep Keep
		want string
	}{
		"first":   {Keep{First: 2}, `[{"k": "a", "t": "x , y : \u00e9 \ud83d\ude00 \u00E9 \/ \\"}, {"k": "b"}]`},
		"values":  {Keep{Field: "k", Values: []string{"c", "b"}}, `[{"k": "b"}, {"n": [1.50, -2e3, {}], "k": "c"}]`},
		"missing": {Keep{Field: "k", Values: []string{"c", "d"}}, ""},
		"short":   {Keep{First: 4}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := c.keep.apply([]byte(data))
			if string(got) != c.want || (err != nil) != (c.want == "") {
				t.Errorf("apply = %s, %v, want %s", got, err, c.want)
			}
		})
	}
	for _, bad := range []string{"", "{}", "[1", `["a"]`} {
		if _, err := (Keep{Field: "k", Values: []string{"a"}}).apply([]byte(bad)); err == nil {
			t.Errorf("%q: no error", bad)
		}
	}
}

// FuzzLayOut holds the layout to what it may change: nothing that a decoder sees, and nothing but ASCII is left.
func FuzzLayOut(f *testing.F) {
	f.Add([]byte(`{"a" : [1, "é😀\"\\", null ]}`))
	f.Add([]byte("\"\xff\""))
	f.Fuzz(func(t *testing.T, raw []byte) {
		var want, got any
		if json.Unmarshal(raw, &want) != nil {
			return
		}
		out := layOut(nil, raw)
		if err := json.Unmarshal(out, &got); err != nil {
			t.Fatalf("%q became %q: %v", raw, out, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q became %q:\n%s", raw, out, diff)
		}
		if i := bytes.IndexFunc(out, func(r rune) bool { return r > 0x7e }); i >= 0 {
			t.Errorf("%q became %q, which is no ASCII", raw, out)
		}
	})
}
