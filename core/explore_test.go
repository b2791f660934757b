package core_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/contextengine/contextengine/backends/memory"
	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/message"
	"github.com/contextengine/contextengine/models/tiktoken"
)

type nocompact struct{}

func (nocompact) OwnsCompaction() bool { return true }
func (nocompact) Compact(context.Context, core.Compaction) (core.Patch, error) {
	return core.Patch{}, nil
}

type stubRetriever struct{ st core.Store }

func (r *stubRetriever) Attach(s core.Store) error { r.st = s; return nil }
func (r *stubRetriever) Retrieve(ctx context.Context, q core.Query) ([]core.Candidate, error) {
	page, err := r.st.Scan(ctx, core.ScanQuery{Scope: q.Scope, Limit: 100})
	if err != nil {
		return nil, err
	}
	var out []core.Candidate
	for _, e := range page.Entries {
		if !q.InWindow(e.ID) {
			out = append(out, core.Candidate{Entry: e, Source: "x"})
		}
	}
	return out, nil
}

func TestExplore(t *testing.T) {
	f, err := os.Open("../../shared/data/pi/large-session.jsonl")
	if err != nil {
		t.Skip("not run: no data")
	}
	convs, err := message.Read(f, message.ReadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	air, err := os.Open("../../shared/data/tau-bench/airline-dev.json")
	if err != nil {
		t.Fatal(err)
	}
	runs, err := message.Read(air, message.ReadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var joined []message.Message
	for i, r := range runs {
		for _, m := range r.Messages {
			if m.Role == message.System && i > 0 {
				continue
			}
			joined = append(joined, m)
		}
	}
	tk, err := tiktoken.New("o200k_base")
	if err != nil {
		t.Fatal(err)
	}
	for name, msgs := range map[string][]message.Message{"coding": convs[0].Messages, "airline": joined} {
		for _, b := range []int{2000, 8000, 32000} {
			run(t, name, msgs, b, tk.Count)
		}
	}
}

func run(t *testing.T, name string, msgs []message.Message, b int, count core.TokenCounter) {
	st := memory.New()
	eng, err := core.New(core.Parts{Store: st, Compactor: nocompact{}, Retriever: &stubRetriever{}, Counter: count}, core.DefaultConfig())
	if err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	id := core.SessionID{Agent: "a", Session: "s"}
	var fills []float64
	var lat []time.Duration
	calls, steps, budgetErr, broken := 0, 0, 0, 0
	exceeded := false
	hist, reuse, tot := 0, 0, 0
	var prev [][]byte
	var prevKeep int
	newTurn := false
	for _, m := range msgs {
		if m.Role == message.Assistant {
			kind := core.CallLoop
			if newTurn {
				kind = core.CallPrompt
			}
			newTurn = false
			t0 := time.Now()
			res, err := eng.Assemble(ctx, core.AssembleRequest{Session: id, Budget: b, Call: kind})
			lat = append(lat, time.Since(t0))
			calls++
			if err != nil {
				if errors.Is(err, core.ErrBudget) {
					budgetErr++
					if budgetErr <= 2 {
						fmt.Println("   ", err)
					}
					prev = nil
					continue
				}
				t.Fatal(err)
			}
			var bs [][]byte
			n := 0
			lastUser := len(res.Messages)
			for i, mm := range res.Messages {
				raw, err := message.Encode(mm, message.FormatPi)
				if err != nil {
					t.Fatal(err)
				}
				if mm.Role == message.User && (res.RecallLen <= 0 || i != res.RecallAt) {
					lastUser = len(bs)
				}
				if res.RecallLen > 0 && i == res.RecallAt {
					continue
				}
				bs = append(bs, raw)
				n++
			}
			if prev != nil {
				common := 0
				for common < len(prev) && common < len(bs) && slices.Equal(prev[common], bs[common]) {
					common++
				}
				for i := range prev {
					tot += len(prev[i])
					if i < common {
						reuse += len(prev[i])
					}
				}
				if !res.Stepped && common < prevKeep {
					broken++
					if broken < 3 {
						fmt.Printf("broken at call %d: common %d < %d\n", calls, common, prevKeep)
					}
				}
			}
			prev, prevKeep = bs, lastUser
			if res.Stepped {
				steps++
			}
			if hist > b {
				exceeded = true
			}
			if exceeded {
				fills = append(fills, float64(res.EstimatedTokens)/float64(b))
			}
		}
		if m.Role == message.User {
			newTurn = true
		}
		r, err := eng.Ingest(ctx, core.IngestRequest{Session: id, Message: m})
		if err != nil {
			t.Fatal(err)
		}
		got, _ := st.Get(ctx, id.Scope(), r.IDs)
		hist += got[0].Tokens
	}
	slices.Sort(fills)
	slices.Sort(lat)
	q := func(p float64) float64 {
		if len(fills) == 0 {
			return 0
		}
		return fills[int(p*float64(len(fills)-1))]
	}
	fmt.Printf("%s %d: calls %d hist %d fill med %.2f p10 %.2f reuse %.3f steps %d (%.0f%%) budgetErr %d broken %d p50 %v p95 %v\n", name, b, calls, hist, q(.5), q(.1),
		float64(reuse)/float64(max(tot, 1)), steps, 100*float64(steps)/float64(calls), budgetErr, broken, lat[len(lat)/2], lat[len(lat)*95/100])
}
