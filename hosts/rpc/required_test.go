package rpc_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/hosts/rpc"
)

// TestMessagesAreRequired: a call without the messages that it has to bring, or with null for them, is refused with their name, and changes nothing: what is known of
// the session goes on being shown, and the key of a turn is still free.
func TestMessagesAreRequired(t *testing.T) {
	s := newServer(t, one{composed(t, core.NoHost{})}, nil)
	c := attach(t, s)
	r := newReader(c)
	c.hello(r)
	session := `"session":{"agent":"a","session":"s"}`
	said := `{"role":"user","content":"hello there","timestamp":1767225660000}`
	call := func(method, params string) rawFrame {
		c.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q,"params":{%s,%s}}`, method, session, params))
		return r.next(t)
	}
	if f := call("assemble", `"tokenBudget":1000,"transcript":{"messages":[`+said+`]}`); f.Error != nil {
		t.Fatal(f.line)
	}
	for method, params := range map[string]string{
		"bootstrap": `"transcript":{%s}`, "assemble": `"tokenBudget":1000,"transcript":{%s}`, "compact": `"tokenBudget":1000,"transcript":{%s}`,
		"commitTurn": `"advancementKey":"turn",%s`, "afterTurn": `%s`, "ingestBatch": `"idempotencyKey":"call",%s`,
	} {
		field := "messages"
		if strings.Contains(params, "transcript") {
			field = "transcript.messages"
		}
		for _, messages := range []string{`"messages":null`, `"heartbeat":false`} {
			if field != "messages" && messages == `"heartbeat":false` {
				messages = `"whole":true`
			}
			if f := call(method, fmt.Sprintf(params, messages)); f.Error == nil || f.Error.Code != int(rpc.CodeInvalidParams) || f.Error.Data.Field != field {
				t.Errorf("%s with %s: %s", method, messages, f.line)
			}
		}
	}
	if f := call("assemble", `"tokenBudget":1000`); !strings.Contains(string(f.Result), "hello there") {
		t.Errorf("what was said is not shown any more: %s", f.line)
	}
	if f := call("commitTurn", `"advancementKey":"turn","messages":[`+said+`]`); !strings.Contains(string(f.Result), core.Committed) {
		t.Errorf("the turn is not committed: %s", f.line)
	}
	if f := call("assemble", `"tokenBudget":1000,"transcript":{"messages":[]}`); f.Error != nil || strings.Contains(string(f.Result), "hello there") {
		t.Errorf("an empty list is a reset: %s", f.line)
	}
}
