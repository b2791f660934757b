package report_test

import (
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

func nothingOverflows(tb *tab, width int, look string) {
	tb.t.Helper()
	var wide []string
	tb.eval(`(() => { const w = document.documentElement.clientWidth;
		const out = document.documentElement.scrollWidth > w ? ["the page itself"] : [];
		for (const e of document.querySelectorAll("body *")) {
			if (e.closest(".scroll, .pieces, .hidden, .skip, .defs") && !e.matches(".scroll, .pieces")) continue;
			const b = e.getBoundingClientRect();
			if (e.closest("details:not([open])")) continue; // it is fitted when it is opened
			if (e.matches(".scroll") && e.scrollWidth > e.clientWidth + 1) out.push("a table is cut off: " + e.getAttribute("aria-label") + " " + e.scrollWidth + " > " + e.clientWidth);
			if (b.width > 0 && (b.right > w + 0.5 || b.left < -0.5)) out.push(e.tagName + "." + (e.className.baseVal ?? e.className) + " " + e.textContent.slice(0, 40) + " " + Math.round(b.left) + ".." + Math.round(b.right));
		}
		return out.slice(0, 8); })()`, &wide)
	for _, e := range wide {
		tb.t.Errorf("%d px, %s: overflows: %s", width, look, e)
	}
}

// opened looks at what is folded away, in the dark: a table in it fits only once it is opened. Afterwards it is folded again.
func opened(tb *tab, width int, look string) {
	tb.t.Helper()
	if look != "dark" {
		return
	}
	turn := func(open bool) (n int) {
		tb.eval(fmt.Sprintf(`(async () => { const folded = [...document.querySelectorAll("details")].filter(d => %t ? !d.open : d.dataset.opened);
			for (const d of folded) await new Promise(done => { d.addEventListener("toggle", done, {once: true}); d.open = %t; %t ? d.dataset.opened = 1 : delete d.dataset.opened; });
			return folded.length; })()`, open, open, open), &n)
		return n
	}
	n := turn(true)
	nothingOverflows(tb, width, look+", opened")
	textIsReadable(tb, width, look+", opened")
	if folded := turn(false); folded != n {
		tb.t.Errorf("%d px, %s: %d parts were opened, and %d folded again", width, look, n, folded)
	}
}

// textIsReadable computes the contrast of every text with what is behind it, and looks for drawn text that is too small.
func textIsReadable(tb *tab, width int, look string) {
	tb.t.Helper()
	var bad []string
	tb.eval(`(() => {
		const canvas = document.createElement("canvas"); canvas.width = canvas.height = 1; const ctx = canvas.getContext("2d", {willReadFrequently: true});
		const rgb = c => { ctx.clearRect(0, 0, 1, 1); ctx.fillStyle = c; ctx.fillRect(0, 0, 1, 1); return [...ctx.getImageData(0, 0, 1, 1).data]; };
		const lum = c => { const [r, g, b] = c.map(v => { v /= 255; return v <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4; }); return .2126 * r + .7152 * g + .0722 * b; };
		const behind = e => { for (; e; e = e.parentElement) { const c = rgb(getComputedStyle(e).backgroundColor); if (c[3] === 255) return c; } return rgb(getComputedStyle(document.documentElement).colorScheme === "dark" ? "#121212" : "#fff"); };
		const bad = new Set();
		for (const e of document.querySelectorAll("body *")) {
			if (![...e.childNodes].some(n => n.nodeType === 3 && n.textContent.trim()) || e.closest("title, desc, script, noscript, .hidden, .defs") || !e.getClientRects().length) continue;
			const s = getComputedStyle(e), a = lum(rgb(e.matches("text") ? s.fill : s.color)), b = lum(behind(e));
			const ratio = (Math.max(a, b) + .05) / (Math.min(a, b) + .05);
			if (ratio < 4.5) bad.add("contrast " + ratio.toFixed(2) + " of " + e.tagName + "." + (e.className.baseVal ?? e.className) + " " + e.textContent.slice(0, 30));
			if (e.matches("text") && e.getBoundingClientRect().height < 9) bad.add("small text " + e.textContent);
		}
		return [...bad].slice(0, 8); })()`, &bad)
	for _, e := range bad {
		tb.t.Errorf("%d px, %s: %s", width, look, e)
	}
}

// screenshot saves the whole page into the folder CONTEXTENGINE_SHOTS, if there is one.
func screenshot(tb *tab, name string, width int) {
	tb.t.Helper()
	dir := os.Getenv("CONTEXTENGINE_SHOTS")
	if dir == "" {
		return
	}
	var height int
	tb.eval(`document.activeElement.blur(); document.documentElement.scrollHeight`, &height)
	var shot struct {
		Data string `json:"data"`
	}
	tb.do("Page.captureScreenshot", map[string]any{
		"format": "png", "captureBeyondViewport": true, "clip": map[string]any{"x": 0, "y": 0, "width": width, "height": min(height, 16000), "scale": 1},
	}, &shot)
	drawn(tb) // the page was larger for a moment
	data, err := base64.StdEncoding.DecodeString(shot.Data)
	tb.must(err)
	tb.must(os.MkdirAll(dir, 0o755))
	tb.must(os.WriteFile(filepath.Join(dir, name), data, 0o600))
}

// prints makes a PDF: it has more than a page, and no control that paper cannot press.
func prints(tb *tab) {
	tb.t.Helper()
	var pdf struct {
		Data string `json:"data"`
	}
	tb.do("Page.printToPDF", map[string]any{"printBackground": true}, &pdf)
	data, err := base64.StdEncoding.DecodeString(pdf.Data)
	tb.must(err)
	if len(data) < 20_000 || !strings.HasPrefix(string(data), "%PDF") {
		tb.t.Errorf("a print of %d bytes", len(data))
	}
	if dir := os.Getenv("CONTEXTENGINE_SHOTS"); dir != "" {
		tb.must(os.WriteFile(filepath.Join(dir, "report.pdf"), data, 0o600))
		size(tb, 760, 1000)
		tb.do("Emulation.setEmulatedMedia", map[string]any{"media": "print"}, nil)
		screenshot(tb, "report-print.png", 760)
	}
}
