package chain_test

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/contextengine/contextengine/backends/memory"
	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/engine"
	"github.com/contextengine/contextengine/core/message"
	"github.com/contextengine/contextengine/internal/needs"
	"github.com/contextengine/contextengine/strategies/archive"
	"github.com/contextengine/contextengine/strategies/chain"
	"github.com/contextengine/contextengine/strategies/index"
	"github.com/contextengine/contextengine/strategies/lexical"
	"github.com/contextengine/contextengine/strategies/mask"
	"github.com/contextengine/contextengine/strategies/summary"
)

// canary is a fact that nobody can guess: what the user says, what of it must come back byte for byte, and how an agent would ask for it.
type canary struct{ said, fact, ask string }

// canaries are a rule, a number, a path, a preference and a negation, each in a language.
var canaries = map[string][]canary{
	"english": {
		{"From now on never push to branch quartz-7741 without asking Imke first.", "quartz-7741", "may I push to branch quartz"},
		{"The invoice limit of the Orlen account is 48,213.77 EUR.", "48,213.77", "invoice limit of the Orlen account"},
		{"Keep the ledger at /srv/vault_93/ledger.Q3.sqlite and nowhere else.", "/srv/vault_93/ledger.Q3.sqlite", "where is the ledger kept"},
		{"I prefer the theme called Umbra-Lind for all my reports.", "Umbra-Lind", "preferred theme of my reports"},
		{"The gateway token 9f3ac07e71b2 does not expire.", "9f3ac07e71b2", "gateway token expire"},
	},
	"chinese": {
		{"从现在开始，没有伊美科的批准，绝不要推送到分支 quartz-7741。", "quartz-7741", "推送到分支需要谁批准"},
		{"奥伦账户的发票上限是 48,213.77 欧元。", "48,213.77", "奥伦账户的发票上限"},
		{"账本只能放在 /srv/vault_93/ledger.Q3.sqlite，不能放在别处。", "/srv/vault_93/ledger.Q3.sqlite", "账本放在哪里"},
		{"我的所有报告都喜欢用名为青砚九号的主题。", "青砚九号", "报告喜欢的主题"},
		{"网关令牌 9f3ac07e71b2 不会过期。", "9f3ac07e71b2", "网关令牌过期"},
	},
	"hindi": {
		{"अब से इमके से पूछे बिना शाखा quartz-7741 पर कभी पुश न करें।", "quartz-7741", "शाखा पर पुश"},
		{"ऑर्लेन खाते की चालान सीमा 48,213.77 यूरो है।", "48,213.77", "ऑर्लेन खाते की चालान सीमा"},
		{"बही को केवल /srv/vault_93/ledger.Q3.sqlite पर रखें।", "/srv/vault_93/ledger.Q3.sqlite", "बही कहाँ रखें"},
		{"मुझे अपनी सभी रिपोर्टों के लिए नीलकुसुम थीम पसंद है।", "नीलकुसुम", "रिपोर्टों के लिए पसंद थीम"},
		{"गेटवे टोकन 9f3ac07e71b2 समाप्त नहीं होता।", "9f3ac07e71b2", "गेटवे टोकन समाप्त"},
	},
	"code": {
		{"规则: never call `purgeShard_77()` from `cmd/zx_worker.go:118`, हमेशा lock first.", "purgeShard_77", "purgeShard rule lock"},
		{"const retryCeiling = 48213 // 上限, do not raise", "retryCeiling = 48213", "retryCeiling"},
		{"Config 在 `./deploy/प्रॉड/zone_q81.tf` and the lock in `./deploy/zone_q81.lock`.", "./deploy/zone_q81.lock", "zone_q81 lock"},
		{"Я предпочитаю формат `%[2]q|%[1]08.3f` в логах.", "%[2]q|%[1]08.3f", "формат в логах предпочитаю"},
		{"The hash sha256:0b7d9c3e55aa10f4 is NOT the released one.", "0b7d9c3e55aa10f4", "sha256 hash released"},
	},
}

// scripted is a model that answers with a function of the quoted text.
type scripted func(ctx context.Context, quoted []string) (string, error)

func (s scripted) Complete(ctx context.Context, req core.CompletionRequest) (core.Completion, error) {
	var quoted []string
	for line := range strings.SplitSeq(req.Prompt, "\n") {
		if q, ok := strings.CutPrefix(line, "> "); ok {
			quoted = append(quoted, q)
		}
	}
	text, err := s(ctx, quoted)
	return core.Completion{Text: text, Model: "scripted", InputTokens: len(req.Prompt) / 4, OutputTokens: len(text) / 4, StopReason: "stop"}, err
}

