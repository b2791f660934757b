package report

// LineChart shows curves, such as recall against budget.
type LineChart struct {
	Title string
	// Caption says in a sentence or two what is to be seen.
	Caption string
	// XLabel and YLabel name the axes; XUnit and YUnit ("tokens", "%") follow values and are empty when there is none.
	XLabel, XUnit string
	YLabel, YUnit string
	// LogX spaces x values by their ratio, as budgets are; all of them must be positive then.
	LogX   bool
	Series []Series
}

// Series is one curve.
type Series struct {
	Name string
	// Points are shown in the order of X.
	Points []Point
}

// Point is a measurement. Low and High bound its confidence interval; equal ones mean that there is none. A Y that is NaN is not shown.
type Point struct{ X, Y, Low, High float64 }

// BarChart compares arms in groups, such as the categories of a data set. Bars begin at zero; what is below it is told in the figures only.
type BarChart struct {
	Title, Caption string
	// Label names what is measured, Unit follows every value.
	Label, Unit string
	// Arms name the bars of every group.
	Arms   []string
	Groups []BarGroup
}

// BarGroup holds one value for each arm.
type BarGroup struct {
	Name string
	// Count is the number of cases behind the group; 0 is not shown.
	Count  int
	Values []Value
}

// Value is a measurement. Low and High bound its confidence interval; equal ones mean that there is none. NaN is not shown.
type Value struct{ Value, Low, High float64 }

// Latency compares how long arms take.
type Latency struct {
	Title, Caption string
	// Unit is "ms" when it is empty.
	Unit string
	Arms []ArmLatency
}

// ArmLatency is what half of the calls and 95 % of them stay under.
type ArmLatency struct {
	Arm      string
	P50, P95 float64
	// Count is the number of calls measured; 0 is not shown.
	Count int
}

// Tone says how a verdict is marked. The words of the verdict carry the meaning; the mark is for the eye.
type Tone int

// The tones.
const (
	Neutral   Tone = iota
	Better         // a difference for the better is shown
	Worse          // a difference for the worse is shown
	Undecided      // no difference is shown
	Warning        // something to know before the figures are believed
)

// Verdict is a plain sentence, with what it rests on in Detail.
type Verdict struct {
	Text   string
	Detail string
	Tone   Tone
}

// Verdicts says what follows from the figures.
type Verdicts struct {
	Title, Caption string
	Items          []Verdict
}

// Note is text in paragraphs.
type Note struct {
	Title      string
	Paragraphs []string
}
