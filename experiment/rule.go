package experiment

import "fmt"

// Rule names something that a replay verifies.
type Rule string

// The rules. Each follows from a promise that an engine makes.
const (
	RuleBudget      Rule = "budget"       // a prompt costs at most its budget, recounted from its bytes
	RuleBudgetError Rule = "budget-error" // a budget error comes only where system prompt and newest messages do not fit
	RulePairs       Rule = "pairs"        // every tool call is followed by exactly its results
	RuleOrder       Rule = "order"        // history is in the order in which it was said
	RuleTwice       Rule = "twice"        // nothing is shown twice
	RuleNewest      Rule = "newest"       // the prompt ends with the newest message
	RulePrefix      Rule = "prefix"       // without a step, what was sent is a prefix of what is sent, recall and newest turn left out
	RuleLoop        Rule = "loop"         // inside a turn, without a step, the whole previous prompt is a prefix
	RuleRecall      Rule = "recall"       // recalled text stands in front of the newest turn, never in front of history
	RuleSame        Rule = "same"         // the same call, and the engine's own output fed back, give the same bytes
	RuleLost        Rule = "lost"         // every message can be read back byte for byte
	RuleCompaction  Rule = "compaction"   // compaction makes progress or says why not; only engines that delegate ask the runtime, once
	RuleSystem      Rule = "system"       // leading system messages stay
)

// Violation is a rule that was broken.
type Violation struct {
	// Call is the number of the model call, from 1; 0 when it belongs to none.
	Call int    `json:"call"`
	Rule Rule   `json:"rule"`
	Text string `json:"text"`
}

func (v Violation) String() string {
	if v.Call == 0 {
		return fmt.Sprintf("%s: %s", v.Rule, v.Text)
	}
	return fmt.Sprintf("call %d: %s: %s", v.Call, v.Rule, v.Text)
}
