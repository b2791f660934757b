package recall

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"runtime"
	"slices"
	"strconv"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/experiment/questions"
)

// Plan is what to measure.
type Plan struct {
	Dataset *questions.Dataset
	// Arms are measured each on its own; the others are compared with the first.
	Arms []Arm
	// Depths are the numbers of candidates, Budgets the numbers of tokens that recall is measured at; DefaultDepths and DefaultBudgets when nil.
	Depths, Budgets []int
	// Windows, if there are any, are budgets in tokens of windows that are assembled for every question: then what is measured is what of the
	// evidence stands in them, instead of what the retriever finds. Joined puts the sessions of a conversation one behind the other into one;
	// without it the question is asked in the last of them.
	Windows []int
	Joined  bool
	// Candidates is how many the retriever is asked for, 1000 when it is 0.
	Candidates int
	// Unit replaces the data set's unit of packing when it is not empty.
	Unit questions.Unit
	// Seed makes the intervals repeatable.
	Seed uint64
	// Workers is how many arms are measured at once, GOMAXPROCS when it is 0. Times of calls are best taken with 1.
	Workers int
	// Version identifies the program, so that results of another one are not taken up again.
	Version string
	// Journal keeps the results of arms, so that a run that was interrupted goes on where it was. It may be nil.
	Journal Journal
	// Progress is called after every question with the numbers asked and to ask; results from the journal are not among them. It need not be
	// safe for concurrent use.
	Progress func(done, total int)
}

// Journal keeps finished results by key. Both methods are safe for concurrent use.
type Journal interface {
	// Lookup reads what was recorded under a key into a pointer, and reports whether there was anything.
	Lookup(key string, into any) (bool, error)
	// Record keeps a value. It is durable when Record returns nil.
	Record(key string, value any) error
}

// DefaultDepths and DefaultBudgets return what recall is measured at where nobody chose.
func DefaultDepths() []int { return []int{5, 10, 25, 50} }

// DefaultBudgets is described at DefaultDepths.
func DefaultBudgets() []int { return []int{1000, 2000, 4000, 8000} }

// defaultCandidates is enough for any budget to be what bounds the measure.
const defaultCandidates = 1000

func (p *Plan) complete() error {
	invalid := func(text string) error { return fmt.Errorf("recall: %s: %w", text, core.ErrInvalid) }
	if p.Dataset == nil || p.Dataset.Measured() == 0 {
		return invalid("the data set has no question with evidence")
	}
	if len(p.Arms) == 0 {
		return invalid("there is no arm to measure")
	}
	seen := make(map[string]bool)
	for _, a := range p.Arms {
		if a.Open == nil || a.Name == "" || seen[a.Name] {
			return invalid(fmt.Sprintf("arm %q opens nothing, or has no name of its own", a.Name))
		}
		seen[a.Name] = true
	}
	if p.Depths == nil {
		p.Depths = DefaultDepths()
	}
	if p.Budgets == nil {
		p.Budgets = DefaultBudgets()
	}
	if len(p.Depths)+len(p.Budgets) == 0 {
		return invalid("there is neither a depth nor a budget to measure at")
	}
	for _, n := range slices.Concat(p.Depths, p.Budgets, p.Windows) {
		if n < 1 {
			return invalid("depths and budgets must be positive")
		}
	}
	if p.Candidates == 0 {
		p.Candidates = defaultCandidates
	}
	if p.Candidates < 1 || p.Candidates > 100_000 {
		return invalid("candidates must be 1 to 100000")
	}
	if p.Unit == "" {
		p.Unit = p.Dataset.Unit
	}
	if p.Unit != questions.WholeMessage && p.Unit != questions.Passage {
		return invalid(`the unit of packing must be "message" or "passage"`)
	}
	if p.Workers <= 0 {
		p.Workers = runtime.GOMAXPROCS(0)
	}
	return nil
}

// key identifies the result of an arm: configuration, data, protocol and program.
func (p *Plan) key(a Arm, data string) string {
	text, _ := json.Marshal([]any{a.Digest, data, p.Depths, p.Budgets, p.Candidates, p.Unit, p.Version, p.Windows, p.Joined}) // text and numbers
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:12])
}

// measures names what recall is measured at: depths first.
func (p *Plan) measures() []Measure {
	out := make([]Measure, 0, len(p.Depths)+len(p.Budgets))
	for _, k := range p.Depths {
		out = append(out, Measure{Name: "R@" + strconv.Itoa(k), Kind: ByDepth, At: k})
	}
	for _, b := range p.Budgets {
		name := strconv.Itoa(b)
		if b%1000 == 0 {
			name = strconv.Itoa(b/1000) + "k"
		}
		out = append(out, Measure{Name: name, Kind: ByBudget, At: b})
	}
	return out
}
