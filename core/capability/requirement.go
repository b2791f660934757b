package capability

import (
	"errors"
	"fmt"
	"maps"
	"slices"
)

// ErrRequirement says that the host lacks a capability that an operation needs.
var ErrRequirement = errors.New("missing host capability")

// Host is what a requirement asks of a host. A core.Host is one.
type Host interface {
	Capabilities() []Name
}

// Requirement is what an operation needs of the host.
type Requirement struct {
	Capabilities []Name `json:"requiredCapabilities" koanf:"capabilities"`
	// Unsupported is told to the person whose host lacks one of them: what to do about it.
	Unsupported string `json:"unsupportedMessage,omitempty" koanf:"message"`
}

// Requirements are what operations need of the host, by operation: one of the host's ("agent-run"), or a method of an engine ("compact").
type Requirements map[string]Requirement

// Requirer is a part that needs something of the host. An engine with it is not made on a host that lacks it.
type Requirer interface {
	Requires() Requirements
}

// Check returns a RequirementError for the first operation, by name, for which host lacks something.
func (r Requirements) Check(host Host, engine string) error {
	for _, op := range slices.Sorted(maps.Keys(r)) {
		if err := Require(host, engine, op, r[op]); err != nil {
			return err
		}
	}
	return nil
}

// Require returns a RequirementError naming the capabilities in need that host does not offer.
func Require(host Host, engine, operation string, need Requirement) error {
	have := host.Capabilities()
	missing := slices.DeleteFunc(slices.Clone(need.Capabilities), func(n Name) bool { return slices.Contains(have, n) })
	if len(missing) == 0 {
		return nil
	}
	return &RequirementError{Engine: engine, Operation: operation, Missing: missing, Have: have, Unsupported: need.Unsupported}
}

// RequirementError names the capabilities a host lacks. errors.Is(err, ErrRequirement) holds for it.
type RequirementError struct {
	Engine    string
	Operation string
	Missing   []Name
	Have      []Name
	// Unsupported says what to do about it, in the words of who needs it; it may be empty.
	Unsupported string
}

func (e *RequirementError) Error() string {
	text := fmt.Sprintf("capability: %s: engine %q cannot run on this host, it lacks %v (it offers %v): %v",
		e.Operation, e.Engine, e.Missing, e.Have, ErrRequirement)
	if e.Unsupported != "" {
		text += ": " + e.Unsupported
	}
	return text
}

// Unwrap returns ErrRequirement.
func (e *RequirementError) Unwrap() error { return ErrRequirement }
