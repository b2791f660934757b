package postgres_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/contextengine/contextengine/backends/postgres"
	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/message"
)

// chat is an entry of about 60 words as a host writes it.
func chat(agent string, n int) core.Entry {
	words := strings.Fields("the ledger moved because kestrel invoice budget quoted bridge works again on Tuesday harbour lantern committee " +
		"migration database window railway signal copper meadow notebook archive violin passport granite")
	var b strings.Builder
	for i := range 60 {
		b.WriteString(words[(n*7+i*i+i*n)%len(words)] + " ")
	}
	raw := fmt.Sprintf(`{"role":"user","content":[{"type":"text","text":"%s"}],"timestamp":%d}`, b.String(), 1763681630791+n)
	m := message.New(message.User, b.String())
	m.Raw, m.Format = []byte(raw), message.FormatPi
	return core.Entry{
		ID: fmt.Sprintf("e%s%024d", agent, n), Agent: agent, Session: fmt.Sprint("s", n/1000), Seq: int64(n % 1000), Turn: int64(n / 3), Role: m.Role,
		Type: core.TypeMessage, Time: time.Unix(int64(n), 0).UTC(), Tokens: 80, Key: fmt.Sprintf("s:%d", n), Fingerprint: message.Fingerprint(m), Message: m,
	}
}

func chats(agent string, from, to int) []core.Entry {
	var out []core.Entry
	for n := from; n < to; n++ {
		out = append(out, chat(agent, n))
	}
	return out
}

// loaded returns a store with an agent of n entries and a hundred others of n/100.
func loaded(b *testing.B, n int) *postgres.Store {
	b.Helper()
	s := open(b, fresh(b))
	for from := 0; from < n; from += 500 {
		mustAppend(b, s, chats("ann", from, from+500)...)
	}
	for other := range 100 {
		mustAppend(b, s, chats(fmt.Sprint("agent", other), 0, n/100)...)
	}
	return s
}

func BenchmarkAppendTurn(b *testing.B) {
	s := open(b, fresh(b))
	n := 0
	for b.Loop() {
		mustAppend(b, s, chats("ann", n, n+3)...)
		n += 3
	}
	b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "messages/s")
}

func BenchmarkAppend500(b *testing.B) {
	s := open(b, fresh(b))
	n := 0
	for b.Loop() {
		mustAppend(b, s, chats("ann", n, n+500)...)
		n += 500
	}
	b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "messages/s")
}

// BenchmarkAppendAgents has several agents append turns at the same time.
func BenchmarkAppendAgents(b *testing.B) {
	s := open(b, fresh(b))
	b.RunParallel(func(pb *testing.PB) {
		agent := fmt.Sprintf("agent%p", pb)
		for n := 0; pb.Next(); n += 3 {
			mustAppend(b, s, chats(agent, n, n+3)...)
		}
	})
}

func BenchmarkRead(b *testing.B) {
	s := loaded(b, 10_000)
	b.Run("scan100", func(b *testing.B) {
		for b.Loop() {
			if _, err := s.Scan(b.Context(), core.ScanQuery{Scope: core.Scope{Agent: "ann", Session: "s5"}, Limit: 100, Reverse: true}); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("get1", func(b *testing.B) {
		id := chat("ann", 5000).ID
		for b.Loop() {
			if _, err := s.Get(b.Context(), core.Scope{Agent: "ann"}, []string{id}); err != nil {
				b.Fatal(err)
			}
		}
	})
	for name, text := range map[string]string{"search-rare": "zeppelin passport", "search-sentence": "why did the committee move the copper ledger to the archive on Tuesday"} {
		for _, agent := range []string{"ann", "agent7"} {
			b.Run(name+"-"+agent, func(b *testing.B) {
				for b.Loop() {
					if _, err := s.Search(b.Context(), core.SearchQuery{Scope: core.Scope{Agent: agent}, Text: text, Limit: 20}); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
