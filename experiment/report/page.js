"use strict";
(() => {
  const number = (n) => String(n).replace(/\B(?=(\d{3})+$)/g, "\u202f");
  const make = (tag, cls, text) => {
    const e = document.createElement(tag);
    if (cls) e.className = cls;
    if (text !== undefined) e.textContent = text;
    return e;
  };

  // The theme: the reader's setting, or the one picked here. Where a file may store nothing, the pick lasts as long as the page.
  const theme = document.getElementById("theme");
  const themes = ["auto", "light", "dark"];
  const setTheme = (t) => {
    if (t === "auto") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = t;
    theme.querySelector("span").textContent = t;
  };
  let picked = "auto";
  try { picked = localStorage.getItem("report-theme") || "auto"; } catch { /* not allowed */ }
  if (!themes.includes(picked)) picked = "auto";
  setTheme(picked);
  theme.hidden = false;
  theme.addEventListener("click", () => {
    picked = themes[(themes.indexOf(picked) + 1) % themes.length];
    setTheme(picked);
    try { localStorage.setItem("report-theme", picked); } catch { /* not allowed */ }
  });

  // Legends switch what they name off and on.
  for (const button of document.querySelectorAll(".legend button")) {
    button.addEventListener("click", () => {
      const on = button.getAttribute("aria-pressed") !== "true";
      button.setAttribute("aria-pressed", String(on));
      const drawing = button.closest("section").querySelector(".drawing");
      for (const mark of drawing.getElementsByClassName(button.dataset.series)) mark.classList.toggle("off", !on);
    });
  }

  // Tables: a click on a column's name sorts by it, numbers from the largest first; a second one turns the order around.
  const empty = (cell) => cell.dataset.v === undefined && ["", "–"].includes(cell.textContent.trim());
  const compare = (a, b) => {
    if (a.dataset.v !== undefined && b.dataset.v !== undefined) return Number(a.dataset.v) - Number(b.dataset.v);
    return a.textContent.localeCompare(b.textContent, "en", { numeric: true });
  };
  for (const table of document.querySelectorAll("table.sortable")) {
    const heads = [...table.tHead.rows[0].cells];
    for (const row of table.tBodies[0].rows) [...row.cells].forEach((cell, i) => { cell.dataset.name = heads[i].textContent; });
    heads.forEach((head, column) => {
      head.querySelector("button").addEventListener("click", () => {
        const was = head.getAttribute("aria-sort");
        const up = was ? was === "descending" : !head.classList.contains("num");
        for (const h of heads) h.removeAttribute("aria-sort");
        head.setAttribute("aria-sort", up ? "ascending" : "descending");
        const rows = [...table.tBodies[0].rows];
        rows.sort((r, s) => {
          const a = r.cells[column], b = s.cells[column];
          if (empty(a) || empty(b)) return empty(a) - empty(b);
          return up ? compare(a, b) : compare(b, a);
        });
        table.tBodies[0].append(...rows);
      });
    });
  }

  // A table that is wider than its card shows every row as a card of its own: nothing is cut off.
  const fit = () => {
    for (const box of document.querySelectorAll(".scroll")) {
      box.classList.remove("stack");
      box.classList.toggle("stack", box.clientWidth > 0 && box.scrollWidth > box.clientWidth + 1);
    }
  };
  addEventListener("resize", fit);
  document.addEventListener("toggle", fit, true);
  fit();

  // The window of a call.
  const pieceItem = ([entry, role, reason, group, tokens, stub, count, score, source, text]) => {
    const item = make("li", group === 5 && tokens === 0 ? "within" : "");
    const what = make("p", "what");
    what.append(make("span", "chip g" + group, reason));
    if (stub) what.append(make("span", "chip stub", stub));
    if (tokens > 0) {
      const cost = make("span", "cost", number(tokens) + " ");
      cost.append(make("span", "unit", "tokens"));
      what.append(cost);
    }
    item.append(what);
    const who = make("p", "who");
    if (role) who.append(make("b", "", role), " ");
    if (count > 1) who.append(number(count) + " entries" + (entry ? " from " : ""));
    if (entry) who.append(make("code", "", entry));
    if (source) who.append(" by " + source + (score ? ", score " + score : ""));
    if (who.childNodes.length) item.append(who);
    if (text) {
      const excerpt = make("p", "excerpt", text);
      excerpt.dir = "auto";
      item.append(excerpt);
    }
    return item;
  };
  for (const block of document.querySelectorAll("script.window-data")) {
    const data = JSON.parse(block.textContent);
    const picker = document.getElementById(block.dataset.for);
    const range = picker.querySelector("input");
    const drawing = picker.closest("section").querySelector(".drawing");
    const cursors = [...drawing.querySelectorAll(".cursor")].map((c) => {
      const box = c.closest("svg").querySelector("path.budget").getAttribute("d").match(/-?\d+/g).map(Number);
      return { mark: c, from: box[0], step: (box[box.length - 2] - box[0]) / data.calls.length };
    });
    const fill = (list, pieces, what) => {
      list.replaceChildren(...pieces.map((i) => pieceItem(data.pieces[i])));
      if (!pieces.length) list.append(make("li", "unit", "Nothing."));
      list.previousElementSibling.querySelector("span").textContent = what;
      list.scrollTop = 0;
    };
    const show = () => {
      const at = Number(range.value);
      const call = data.calls[at];
      const said = ["Call " + call.n, "turn " + call.t, number(call.k) + " of " + number(call.b) + " tokens"];
      if (call.s) said.push("the window stepped");
      if (call.d) said.push("degraded: " + call.d);
      picker.querySelector(".call").textContent = said.join(" · ");
      range.setAttribute("aria-valuetext", said.join(", "));
      const strip = picker.querySelector(".strip");
      strip.replaceChildren();
      for (const i of call.in) {
        const [, , , group, tokens] = data.pieces[i];
        if (tokens <= 0) continue;
        const part = make("span", "g" + group);
        part.style.flexGrow = tokens;
        strip.append(part);
      }
      const free = make("span", "free");
      free.style.cssText = "background:none;box-shadow:none;flex-grow:" + Math.max(call.b - call.k, 0);
      strip.append(free);
      const out = call.out.reduce((n, i) => n + data.pieces[i][6], 0);
      fill(picker.querySelector(".in"), call.in, number(call.in.length) + " pieces, " + number(call.k) + " tokens");
      fill(picker.querySelector(".out"), call.out, number(out) + (out === 1 ? " entry" : " entries"));
      for (const c of cursors) {
        c.mark.setAttribute("transform", "translate(" + c.step * at + " 0)");
        c.mark.classList.add("on");
      }
    };
    range.max = String(data.calls.length - 1);
    range.value = range.max;
    range.addEventListener("input", show);
    for (const step of picker.querySelectorAll(".step")) {
      step.addEventListener("click", () => {
        range.value = String(Number(range.value) + Number(step.dataset.by));
        show();
      });
    }
    picker.hidden = false;
    show();
  }
})();
