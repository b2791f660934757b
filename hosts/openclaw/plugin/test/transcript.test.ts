import assert from "node:assert/strict";
import { test } from "node:test";

import type { HostMessage } from "../src/host-types.js";
import { Hasher, Memory, expand } from "../src/transcript.js";
import { assistant, user } from "./setup.js";

const list = (n: number, tag = ""): HostMessage[] => Array.from({ length: n }, (_, i) => (i % 2 === 0 ? user(`q${i}${tag}`) : assistant(`a${i}${tag}`)));
const digestOf = (messages: HostMessage[]): string => new Hasher(messages).at([messages.length]).get(messages.length) ?? "";

test("hashes tell lists apart, and are the same for the same messages", () => {
  assert.equal(digestOf(list(5)), digestOf(structuredClone(list(5))));
  assert.notEqual(digestOf(list(5)), digestOf(list(4)));
  assert.notEqual(digestOf(list(5)), digestOf(list(5, "x")));
  assert.notEqual(digestOf([{ a: "1" }, { b: "2" }]), digestOf([{ b: "2" }, { a: "1" }]));
  const long = list(3000, "x".repeat(100));
  assert.equal(new Hasher(long).at([7, 3000]).get(7), digestOf(long.slice(0, 7)));
  assert.equal(new Hasher(list(3)).at([4]).size, 0);
});

test("only what is new is sent, and everything where history changed", () => {
  const memory = new Memory();
  const first = memory.plan(list(4), new Hasher(list(4)));
  assert.equal(first.skipped, undefined);
  assert.equal(first.messages.length, 4);
  memory.learn(4, first.digest);
  const grown = memory.plan(list(6), new Hasher(list(6)));
  assert.deepEqual([grown.skipped, grown.prefix, grown.messages.length, grown.digest], [4, first.digest, 2, digestOf(list(6))]);
  const same = memory.plan(list(4), new Hasher(list(4)));
  assert.deepEqual([same.skipped, same.messages.length], [4, 0]);
  const changed = [user("another beginning"), ...list(6).slice(1)];
  assert.equal(memory.plan(changed, new Hasher(changed)).skipped, undefined);
  assert.equal(memory.plan(list(2), new Hasher(list(2))).skipped, undefined);
  assert.equal(memory.plan([], new Hasher([])).skipped, undefined);
});

test("a list that the sidecar made goes by the sidecar's name", () => {
  const memory = new Memory();
  memory.learn(3, digestOf(list(3)), "out:1");
  const plan = memory.plan(list(3), new Hasher(list(3)));
  assert.deepEqual([plan.skipped, plan.prefix, plan.messages.length], [3, "out:1", 0]);
  assert.equal(plan.digest, digestOf(list(3)));
});

test("after a refusal the longest part that both know is used, and never the refused one", () => {
  const memory = new Memory();
  for (const n of [2, 4, 6]) memory.learn(n, digestOf(list(n)));
  const hasher = new Hasher(list(8));
  const refused = memory.plan(list(8), hasher);
  assert.equal(refused.skipped, 6);
  const known = [{ count: 6, digest: digestOf(list(6)) }, { count: 5, digest: "another list" }, { count: 4, digest: digestOf(list(4)) }];
  const second = memory.replan(list(8), hasher, known, refused);
  assert.deepEqual([second.skipped, second.prefix], [4, digestOf(list(4))]);
  assert.equal(memory.replan(list(8), hasher, "nonsense", second).skipped, undefined);
});

test("answers with references are put together, and refused where they lie", () => {
  const own = list(5);
  const made = user("made");
  assert.deepEqual(expand([{ from: 0, to: 2 }, { message: made }, { from: 4, to: 5 }], own), [own[0], own[1], made, own[4]]);
  assert.equal(expand([{ from: 0, to: 5 }], own)[3], own[3]);
  assert.deepEqual(expand([], own), []);
  for (const items of [undefined, [{ from: 0, to: 6 }], [{ from: -1, to: 1 }], [{ from: 2, to: 2 }], [{ message: "text" }], [{ message: {} }], [null], [{}]]) {
    assert.throws(() => expand(items, own));
  }
});
