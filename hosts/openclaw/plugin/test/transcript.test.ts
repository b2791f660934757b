import assert from "node:assert/strict";
import { test } from "node:test";

import type { HostMessage } from "../src/host-types.js";
import { alike, printsOf, type Print } from "../src/prints.js";
import { Memory, NotShown, expand, type Plan } from "../src/transcript.js";
import { assistant, user } from "./setup.js";

const list = (n: number, tag = ""): HostMessage[] => Array.from({ length: n }, (_, i) => (i % 2 === 0 ? user(`q${i}${tag}`) : assistant(`a${i}${tag}`)));
const plan = (memory: Memory, messages: HostMessage[]): Plan => memory.plan(messages, printsOf(messages));
const same = (a: readonly Print[], b: readonly Print[]): boolean => a.length === b.length && a.every((print, i) => alike(print, b[i]));
const told = ({ transcript }: Plan): unknown[] => [transcript.skipped, transcript.prefix, transcript.messages.length];

/** A memory that knows the list. */
function knowing(messages: HostMessage[], name = "known"): Memory {
  const memory = new Memory();
  memory.learn(printsOf(messages), name);
  return memory;
}

test("only what is new is sent, and everything where history changed", () => {
  assert.deepEqual(told(plan(new Memory(), list(4))), [undefined, undefined, 4]);
  const grown = plan(knowing(list(4)), list(6));
  assert.deepEqual(told(grown), [4, "known", 2]);
  assert.ok(same(grown.prints, printsOf(list(6))));
  assert.deepEqual(told(plan(knowing(list(4)), list(4))), [4, "known", 0]);
  const changed = [user("another beginning"), ...list(6).slice(1)];
  for (const messages of [changed, list(2), list(6, "x")]) assert.deepEqual(told(plan(knowing(list(4)), messages)), [undefined, undefined, messages.length]);
  assert.deepEqual(told(plan(knowing(list(4)), [])), [undefined, undefined, 0]);
});

test("every list has a name of its own", () => {
  const memory = knowing(list(4));
  assert.notEqual(plan(memory, list(6)).transcript.digest, plan(memory, list(6)).transcript.digest);
});

test("where the host shows only the newest part, the front stays told", () => {
  const memory = knowing(list(40));
  const shownNow = list(44).slice(10);
  const slid = plan(memory, shownNow);
  assert.deepEqual(told(slid), [40, "known", 4]);
  assert.deepEqual([slid.offset, slid.lead], [10, 0]);
  assert.ok(same(slid.prints, printsOf(list(44))));
  // It slides on, and the host puts something of its own in front.
  memory.learn(slid.prints, "second");
  const further = [user("(something of the host's)"), ...list(46).slice(15)];
  const again = plan(memory, further);
  assert.deepEqual(told(again), [44, "second", 2]);
  assert.deepEqual(expand([{ from: 15, to: 16 }, { from: 45, to: 46 }], further, again), { messages: [list(46)[15], list(46)[45]], places: [1, 31] });
  assert.throws(() => expand([{ from: 14, to: 16 }], further, again), NotShown);
});

test("little in common is no common end", () => {
  for (const messages of [list(40).slice(35), [...list(40).slice(38), ...list(30, "x")], [user("q2"), ...list(20, "x")], list(40).slice(5, 30)]) {
    assert.deepEqual(told(plan(knowing(list(40)), messages)), [undefined, undefined, messages.length]);
  }
});

test("the longest known part counts", () => {
  const memory = knowing(list(2), "short");
  memory.learn(printsOf(list(6)), "long");
  memory.learn(printsOf(list(4)), "middle");
  assert.deepEqual(told(plan(memory, list(8))), [6, "long", 2]);
});

test("after a refusal the longest part that both know is used, and never the refused one", () => {
  const memory = knowing(list(2), "short");
  memory.learn(printsOf(list(4)), "middle");
  memory.learn(printsOf(list(6)), "long");
  const first = plan(memory, list(8));
  memory.refused([{ count: 6, digest: "long" }, { count: 4, digest: "middle" }, null], first.transcript);
  assert.deepEqual(told(plan(memory, list(8))), [4, "middle", 4]);
  memory.refused("nonsense", first.transcript);
  assert.deepEqual(told(plan(memory, list(8))), [undefined, undefined, 8]);
});

test("an output that comes back is known, and is no part of anything longer", () => {
  const memory = new Memory();
  memory.learn(printsOf(list(20)), "out:1", true);
  assert.deepEqual(told(plan(memory, list(20))), [20, "out:1", 0]);
  assert.deepEqual(told(plan(memory, list(22).slice(4))), [undefined, undefined, 18]);
  memory.learn(printsOf(list(30, "host")), "host");
  for (let i = 0; i < 10; i++) memory.learn(printsOf(list(20 + i)), `out:${i}`, true);
  assert.deepEqual(told(plan(memory, list(32, "host"))), [30, "host", 2]);
});

test("answers with references are put together, and refused where they lie", () => {
  const own = list(5);
  const made = user("made");
  assert.deepEqual(expand([{ from: 0, to: 2 }, { message: made }, { from: 4, to: 5 }], own), { messages: [own[0], own[1], made, own[4]], places: [0, 1, -1, 4] });
  assert.equal(expand([{ from: 0, to: 5 }], own).messages[3], own[3]);
  assert.deepEqual(expand([], own), { messages: [], places: [] });
  for (const items of [undefined, [{ from: 0, to: 6 }], [{ from: -1, to: 1 }], [{ from: 2, to: 2 }], [{ message: "text" }], [{ message: {} }], [null], [{}]]) {
    assert.throws(() => expand(items, own));
  }
});
