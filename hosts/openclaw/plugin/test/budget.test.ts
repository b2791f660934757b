import assert from "node:assert/strict";
import { test } from "node:test";

import { Budget } from "../src/budget.js";
import type { AssembleParams, HostMessage } from "../src/host-types.js";
import { asHost } from "../src/weigh.js";
import { session, user } from "./setup.js";

const compaction = { ...session, tokenBudget: 40_000 };
const by = (trigger: string, currentTokenCount: number): typeof compaction & { currentTokenCount: number; runtimeContext: { trigger: string } } => ({ ...compaction, currentTokenCount, runtimeContext: { trigger } });
const answered = (input: number, output = 100): HostMessage => ({ role: "assistant", usage: { input, output, cacheRead: 0, cacheWrite: 0 } });

test("what the host demands forces the budget down, within bounds", () => {
  const budget = new Budget();
  assert.equal(budget.now(), undefined);
  assert.equal(budget.grant(10_000, "m"), 10_000);
  budget.spent(8000);
  const params = { ...compaction, tokenBudget: 20_000, currentTokenCount: 15_000 };
  budget.demanded({ ...params, runtimeContext: { trigger: "manual" } });
  assert.equal(budget.now(), 10_000);
  budget.demanded({ ...params, runtimeContext: { trigger: "budget" } });
  assert.equal(budget.now(), 8000); // what the prompt cost was too much
  budget.demanded({ ...params, currentTokenCount: 21_000, runtimeContext: { trigger: "overflow" } });
  assert.equal(budget.now(), 7000); // 13,000 of it are the host's own
  budget.demanded({ ...params, currentTokenCount: 90_000, runtimeContext: { trigger: "overflow" } });
  assert.equal(budget.now(), 6000); // never below a share
  assert.equal(budget.grant(10_000, "another model"), 10_000);
});

test("what a provider refuses is not tried again, however small it is; the next turn is not bound to that", () => {
  const budget = new Budget();
  budget.grant(20_000, "m");
  budget.spent(6000);
  assert.equal(budget.demanded(by("overflow", 41_000)), 6000);
  assert.equal(budget.grant(20_000, "m"), 4500);
  budget.spent(4500);
  budget.demanded(by("overflow", 41_000));
  assert.equal(budget.grant(20_000, "m"), 3375);
  budget.ended([user("?")]);
  assert.equal(budget.grant(20_000, "m"), 12_000);
});

/** Turns that cost so much, of which the engine knows nothing but history. */
function play(budget: Budget, turns: number, history: number, rest: number): number[] {
  return Array.from({ length: turns }, () => {
    const now = budget.grant(22_500, "m", 10_000);
    budget.spent(Math.min(history, now), Math.min(history, now));
    budget.ended([user("?"), answered(Math.min(history, now) + rest)]);
    return now;
  });
}

test("a budget that was forced down comes back when the cause is gone, and stays down while it is not", () => {
  const odd = new Budget();
  play(odd, 1, 16_200, 14_000);
  odd.demanded(by("budget", 30_258)); // a turn whose tools gave much
  assert.ok(play(odd, 1, 16_200, 9000)[0]! < 16_000); // eslint-disable-line @typescript-eslint/no-non-null-assertion
  const after = play(odd, 8, 16_000, 9000);
  assert.equal(after[0], 15_942);
  assert.equal(after.at(-1), 20_900); // 30,000 less 9,100
  assert.deepEqual([...after].sort((a, b) => a - b), after);

  const lasting = new Budget();
  play(lasting, 1, 16_200, 14_000);
  lasting.demanded(by("budget", 30_258));
  for (const now of play(lasting, 20, 22_500, 14_000)) assert.ok(now <= 16_000, `${now}`);

  // A provider that counts nothing.
  const silent = new Budget();
  silent.grant(22_500, "m", 10_000);
  silent.spent(16_200);
  silent.demanded(by("budget", 30_258));
  for (let i = 0; i < 8; i++) {
    assert.ok(silent.grant(22_500, "m", 10_000) < 16_200);
    silent.ended([user("?"), { role: "assistant" }]);
  }
  assert.equal(silent.grant(22_500, "m", 10_000), 22_500);
});

