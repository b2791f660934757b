package history

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/contextengine/contextengine/core/message"
)

// LimitTurns keeps about the newest limit user turns with everything after them. To leave a provider's cache in place
// it cuts in steps: nothing happens up to max = ceil(1.5 limit) turns; beyond that limit + (n-limit) mod
// (max-limit+1) of n turns stay, so that the first message kept moves once in max-limit+1 turns.
//
// A turn is an ordinary user message that says something. Leading messages that belong to no turn (system messages, a compaction
// summary), and later system messages and compaction summaries, always stay. A limit below 1 means no limit.
func LimitTurns(msgs []message.Message, limit int) []message.Message {
	if limit < 1 || limit >= len(msgs) {
		return msgs
	}
	n := 0
	for i := range msgs {
		if isUserTurn(&msgs[i]) {
			n++
		}
	}
	most := limit + (limit+1)/2
	if n <= most {
		return msgs
	}
	skip := n - (limit + (n-limit)%(most-limit+1))
	l := list{src: msgs}
	prelude := true
	for i := range msgs {
		m := &msgs[i]
		if isUserTurn(m) {
			skip--
		}
		prelude = prelude && m.Role != message.Tool && (m.Type != "" || m.Role == message.System)
		if skip < 0 || prelude || m.Role == message.System || m.Type == message.CompactionSummary {
			l.keep(i)
		}
	}
	return l.done()
}

// isUserTurn reports whether a turn begins with m. A message that says nothing begins none.
func isUserTurn(m *message.Message) bool {
	return m.Role == message.User && m.Type == "" && slices.ContainsFunc(m.Parts, func(p message.Part) bool { return !isBlankText(&p) })
}

// Limits is the configuration LimitFor reads: how many user turns of history the conversations of a channel get.
// Its shape is the "channels" section of an OpenClaw configuration. A value that is not set defers to the
// next wider one; 0 or less means no limit. The zero Limits limits nothing.
type Limits struct {
	Channels map[string]ChannelLimits `koanf:"channels"`
}

// ChannelLimits are the limits of one channel, such as "telegram".
type ChannelLimits struct {
	// HistoryLimit is for groups and channels, in user turns.
	HistoryLimit *int `koanf:"historyLimit"`
	// DMHistoryLimit is for direct conversations, in user turns.
	DMHistoryLimit *int `koanf:"dmHistoryLimit"`
	// DMs are exceptions for single peers of direct conversations.
	DMs map[string]PeerLimits `koanf:"dms"`
	// Accounts are exceptions for single accounts.
	Accounts map[string]AccountLimits `koanf:"accounts"`
}

// AccountLimits are the limits of one account of a channel; the fields are those of ChannelLimits.
type AccountLimits struct {
	HistoryLimit   *int                  `koanf:"historyLimit"`
	DMHistoryLimit *int                  `koanf:"dmHistoryLimit"`
	DMs            map[string]PeerLimits `koanf:"dms"`
}

// PeerLimits are the limits of one peer.
type PeerLimits struct {
	// HistoryLimit is in user turns.
	HistoryLimit *int `koanf:"historyLimit"`
}

// Over returns l with the limits of another for what l leaves open.
func (l Limits) Over(other Limits) Limits {
	return Limits{Channels: over(l.Channels, other.Channels, ChannelLimits.over)}
}

func (c ChannelLimits) over(other ChannelLimits) ChannelLimits {
	return ChannelLimits{
		HistoryLimit: cmp.Or(c.HistoryLimit, other.HistoryLimit), DMHistoryLimit: cmp.Or(c.DMHistoryLimit, other.DMHistoryLimit),
		DMs: over(c.DMs, other.DMs, PeerLimits.over), Accounts: over(c.Accounts, other.Accounts, AccountLimits.over),
	}
}

func (a AccountLimits) over(other AccountLimits) AccountLimits {
	return AccountLimits{
		HistoryLimit: cmp.Or(a.HistoryLimit, other.HistoryLimit), DMHistoryLimit: cmp.Or(a.DMHistoryLimit, other.DMHistoryLimit),
		DMs: over(a.DMs, other.DMs, PeerLimits.over),
	}
}

func (p PeerLimits) over(other PeerLimits) PeerLimits {
	return PeerLimits{HistoryLimit: cmp.Or(p.HistoryLimit, other.HistoryLimit)}
}

// over joins two maps; where both have a key, join says what becomes of it.
func over[V any](l, other map[string]V, join func(l, other V) V) map[string]V {
	if len(l) == 0 {
		return other
	}
	out := maps.Clone(l)
	for key, o := range other {
		if own, ok := l[key]; ok {
			o = join(own, o)
		}
		out[key] = o
	}
	return out
}

// LimitFor returns the limit for a session key of the form
// agent:<id>:<channel>[:<account>]:<direct|group|channel>:<peer>, a trailing :thread:<n> or :topic:<n> ignored;
// 0, no limit, for every other key and where nothing is configured. In direct conversations the account's entry for
// the peer comes first, then the channel's entry for the peer, the account's limit, the channel's limit; in groups
// and channels the account's limit comes before the channel's. Names are compared as they are written.
func LimitFor(sessionKey string, limits Limits) int {
	channel, account, kind, peer, ok := parseSessionKey(sessionKey)
	if !ok {
		return 0
	}
	ch := limits.Channels[channel]
	acc := ch.Accounts[account]
	if kind == "direct" {
		return firstSet(acc.DMs[peer].HistoryLimit, ch.DMs[peer].HistoryLimit, acc.DMHistoryLimit, ch.DMHistoryLimit)
	}
	return firstSet(acc.HistoryLimit, ch.HistoryLimit)
}

func firstSet(limits ...*int) int {
	for _, l := range limits {
		if l != nil {
			return max(*l, 0)
		}
	}
	return 0
}

func parseSessionKey(key string) (channel, account, kind, peer string, ok bool) {
	f := strings.Split(stripThread(key), ":")
	if len(f) < 5 || f[0] != "agent" {
		return "", "", "", "", false
	}
	channel, f = f[2], f[3:]
	if !isConversationKind(f[0]) {
		account, f = f[0], f[1:]
	}
	if len(f) < 2 || !isConversationKind(f[0]) {
		return "", "", "", "", false
	}
	return channel, account, f[0], strings.Join(f[1:], ":"), true
}

func isConversationKind(s string) bool { return s == "direct" || s == "group" || s == "channel" }

// stripThread removes a trailing :thread:<n> or :topic:<n>.
func stripThread(key string) string {
	for {
		n := strings.LastIndexByte(key, ':')
		if n < 0 || n == len(key)-1 {
			return key
		}
		head, found := strings.CutSuffix(key[:n], ":thread")
		if !found {
			head, found = strings.CutSuffix(key[:n], ":topic")
		}
		if !found {
			return key
		}
		key = head
	}
}
