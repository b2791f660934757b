package imports_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/contextengine/contextengine/core/message"
	"github.com/contextengine/contextengine/hosts/imports"
)

// chatExport has one conversation: a hidden system message, a question with an image, a thought, a tool call with its result, and an answer that was
// made anew.
const chatExport = `[{"title":"Boats","create_time":1700000000.5,"conversation_id":"conv-1","current_node":"n7","mapping":{
"root":{"id":"root","message":null,"parent":null,"children":["n1"]},
"n1":{"id":"n1","parent":"root","children":["n2"],"message":{"id":"n1","author":{"role":"system"},"create_time":null,"content":{"content_type":"text","parts":[""]},"recipient":"all"}},
"n2":{"id":"n2","parent":"n1","children":["n3","nb"],"message":{"id":"n2","author":{"role":"user"},"create_time":1700000001.25,"content":{"content_type":"multimodal_text","parts":[{"content_type":"image_asset_pointer","asset_pointer":"file-service://x"},"How many boats?"]},"recipient":"all"}},
"nb":{"id":"nb","parent":"n2","children":[],"message":{"id":"nb","author":{"role":"assistant"},"create_time":1700000002,"content":{"content_type":"text","parts":["Two."]},"recipient":"all"}},
"n3":{"id":"n3","parent":"n2","children":["n4"],"message":{"id":"n3","author":{"role":"assistant"},"create_time":1700000003,"content":{"content_type":"thoughts","thoughts":[{"summary":"Counting","content":"one by one"}]},"recipient":"all"}},
"n4":{"id":"n4","parent":"n3","children":["n5"],"message":{"id":"n4","author":{"role":"assistant"},"create_time":1700000004,"content":{"content_type":"code","language":"python","text":"print(3)"},"recipient":"python"}},
"n5":{"id":"n5","parent":"n4","children":["n6"],"message":{"id":"n5","author":{"role":"tool","name":"python"},"create_time":1700000005,"content":{"content_type":"execution_output","text":"3\n"},"recipient":"all"}},
"n6":{"id":"n6","parent":"n5","children":["n7"],"message":{"id":"n6","author":{"role":"assistant"},"create_time":1700000006,"content":{"content_type":"app_pairing","shape":[1,2]},"recipient":"all"}},
"n7":{"id":"n7","parent":"n6","children":[],"message":{"id":"n7","author":{"role":"assistant"},"create_time":1700000007,"content":{"content_type":"text","parts":["Three."]},"recipient":"all"}}}}]`

func TestChatGPT(t *testing.T) {
	t.Parallel()
	s := memorySink(t)
	r := importText(t, s, "conversations.json", chatExport, imports.Options{})
	wantCounts(t, "import", r, "1 sessions, 6 messages: 6 imported, 0 known, 0 erased, 0 skipped")
	if r.Format != imports.ChatGPT || r.Left["messages on branches that the host does not show"] != 1 || r.Left["messages without content"] != 1 {
		t.Errorf("format %q, left %v", r.Format, r.Left)
	}
	if !r.First.Equal(time.UnixMilli(1700000001250)) || !r.Last.Equal(time.Unix(1700000007, 0)) {
		t.Errorf("from %v to %v", r.First, r.Last)
	}
	if got, want := s.texts(t, "main", "conv-1"), `u:How many boats?|a:|a:python({"input":"print(3)"})|t:3`+"\n"+`|a:|a:Three.`; got != want {
		t.Errorf("the session holds %q, want %q", got, want)
	}
	e := s.stored(t, "main", "conv-1")
	if p := e[0].Message.Parts; len(p) != 2 || p[0].Kind != message.Image || !strings.Contains(string(p[0].Raw), "file-service://x") {
		t.Errorf("parts of the question: %+v", p)
	}
	if p := e[1].Message.Parts; p[0].Kind != message.Thinking || p[0].Text != "Counting\none by one" {
		t.Errorf("the thought: %+v", p)
	}
	call, result := e[2].Message.Parts[0], e[3].Message.Parts[0]
	if call.CallID != "n4" || result.CallID != "n4" || result.Kind != message.ToolResult {
		t.Errorf("call %+v and result %+v do not belong together", call, result)
	}
	if p := e[4].Message.Parts; p[0].Kind != message.Other || !strings.Contains(string(p[0].Raw), "[1,2]") {
		t.Errorf("content of an unknown kind: %+v", p)
	}
	if m := e[5].Message; !strings.HasPrefix(string(m.Raw), `{"id":"n7","author"`) || m.ID != "n7" {
		t.Errorf("original bytes %s, id %q", m.Raw, m.ID)
	}
	// Hosts are given what they can read.
	for _, format := range message.Formats() {
		if b, err := message.Encode(e[5].Message, format); err != nil || strings.Contains(string(b), "author") || !strings.Contains(string(b), "Three.") {
			t.Errorf("as %s: %s, %v", format, b, err)
		}
	}
	wantCounts(t, "again with branches", importText(t, s, "conversations.json", chatExport, imports.Options{Branches: true}), "2 sessions, 7 messages: 1 imported, 6 known, 0 erased, 0 skipped")
	if got := s.texts(t, "main", "conv-1#nb"); got != "a:Two." {
		t.Errorf("the branch holds %q", got)
	}
}

func TestChatGPTMalformed(t *testing.T) {
	t.Parallel()
	single := strings.TrimSuffix(strings.TrimPrefix(chatExport, "["), "]")
	for name, tt := range map[string]struct{ text, where, keeping string }{
		"one conversation": {single, "", "6 imported, 0 known, 0 erased, 0 skipped"},
		"no path":          {strings.Replace(chatExport, `"current_node":"n7"`, `"current_node":"nx"`, 1), `conversation "conv-1"`, "0 imported, 0 known, 0 erased, 1 skipped"},
		"a role":           {strings.Replace(chatExport, `"role":"tool"`, `"role":"robot"`, 1), `conversation "conv-1", message "n5"`, "5 imported, 0 known, 0 erased, 1 skipped"},
		"another type":     {strings.Replace(chatExport, `"mapping":{`, `"mapping":{"x":7,`, 1), "conversation 0", "0 imported, 0 known, 0 erased, 1 skipped"},
		"cut off":          {"[" + single + "," + single[:500], "conversation 1, byte", "6 imported, 0 known, 0 erased, 1 skipped"},
		"not closed":       {"[" + single, "cut off", "6 imported, 0 known, 0 erased, 1 skipped"},
	} {
		_, err := imports.Data(t.Context(), "c.json", []byte(tt.text), memorySink(t), imports.Options{From: imports.ChatGPT})
		if tt.where == "" && err != nil || tt.where != "" && (!errors.Is(err, imports.ErrMalformed) || !strings.Contains(err.Error(), "c.json: "+tt.where) && !strings.Contains(err.Error(), tt.where)) {
			t.Errorf("%s: %v, want ErrMalformed naming %q", name, err, tt.where)
		}
		if r := importText(t, memorySink(t), "c.json", tt.text, imports.Options{From: imports.ChatGPT, KeepGoing: true}); !strings.HasSuffix(counts(r), tt.keeping) {
			t.Errorf("%s: keeping going: %s, want %s", name, counts(r), tt.keeping)
		}
	}
}
