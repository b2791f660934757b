package report_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/contextengine/contextengine/hosts/cli"
	"github.com/contextengine/contextengine/internal/datadir"
	"github.com/contextengine/contextengine/registry/builtin"
)

// reported runs a command of contextengine that writes a report, and returns the report's path.
func reported(t *testing.T, args ...string) string {
	t.Helper()
	page := filepath.Join(t.TempDir(), "report.html")
	var out, errs bytes.Buffer
	code := cli.Run(t.Context(), builtin.New(), append(args, "--html", page), cli.IO{Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errs})
	if code != cli.ExitOK {
		t.Fatalf("%q: exit code %d\n%s\n%s", args, code, out.String(), errs.String())
	}
	return page
}

// TestCommandsInBrowser opens what the commands report about real conversations under several configurations.
func TestCommandsInBrowser(t *testing.T) {
	if testing.Short() {
		t.Skip("not run: -short")
	}
	path := findBrowser(t)
	runs, asked := datadir.File(t, "tau-bench/airline-dev.json"), datadir.File(t, "locomo/locomo-dev.json")
	down := filepath.Join(t.TempDir(), "down.yaml")
	config := "searchers: [lexical, vector]\nembedder: {type: openai, baseUrl: \"http://127.0.0.1:9/v1\", model: test, maxRetries: 0}\n"
	if err := os.WriteFile(down, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name   string
		args   []string
		charts int
		says   []string
	}{
		{"compare", []string{"compare", runs, "--retriever", "recent,semantic,hybrid", "--compactor", "archive,mask", "--budget", "8k,4k"}, 11, []string{"95 %", "The window under hybrid+archive+memory", "Identifiers that survive"}},
		{"evaluate", []string{"evaluate", asked, "--set", "retriever.hybrid.limit=5,50", "--own-limit", "--workers", "1"}, 6,
			[]string{"better by", "Recall against budget", "single-hop", "adversarial", "Seed", "contextengine evaluate"}},
		{"evaluate-down", []string{"evaluate", filepath.Join("..", "questions", "testdata", "beam"), "--config", down, "--parts"}, 6, []string{"degraded", "without a part of the configuration"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			file := reported(t, c.args...)
			examined(t, path, c.name, file, c.charts, c.says)
		})
	}
}

// examined opens a report on wide and narrow pages, light and dark, and looks at all that can be seen.
func examined(t *testing.T, browser, name, file string, charts int, says []string) {
	t.Helper()
	tb := openTab(t, startBrowser(t, browser))
	size(tb, 1280, 900)
	loaded(tb, file)
	var text string
	tb.eval(`document.body.innerText`, &text)
	for _, want := range says {
		if !strings.Contains(strings.ReplaceAll(text, "\u00a0", " "), want) {
			t.Errorf("the report does not say %q", want)
		}
	}
	if n := chartsHaveMarks(tb); n != charts {
		t.Errorf("%d charts, want %d", n, charts)
	}
	for _, width := range []int{1280, 375} {
		size(tb, width, 900)
		for _, look := range []string{"light", "dark"} {
			scheme(tb, look)
			nothingOverflows(tb, width, look)
			textIsReadable(tb, width, look)
			textsKeepApart(tb, width, look)
			screenshot(tb, fmt.Sprintf("%s-%d-%s.png", name, width, look), width)
			opened(tb, width, look)
		}
	}
	tablesSort(tb)
	staysOnThePage(tb)
}

// chartsHaveMarks looks for shapes with an extent in every drawing that is shown, on a wide and on a narrow page, and returns how many drawings there are.
func chartsHaveMarks(tb *tab) int {
	tb.t.Helper()
	var counts []int
	for _, width := range []int{375, 1280} {
		size(tb, width, 900)
		tb.eval(`[...document.querySelectorAll(".drawing")].map(d => [...d.querySelectorAll("svg.plot")]
			.filter(s => s.getBoundingClientRect().width > 0)
			.map(s => [...s.querySelectorAll(".line, .mark, .bar, .area, .band")].filter(m => { const b = m.getBBox(); return b.width + b.height > 0 && getComputedStyle(m).visibility === "visible"; }).length)
			.reduce((a, n) => a + n, 0))`, &counts)
		if len(counts) == 0 || slices.Min(counts) < 2 {
			tb.t.Errorf("marks in the charts at %d px: %v", width, counts)
		}
		var unnamed int
		tb.eval(`[...document.querySelectorAll("svg.plot")].filter(s => !s.querySelector(":scope > title")?.textContent || !s.querySelector(":scope > desc")?.textContent).length`, &unnamed)
		if unnamed > 0 {
			tb.t.Errorf("%d charts without a title or a description", unnamed)
		}
	}
	return len(counts)
}

// textsKeepApart looks for drawn texts that lie over each other, or outside of their drawing.
func textsKeepApart(tb *tab, width int, look string) {
	tb.t.Helper()
	var bad []string
	tb.eval(`(() => { const bad = [];
		for (const svg of document.querySelectorAll("svg.plot")) {
			const around = svg.getBoundingClientRect();
			if (!around.width) continue;
			const texts = [...svg.querySelectorAll("text")].filter(t => t.textContent.trim()).map(t => [t.textContent, t.getBoundingClientRect()]);
			texts.forEach(([a, r], i) => {
				if (r.left < around.left - 1 || r.right > around.right + 1) bad.push(a + " leaves its drawing");
				for (const [b, q] of texts.slice(i + 1)) {
					const w = Math.min(r.right, q.right) - Math.max(r.left, q.left), h = Math.min(r.bottom, q.bottom) - Math.max(r.top, q.top);
					if (w > 1 && h > 3) bad.push(a + " lies over " + b);
				}
			});
		}
		return bad.slice(0, 8); })()`, &bad)
	for _, e := range bad {
		tb.t.Errorf("%d px, %s: %s", width, look, e)
	}
}

// staysOnThePage checks what the tab heard: nothing on the console, no request but for the page.
func staysOnThePage(tb *tab) {
	tb.t.Helper()
	tb.mu.Lock()
	defer tb.mu.Unlock()
	for _, p := range tb.problems {
		tb.t.Errorf("console: %s", p)
	}
	for _, r := range tb.requests {
		if !strings.HasPrefix(r, "file://") || !strings.HasSuffix(r, "/report.html") {
			tb.t.Errorf("a request leaves the page: %s", r)
		}
	}
	if len(tb.requests) == 0 {
		tb.t.Error("not even the page was seen to be requested: the watch is broken")
	}
}
