import assert from "node:assert/strict";
import { test } from "node:test";

import { Cut } from "../src/cut.js";
import type { HostMessage } from "../src/host-types.js";
import { clip, weigh } from "../src/weigh.js";
import { assistant, user } from "./setup.js";

const sum = (messages: readonly HostMessage[]): number => messages.reduce((n, message) => n + weigh(message), 0);
const call = (...ids: string[]): HostMessage => ({ role: "assistant", content: ids.map((id) => ({ type: "toolCall", id, name: "read", arguments: { path: "a.txt" } })), stopReason: "toolUse" });
const result = (id: string, text: string): HostMessage => ({ role: "toolResult", toolCallId: id, toolName: "read", content: [{ type: "text", text }] });
const words = (seed: string, n: number): string => Array.from({ length: n }, (_, i) => `${seed}${i % 7}`).join(" ");

/** A session of turns, every third with a tool. */
function session(turns: number, length = 60): HostMessage[] {
  const out: HostMessage[] = [];
  for (let i = 0; i < turns; i++) {
    out.push(user(`question ${i} ${words("q", length)}`, { timestamp: i }));
    if (i % 3 === 0) out.push(call(`a${i}`, `b${i}`), result(`a${i}`, words("r", length)), result(`b${i}`, words("s", length)));
    out.push(assistant(`answer ${i} ${words("a", length)}`, { timestamp: i }));
  }
  return out;
}

/** What a provider refuses. */
function wrong(messages: readonly HostMessage[]): string | undefined {
  const rest = messages.filter((message) => message["role"] !== "system" && message["role"] !== "compactionSummary");
  if (rest.length > 0 && rest[0]?.["role"] !== "user") return "it does not begin with a user's message";
  let waiting = new Set<unknown>();
  for (const message of rest) {
    if (message["role"] === "toolResult") {
      if (!waiting.delete(message["toolCallId"])) return "a result without its call";
      continue;
    }
    if (waiting.size > 0) return "a call without its result";
    const parts = Array.isArray(message["content"]) ? (message["content"] as HostMessage[]) : [];
    waiting = new Set(parts.filter((part) => part["type"] === "toolCall").map((part) => part["id"]));
  }
  return waiting.size > 0 ? "a call without its result" : undefined;
}

test("whatever the budget, the newest whole groups within it, as providers want them", () => {
  const summary = { role: "compactionSummary", summary: words("z", 50) };
  for (const lead of [[], [{ role: "system", content: "rules" }], [summary]]) {
    const all = [...lead, ...session(30)];
    for (let budget = 0; budget < sum(all) + 500; budget += 97) {
      const shown = new Cut().newest(all, budget);
      assert.ok(sum(shown) <= budget || shown.length === 0, `${sum(shown)} of ${budget}`);
      assert.equal(wrong(shown), undefined);
      if (budget >= sum(all)) assert.deepEqual(shown, all);
      // Room for a turn shows a turn.
      if (budget > 1500) assert.equal(shown.at(-1), all.at(-1));
      if (budget > 1500 && lead[0]) assert.equal(shown[0], lead[0]);
    }
  }
});

test("the beginning stays for some turns", () => {
  const all = session(120);
  const cut = new Cut();
  let moves = 0;
  let first: unknown;
  for (let i = 60; i < 120; i++) {
    const end = all.findIndex((message) => message["role"] === "user" && String(message["content"]).startsWith(`question ${i} `));
    const shown = cut.newest(structuredClone(all.slice(0, end)), 6000);
    assert.ok(sum(shown) <= 6000);
    const begins = shown[0]?.["content"];
    if (begins !== first) moves++;
    first = begins;
  }
  assert.ok(moves >= 5 && moves <= 20, `it moved ${moves} times in 60 turns`);
});

test("a turn that alone is too long: its beginning and its newest groups", () => {
  const long = [user("the task"), ...Array.from({ length: 40 }, (_, i) => [call(`c${i}`), result(`c${i}`, words("r", 100))]).flat()];
  const shown = new Cut().newest([...session(3), ...long], 3000);
  assert.equal(shown[0], long[0]);
  assert.equal(shown.at(-1), long.at(-1));
  assert.ok(shown.length > 5 && sum(shown) <= 3000);
  assert.equal(wrong(shown), undefined);
});

test("a message that alone is too long is clipped, head and tail", () => {
  const pasted = `begin ${words("p", 40_000)} end`;
  const [only] = new Cut().newest([user("old"), assistant("old"), user(pasted)], 2000);
  assert.match(String(only?.["content"]), /^begin [^]*characters left out[^]* end$/);
  assert.ok(weigh(only ?? {}) <= 2000);
  const read = [user("read it"), call("x", "y"), result("x", pasted), result("y", "short")];
  const shown = new Cut().newest(read, 2000);
  assert.equal(shown.length, 4);
  assert.ok(sum(shown) <= 2000);
  assert.equal(wrong(shown), undefined);
  // What cannot be clipped goes, and its results with it.
  const written = [user("write it"), { role: "assistant", content: [{ type: "toolCall", id: "w", name: "write", arguments: { text: pasted } }] }, result("w", "done")];
  assert.deepEqual(new Cut().newest(written, 2000), [written[0]]);
  assert.equal(clip({ role: "user", content: [{ type: "image", data: "x" }] }, 100), undefined);
});

test("an estimate is rather too high: text of every kind", () => {
  // Tokens that o200k makes of them.
  for (const [text, tokens] of [
    ["The quick brown fox jumps over the lazy dog, and nobody minds at all.", 16], ["短い日本語の文章をここに置きます。", 13], ["Съешь же ещё этих мягких французских булок", 12],
    ["9f8e7d6c5b4a00013c7d", 17], ["func (e *Engine) overlap(ctx context.Context) error {", 13], ["😀😀😀😀", 4],
  ] as const) assert.ok(weigh(user(text)) - 12 >= tokens, `${text}: ${weigh(user(text)) - 12}`);
});
