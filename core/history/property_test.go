package history

import (
	"fmt"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/contextengine/contextengine/core/message"
)

// rules are the exported functions that map messages to messages.
func rules() map[string]func([]message.Message, Policy) []message.Message {
	return map[string]func([]message.Message, Policy) []message.Message{
		"Apply":          Apply,
		"Sanitize":       Sanitize,
		"ProviderTurns":  ProviderTurns,
		"RewriteCallIDs": RewriteCallIDs,
		"RepairPairs": func(m []message.Message, p Policy) []message.Message {
			return RepairPairs(m, p, false)
		},
		"RepairPairs open": func(m []message.Message, p Policy) []message.Message {
			return RepairPairs(m, p, true)
		},
		"FilterHeartbeats": func(m []message.Message, _ Policy) []message.Message { return FilterHeartbeats(m) },
		"LimitTurns":       func(m []message.Message, _ Policy) []message.Message { return LimitTurns(m, 2) },
	}
}

// broken returns the first promise that a rule breaks on msgs, "" when all hold.
func broken(msgs []message.Message) string {
	before := clone(msgs)
	for provider, policy := range policies() {
		for name, rule := range rules() {
			once := rule(msgs, policy)
			if !reflect.DeepEqual(before, msgs) {
				return fmt.Sprintf("%s, %s: changed its input:\n%s", name, provider, cmp.Diff(before, msgs))
			}
			snapshot := clone(once)
			again := rule(once, policy)
			if !reflect.DeepEqual(snapshot, again) {
				return fmt.Sprintf("%s, %s: twice is not once:\n%s", name, provider, cmp.Diff(snapshot, again))
			}
			if !same(once, again) {
				return fmt.Sprintf("%s, %s: copied what it did not change", name, provider)
			}
			if name == "Apply" {
				if v := Check(once, policy); len(v) > 0 {
					return fmt.Sprintf("%s, %s: %v\n%s", name, provider, v, outline(once))
				}
			}
			if why := covered(Groups(once), len(once)); why != "" {
				return why
			}
		}
	}
	return ""
}

func covered(groups []Group, n int) string {
	at := 0
	for _, g := range groups {
		if g.From != at || g.To <= g.From {
			return fmt.Sprintf("Groups: %v does not follow %d", g, at)
		}
		at = g.To
	}
	if at != n {
		return fmt.Sprintf("Groups: end at %d of %d", at, n)
	}
	return ""
}

// outline prints messages in one line each.
func outline(msgs []message.Message) string {
	s := ""
	for i, m := range msgs {
		s += fmt.Sprintf("%3d %s %s%s %s:", i, m.Role, m.Type, m.Format, m.Stop)
		for _, p := range m.Parts {
			s += fmt.Sprintf(" %s(%s%q)", p.Kind, p.CallID, p.Text)
		}
		s += "\n"
	}
	return s
}

func TestPromisesOnRandomConversations(t *testing.T) {
	for seed := range draws(t, 600) {
		s := random(seed, 20+int(seed%200))
		msgs := s.conversation()
		if why := broken(msgs); why != "" {
			t.Fatalf("HISTORY_SEED=%d: %s\ninput:\n%s", seed, why, outline(msgs))
		}
	}
}

// TestPairsAfterRepairAlone holds RepairPairs to its promise without the other rules' help.
func TestPairsAfterRepairAlone(t *testing.T) {
	for _, synthetic := range []bool{true, false} {
		policy := Policy{RepairPairs: true, SyntheticResults: synthetic}
		for seed := range draws(t, 1200) {
			s := random(seed, 150)
			msgs := s.conversation()
			out := RepairPairs(msgs, policy, false)
			if v := Check(out, policy); len(v) > 0 {
				t.Fatalf("HISTORY_SEED=%d, synthetic %v: %v\ninput:\n%soutput:\n%s", seed, synthetic, v, outline(msgs), outline(out))
			}
		}
	}
}

// TestSettledTurnsStay holds the rules to what caches need: once a message's turn is not the newest any more, no later
// message changes what Sanitize makes of it.
func TestSettledTurnsStay(t *testing.T) {
	for provider, policy := range policies() {
		policy.AllowedTools = nil // results may come later, and decide
		for seed := range draws(t, 80) {
			s := random(seed, 150)
			msgs := s.conversation()
			for i := range msgs {
				if msgs[i].Type == message.CompactionSummary {
					msgs[i].Type = ""
				}
				msgs[i].ID = fmt.Sprint(i)
			}
			late := Sanitize(msgs, policy)
			for k := range msgs {
				settled := NewestTurn(msgs[:k])
				early := Sanitize(msgs[:k], policy)
				if a, b := upTo(early, settled), upTo(late, settled); !reflect.DeepEqual(a, b) {
					t.Fatalf("%s, HISTORY_SEED=%d: a settled message changed between %d and %d messages:\n%s",
						provider, seed, k, len(msgs), cmp.Diff(a, b))
				}
			}
		}
	}
}

// upTo returns the messages whose number, kept in ID, is below n.
func upTo(msgs []message.Message, n int) []message.Message {
	var out []message.Message
	for _, m := range msgs {
		var i int
		if _, err := fmt.Sscan(m.ID, &i); err == nil && i < n {
			out = append(out, m)
		}
	}
	return out
}

func FuzzApply(f *testing.F) {
	f.Add([]byte(nil))
	for seed := range int64(8) {
		f.Add([]byte(random(seed, 60)))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		s := source(data)
		msgs := s.conversation()
		if why := broken(msgs); why != "" {
			t.Fatalf("%s\ninput:\n%s", why, outline(msgs))
		}
	})
}

func TestCleanHistoryCostsNothing(t *testing.T) {
	msgs := []message.Message{
		system("be kind"), user("read two files"), calls(text("sure"), call("a"), call("b")), tool(result("a")), tool(result("b")),
		says("done"), user("again"), calls(call("toolu_1")), tool(result("toolu_1")), says("done"),
	}
	for name, rule := range rules() {
		for provider, policy := range policies() {
			if policy.MergeUserTurns || policy.DropThinking || len(policy.AllowedTools) > 0 {
				continue // there it is not clean
			}
			// Checking arguments and keeping the set of ids take memory.
			policy.Clean, policy.SanitizeCallIDs = false, ""
			if n := testing.AllocsPerRun(20, func() { rule(msgs, policy) }); n != 0 {
				t.Errorf("%s, %s: %v allocations on a clean history, want 0", name, provider, n)
			}
		}
	}
}
