package openbrain

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/message"
)

func TestDecodeList(t *testing.T) {
	one := `{"id":"a","content":"c","created_at":"2026-01-02T03:04:05.123456+00:00"}`
	when := time.Date(2026, 1, 2, 3, 4, 5, 123456000, time.UTC)
	for body, want := range map[string][]thought{
		`[]`:                                                    nil,
		`{"thoughts":null}`:                                     nil,
		`[` + one + `]`:                                         {{ID: "a", Content: "c", Created: when}},
		`{"count":1,"results":[` + one + `]}`:                   {{ID: "a", Content: "c", Created: when}},
		`{"data":{"items":[` + one + `]}}`:                      {{ID: "a", Content: "c", Created: when}},
		`{"data":{"data":[` + one + `]}}`:                       {{ID: "a", Content: "c", Created: when}},
		`[{"thought":` + one + `,"score":0.5}]`:                 {{ID: "a", Content: "c", Created: when, Score: 0.5, Scored: true}},
		`[{"thought_id":12,"distance":"0.25"}]`:                 {{ID: "12", Score: 0.75, Scored: true}},
		`[{"id":9007199254740993}]`:                             {{ID: "9007199254740993"}},
		`[{"id":"..","similarity":null}]`:                       {{}},
		`[{"id":"x","metadata":"{\"k\":1}"}]`:                   {{ID: "x", Meta: metadataOf([]byte(`{"k":1}`))}},
		`[{"id":"x","metadata":"no"}]`:                          {{ID: "x"}},
		`[{"captured_at":"2026-01-02 03:04:05.123456"}]`:        {{Created: when}},
		`[{"createdAt":"2026-01-02 05:04:05.123456+02"}]`:       {{Created: when}},
		`[{"created_at":null,"capturedAt":"yesterday"}]`:        {{}},
		`{"matches":[{"id":"x","similarity":0.9,"score":0.1}]}`: {{ID: "x", Score: 0.9, Scored: true}},
	} {
		got, err := decodeList([]byte(body))
		if err != nil {
			t.Errorf("decodeList(%s): %v", body, err)
			continue
		}
		if diff := cmp.Diff(want, got.thoughts); diff != "" {
			t.Errorf("decodeList(%s) (-want +got):\n%s", body, diff)
		}
	}
	for _, body := range []string{`{}`, `null`, `"x"`, `{"detail":"no"}`, `[1]`, `[[]]`, `{"data":{"data":{"data":{"data":{"data":{"data":[]}}}}}}`} {
		if got, err := decodeList([]byte(body)); err == nil {
			t.Errorf("decodeList(%s) = %v, want an error", body, got)
		}
	}
}

func TestDecodeOne(t *testing.T) {
	for body, want := range map[string]string{
		`{"id":"a"}`: "a", `{"thought":{"id":5}}`: "5", `{"data":{"id":"a"}}`: "a", `{"status":"created","record":{"thought_id":"a"}}`: "a",
		`[{"id":"a"}]`: "a", `{"data":[{"id":"a"}]}`: "a", `{"data":{"thought":{"id":"a"}}}`: "a", `{}`: "", `[]`: "", `7`: "", `{"data":{}}`: "",
	} {
		if got, ok := decodeOne([]byte(body)); got.ID != want || ok != (want != "") {
			t.Errorf("decodeOne(%s) = %q, %t; want %q", body, got.ID, ok, want)
		}
	}
}

func TestCountOf(t *testing.T) {
	for body, want := range map[string]int{
		`{"by_source":{"x:y":3}}`: 3, `{"sources":[{"source":"a","count":1},{"source":"x:y","count":4}]}`: 4,
		`{"stats":{"x:y":{"total":5}}}`: 5, `{"total":9}`: -1, `{"x:y":"?"}`: -1, `[]`: -1, `{"x:y":1.5}`: -1,
	} {
		got, ok := countOf([]byte(body), "x:y", maxNesting)
		if (ok && got != want) || ok != (want >= 0) {
			t.Errorf("countOf(%s) = %d, %t; want %d", body, got, ok, want)
		}
	}
}

