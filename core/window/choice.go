package window

// Reason says why something is in the prompt, or not.
type Reason string

// The reasons. The last seven are reasons for being out.
const (
	ReasonSystem   Reason = "system"         // a system message of the conversation
	ReasonTail     Reason = "tail"           // recent history
	ReasonPinned   Reason = "pinned"         // the user's message of a turn that outgrew the budget
	ReasonSummary  Reason = "summary"        // stands for compacted history
	ReasonRecalled Reason = "recalled"       // found by the retriever
	ReasonNote     Reason = "note"           // made by the engine: what was left out, repairs
	OutBudget      Reason = "out: budget"    // left the window at a step
	OutCompacted   Reason = "out: compacted" // a summary stands for it
	OutHeartbeat   Reason = "out: heartbeat" // a timer's message
	OutErased      Reason = "out: erased"    // somebody erased it
	OutRule        Reason = "out: rule"      // a history rule removed it
	OutLimit       Reason = "out: limit"     // beyond the limit of user turns
	OutAllowance   Reason = "out: allowance" // recalled, but the recall block was full
)

// Choice explains one message or a run of entries.
type Choice struct {
	// Message is the index into AssembleResult.Messages; -1 for what is out.
	Message int `json:"message"`
	// Entry is the entry's id; empty for what the engine made, and for a run of entries that is out.
	Entry string `json:"entry,omitempty"`
	// Count is the number of entries meant, 1 except for runs that are out.
	Count  int    `json:"count"`
	Reason Reason `json:"reason"`
	// Tokens is what it costs, or would have cost: about that for a run of entries, and 0 for a run that a summary stands for.
	Tokens int `json:"tokens"`
	// Stub says how the content was shortened; empty when it is whole.
	Stub StubKind `json:"stub,omitempty"`
	// Score and Source are the retriever's.
	Score  float64 `json:"score,omitempty"`
	Source string  `json:"source,omitempty"`
}
