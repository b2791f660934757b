package report_test

import (
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// loaded opens a page from disk and waits until its script ran.
func loaded(tb *tab, file string) {
	tb.t.Helper()
	// Without it a page shows no focus while its window has none, as happens on a busy machine.
	tb.do("Emulation.setFocusEmulationEnabled", map[string]any{"enabled": true}, nil)
	address := (&url.URL{Scheme: "file", Path: file}).String()
	tb.do("Page.navigate", map[string]any{"url": address}, nil)
	for range 600 {
		var ready bool
		tb.eval(`location.protocol === "file:" && document.readyState === "complete" && !document.getElementById("theme")?.hidden`, &ready)
		if ready {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	tb.t.Fatal("the page does not become ready")
}

func size(tb *tab, width, height int) {
	tb.t.Helper()
	tb.do("Emulation.setDeviceMetricsOverride", map[string]any{"width": width, "height": height, "deviceScaleFactor": 1, "mobile": false}, nil)
	drawn(tb)
}

// drawn waits until the page has heard of its size and is drawn with it: on a busy machine that is later than the command's answer.
func drawn(tb *tab) {
	tb.t.Helper()
	tb.eval(`new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done())))`, nil)
}

func scheme(tb *tab, name string) {
	tb.t.Helper()
	tb.do("Emulation.setEmulatedMedia", map[string]any{"features": []map[string]string{{"name": "prefers-color-scheme", "value": name}}}, nil)
}

func TestInBrowser(t *testing.T) {
	path := findBrowser(t)
	file := filepath.Join(t.TempDir(), "report.html")
	if err := os.WriteFile(file, []byte(write(t, sample())), 0o600); err != nil {
		t.Fatal(err)
	}
	tb := openTab(t, startBrowser(t, path))
	size(tb, 1280, 900)
	loaded(tb, file)

	if n := chartsHaveMarks(tb); n != 4 {
		t.Errorf("%d charts, want 4", n)
	}
	tablesSort(tb)
	windowTokensSort(tb)
	keyboardWorks(tb)
	legendsSwitch(tb)
	windowsShowCalls(tb)
	themesDiffer(tb)
	for _, width := range []int{1280, 768, 375, 320} {
		size(tb, width, 900)
		for _, look := range []string{"light", "dark"} {
			scheme(tb, look)
			nothingOverflows(tb, width, look)
			textIsReadable(tb, width, look)
			textsKeepApart(tb, width, look)
			opened(tb, width, look)
			if width == 1280 || width == 375 {
				screenshot(tb, fmt.Sprintf("report-%d-%s.png", width, look), width)
			}
		}
	}
	prints(tb)

	var title string
	tb.eval(`document.title`, &title)
	if strings.Contains(title, "taken") {
		t.Error("text of a conversation ran as script")
	}
	staysOnThePage(tb)
}

// tablesSort clicks on each column of every table, twice.
func tablesSort(tb *tab) {
	tb.t.Helper()
	var wrong []string
	tb.eval(`(() => {
		const wrong = [];
		for (const table of document.querySelectorAll("table.sortable")) [...table.tHead.rows[0].cells].forEach((head, i) => {
			const column = () => [...table.tBodies[0].rows].map(r => r.cells[i]);
			const values = () => column().map(c => c.dataset.v === undefined ? c.textContent : Number(c.dataset.v));
			const before = values().length;
			const name = table.caption.textContent + " / " + head.textContent;
			const orders = [];
			for (let k = 0; k < 2; k++) {
				head.querySelector("button").click();
				const way = head.getAttribute("aria-sort");
				const v = values().filter(x => x !== "–");
				for (let n = 1; n < v.length; n++) {
					const d = typeof v[n] === "number" ? v[n] - v[n-1] : v[n].localeCompare(v[n-1], "en", {numeric: true});
					if (way === "ascending" ? d < 0 : d > 0) { wrong.push(name + " is not " + way); break; }
				}
				const all = values();
				if (all.length !== before) wrong.push(name + " lost rows");
				if (all.includes("–") && all.indexOf("–") < v.length) wrong.push(name + ": empty cells are not last");
				orders.push(JSON.stringify(v));
			}
			if (new Set(values().filter(x => x !== "–")).size > 1 && orders[0] === orders[1]) wrong.push(name + " does not turn around");
			if (table.querySelectorAll("[aria-sort]").length !== 1) wrong.push(name + ": more than one column says it is sorted");
		});
		return wrong;
	})()`, &wrong)
	for _, w := range wrong {
		tb.t.Error(w)
	}
}

// windowTokensSort sorts a column of numbers with intervals and thousands in the sample's table.
func windowTokensSort(tb *tab) {
	tb.t.Helper()
	var numeric []float64
	tb.eval(`(() => { const t = [...document.querySelectorAll("section.of-table table")][0]; const b = t.tHead.rows[0].cells[3].querySelector("button"); b.click();
		return [...t.tBodies[0].rows].map(r => Number(r.cells[3].dataset.v)); })()`, &numeric)
	down := slices.Clone(numeric)
	slices.Sort(down)
	slices.Reverse(down)
	if len(numeric) != 12 || !slices.Equal(numeric, down) {
		tb.t.Errorf("window tokens, sorted: %v", numeric)
	}
}

// keyboardWorks goes through the page with the Tab key alone, sorts with Enter and moves the slider with the arrows.
func keyboardWorks(tb *tab) {
	tb.t.Helper()
	tb.eval(`document.activeElement.blur(); window.scrollTo(0, 0)`, nil)
	seen := map[string]int{}
	for range 120 {
		tb.press("Tab", "")
		var at struct {
			Kind    string
			Outline string
		}
		const look = `(() => { const e = document.activeElement; const s = getComputedStyle(e);
			const kind = e.matches("th button") ? "sort" : e.matches("input[type=range]") ? "slider" : e.matches(".legend button") ? "legend" : e.matches("summary") ? "summary"
				: e.id === "theme" ? "theme" : e.matches(".pieces, .scroll") ? "list" : e.matches("a") ? "link" : e.tagName;
			return {Kind: kind, Outline: s.outlineStyle === "none" || s.outlineWidth === "0px" ? "" : s.outlineStyle}; })()`
		for range 60 { // the mark follows the key, not always at once
			if tb.eval(look, &at); at.Outline != "" || at.Kind == "BODY" {
				break
			}
			time.Sleep(50 * time.Millisecond)
		}
		if at.Outline == "" && at.Kind != "BODY" {
			tb.t.Errorf("the focus on %s cannot be seen", at.Kind)
		}
		seen[at.Kind]++
		switch {
		case at.Kind == "sort" && seen["sort"] == 3:
			tb.press("Enter", "\r")
			var sorted string
			tb.eval(`document.activeElement.closest("th").getAttribute("aria-sort") ?? ""`, &sorted)
			if sorted == "" {
				tb.t.Error("Enter on a column's name does not sort")
			}
		case at.Kind == "slider" && seen["slider"] == 1:
			sliderMoves(tb)
		}
	}
	for _, kind := range []string{"sort", "slider", "legend", "summary", "theme", "list", "link"} {
		if seen[kind] == 0 {
			tb.t.Errorf("the Tab key never reaches a %s: %v", kind, seen)
		}
	}
}

func sliderMoves(tb *tab) {
	tb.t.Helper()
	said := func() (s string) {
		tb.eval(`document.querySelector(".call").textContent`, &s)
		return s
	}
	last := said()
	tb.press("ArrowLeft", "")
	before := said()
	tb.press("Home", "")
	first := said()
	if !strings.HasPrefix(last, "Call 48 ") || !strings.HasPrefix(before, "Call 47 ") || !strings.HasPrefix(first, "Call 1 ") {
		tb.t.Errorf("the slider goes from %q with the left arrow to %q, with Home to %q", last, before, first)
	}
	tb.press("End", "")
}

func legendsSwitch(tb *tab) {
	tb.t.Helper()
	var counts []int
	tb.eval(`(() => { const s = document.querySelector("section.of-chart"); const shown = () => [...s.querySelectorAll("svg.wide .s2")].filter(m => getComputedStyle(m).display !== "none").length;
		const b = s.querySelectorAll(".legend button")[1]; const a = shown(); b.click(); const off = shown(); b.click(); return [a, off, shown()]; })()`, &counts)
	if len(counts) != 3 || counts[0] == 0 || counts[1] != 0 || counts[2] != counts[0] {
		tb.t.Errorf("marks of a series before, off, on again: %v", counts)
	}
}

func windowsShowCalls(tb *tab) {
	tb.t.Helper()
	var got struct{ In, Out, Strip, Cursors int }
	tb.eval(`({In: document.querySelectorAll(".pieces.in li .cost").length, Out: document.querySelectorAll(".pieces.out li").length,
		Strip: [...document.querySelectorAll(".strip span")].filter(s => s.getBoundingClientRect().width > 0).length,
		Cursors: document.querySelectorAll(".cursor.on[transform]").length})`, &got)
	if got.In < 10 || got.Out < 2 || got.Strip < 10 || got.Cursors != 2 {
		tb.t.Errorf("the last call shows %+v", got)
	}
}

func themesDiffer(tb *tab) {
	tb.t.Helper()
	var colours []string
	scheme(tb, "light")
	tb.eval(`(() => { const b = document.getElementById("theme"); const c = [getComputedStyle(document.body).backgroundColor];
		for (let i = 0; i < 3; i++) { b.click(); c.push(getComputedStyle(document.body).backgroundColor); } return c; })()`, &colours)
	if len(colours) != 4 || colours[0] != colours[1] || colours[1] == colours[2] || colours[3] != colours[0] {
		tb.t.Errorf("backgrounds by setting, light, dark, by setting: %v", colours)
	}
}