func TestReadRefusal(t *testing.T) {
	const key, sent = "key-0123456789", `{"content":"something private"}`
	body := func(loc, msg string) []byte {
		return []byte(`{"detail":[{"loc":[` + loc + `],"msg":"` + msg + `","input":"something private"}]}`)
	}
	for want, in := range map[string][]byte{
		"body.content.1: Field required": body(`"body","content",1`, "Field required"),
		"body: Value error":              body(`"body"`, "Value error, stored text"),
		"body: Input should be short":    body(`"body"`, `Input should be \u0000\nshort`),
		"body: refused":                  body(`"body"`, "Like the stored text that nobody may see"),
		"?.metadata: Field required":     body(`"something private","metadata"`, "Field required"),
	} {
		if got := readRefusal(in, []byte(sent), key).text; got != want {
			t.Errorf("readRefusal(%s) = %q, want %q", in, got, want)
		}
	}
	for _, in := range [][]byte{
		body(`"body"`, "Input should be something private"), body(`"body"`, "Input should be "+key),
		[]byte(`{"detail":[{"loc":[],"msg":""}]}`), []byte(`{"detail":"something"}`), []byte(`{"detail":[]}`), []byte(`<html>`), nil,
	} {
		if got := readRefusal(in, []byte(sent), key).text; got != "" {
			t.Errorf("readRefusal(%s) = %q, want nothing", in, got)
		}
	}
	if got := readRefusal(body(`"body"`, "Input should be "+strings.Repeat("é", 500)), nil, "").text; len(got) > maxDetail {
		t.Errorf("readRefusal returned %d bytes, want at most %d", len(got), maxDetail)
	}
}

// The packed types must not fall behind those they stand for.
func TestPackedMessageIsComplete(t *testing.T) {
	for _, pair := range [][2]reflect.Type{
		{reflect.TypeFor[message.Message](), reflect.TypeFor[packedMessage]()},
		{reflect.TypeFor[message.Part](), reflect.TypeFor[packedPart]()},
	} {
		var want, got []string
		for f := range pair[0].Fields() {
			if f.Tag.Get("json") != "-" {
				want = append(want, f.Name)
			}
		}
		for f := range pair[1].Fields() {
			got = append(got, f.Name)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("fields of %v (-want +got):\n%s", pair[1], diff)
		}
	}
}

