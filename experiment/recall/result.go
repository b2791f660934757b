package recall

import (
	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/experiment/questions"
	"github.com/contextengine/contextengine/experiment/stats"
)

// Result is what Run found. Shares are 0 to 1, times milliseconds, sizes bytes. Its JSON form only gains fields.
type Result struct {
	Dataset  DatasetInfo `json:"dataset"`
	Protocol Protocol    `json:"protocol"`
	// Measures say what recall was measured at; every list of recalls has their order.
	Measures []Measure `json:"measures"`
	// Arms have the order of the plan.
	Arms []ArmResult `json:"arms"`
	// Comparisons are of every later arm with the first, in every group and measure. Arms that failed are not among them.
	Comparisons []Comparison `json:"comparisons"`
	// Orders say of every later arm how often it ranks as the first one does.
	Orders []OrderComparison `json:"orders"`
}

// DatasetInfo says what was asked about.
type DatasetInfo struct {
	Name          string `json:"name"`
	Format        string `json:"format"`
	Digest        string `json:"digest"`
	Conversations int    `json:"conversations"`
	Messages      int    `json:"messages"`
	// Questions counts those with evidence.
	Questions int      `json:"questions"`
	Notes     []string `json:"notes,omitempty"`
}

// Protocol says how was measured.
type Protocol struct {
	Candidates int            `json:"candidates"`
	Unit       questions.Unit `json:"unit"`
	// Tokens says how tokens are counted.
	Tokens  string `json:"tokens"`
	Seed    uint64 `json:"seed"`
	Workers int    `json:"workers"`
}

// The kinds of measures.
const (
	ByDepth  = "depth"
	ByBudget = "budget"
)

// Measure is something recall is measured at: a number of candidates, or of tokens.
type Measure struct {
	Name string `json:"name"`
	Kind string `json:"kind"`
	At   int    `json:"at"`
}

// ArmResult is what one configuration did.
type ArmResult struct {
	Name      string            `json:"name"`
	Config    string            `json:"config,omitempty"`
	Parts     core.PartNames    `json:"parts"`
	Searchers []string          `json:"searchers,omitempty"`
	Settings  map[string]string `json:"settings,omitempty"`
	// Groups are those of the data set, the headline first, and then the categories.
	Groups  []GroupResult `json:"groups"`
	Latency Latency       `json:"latency"`
	Index   Index         `json:"index"`
	// Failed counts questions that the retriever answered with an error; they count as nothing found. Degraded counts those during which a part
	// said that it goes on without another; Warnings say which.
	Failed   int       `json:"failed"`
	Degraded int       `json:"degraded"`
	Warnings []Warning `json:"warnings,omitempty"`
	// Resumed says that the result is from the journal.
	Resumed bool `json:"resumed,omitempty"`
	// Error says why the arm could not be measured; everything else is empty then.
	Error string `json:"error,omitempty"`
	// Standing says what stands in windows, group by group and budget by budget, when windows were measured; Groups and Latency are empty then.
	Standing []Standing `json:"standing,omitempty"`
	// Windows holds every question at every budget of Plan.Windows, budget by budget in the order of the data set.
	Windows []WindowQuestion `json:"windows,omitempty"`
	// Questions holds every question, in the order of the data set.
	Questions []QuestionResult `json:"questions,omitempty"`
}

// GroupResult sums up the questions of a group or category.
type GroupResult struct {
	Name string `json:"name"`
	// Category says that it is one category, not a group of the data set.
	Category bool `json:"category,omitempty"`
	// Questions is their number, Answers that of those with a gold answer.
	Questions int `json:"questions"`
	Answers   int `json:"answers"`
	// Measures have the order of Result.Measures.
	Measures []MeasureResult `json:"measures"`
}

// MeasureResult is what a group reached at one measure.
type MeasureResult struct {
	Measure
	// Recall is the evidence recall.
	Recall stats.Interval `json:"recall"`
	// AnswerTokens is the share of the gold answers' words that were packed, Packed the tokens of what was, on average; only for budgets.
	AnswerTokens *stats.Interval `json:"answerTokens,omitempty"`
	Packed       float64         `json:"packedTokens,omitempty"`
}

// Latency is how long calls of the retriever took, in milliseconds.
type Latency struct {
	P50  float64 `json:"p50ms"`
	P95  float64 `json:"p95ms"`
	Mean float64 `json:"meanMs"`
	// Cold is the mean of the first calls of conversations, which build the index.
	Cold float64 `json:"coldMs"`
	// Late counts calls that took longer than the engine would have waited.
	Late int `json:"late"`
}

// Index says how large is what was built, in bytes. Memory is what the heap of this process grew by; 0 when it did not.
type Index struct {
	Entries int `json:"entries"`
	// StoreBytes is what the store takes on its medium, if it tells; StoreMemory what it holds in this process.
	StoreBytes  int64 `json:"storeBytes"`
	StoreMemory int64 `json:"storeMemory"`
	// Memory is what the indexes hold.
	Memory int64 `json:"indexMemory"`
	// ImportSeconds is how long storing took.
	ImportSeconds float64 `json:"importSeconds"`
}

// QuestionResult is what one question got.
type QuestionResult struct {
	Conversation string `json:"conversation"`
	// Question is its id within the conversation.
	Question string `json:"question"`
	Category string `json:"category,omitempty"`
	// Evidence is the number of messages that hold the answer.
	Evidence int `json:"evidence"`
	// Recall has the order of Result.Measures; AnswerTokens, nil without a gold answer, and Packed have that of the budgets among them.
	Recall       []float64 `json:"recall"`
	AnswerTokens []float64 `json:"answerTokens,omitempty"`
	Packed       []int     `json:"packedTokens,omitempty"`
	// Candidates is how many there were, Order identifies them and their order.
	Candidates int     `json:"candidates"`
	Order      string  `json:"order"`
	Ms         float64 `json:"ms"`
	Degraded   bool    `json:"degraded,omitempty"`
	Error      string  `json:"error,omitempty"`
}

// Comparison is a difference between two arms: Other minus Base.
type Comparison struct {
	Base    string `json:"base"`
	Other   string `json:"other"`
	Group   string `json:"group"`
	Measure string `json:"measure"`
	// Difference is paired, question by question.
	Difference stats.Interval `json:"difference"`
	// Decision is what is shown, Verdict the same in words.
	Decision stats.Decision `json:"decision"`
	Verdict  string         `json:"verdict"`
}

// OrderComparison counts questions for which two arms have the same candidates in the same order.
type OrderComparison struct {
	Base  string `json:"base"`
	Other string `json:"other"`
	Same  int    `json:"same"`
	Of    int    `json:"of"`
}
