package engine

import (
	"maps"
	"slices"

	"github.com/contextengine/contextengine/core/message"
)

// ownMessages tells the engine's own messages in a transcript from the host's: the value lists the fingerprints of the entries that a
// shortened or merged message shows, with "" where it says something of the engine's own; it is empty for what shows none.
func (e *Engine) ownMessages(s *session) map[string][]string {
	out := make(map[string][]string, len(s.variants)+4)
	front := s.view.Front()
	for _, sum := range append(slices.Clone(s.view.Summaries), front.Summaries...) {
		out[message.Fingerprint(summaryMessage(sum))] = nil
	}
	for _, r := range recallsOf(&s.view) {
		out[message.Fingerprint(recallMessage(r))] = nil
	}
	if front.Left > 0 {
		out[message.Fingerprint(noteMessage(front.Left))] = nil
	}
	for i := range s.items {
		if it := &s.items[i]; !same(&it.entry.Message, &it.msg) {
			out[message.Fingerprint(it.msg)] = []string{it.entry.Fingerprint}
		}
	}
	maps.Copy(out, s.variants)
	return out
}

// withoutEchoes takes out what a message of the engine's own shows when the host shows it itself, too. Tool results are told apart by their calls: two calls
// may give the same.
func withoutEchoes(known []knownEntry, rows []row, messages []message.Message) []row {
	free := make(map[string]int, len(known))
	for _, k := range known {
		free[k.fp]++
	}
	hosts := make(map[string][]int)
	for _, r := range rows {
		if !r.own {
			free[r.fp]--
			hosts[r.fp] = append(hosts[r.fp], r.index)
		}
	}
	return slices.DeleteFunc(rows, func(r row) bool {
		if !r.own {
			return false
		}
		if calls := callIDs(&messages[r.index]); len(calls) > 0 {
			return slices.ContainsFunc(hosts[r.fp], func(i int) bool { return slices.Equal(callIDs(&messages[i]), calls) })
		}
		free[r.fp]--
		return free[r.fp] < 0
	})
}

// callIDs returns the ids of the calls that a message has results of.
func callIDs(m *message.Message) []string {
	var out []string
	for i := range m.Parts {
		if p := &m.Parts[i]; p.Kind == message.ToolResult {
			out = append(out, p.CallID)
		}
	}
	return out
}