func TestForeignThoughts(t *testing.T) {
	cfg := DefaultConfig()
	e := core.Entry{ID: "i", Agent: "a", Session: "s", Key: "k", Message: message.New(message.User, "x")}
	base := func() thought {
		m, err := cfg.metadata(record{entry: e}, true)
		if err != nil {
			t.Fatal(err)
		}
		return thoughtOf(t, "openclaw:a", m)
	}
	if _, ok := cfg.record(base(), "a"); !ok {
		t.Fatal("our own thought is not recognised")
	}
	if _, ok := cfg.record(base(), "b"); ok {
		t.Error("another agent's thought is taken")
	}
	refuses := func(name string, base func() thought, spoilt map[string]string, optional ...string) {
		for key, raw := range spoilt {
			th := base()
			th.Meta[key] = []byte(raw)
			if _, ok := cfg.record(th, "a"); ok {
				t.Errorf("%s: a thought with %s = %s is taken", name, key, raw)
			}
			delete(th.Meta, key)
			if _, ok := cfg.record(th, "a"); ok != slices.Contains(optional, key) {
				t.Errorf("%s: a thought without %s is taken: %t", name, key, ok)
			}
		}
	}
	refuses("whole", base, map[string]string{
		keyVersion: `3`, keySource: `"openclaw:b"`, keyBlob: `"AAAA"`, keyEntry: `null`, keySession: `"base64:*"`, keyTurn: `1.5`, keyRole: `[]`,
	})
	text := func() thought {
		th := base()
		delete(th.Meta, keyBlob)
		th.Meta[keySeq], th.Meta[keyAt] = []byte("4"), []byte("1700000000000")
		return th
	}
	if r, ok := cfg.record(text(), "a"); !ok || !r.textOnly {
		t.Errorf("a thought that holds the text alone: %+v, %t", r, ok)
	}
	refuses("text", text, map[string]string{keySeq: `1.5`, keyAt: `"soon"`, keyEntry: `""`})
	first := func() thought {
		return thoughtOf(t, "openclaw:a", map[string]any{
			"sessionId": "s", "turn": 1, "role": "user", "type": "subagent", "source": "openclaw:a", "id": "i", "metadata_id": "i", "v": 1, "seq": 2, "key": "k",
			"tokens": 3, "time": "2026-01-02T03:04:05Z", "fingerprint": "f", "message": `{"role":"user","parts":[{"kind":"text","text":"x"}]}`,
		})
	}
	if r, ok := cfg.record(first(), "a"); !ok || r.entry.Text() != "x" || r.entry.Seq != 2 || r.entry.Type != core.TypeSubagent {
		t.Errorf("a thought of the first version: %+v, %t", r, ok)
	}
	refuses("first", first, map[string]string{
		keyVersion: `2`, keySource: `"openclaw:b"`, firstMessage: `"{"`, firstTime: `"soon"`, keySeq: `1.5`, firstKey: `""`, keyID: `null`,
		keySession: `"base64:*"`, firstTokens: `"x"`, firstMeta: `"["`, firstBatchEnd: `3`, keyRole: `[]`,
	}, firstMeta, firstBatchEnd)
	th := base()
	th.Source = "notes"
	if _, ok := cfg.record(th, "a"); ok {
		t.Error("a thought of another source is taken")
	}
}

func thoughtOf(t *testing.T, source string, metadata map[string]any) thought {
	t.Helper()
	var b strings.Builder
	b.WriteString(`{"id":"1","source":"` + source + `","metadata":`)
	b.Write(mustJSON(t, metadata))
	b.WriteString("}")
	th, ok := decodeOne([]byte(b.String()))
	if !ok {
		t.Fatal("thought cannot be decoded")
	}
	return th
}

// FuzzDecode feeds the decoder what servers might send. It must not panic, and what it takes for an entry must
// survive being written again.
func FuzzDecode(f *testing.F) {
	cfg := DefaultConfig()
	e := core.Entry{ID: "i", Agent: "a", Session: "s", Key: "k\x00", Message: message.New(message.User, "x\xff"), Meta: map[string]string{"m": "\x00"}}
	m, err := cfg.metadata(record{entry: e, batch: batch{ID: "b", Index: 1, End: true}}, false)
	if err != nil {
		f.Fatal(err)
	}
	own := mustJSON(f, map[string]any{"thoughts": []any{map[string]any{"id": 7, "source": "openclaw:a", "metadata": m, "similarity": 1}}, "total": 3})
	for _, seed := range []string{
		string(own), `[]`, `{"data":{"items":[{"thought":{"id":1e5},"distance":2}]}}`, `[{"metadata":"{\"v\":1}"}]`, `{"id":"x"}`, `{"pagination":{"total":-1}}`, "\x00",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		decodeOne(body)
		countOf(body, "openclaw:a", maxNesting)
		readRefusal(body, body, "key")
		list, err := decodeList(body)
		if err != nil {
			return
		}
		for _, th := range list.thoughts {
			r, ok := cfg.record(th, "a")
			if !ok {
				continue
			}
			m, err := cfg.metadata(r, true)
			if err != nil {
				continue // a year that JSON cannot hold
			}
			again, ok := cfg.record(thoughtOf(t, "openclaw:a", m), "a")
			if !ok {
				t.Fatalf("entry %+v is not recognised when written again", r.entry)
			}
			if diff := cmp.Diff(r.entry, again.entry); diff != "" {
				t.Fatalf("entry written again (-first +second):\n%s", diff)
			}
		}
	})
}
