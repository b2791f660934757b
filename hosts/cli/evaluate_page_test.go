package cli_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/contextengine/contextengine/hosts/cli"
	"github.com/contextengine/contextengine/internal/needs"
	"github.com/contextengine/contextengine/registry/builtin"
)

// page runs a command with --html and returns what it wrote, non-breaking spaces and break opportunities left out.
func page(t *testing.T, code int, args ...string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "report.html")
	run(t, builtin.New(), "", append(args, "--html", file)...).want(t, code)
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return strings.NewReplacer("\u00a0", " ", "\u202f", " ", "<wbr>", "", "&#43;", "+", "&#34;", `"`).Replace(string(data))
}

func says(t *testing.T, page string, want ...string) {
	t.Helper()
	for _, w := range want {
		if !strings.Contains(page, w) {
			t.Errorf("the report lacks %q", w)
		}
	}
}

func TestEvaluatePage(t *testing.T) {
	t.Parallel()
	got := page(t, cli.ExitOK, "evaluate", evaluateFixtures+"beam", "--retriever", "hybrid,recent", "--depth", "1,10", "--budget", "1k,2k", "--seed", "7")
	says(t, got, "Recall on beam", "2 configurations, asked 4 questions about 2 conversations", "8 messages", "<dd>7</dd>", "contextengine evaluate "+evaluateFixtures+"beam",
		"--retriever hybrid,recent", "Too few to tell (2 conversations, 5 are needed): 50.0 points less", "Among the first 10 candidates: recent+memory finds 0.0 %, hybrid(lexical)+memory 50.0 %.",
		"Recall against budget", "Recall against candidates", "Recall by category, among the first 10 candidates", "knowledge update",
		"Time to retrieve", "Size of store and index", "Every recall", "R@10", "Every configuration", "2 of the questions name no evidence", "is the passage")
	if glance, chart, found := strings.Index(got, "At a glance"), strings.Index(got, "Recall against budget"), strings.Index(got, "What was found"); glance < 0 || chart < glance || found < chart {
		t.Errorf("the report begins with %d, %d, %d", glance, chart, found)
	}
	got = page(t, cli.ExitOK, "evaluate", evaluateFixtures+"locomo.json", "--depth", "1,10", "--budget", "1k,2k")
	says(t, got, `class="band s1"`, `class="error"`, "95 % intervals over the questions of one conversation: they say nothing about others.")
}

// TestEvaluatePageOfOne: one configuration has nothing to be compared with, and one conversation says nothing about others.
func TestEvaluatePageOfOne(t *testing.T) {
	t.Parallel()
	got := page(t, cli.ExitOK, "evaluate", evaluateFixtures+"own.jsonl", "--budget", "1k", "--depth", "10", "--verdict", "R@10")
	says(t, got, "of the evidence is found among the first 10 candidates", "Recall against budget")
	for _, no := range []string{"better by", "NaN"} {
		if strings.Contains(got, no) {
			t.Errorf("the report says %q", no)
		}
	}
}

// TestEvaluatePageTroubles: figures of a configuration that was not all there do not pass for its own.
func TestEvaluatePageTroubles(t *testing.T) {
	t.Parallel()
	set := evaluateFixtures + "beam"
	down, legacy := embedderConfig(t, nil, false), write(t, "legacy.yaml", "engine: legacy\n")
	got := page(t, cli.ExitFailure, "evaluate", set, "--config", down, "--config", legacy, "--parts")
	says(t, got, "degraded: 4 of 4 questions were answered without a part of the configuration", "a searcher is left out searcher=vector",
		"4 of 4 questions failed and count as nothing found", "legacy:legacy could not be measured.", "has no retriever that can be asked alone")
	got = page(t, cli.ExitFailure, "evaluate", set, "--config", legacy)
	says(t, got, "could not be measured", "How it was measured")
}

// TestEvaluatePageOfASweep: charts show as many configurations as can be told apart, tables all; what stands under the name of a secret stays out.
func TestEvaluatePageOfASweep(t *testing.T) {
	needs.NoRace(t)
	t.Parallel()
	got := page(t, cli.ExitOK, "evaluate", evaluateFixtures+"own.jsonl", "--set", "searchers.lexical.k1=0.7,0.9,1.1", "--set", "retriever.hybrid.limit=1,5,50")
	says(t, got, "the first configuration and the best 5 of the other 8", "searchers.lexical.k1", "about one in twenty", "--set searchers.lexical.k1=0.7,0.9,1.1", "--set retriever.hybrid.limit=1,5,50",
		"hybrid(lexical)+memory k1=1.1 limit=50")
	const secret = "do-not-print-me"
	got = page(t, cli.ExitOK, "evaluate", evaluateFixtures+"own.jsonl", "--set", "embedder.type=openai", "--set", "embedder.model=m", "--set", "embedder.maxRetries=0",
		"--set", "embedder.baseUrl=http://127.0.0.1:9/v1", "--set", "embedder.apiKey="+secret)
	says(t, got, "apiKey=***")
	if strings.Contains(got, secret) {
		t.Error("the report holds a secret")
	}
	run(t, builtin.New(), "", "evaluate", evaluateFixtures+"own.jsonl", "--html", filepath.Join(t.TempDir(), "none", "report.html")).want(t, cli.ExitFailure, "--html")
}

// TestComparePageBeginsWithASummary: many configurations can be taken in before they are looked at one by one, and each is shown beside the first.
func TestComparePageBeginsWithASummary(t *testing.T) {
	t.Parallel()
	got := page(t, cli.ExitOK, "compare", toolRun(t, "AX", 12), toolRun(t, "BY", 12), "--retriever", "recent,hybrid", "--compactor", "archive,index,mask", "--budget", "1k", "--keep", "0")
	says(t, got, "Comparison of 6 configurations", "At a glance", "No difference shown: hybrid+archive+memory at a budget of 1 000 tokens")
	at := 0
	for _, want := range []string{"At a glance", "How full prompts are", "<svg", "What differs", "What prompts cost", "All figures"} {
		i := strings.Index(got[at:], want)
		if i < 0 {
			t.Fatalf("%q does not stand behind what is before it", want)
		}
		at += i
	}
	if n := strings.Count(got, "side by side: "); n < 5 {
		t.Errorf("%d of 5 configurations stand beside the first", n)
	}
	if strings.Contains(got, "better by") || !strings.Contains(got, "oo few to tell (2 conversations, 5 are needed)") {
		t.Error("two conversations decide something")
	}
}

func TestComparePage(t *testing.T) {
	t.Parallel()
	args := []string{"compare", toolRun(t, "AX", 30), toolRun(t, "BY", 24), toolRun(t, "CZ", 36), toolRun(t, "DW", 28), toolRun(t, "EV", 32), "--retriever", "recent,hybrid", "--budget", "1k,2k"}
	got := page(t, cli.ExitOK, args...)
	says(t, got, "Comparison of 2 configurations", "recent+archive+memory against hybrid+archive+memory, over 5 conversations.", "1 000, 2 000", "contextengine compare",
		"Recalled: hybrid+archive+memory higher by", "budget 1 000", "How full prompts are", "What prompts cost", "n counts conversations")
	if strings.Contains(got, "of the same") || strings.Contains(got, "the same, relative") {
		t.Error("a metric is explained by one that stands elsewhere")
	}
}
