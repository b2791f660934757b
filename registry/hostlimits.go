package registry

import (
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/history"
)

// HostLimits reads limits of history from a host's section of channels, which holds much else that concerns the host alone. What is not as a limit should be is left
// out, and ignored says so of each: a host that can live with it is not to lose its engine.
func HostLimits(section any) (limits history.Limits, ignored []string) {
	var r limitReader
	channels := r.table(section, path{"channels"})
	for _, name := range slices.Sorted(maps.Keys(channels)) {
		at := path{"channels", name}
		m := r.table(channels[name], at)
		of := history.ChannelLimits{HistoryLimit: r.limit(m, "historyLimit", at), DMHistoryLimit: r.limit(m, "dmHistoryLimit", at), DMs: r.peers(m, at)}
		accounts := r.table(m["accounts"], at.at("accounts"))
		for _, id := range slices.Sorted(maps.Keys(accounts)) {
			at := at.at("accounts").at(id)
			m := r.table(accounts[id], at)
			put(&of.Accounts, id, history.AccountLimits{HistoryLimit: r.limit(m, "historyLimit", at), DMHistoryLimit: r.limit(m, "dmHistoryLimit", at), DMs: r.peers(m, at)})
		}
		put(&limits.Channels, name, of)
	}
	return limits, r.ignored
}

// limitReader reads what is as it should be, and remembers what is not.
type limitReader struct{ ignored []string }

func (r *limitReader) ignore(err error) {
	r.ignored = append(r.ignored, strings.TrimSuffix(err.Error(), ": "+core.ErrInvalid.Error()))
}

// table returns v as an object; nil where it is none.
func (r *limitReader) table(v any, at path) map[string]any {
	m, err := object(v, at)
	if err != nil {
		r.ignore(err)
	}
	return m
}

// limit returns the number of turns under a key; nil where there is none.
func (r *limitReader) limit(m map[string]any, key string, at path) *int {
	if m[key] == nil {
		return nil
	}
	n := new(int)
	if err := scalar(m[key], reflect.ValueOf(n).Elem(), at.at(key)); err != nil {
		r.ignore(err)
		return nil
	}
	return n
}

// peers returns the limits of single peers.
func (r *limitReader) peers(m map[string]any, at path) map[string]history.PeerLimits {
	var out map[string]history.PeerLimits
	dms := r.table(m["dms"], at.at("dms"))
	for _, id := range slices.Sorted(maps.Keys(dms)) {
		at := at.at("dms").at(id)
		put(&out, id, history.PeerLimits{HistoryLimit: r.limit(r.table(dms[id], at), "historyLimit", at)})
	}
	return out
}

// put adds what says something.
func put[V any](m *map[string]V, key string, v V) {
	if reflect.ValueOf(v).IsZero() {
		return
	}
	if *m == nil {
		*m = make(map[string]V)
	}
	(*m)[key] = v
}
