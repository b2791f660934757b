package core_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/window"
)

// TestViewInJSON: JSON gives every text of a view back as it was, also one that is no UTF-8, and whoever reads single fields finds them.
func TestViewInJSON(t *testing.T) {
	for name, odd := range map[string]string{
		"no UTF-8": "caf\xe9", "the sign that stands for what is none": "caf\ufffd", "the escape of that sign": `caf\ufffd`, "NUL": "caf\x00", "brackets": "<caf\u00e9>",
	} {
		id := core.SessionID{Agent: odd, Session: odd}
		v := core.View{
			Session: id, Version: 3, Commits: []string{odd}, Path: []core.Span{{Session: &id, To: 1}}, Stubs: map[string]window.Stub{odd: {Texts: map[int]string{0: odd}}},
			Summaries: []core.Summary{{Text: odd}}, Recall: &core.Recall{Text: odd}, Grants: []core.Grant{{ID: odd}},
		}
		text, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		byPointer, err := json.Marshal(&v)
		if err != nil || len(byPointer) != len(text) {
			t.Errorf("%s: %s by pointer, error %v, want %s", name, byPointer, err, text)
		}
		var got core.View
		if err := json.Unmarshal(text, &got); err != nil || !reflect.DeepEqual(got, v) {
			t.Errorf("%s: %s comes back as %+v, error %v, want %+v", name, text, got, err, v)
		}
		var fields struct{ Version uint64 }
		if err := json.Unmarshal(text, &fields); err != nil || fields.Version != v.Version {
			t.Errorf("%s: %s: version %d, error %v, want %d", name, text, fields.Version, err, v.Version)
		}
	}
}

// TestViewInJSONIsPlain: what JSON holds is written as JSON alone.
func TestViewInJSONIsPlain(t *testing.T) {
	text, err := json.Marshal(core.View{Session: core.SessionID{Agent: "main", Session: "café"}, Version: 1})
	if err != nil || strings.Contains(string(text), "exact") {
		t.Errorf("%s, error %v, want no field besides those of the view", text, err)
	}
}
