// Package capability names what a host may offer to an engine and its parts: core.Host lists what it has, a part says what it needs, and capability.Require compares
// the two.
package capability

// Name is something a host may offer. The names are the OpenClaw host's where it has one.
type Name string

// The capabilities.
const (
	Bootstrap      Name = "bootstrap"
	Assemble       Name = "assemble-before-prompt"
	AfterTurn      Name = "after-turn"
	Maintain       Name = "maintain"
	Compact        Name = "compact"
	Complete       Name = "runtime-llm-complete"
	ThreadProject  Name = "thread-bootstrap-projection"
	DelegateHost   Name = "delegated-compaction"
	CommitTurn     Name = "commit-turn"
	SpawnSubagents Name = "subagent-spawn"
)

// All returns every name, in the order in which they stand here.
func All() []Name {
	return []Name{Bootstrap, Assemble, AfterTurn, Maintain, Compact, Complete, ThreadProject, DelegateHost, CommitTurn, SpawnSubagents}
}
