import assert from "node:assert/strict";
import { test } from "node:test";

import type { HostMessage } from "../src/host-types.js";
import { alike, hashOf, printOf, printsOf, type Print } from "../src/prints.js";
import { Memory } from "../src/transcript.js";
import { assistant, user } from "./setup.js";

const list = (n: number): HostMessage[] => Array.from({ length: n }, (_, i) => (i % 2 === 0 ? user(`q${i}`, { timestamp: i }) : assistant(`a${i}`, { usage: { input: i, cost: { total: 0.5 } } })));
const hashes = (prints: readonly Print[]): string[] => prints.map((print) => print.hash);
/** What prints have to be, whatever was known before. */
const expected = (messages: readonly HostMessage[]): string[] => messages.map(hashOf);
/** How many prints are not those of before. */
const made = (prints: readonly Print[], before: readonly Print[]): number => prints.filter((print) => !before.includes(print)).length;

test("prints are the same for the same messages", () => {
  assert.deepEqual(hashes(printsOf(list(5))), hashes(printsOf(structuredClone(list(5)))));
  assert.ok(!alike(printOf(user("a")), printOf(user("b"))));
  assert.ok(!alike(printOf(user("a")), printOf(assistant("a"))));
  assert.ok(!alike(undefined, printOf(user("a"))));
});

test("copies of known messages are not hashed again, and what is new is", () => {
  const before = printsOf(list(40));
  assert.equal(made(printsOf(structuredClone(list(40)), before), before), 0);
  assert.equal(made(printsOf(JSON.parse(JSON.stringify(list(43))) as HostMessage[], before), before), 3);
  assert.equal(made(printsOf(list(10), before), before), 0);
});

test("a slid, shortened or interspersed list is found again", () => {
  const before = printsOf(list(40));
  const [a, b] = [list(60), list(40)];
  for (const [messages, most] of [[a.slice(7), 21], [[user("front"), ...a.slice(7)], 22], [b.toSpliced(20, 1), 1], [b.toSpliced(20, 0, user("between")), 2], [b.toSpliced(20, 1, user("instead")), 1]] as const) {
    const prints = printsOf(messages, before);
    assert.deepEqual(hashes(prints), expected(messages));
    assert.ok(made(prints, before) <= most, `${made(prints, before)} of at most ${most} were made`);
  }
});

test("what is changed in place is noticed, wherever it is", () => {
  interface Deep extends HostMessage {
    content: [{ text: string }, { arguments: { list: [number, number[], Record<string, unknown>] } }];
  }
  const deep = (): Deep => ({ role: "assistant", content: [{ text: "t" }, { arguments: { list: [1, [2], {}] } }], stop: null, flag: false });
  const changes: ((m: Deep) => void)[] = [
    (m) => { m["role"] = "user"; },
    (m) => { m.content[0].text = "u"; },
    (m) => { (m.content as unknown[]).pop(); },
    (m) => { (m.content as unknown[]).push({ text: "t" }); },
    (m) => { m.content[1].arguments.list[1][0] = 3; },
    (m) => { m.content[1].arguments.list[2]["x"] = 1; },
    (m) => { m["stop"] = "stop"; },
    (m) => { m["flag"] = 0; },
    (m) => { delete m["flag"]; },
    (m) => { m["more"] = undefined; (m as HostMessage)["content"] = { 0: "t" }; },
    (m) => { delete m["role"]; m["role"] = "assistant"; }, // another order is another text
  ];
  for (const change of changes) {
    const message = deep();
    const messages = [user("before"), message, user("after")];
    const before = printsOf(messages);
    change(message);
    const prints = printsOf(messages, before);
    assert.deepEqual(hashes(prints), expected(messages));
    assert.notEqual(prints[1], before[1], change.toString());
    assert.equal(prints[2], before[2]);
  }
});

test("values whose JSON text is their own business are hashed every time", () => {
  const odd: HostMessage[] = [
    { role: "user", content: new Date(5) }, { role: "user", toJSON: () => ({ role: "user", content: "x" }) }, { role: "user", content: Object.assign(["a"], { toJSON: () => "b" }) },
    { role: "user", content: new Map([["a", 1]]) }, { role: "user", content: () => 1 }, { role: "user", content: Symbol("s") }, { role: "user", content: new Uint8Array(2) },
    Object.assign(Object.create({ inherited: 1 }) as HostMessage, { role: "user" }),
  ];
  const before = printsOf(odd);
  const prints = printsOf(odd, before);
  assert.deepEqual(hashes(prints), expected(odd));
  assert.equal(made(prints, before), odd.length);
  // These have texts that differ from their values; what counts is that the same text has the same hash.
  const numbers = (): HostMessage => ({ role: "user", content: [NaN, -0, undefined, null, Infinity] });
  assert.deepEqual(hashes(printsOf([numbers()], printsOf([numbers()]))), expected([numbers()]));
});

test("whatever happens to a list, its prints are those of its texts", () => {
  let seed = 7;
  const random = (n: number): number => (seed = (seed * 1_103_515_245 + 12_345) % 2_147_483_648) % n;
  let messages = list(30);
  let prints = printsOf(messages);
  for (let round = 0; round < 400; round++) {
    const at = random(messages.length + 1);
    switch (random(6)) {
      case 0: messages = [...messages, ...list(random(4))]; break;
      case 1: messages.splice(at, random(5), user(`new ${random(3)}`)); break;
      case 2: for (const old of messages.slice(at, at + 1)) old["content"] = `changed ${random(5)}`; break;
      case 3: messages = messages.slice(random(8)); break;
      case 4: messages = structuredClone(messages).reverse(); break;
      default: messages = messages.slice(0, Math.max(2, at));
    }
    if (messages.length < 2) messages = list(20);
    prints = printsOf(messages, prints);
    assert.deepEqual(hashes(prints), expected(messages));
  }
});

test("a memory that was made lighter still knows its lists", () => {
  const memory = new Memory();
  memory.learn(printsOf(list(40)), "known");
  memory.learn(printsOf(list(12)), "out", true);
  const [host, output] = [memory.weight(), printsOf(list(12)).reduce((sum, print) => sum + print.weight, 0)];
  assert.ok(output > 0 && host > output);
  memory.lighten();
  assert.equal(memory.weight(), 0);
  const plan = memory.plan(list(42), memory.prints(list(42)));
  assert.deepEqual([plan.transcript.skipped, plan.transcript.prefix, plan.transcript.messages.length], [40, "known", 2]);
});