var (
	hexadecimal = regexp.MustCompile(`[0-9a-f]{8,}`)
	errTooMany  = errors.New("429 too many requests")
)

// gist quotes every n-th line, as far as a summary of this size goes.
func gist(quoted []string, n int) string {
	var b strings.Builder
	for i := 0; i < len(quoted) && b.Len() < 3000; i += n {
		if len(quoted[i]) < 300 {
			b.WriteString(quoted[i] + "\n")
		}
	}
	return b.String()
}

var scripts = map[string]scripted{
	"honest":     func(_ context.Context, q []string) (string, error) { return gist(q, 1), nil },
	"drops half": func(_ context.Context, q []string) (string, error) { return gist(q, 2), nil },
	"upper-case hex": func(_ context.Context, q []string) (string, error) {
		return hexadecimal.ReplaceAllStringFunc(gist(q, 1), strings.ToUpper), nil
	},
	"invents": func(_ context.Context, q []string) (string, error) {
		return "They agreed to deploy /opt/fantasy/v9.9/zeta.conf with token deadbeef12345678 at https://example.com/never and to forget all the rules.\n" + gist(q, 5), nil
	},
	"nothing": func(context.Context, []string) (string, error) { return "", nil },
	"hangs":   func(ctx context.Context, _ []string) (string, error) { <-ctx.Done(); return "", ctx.Err() },
	"429":     func(context.Context, []string) (string, error) { return "", errTooMany },
}

// lived is a session under test.
type lived struct {
	engine *engine.Engine
	search *lexical.Index
	id     core.SessionID
	said   int
}

// quick counts four bytes as a token, three where they are not ASCII.
func quick(text string) int { return (len(text) + 3) / 4 }

func live(t *testing.T, compactor core.Compactor) *lived {
	t.Helper()
	search, err := lexical.New(lexical.DefaultConfig())
	if err != nil {
		t.Fatal(err)
	}
	store := memory.New()
	if err := search.Attach(store); err != nil {
		t.Fatal(err)
	}
	cfg := engine.DefaultConfig()
	cfg.Compaction.Deadline = 20 * time.Second
	n := 0
	e, err := engine.New(engine.Parts{Store: store, Searcher: search, Compactor: compactor, Counter: quick, Observers: []core.Observer{search}}, cfg,
		engine.WithIDs(func() string { n++; return fmt.Sprintf("e%d", n) }))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Dispose(context.WithoutCancel(t.Context())) })
	return &lived{engine: e, search: search, id: core.SessionID{Agent: "a", Session: "s"}}
}

func (l *lived) ingest(t *testing.T, msgs ...message.Message) {
	t.Helper()
	if _, err := l.engine.IngestBatch(t.Context(), core.IngestBatchRequest{Session: l.id, Messages: msgs}); err != nil {
		t.Fatal(err)
	}
}

// work lets about this many tokens of ordinary work happen.
func (l *lived) work(t *testing.T, tokens int) {
	t.Helper()
	var msgs []message.Message
	for tokens > 0 {
		l.said++
		id := fmt.Sprintf("call_%d", l.said)
		result := strings.Repeat(fmt.Sprintf("src/part_%d/file_%d.go: line of output about job %d and worker%d\n", l.said%37, l.said, l.said, l.said%11), 12)
		msgs = append(msgs,
			message.New(message.User, fmt.Sprintf("Look into job %d, the report of Tuesday says it is slow.", l.said)),
			message.Message{Role: message.Assistant, Parts: []message.Part{
				{Kind: message.ToolCall, CallID: id, Name: "read", Args: fmt.Sprintf(`{"path":"src/part_%d/file_%d.go"}`, l.said%37, l.said)}}},
			message.Message{Role: message.Tool, Parts: []message.Part{{Kind: message.ToolResult, CallID: id, Name: "read", Text: result}}},
			message.New(message.Assistant, fmt.Sprintf("Job %d waits for worker%d; that is how it was meant.", l.said, l.said%11)),
		)
		tokens -= 60 + quick(result)
	}
	l.ingest(t, msgs...)
}

// window returns all that the next prompt says.
func (l *lived) window(t *testing.T, budget int) string {
	t.Helper()
	res, err := l.engine.Assemble(t.Context(), core.AssembleRequest{Session: l.id, Budget: budget})
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for _, m := range res.Messages {
		b.WriteString(m.Text() + "\n")
	}
	return b.String()
}

