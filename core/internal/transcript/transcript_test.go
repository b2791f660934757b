package transcript_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/internal/transcript"
	"github.com/contextengine/contextengine/core/message"
)

var session = core.SessionID{Agent: "main", Session: "one"}

// said makes messages of words: of the user, of the system where a word is in upper case, the host's own line for "-".
func said(words string) []message.Message {
	var out []message.Message
	for w := range strings.FieldsSeq(words) {
		m := message.New(message.User, w)
		switch {
		case w == "-":
			m.Type = message.Filler
		case w != strings.ToLower(w):
			m = message.New(message.System, w)
		}
		out = append(out, m)
	}
	return out
}

// path says how a conversation of known words goes on with a transcript: the words in order, those that are new with a plus sign, behind those that stay in front of it.
func path(known, host string, whole bool) string {
	v := core.View{Session: session}
	var entries []transcript.Known
	for i, m := range said(known) {
		leads := m.Role == message.System
		if leads {
			v.Lead++
		}
		entries = append(entries, transcript.Known{Owner: session, Seq: int64(i), Fingerprint: message.Fingerprint(m), Role: m.Role, Leads: leads, Soft: leads, ID: m.Text()})
	}
	t := &core.Transcript{Messages: said(host), Whole: whole}
	var fps []string
	for _, m := range t.Messages {
		fps = append(fps, message.Fingerprint(m))
	}
	in := transcript.Read(t, fps, nil, false)
	in.TakeLeaders(&v, entries)
	p := in.Plan(&v, entries)
	var out []string
	for _, l := range p.Leaders {
		if l.Host >= 0 {
			out = append(out, "lead+"+t.Messages[l.Host].Text())
		}
	}
	for _, st := range p.Order {
		for j, s := range p.Strays {
			if p.At[j] == st.Known {
				out = append(out, "+"+t.Messages[p.Host[s]].Text())
			}
		}
		if st.Known >= 0 {
			out = append(out, entries[p.Hard[st.Known]].ID)
		} else {
			out = append(out, "+"+t.Messages[p.Host[st.Host]].Text())
		}
	}
	return strings.Join(out, " ")
}

func Example() {
	fmt.Println("grew: ", path("a b c", "a b c d", false))
	fmt.Println("cut:  ", path("a b c", "c d", false))
	fmt.Println("took back:", path("a b c", "a b", false))
	// Output:
	// grew:  a b c +d
	// cut:   a b c +d
	// took back: a b
}

func TestPath(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, known, host string
		whole             bool
		want              string
	}{
		{"nothing known", "", "a b", false, "+a +b"},
		{"the same", "a b", "a b", false, "a b"},
		{"only the newest part is shown", "a b c d", "c d", false, "a b c d"},
		{"only the newest part, of a list that is said to be whole", "a b c d", "c d", true, "a b c d"},
		{"a message in the midst was taken back", "a b c d", "a b d", false, "a b d"},
		{"a message in the midst was changed", "a b c d", "a b x d", false, "a b +x d"},
		{"everything behind was said anew", "a b c d", "a b x y", false, "a b +x +y"},
		{"a new beginning", "a b c", "x y", false, "+x +y"},
		{"an unknown line in front", "a b c d", "x c d", false, "a b +x c d"},
		{"an unknown line in front of a list that is whole", "a b c d", "x c d", true, "+x c d"},
		{"the host's own line in front", "a b c d", "- c d e", false, "a b c d +e"},
		{"the host's own line stands for a message", "a b c d", "a - c d", false, "a b c d"},
		{"a rewind to the beginning", "a b c d", "a x", false, "a +x"},
		{"a rewind to a beginning that was said twice", "a b a b", "a b", false, "a b"},
		{"a rewind to the first of three", "a a a", "a", false, "a"},
		{"a rewind to a beginning that was said twice, and said on", "a b a c a", "a d", true, "a +d"},
		{"cut to what was said at the beginning, and said on", "a b a c a", "a d", false, "a b a c a +d"},
		{"more of the end than of the beginning", "a b a c a d", "a d e", true, "a b a c a d +e"},
		{"a line of the host's in front of what was said twice", "a b a b", "- a b", false, "a b a b"},
		{"the first message is kept at the top", "a b c d", "a d e", false, "a b c d +e"},
		{"a system message that changes", "S a b", "T a b c", false, "lead+T a b +c"},
		{"a system message that stays", "S a b", "S a b c", false, "a b +c"},
		{"a system message that is not shown", "S a b", "b c", false, "a b +c"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			if got := path(tc.known, tc.host, tc.whole); got != tc.want {
				t.Errorf("%q is known, the host shows %q: %q, want %q", tc.known, tc.host, got, tc.want)
			}
		})
	}
}
