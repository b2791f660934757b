package survival_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/message"
	"github.com/contextengine/contextengine/experiment/dataset"
	"github.com/contextengine/contextengine/experiment/survival"
)

func bytes4(text string) int { return (len(text) + 3) / 4 }

func call(id, args string) message.Message {
	return message.Message{Role: message.Assistant, Parts: []message.Part{{Kind: message.ToolCall, CallID: id, Name: "read", Args: args}}}
}

func result(id, text string) message.Message {
	return message.Message{Role: message.Tool, Parts: []message.Part{{Kind: message.ToolResult, CallID: id, Name: "read", Text: text}}}
}

func session(msgs ...message.Message) dataset.Session {
	return dataset.Session{File: "made.jsonl", Conversation: message.Conversation{Messages: msgs, Format: message.FormatOpenAI}}
}

func TestIdentifiers(t *testing.T) {
	got := survival.Identifiers("Edit src/a_b.go and MainLoop, id mia_li_3668, flight HAT136, on 2024-05-20; plain words, e.g. none, 12.")
	want := []string{"src/a_b.go", "MainLoop", "mia_li_3668", "HAT136", "2024-05-20"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Identifiers (-want +got):\n%s", diff)
	}
}

func TestNeeded(t *testing.T) {
	msgs := []message.Message{
		message.New(message.User, "Files: src/one_1.go src/two_2.go src/three_3.go"),
		message.New(message.Assistant, "Fine."),
		// behind the cut
		message.New(message.User, "Now src/two_2.go please"),
		call("1", `{"path":"src/one_1.go","n":4,"also":["src/two_2.go","src/new_9.go"]}`),
		result("1", "src/three_3.go is mentioned"),
		call("2", `{"path":"src/three_3.go"}`),
		call("3", `{"path":"src/one_1.go"}`),
	}
	if diff := cmp.Diff([]string{"src/one_1.go"}, survival.Needed(msgs, 2, 0)); diff != "" {
		t.Errorf("Needed (-want +got):\n%s", diff)
	}
	if got := survival.Needed(msgs, 2, 5); got != nil {
		t.Errorf("Needed by arguments of at most 5 bytes = %q, want none", got)
	}
}

func TestMeasure(t *testing.T) {
	var msgs []message.Message
	for i := range 40 {
		id := string(rune('a'+i%26)) + string(rune('a'+i/26))
		path := `src/dir_` + id + `/file_` + id + `.go`
		msgs = append(msgs, message.New(message.User, "Please look into "+path), call(id, `{"path":"`+path+`"}`),
			result(id, strings.Repeat("output about "+id+" goes here and there\n", 30)), message.New(message.Assistant, "Done."))
	}
	msgs = append(msgs, call("zz", `{"path":"src/dir_aa/file_aa.go"}`), result("zz", "ok"))
	rows, err := survival.Measure(t.Context(), survival.Spec{Session: session(msgs...), Arms: append(survival.Arms(), survival.Arm{Name: "all"}), Keep: []float64{0.3}, Cuts: 2, Counter: bytes4})
	if err != nil {
		t.Fatal(err)
	}
	if len(rows) != 10 {
		t.Fatalf("%d rows, want 10", len(rows))
	}
	for _, r := range rows {
		if r.Needed != 1 || r.History <= 0 {
			t.Errorf("row = %+v, want one needed identifier", r)
		}
		switch r.Arm {
		case "all":
			if r.Survived != 1 || r.Kept != r.History {
				t.Errorf("row = %+v, want everything", r)
			}
		case "archive":
			if r.Survived != 0 || len(r.Lost) != 1 {
				t.Errorf("row = %+v, want the identifier lost", r)
			}
		case "mask+index+archive":
			if r.Survived != 1 || float64(r.Kept) > 0.35*float64(r.History) {
				t.Errorf("row = %+v, want the identifier kept in 30 %%", r)
			}
		}
	}
	table := survival.Table(survival.Add(rows))
	if !strings.Contains(table, "| 30 % | mask+index+archive | ") || !strings.Contains(table, "| 30 % | all | 100.0 % | 100.0 % |") {
		t.Errorf("table:\n%s", table)
	}
}

func TestMeasureRefuses(t *testing.T) {
	if _, err := survival.Measure(t.Context(), survival.Spec{}); !errors.Is(err, core.ErrInvalid) {
		t.Errorf("Measure without a counter = %v, want ErrInvalid", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	s := session(message.New(message.User, "one"), message.New(message.Assistant, "two"), message.New(message.User, "three"))
	if _, err := survival.Measure(ctx, survival.Spec{Session: s, Arms: survival.Arms()[:1], Keep: []float64{0.5}, Counter: bytes4}); !errors.Is(err, context.Canceled) {
		t.Errorf("Measure with a cancelled context = %v, want context.Canceled", err)
	}
}
