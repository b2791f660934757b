package registry

import (
	"cmp"
	"reflect"
)

// Part describes a registered part.
type Part struct {
	Kind Kind   `json:"kind"`
	Name string `json:"name"`
	Doc  string `json:"doc"`
	// Keys are what an operator can set.
	Keys []Key `json:"keys,omitempty"`
	// Offline says that the part has a configuration that needs nothing outside the process.
	Offline bool `json:"offline,omitempty"`
	// Prompts are what the part asks models with.
	Prompts []Prompt `json:"prompts,omitempty"`
}

// Key describes a key of a configuration file.
type Key struct {
	// Path is the key with those above it, separated by dots, from the part's object on.
	Path string `json:"path"`
	// Type is in words: "integer", "duration", "list of string", ...
	Type string `json:"type"`
	// Default is as a file would hold it, without secrets; nil when there is none.
	Default any    `json:"default,omitempty"`
	Doc     string `json:"doc,omitempty"`
}

// Describe lists all parts, by kind in the order of a configuration file and then by name.
func (r *Registry) Describe() []Part {
	var out []Part
	for _, kind := range kinds {
		for _, name := range r.Names(kind) {
			p := r.parts[kind][name]
			d := Part{Kind: kind, Name: name, Doc: p.doc, Keys: describe(p.defaults(), "", nil), Offline: len(p.samples) > 0}
			if p.prompts != nil {
				d.Prompts, _ = p.prompts() // built-in ones can always be read; the part's own test sees to it
			}
			out = append(out, d)
		}
	}
	return out
}

// Keys lists the keys of a configuration file, those of parts left out.
func (r *Registry) Keys() []Key {
	cfg := DefaultConfig()
	return describe(reflect.ValueOf(cfg), "", coreDocs())
}

// describe lists the keys of a struct, and of those in it. docs explains fields without a tag, by path.
func describe(v reflect.Value, prefix string, docs map[string]string) []Key {
	var out []Key
	for _, f := range fieldsOf(v.Type()) {
		fv, at := v.FieldByIndex(f.index), prefix+f.key
		if f.typ.Kind() == reflect.Struct && f.typ != choiceType {
			out = append(out, describe(fv, at+".", docs)...)
			continue
		}
		out = append(out, Key{
			Path: at, Type: typeName(f.typ), Doc: cmp.Or(f.doc, docs[at]),
			Default: redact(f.key, encodeValue(fv)),
		})
	}
	return out
}

// coreDocs explains the keys of engine.Config, whose fields have no tag for it.
func coreDocs() map[string]string {
	return map[string]string{
		"recentMessages":           "newest messages that compaction never touches",
		"failure":                  "what happens when a part fails for good: degrade (pass messages through, loudly) or strict (fail)",
		"window.high":              "share of the budget at which the window steps",
		"window.low":               "share of the budget that a step leaves at least, unless that is more than lowTokens; how deep it goes is decided by what it costs",
		"window.lowTokens":         "what low keeps at most, in tokens: a window n times as large as one of which low is that keeps an nth of it at least",
		"window.cachePrice":        "what a cached token costs the provider's customer, relative to one that is not cached, 0 to 1",
		"window.reserve":           "share of the budget that is never filled",
		"window.clipShare":         "largest share of the budget for one tool result, unless clipTokens is more",
		"window.clipTokens":        "tokens that one tool result may cost in any case",
		"window.batchShare":        "largest share of the budget for all results of one step",
		"window.keepResults":       "newest tool results that are never masked",
		"window.memory":            "MiB that the windows of all sessions may take in memory; the least recently used one is read again when needed",
		"window.note":              "say in the prompt how many earlier messages are not shown",
		"recall.share":             "share of the budget for recalled messages in a turn that asks for something, 0 to 0.5; 0 turns recall off",
		"recall.tokens":            "largest cost of all recalled messages in other turns, in tokens",
		"recall.gate":              "recall only for turns that ask for something that is not shown; false recalls in every turn",
		"recall.floor":             "share of the best candidate's score below which nothing is recalled, 0 to 1; in windows of more than 64,000 tokens it falls with the cube root of the budget",
		"recall.candidates":        "largest number of candidates that a retriever is asked for; it follows the tokens",
		"recall.deadline":          "how long a retriever may take",
		"recall.acrossSessions":    "let recall reach the agent's other sessions",
		"recall.resetHistory":      "let recall bring back what was reset inside its own session",
		"recall.resetMessages":     "how many of the newest messages from before a reset the first turn after it is given, together with the newest summary",
		"recall.whole":             "a recalled message of at most so many tokens is quoted whole, a longer one as the passage that was found",
		"recall.quote":             "largest recalled message, in tokens; longer ones are clipped",
		"compaction.due":           "share of the budget that may leave the window before a compaction is due",
		"compaction.target":        "share of the budget that history should cost after a compaction",
		"compaction.summaryShare":  "largest share of the budget for one summary",
		"compaction.maxSummary":    "largest summary, in tokens",
		"compaction.deadline":      "how long a compaction may take",
		"compaction.proactive":     "compact in the background when it is due",
		"history.provider":         "provider whose turn rules hold; empty takes the host's word",
		"history.limitTurns":       "largest number of user turns shown; 0 means no limit",
		"history.limits.channels":  "limits of user turns for each channel, its direct messages and its users",
		"history.providers":        "what is otherwise while a provider serves the model: provider, limitTurns and limits, by the host's name of it",
		"subagents.recentMessages": "newest messages of a subagent's session that compaction never touches",
		"requires":                 "what operations need of the host, by operation: {capabilities, message}; an engine is not made on a host that lacks it",
		"redact":                   "what is never stored: a list of {name, pattern, replace}; pattern is a regular expression",
		"injected":                 "what clients put into messages, besides what is known of them: a list of {client, tag, begin, end, in, top, keep}; stored, never looked for",
		"subagents.ttl":            "how long a subagent may reach its parent's history, and the parent the subagent's",
		"subagents.recall":         "let a subagent that begins with nothing recall and search its parent's history, and the parent search the subagent's; a fork may always",
		"subagents.promptMode":     "prompt mode of subagents' sessions where the host names none: full, minimal (half of the recall, of the session and its parent alone) or none (no recall)",
	}
}
