package history

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/contextengine/contextengine/core/message"
)

func TestLimitTurnsMovesInSteps(t *testing.T) {
	// With limit 4 the most is 6: up to 6 turns nothing happens, then the first turn kept moves every third turn.
	wantFirst := []int{0, 0, 0, 0, 0, 0, 3, 3, 3, 6, 6, 6, 9, 9, 9}
	for i, want := range wantFirst {
		n := i + 1
		in := []message.Message{system("s"), {Role: message.User, Type: message.CompactionSummary}}
		for turn := range n {
			in = append(in, user(fmt.Sprint(turn)), calls(call("a")), tool(result("a")), says("ok"))
		}
		got := LimitTurns(in, 4)
		if len(got) != 2+4*(n-want) {
			t.Fatalf("%d turns: %d messages stay, want %d", n, len(got), 2+4*(n-want))
		}
		if got[0].Role != message.System || got[1].Type != message.CompactionSummary || got[2].Text() != fmt.Sprint(want) {
			t.Errorf("%d turns: begins with %s", n, outline(got[:3]))
		}
	}
}

func TestLimitTurnsKeeps(t *testing.T) {
	many := []message.Message{
		says("hello"), user("1"), system("rule"), user("2"), tool(result("a")), user("3"),
		{Role: message.User, Type: message.CompactionSummary}, {Role: message.User, Type: "custom"}, user("4"), says("x"),
	}
	for limit, want := range map[int][]int{
		0: {0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, -1: {0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, 100: {0, 1, 2, 3, 4, 5, 6, 7, 8, 9},
		1: {2, 5, 6, 7, 8, 9}, // 4 turns, 1 + (4-1) mod 2 = 2 stay, with the system message before them
		2: {2, 5, 6, 7, 8, 9}, // 2 + (4-2) mod 2
		3: {0, 1, 2, 3, 4, 5, 6, 7, 8, 9},
	} {
		var wanted []message.Message
		for _, i := range want {
			wanted = append(wanted, many[i])
		}
		if d := cmp.Diff(wanted, LimitTurns(many, limit)); d != "" {
			t.Errorf("limit %d, -want +got:\n%s", limit, d)
		}
	}
}

// TestLimitTurnsCountsWhatSaysSomething: blank user messages, as keep-alives of clients are, do not push out what a user asked.
func TestLimitTurnsCountsWhatSaysSomething(t *testing.T) {
	in := []message.Message{user("1"), user("the question")}
	for n := range 20 {
		in = append(in, user([]string{"", " \n"}[n%2]), message.Message{Role: message.User}, calls(call("a")), tool(result("a")))
	}
	for limit := 1; limit <= 3; limit++ {
		if got := LimitTurns(in, limit); len(got) != len(in) {
			t.Errorf("limit %d: %d of %d messages stay, two turns in all", limit, len(got), len(in))
		}
	}
	photo := message.Message{Role: message.User, Parts: []message.Part{{Kind: message.Other}}}
	if got := LimitTurns([]message.Message{user("1"), user("2"), photo, says("ok")}, 1); len(got) != 2 {
		t.Errorf("a photo begins a turn: %d of 4 messages stay, two wanted", len(got))
	}
}

func TestLimitsOver(t *testing.T) {
	n := func(n int) *int { return &n }
	own := Limits{Channels: map[string]ChannelLimits{"telegram": {
		HistoryLimit: n(0), DMs: map[string]PeerLimits{"alice": {HistoryLimit: n(1)}},
		Accounts: map[string]AccountLimits{"work": {DMHistoryLimit: n(2)}},
	}}}
	host := Limits{Channels: map[string]ChannelLimits{
		"telegram": {
			HistoryLimit: n(10), DMHistoryLimit: n(11), DMs: map[string]PeerLimits{"alice": {HistoryLimit: n(12)}, "bob": {HistoryLimit: n(13)}},
			Accounts: map[string]AccountLimits{"work": {DMHistoryLimit: n(14), HistoryLimit: n(15)}},
		},
		"slack": {HistoryLimit: n(16)},
	}}
	both := own.Over(host)
	for key, want := range map[string]int{
		"agent:a:telegram:group:g": 0, "agent:a:telegram:direct:carol": 11, "agent:a:telegram:direct:alice": 1, "agent:a:telegram:direct:bob": 13,
		"agent:a:telegram:work:direct:carol": 2, "agent:a:telegram:work:group:g": 15, "agent:a:slack:channel:c": 16, "agent:a:irc:channel:c": 0,
	} {
		if got := LimitFor(key, both); got != want {
			t.Errorf("%s: %d, want %d", key, got, want)
		}
	}
	if got := LimitFor("agent:a:telegram:group:g", host); got != 10 {
		t.Errorf("the other one was changed: %d", got)
	}
	if got := LimitFor("agent:a:slack:group:g", Limits{}.Over(host)); got != 16 {
		t.Errorf("nothing over the other: %d", got)
	}
}

func TestLimitFor(t *testing.T) {
	n := func(i int) *int { return &i }
	limits := Limits{Channels: map[string]ChannelLimits{
		"telegram": {
			HistoryLimit: n(10), DMHistoryLimit: n(20),
			DMs: map[string]PeerLimits{"5": {n(30)}, "free": {n(0)}, "unset": {}, "a:b": {n(31)}},
			Accounts: map[string]AccountLimits{
				"work":  {HistoryLimit: n(40), DMHistoryLimit: n(50), DMs: map[string]PeerLimits{"5": {n(60)}}},
				"plain": {},
			},
		},
		"slack": {},
	}}
	for key, want := range map[string]int{
		"agent:main:telegram:group:-100":                10,
		"agent:main:telegram:channel:7":                 10,
		"agent:main:telegram:direct:9":                  20,
		"agent:main:telegram:direct:5":                  30,
		"agent:main:telegram:direct:5:thread:77":        30,
		"agent:main:telegram:direct:5:topic:1:thread:2": 30,
		"agent:main:telegram:direct:a:b":                31,
		"agent:main:telegram:direct:free":               0,
		"agent:main:telegram:direct:unset":              20,
		"agent:main:telegram:work:direct:5":             60,
		"agent:main:telegram:work:direct:free":          0,
		"agent:main:telegram:work:direct:9":             50,
		"agent:main:telegram:work:group:9:topic:3":      40,
		"agent:main:telegram:plain:group:9":             10,
		"agent:main:telegram:plain:direct:5":            30,
		"agent:main:telegram:other:direct:9":            20,
		"agent:main:slack:direct:9":                     0,
		"agent:main:signal:direct:9":                    0,
		"agent:main:main":                               0,
		"agent:main:telegram:direct":                    0,
		"agent:main:telegram:work:direct":               0,
		"agent:main:telegram:a:b:direct:5":              0,
		"subagent:main:telegram:direct:5":               0,
		"agent:main:telegram:direct:5:thread:":          20,
		"":                                              0,
	} {
		if got := LimitFor(key, limits); got != want {
			t.Errorf("LimitFor(%q) = %d, want %d", key, got, want)
		}
	}
}

func TestFilterHeartbeats(t *testing.T) {
	beat := user("[Mon] Follow HEARTBEAT.md. Reply HEARTBEAT_OK if there is nothing to do.")
	respond := func(args string) message.Message {
		p := named(heartbeatTool, call("h"))
		p.Args = args
		return calls(p)
	}
	note := message.Message{Role: message.User, Type: "custom", Parts: []message.Part{text("n")}}
	var off Policy
	runRules(t, []ruleCase{
		{"none", off, []message.Message{user("hi"), says("hello"), says(HeartbeatOK)}, nil},
		{
			"acknowledged", off,
			[]message.Message{user("hi"), says("hello"), beat, says("**HEARTBEAT_OK**."), beat, says(NoReply)},
			[]message.Message{user("hi"), says("hello")},
		},
		{
			"with tools", off,
			[]message.Message{beat, calls(think("t"), call("a")), tool(result("a")), note, says(HeartbeatOK), user("hi")},
			[]message.Message{note, user("hi")},
		},
		{"visible", off, []message.Message{beat, calls(text("your build broke"), call("a")), tool(result("a")), says(HeartbeatOK)}, nil},
		{"a picture", off, []message.Message{beat, calls(message.Part{Kind: message.Image}), says(HeartbeatOK)}, nil},
		{"not answered yet", off, []message.Message{user("hi"), beat}, nil},
		{"results still to come", off, []message.Message{beat, calls(call("a")), tool(result("a"))}, nil},
		{"never answered", off, []message.Message{beat, user("hi")}, []message.Message{user("hi")}},
		{"answered with the tool", off, []message.Message{user("hi"), beat, respond(`{"notify":false}`), tool(result("h"))}, []message.Message{user("hi")}},
		{"notifies with the tool", off, []message.Message{beat, respond(`{"notify":true}`), tool(result("h"))}, nil},
		{"cannot tell", off, []message.Message{beat, respond(`{`), tool(result("h"))}, nil},
		{"a user asks about it", off, []message.Message{user("what is HEARTBEAT_OK?"), says("an acknowledgement")}, nil},
		{"merged with a user's", off, []message.Message{msg(message.User, text("fix it"), beat.Parts[0]), says(HeartbeatOK)}, nil},
	}, func(m []message.Message, _ Policy) []message.Message { return FilterHeartbeats(m) })
}

func TestPolicyFor(t *testing.T) {
	for name, family := range map[string]string{
		"": ProviderNone, "none": ProviderNone, "openai": ProviderOpenAI, "openai-completions": ProviderOpenAI,
		"openai-responses": ProviderOpenAIResponses, "anthropic": ProviderAnthropic, "bedrock": ProviderAnthropic,
		"vertex": ProviderAnthropic, "google": ProviderGoogle, "gemini": ProviderGoogle,
	} {
		p, err := PolicyFor(name)
		if err != nil || p.Provider != family || !p.RepairPairs {
			t.Errorf("PolicyFor(%q) = %+v, %v, want family %q with pairs repaired", name, p, err, family)
		}
	}
	_, err := PolicyFor("antropic")
	if !errors.Is(err, ErrUnknownProvider) || !strings.Contains(err.Error(), `nearest is "anthropic"`) || !strings.Contains(err.Error(), "openai-responses") {
		t.Errorf("PolicyFor(antropic): %v, want the nearest and all known names", err)
	}
}

// TestPolicyForModel: a provider that passes on what others answer, or that is not known, has the rules of the model's family; what no name tells is only repaired.
func TestPolicyForModel(t *testing.T) {
	for names, family := range map[[2]string]string{
		{"anthropic", "gemini-x"}: ProviderAnthropic, {"", "claude-x"}: ProviderNone, {"mistral", ""}: ProviderMistral, {"kimi", "k2"}: ProviderOpenAI,
		{"openrouter", "anthropic/claude-x"}: ProviderAnthropic, {"openrouter", "google/gemini-x"}: ProviderGoogle, {"openrouter", "mistralai/large"}: ProviderMistral,
		{"openrouter/anthropic", "x"}: ProviderAnthropic, {"openrouter", "somebody/something"}: ProviderOpenAI, {"litellm", "Mixtral-8x7b"}: ProviderMistral,
		{"my-proxy", "claude-sonnet"}: ProviderAnthropic, {"my-proxy", "models/gemini-x"}: ProviderGoogle, {"my-proxy", "qwen3"}: ProviderOpenAI,
		{"Anthropic", "x"}: ProviderAnthropic, {"OpenRouter", "us.anthropic.claude-x"}: ProviderAnthropic, {"my-proxy", "us.anthropic.claude-x-v1.0"}: ProviderAnthropic,
		{"bedrock", "mistral.large-2"}: ProviderMistral, {"bedrock", "amazon.nova"}: ProviderAnthropic, {"vertex", "gemini-x"}: ProviderGoogle,
		{"openrouter", "ollama/mistral-7b"}: ProviderMistral, {"openai", "mistral-7b"}: ProviderOpenAI, {"openai", "gpt-4.1"}: ProviderOpenAI,
	} {
		if p, err := PolicyForModel(names[0], names[1]); err != nil || p.Provider != family {
			t.Errorf("PolicyForModel(%q) = %q, %v, want %q", names, p.Provider, err, family)
		}
	}
	p, err := PolicyForModel("my-proxy", "brain-7")
	if !errors.Is(err, ErrUnknownProvider) || p.Provider != ProviderNone || !p.RepairPairs {
		t.Errorf("of names that say nothing: %+v, %v", p, err)
	}
	p, _ = PolicyFor("mistral")
	call := message.Message{Role: message.Assistant, Parts: []message.Part{{Kind: message.ToolCall, CallID: "call_1", Name: "read", Args: "{}"}}}
	result := message.Message{Role: message.Tool, Parts: []message.Part{{Kind: message.ToolResult, CallID: "call_1", Name: "read", Text: "x"}}}
	out := RewriteCallIDs([]message.Message{call, result}, p)
	if id := out[0].Parts[0].CallID; len(id) != strict9Len || out[1].Parts[0].CallID != id {
		t.Errorf("ids for mistral: %q and %q, want %d letters and digits, twice the same", id, out[1].Parts[0].CallID, strict9Len)
	}
}