test("whatever the text, the host's own count leaves room for an answer, in the first turn after a restart too", () => {
  for (const [window, reserve] of [[40_000, 10_000], [128_000, 20_000], [200_000, 20_000]] as const) {
    for (const ratio of [0.8, 1, 1.15, 1.4]) {
      const budget = new Budget();
      const [system, tools, prompt] = [6500, 3000, 300];
      const granted = window - reserve - Math.ceil(1.2 * (system + prompt));
      /** A call with so much history in the engine's count, and what the host lets the model answer. */
      const answer = (history: number, pending: number): number => window - Math.ceil(1.25 * (system + tools + prompt + pending + ratio * history)) - 1;
      const inLoop = (pending: number): AssembleParams => ({ ...session, messages: [], runtimeSettings: { limits: { promptTokenBudget: window, maxOutputTokens: null } }, tokenBudget: window - prompt - pending });
      for (let turn = 0; turn < 6; turn++) {
        let history = budget.grant(granted, "m", reserve);
        budget.spent(history, ratio * history);
        const pendings = turn % 2 === 0 ? [0] : [0, 2000, 9000];
        let first: number | undefined;
        for (const pending of pendings) {
          history = Math.min(history, budget.loop(window - prompt - pending, inLoop(pending)));
          assert.ok(answer(history, pending) >= (turn > 0 && pending === 0 ? 2000 : 1000), `window ${window}, ratio ${ratio}, turn ${turn}: ${answer(history, pending)} tokens`);
          budget.spent(history, ratio * history);
          first ??= history;
        }
        budget.ended([user("?"), answered(system + tools + prompt + ratio * (first ?? 0)), answered(system + tools + prompt + 9000 + ratio * history)]);
      }
      // Where the count is no larger, nothing is given away.
      if (ratio === 0.8) assert.equal(budget.grant(granted, "m", reserve), granted);
    }
  }
});

test("tool schemas are told from a history that the provider counts as the host does, as the engine does, or between them", () => {
  const [window, reserve, system, prompt] = [128_000, 20_000, 6500, 300];
  for (const [ratio, counts] of [[1.15, 1.15], [1.15, 1], [1.15, 1.08], [0.8, 0.8], [0.8, 1]] as const) {
    const budget = new Budget();
    const granted = window - reserve - Math.ceil(1.2 * (system + prompt));
    /** A turn with so much history; what the next one may cost. */
    const after = (history: number, tools: number): number => {
      budget.grant(granted, "m", reserve);
      budget.loop(window - prompt, { ...session, messages: [], runtimeSettings: { limits: { promptTokenBudget: window, maxOutputTokens: null } }, tokenBudget: window - prompt });
      budget.spent(history, ratio * history);
      budget.ended([user("?"), answered(system + prompt + tools + counts * history)]);
      return budget.grant(granted, "m", reserve);
    };
    /** What leaves the host room for an answer of 4096 tokens. */
    const exact = (tools: number): number => Math.min(granted, Math.floor((window - 4096 - 1.25 * (system + prompt + tools)) / (1.25 * ratio)));
    const near = (now: number, tools: number, what: string): void => {
      assert.ok(now <= exact(tools) + 1 && now >= exact(tools) - 200, `ratio ${ratio}, counted ${counts}, ${what}: ${now}, want ${exact(tools)}`);
    };
    for (const history of [1100, 15_000, 30_000, 45_000, 60_000, 75_000, 20_000]) near(after(history, 3000), 3000, `${history} tokens`);
    // More tools: what they cost is not taken for history that grew.
    for (const history of [40_000, 60_000]) near(after(history, 9000), 9000, "more tools");
  }
});

test("messages as the host counts them", () => {
  assert.equal(asHost(user("four chars a token")), 4.5);
  assert.equal(asHost(user("漢字")), 2);
  assert.equal(asHost({ role: "compactionSummary", summary: "12345678" }), 2);
  assert.ok(asHost({ role: "assistant", content: [{ type: "toolCall", id: "a", name: "read", arguments: {} }, { type: "image" }] }) > 2000);
});
