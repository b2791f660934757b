package compacting_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/contextengine/contextengine/internal/compacting"
)

func TestArgTexts(t *testing.T) {
	for args, want := range map[string][]string{
		`{"path":"a\nb","n":17,"ok":true,"list":["x",{"deep":"y"},null,2.5],"last":"z"}`: {"a\nb", "17", "x", "y", "2.5", "z"},
		`"plain"`:      {"plain"},
		`{}`:           nil,
		``:             nil,
		`{"broken": "`: {`{"broken": "`},
		`not json`:     {"not json"},
		`{"a":"b"} x`:  {`{"a":"b"} x`},
	} {
		if diff := cmp.Diff(want, compacting.ArgTexts(args)); diff != "" {
			t.Errorf("ArgTexts(%s) (-want +got):\n%s", args, diff)
		}
	}
}

func FuzzArgTexts(f *testing.F) {
	f.Add(`{"a":["b",1,{"c":null}]}`)
	f.Add(`]}{[`)
	f.Fuzz(func(t *testing.T, args string) { compacting.ArgTexts(args) })
}