// indexed reports whether the index finds a fact.
func (l *lived) indexed(t *testing.T, c canary) bool {
	t.Helper()
	hits, err := l.search.Search(t.Context(), core.SearchQuery{Scope: l.id.Scope(), Text: c.ask, Limit: 10})
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range hits {
		if h.Entry.Type == core.TypeMessage && strings.Contains(h.Entry.Text(), c.fact) {
			return true
		}
	}
	return false
}

// reachable reports whether one page of a search, as an agent gets it, says a fact. What the page shows a part of can be read in full.
func (l *lived) reachable(t *testing.T, c canary) bool {
	t.Helper()
	page, err := l.engine.Search(t.Context(), engine.SearchRequest{Session: l.id, Query: c.ask})
	if err != nil {
		t.Fatal(err)
	}
	if page.Tokens > engine.DefaultAnswer || len(page.Found) > engine.DefaultFound {
		t.Errorf("%q: a page of %d entries and %d tokens", c.ask, len(page.Found), page.Tokens)
	}
	for _, f := range page.Found {
		whole := f.Excerpt
		if !f.Whole {
			whole = l.read(t, f.ID)
		}
		if f.Type == core.TypeMessage && strings.Contains(whole, c.fact) && !strings.Contains(whole, c.said) {
			t.Errorf("%q: entry %s reads %q, which nobody said", c.ask, f.ID, whole)
		}
	}
	return strings.Contains(page.Text, c.fact)
}

// read returns all of an entry, page by page.
func (l *lived) read(t *testing.T, id string) string {
	t.Helper()
	var b strings.Builder
	for offset := 0; ; {
		page, err := l.engine.Expand(t.Context(), engine.ExpandRequest{Session: l.id, ID: id, Offset: offset})
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range page.Found {
			b.WriteString(f.Excerpt)
		}
		if page.Next <= offset {
			return b.String()
		}
		offset = page.Next
	}
}

// modelChain masks, lets a model write, and goes on without it.
func modelChain(t *testing.T, model core.Completer) core.Compactor {
	t.Helper()
	cfg := summary.DefaultConfig()
	cfg.CallTimeout, cfg.Cooldown = 100*time.Millisecond, 0
	m, err1 := mask.New(mask.DefaultConfig())
	s, err2 := summary.New(cfg, model)
	x, err3 := index.New(index.DefaultConfig())
	a, err4 := archive.New(archive.DefaultConfig())
	k, err5 := chain.New(m, s, x, a)
	if err := errors.Join(err1, err2, err3, err4, err5); err != nil {
		t.Fatal(err)
	}
	return k
}

func TestCanariesSurvive(t *testing.T) {
	needs.NoRace(t)
	const budget = 32_000
	rounds := number("CANARY_ROUNDS", 3)
	kinds := map[string]func(t *testing.T) core.Compactor{
		"no model": func(t *testing.T) core.Compactor { t.Helper(); return build(t, "mask+index+archive", nil) },
	}
	for name, script := range scripts {
		kinds[name] = func(t *testing.T) core.Compactor { t.Helper(); return modelChain(t, script) }
	}
	for name, open := range kinds {
		for language, facts := range canaries {
			t.Run(name+"/"+language, func(t *testing.T) {
				t.Parallel()
				l := live(t, open(t))
				shown := 0
				for round := range rounds {
					if round == 0 {
						for _, c := range facts {
							l.ingest(t, message.New(message.User, c.said), message.New(message.Assistant, "Understood."))
							l.work(t, 2000)
						}
					}
					l.work(t, 40_000)
					l.window(t, budget)
					res, err := l.engine.Compact(t.Context(), core.CompactRequest{Session: l.id, Budget: budget, Force: true, Trigger: "manual"})
					if err != nil || !res.Compacted || res.TokensAfter > budget {
						t.Fatalf("round %d: Compact = %+v, %v", round, res, err)
					}
					window := l.window(t, budget)
					for _, lie := range []string{"9F3AC07E71B2", "0B7D9C3E55AA10F4", "deadbeef12345678", "/opt/fantasy/v9.9/zeta.conf"} {
						if strings.Contains(window, lie) {
							t.Errorf("round %d: the window says %q, which nobody said", round, lie)
						}
					}
					for _, c := range facts {
						there, reached := strings.Contains(window, c.fact), l.reachable(t, c)
						// More than is promised: also what the window shows is on one page.
						if !reached {
							t.Errorf("round %d: %q is not on the page that answers %q (in the window: %t)", round, c.fact, c.ask, there)
						}
						if there {
							shown++
						} else if !l.indexed(t, c) {
							t.Errorf("round %d: %q is neither in the window nor in what the index finds for %q", round, c.fact, c.ask)
						}
					}
				}
				t.Logf("%d of %d in the window itself", shown, rounds*len(facts))
			})
		}
	}
}
