import assert from "node:assert/strict";
import { existsSync, mkdtempSync, readdirSync, rmSync, statSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test, type TestContext } from "node:test";

import { Health } from "../src/health.js";
import type { CompactParams, HostMessage } from "../src/host-types.js";
import { MISSING_CREDENTIALS } from "../src/names.js";
import { Owed } from "../src/owed.js";
import type { Sdk } from "../src/sdk.js";
import { weigh } from "../src/weigh.js";
import { Refusal, type Params } from "./fake-sidecar.js";
import { assistant, session, setup, settle, user } from "./setup.js";

const prompt = { runtimeSettings: { limits: { promptTokenBudget: 8000, maxOutputTokens: 4000 } }, tokenBudget: 8000, prompt: "and now?" };
const inLoop = (granted: number): object => ({ runtimeSettings: { limits: { promptTokenBudget: 14_000, maxOutputTokens: null } }, tokenBudget: granted, prompt: "and now?" });
const words = (n: number): string => Array.from({ length: n }, (_, i) => `word${"abcdefg".charAt(i % 7)}`).join(" ");
const long = (turns: number): HostMessage[] => Array.from({ length: turns }, (_, i) => [user(`question ${i} ${words(150)}`), assistant(`answer ${i} ${words(150)}`)]).flat();
const cost = (messages: readonly HostMessage[]): number => messages.reduce((sum, message) => sum + weigh(message), 0);

/** An engine that can be switched off, and what it stored. */
function engine(t: TestContext, options: { sdk?: Sdk; config?: Record<string, unknown> } = {}) {
  const stateDir = mkdtempSync(join(tmpdir(), "state-"));
  t.after(() => { rmSync(stateDir, { recursive: true }); });
  const state = { broken: false as boolean | string, stored: [] as unknown[], refused: new Set<unknown>() };
  const made = setup((method, params: Params) => {
    if (state.broken === true || state.broken === method) throw new Refusal(-32603);
    if (method === "bootstrap") return { bootstrapped: true, known: state.stored.length };
    if (method === "commitTurn") {
      if (state.refused.has(params["advancementKey"])) throw new Refusal(-32602);
      const known = state.stored.includes(params["advancementKey"]);
      if (!known) state.stored.push(params["advancementKey"]);
      return { status: known ? "duplicate" : "committed" };
    }
    if (method !== "assemble") return {};
    const { skipped = 0, messages } = params["transcript"] as { skipped?: number; messages: unknown[] };
    return { items: [{ from: 0, to: skipped + messages.length }], estimatedTokens: 1 };
  }, { config: options.config ?? {}, sdk: { resolveStateDir: () => stateDir, ...options.sdk } });
  const turn = async (key: string, history: HostMessage[] = [user("one"), assistant("two")], sessionKey = session.sessionKey): Promise<{ shown: HostMessage[]; status: string }> => {
    const own = made.next();
    const who = { ...session, sessionKey };
    await own.bootstrap(who);
    const { messages } = await own.assemble({ ...who, ...prompt, messages: history });
    const { status } = await own.commitTurn({ ...who, advancementKey: key, messages: [user(`prompt of ${key}`), assistant("done")] });
    return { shown: messages, status };
  };
  return { ...made, state, turn, stateDir };
}

test("without its engine a long session is shown in its newest part, within the budget, and in a tool loop with room for what the turn adds", async (t) => {
  const { state, turn, next } = engine(t);
  state.broken = true;
  const history = long(100);
  const { shown } = await turn("k1", history);
  assert.ok(cost(shown) <= 8000 && cost(shown) > 4000, `${cost(shown)}`);
  assert.equal(shown.at(-1), history.at(-1));
  assert.equal(shown[0]?.["role"], "user");
  const own = next();
  const first = await own.assemble({ ...session, ...prompt, messages: history });
  const unchanged = await own.assemble({ ...session, ...inLoop(14_000 - 20), messages: first.messages });
  assert.deepEqual(unchanged.messages, first.messages);
  // The tools of this turn gave 6,000 tokens.
  const shorter = await own.assemble({ ...session, ...inLoop(14_000 - 6000), messages: first.messages });
  assert.ok(cost(shorter.messages) <= 2100, `${cost(shorter.messages)}`);
  assert.equal(shorter.messages.at(-1), history.at(-1));
});

test("turns are kept while the engine is away, and stored in their order when it is back, before anything else", async (t) => {
  const { state, turn, sidecar, log } = engine(t);
  await turn("k1");
  state.broken = true;
  for (const key of ["k2", "k3", "k4"]) assert.equal((await turn(key)).status, "committed");
  assert.deepEqual(state.stored, ["k1"]);
  state.broken = false;
  const from = sidecar.received.length;
  assert.equal((await turn("k5")).status, "committed");
  assert.deepEqual(state.stored, ["k1", "k2", "k3", "k4", "k5"]);
  assert.deepEqual(sidecar.received.slice(from).map((call) => call.method), ["bootstrap", "commitTurn", "commitTurn", "commitTurn", "assemble", "commitTurn"]);
  assert.deepEqual(sidecar.calls("commitTurn").at(-4)?.["messages"], [user("prompt of k2"), assistant("done")]);
  assert.equal(log.filter((line) => line.includes("until the engine is back")).length, 1);
  assert.equal(log.filter((line) => line.includes("the engine is back")).length, 2); // once each
  assert.equal(log.filter((line) => line.includes("3 turns that were kept are stored")).length, 1);
});

test("an engine that is degraded, or cannot be opened, is out of order: never the whole transcript", async (t) => {
  const { state, sidecar, turn, log } = engine(t);
  const history = long(100);
  const answer = sidecar.answer;
  sidecar.answer = (method, params, ...more) => (method === "assemble" ? { items: [{ from: 0, to: history.length }], degraded: "store" } : answer(method, params, ...more));
  assert.ok(cost((await turn("k1", history)).shown) <= 8000);
  sidecar.answer = () => { throw new Refusal(-32018, {}, "engine: open store: read-only file system"); };
  assert.ok(cost((await turn("k2", history)).shown) <= 8000);
  sidecar.answer = answer;
  await turn("k3");
  assert.deepEqual(state.stored, ["k1", "k2", "k3"]);
  assert.equal(log.filter((line) => line.includes("until the engine is back")).length, 1);
});

test("a fault in a session and an engine that is degraded at once: said once, and once that it is back", async (t) => {
  const { state, sidecar, turn, log } = engine(t);
  const answer = sidecar.answer;
  sidecar.answer = (method, params, ...more) => {
    if (method === "bootstrap" && (params["session"] as { session: string }).session !== "agent:main:other") throw new Refusal(-32603, {}, "the database was cut off");
    if (method === "assemble") return { items: [{ from: 0, to: 1 }], degraded: "store" };
    return answer(method, params, ...more);
  };
  await turn("k1");
  await turn("k2");
  assert.equal(log.filter((line) => line.includes("until the engine is back")).length, 1);
  sidecar.answer = answer;
  await turn("k3");
  assert.deepEqual(state.stored, ["k1", "k2", "k3"]);
  assert.equal(log.filter((line) => line.includes(": the engine is back")).length, 1);
});

test("an engine that reads and cannot write: the turns are kept, and nothing is said twice", async (t) => {
  const { state, turn, log } = engine(t);
  state.broken = "commitTurn";
  for (const key of ["k1", "k2", "k3"]) await turn(key);
  assert.equal(log.length, 1);
  state.broken = false;
  await turn("k4");
  assert.deepEqual(state.stored, ["k1", "k2", "k3", "k4"]);
});

test("what is owed survives the process, and other sessions are caught up as well", async (t) => {
  const first = engine(t);
  first.state.broken = true;
  await first.turn("a1");
  await first.turn("b1", [], "agent:main:other");
  const second = engine(t, { sdk: { resolveStateDir: () => first.stateDir } });
  await second.turn("a2");
  while (second.state.stored.length < 2) await settle();
  assert.deepEqual(second.state.stored, ["a1", "a2"]);
  await second.shared.catchUp();
  assert.deepEqual(second.state.stored, ["a1", "a2", "b1"]);
  assert.deepEqual(await second.shared.owed.sessions(), []);
});

test("a turn that the engine refuses for ever holds up no other", async (t) => {
  const { state, turn, shared } = engine(t);
  state.refused.add("bad");
  assert.equal((await turn("bad")).status, "committed");
  await turn("k2");
  assert.deepEqual(state.stored, ["k2"]);
  assert.equal((await shared.owed.sessions()).length, 1);
  state.refused.clear();
  await turn("k3");
  assert.deepEqual(state.stored, ["k2", "bad", "k3"]);
});

test("a turn that cannot be kept either is left to the host", async (t) => {
  const { state, turn, stateDir } = engine(t);
  writeFileSync(join(stateDir, "openbrain"), "a file where the folder should be");
  state.broken = true;
  await assert.rejects(turn("k1"), { name: "ProtocolError" });
});

test("where address and key are missing nothing is kept or hidden: bootstrap throws, the turn is the host's", async (t) => {
  const { sidecar, turn, shared, engine: own } = engine(t);
  const answer = sidecar.answer;
  sidecar.answer = () => { throw new Refusal(-32018, {}, `rpc: engine: ${MISSING_CREDENTIALS}`); };
  await assert.rejects(own.bootstrap({ ...session }), { name: "ProtocolError" });
  assert.equal((await own.assemble({ ...session, ...prompt, messages: long(2) })).messages.length, 4);
  await assert.rejects(own.commitTurn({ ...session, advancementKey: "k", messages: [user("hi")] }));
  assert.deepEqual(await shared.owed.sessions(), []);
  sidecar.answer = answer;
  await turn("k1");
});

test("an engine that comes back empty is told again what the host has stored", async (t) => {
  const rows = [user("old"), assistant("answer")];
  const { state, turn, sidecar } = engine(t, { sdk: { readSessionTranscriptVisibleMessageDelta: () => ({ kind: "page", cursor: 1, hasMore: false, entries: rows.map((message) => ({ message })) }) } });
  await turn("k1");
  state.broken = true;
  await turn("k2");
  Object.assign(state, { broken: false, stored: [] });
  await turn("k3");
  assert.deepEqual(sidecar.calls("bootstrap").map((call) => (call["transcript"] as Params | undefined)?.["messages"]).filter(Boolean), [rows, rows]);
  assert.deepEqual(state.stored, ["k2", "k3"]);
});

test("what the engine cannot compact, the host does", async (t) => {
  const answer = { ok: true, compacted: true, result: { tokensBefore: 100, tokensAfter: 10 } };
  const asked: CompactParams[] = [];
  const { state, engine: own } = engine(t, { sdk: { delegateCompactionToRuntime: async (params) => { asked.push(params); return answer; } } });
  state.broken = true;
  const params = { ...session, force: true, runtimeContext: { trigger: "budget" } };
  assert.equal(await own.compact(params), answer);
  assert.deepEqual(asked, [params]);
});

test("where the host cannot compact either, the turn goes on with less", async (t) => {
  for (const host of [async () => { throw new Error("no summary"); }, async () => ({ ok: false, compacted: false, reason: "no" }), undefined]) {
    const { state, turn, next } = engine(t, { sdk: host ? { delegateCompactionToRuntime: host } : {} });
    state.broken = true;
    const history = long(100);
    const { shown } = await turn("k1", history);
    const params = (trigger: string, count: number): CompactParams => ({ ...session, tokenBudget: 14_000, currentTokenCount: count, runtimeContext: { trigger } });
    assert.deepEqual(await next().compact(params("budget", 13_000)), { ok: true, compacted: false, reason: "already under target" });
    const refused = await next().compact(params("overflow", 14_500));
    assert.deepEqual([refused.ok, refused.compacted], [true, true]);
    const again = await turn("k2", history);
    assert.ok(cost(again.shown) <= cost(shown) - 1000 && cost(again.shown) <= (refused.result?.tokensAfter ?? 0), `${cost(again.shown)} after ${cost(shown)}`);
    assert.equal((await next().compact({ ...session, runtimeContext: { trigger: "manual" } })).compacted, false);
  }
});

test("an engine that takes too long is left alone for longer and longer", () => {
  let now = 0;
  const health = new Health(() => now);
  health.slow(1000);
  assert.equal(health.pause(), 4000);
  assert.deepEqual([health.failed("assemble"), health.failed("commitTurn"), health.works("bootstrap")], [true, false, false]);
  now = 4000;
  assert.equal(health.pause(), 0);
  health.slow(1000);
  assert.equal(health.pause(), 8000);
  assert.deepEqual([health.works("assemble"), health.pause(), health.works("commitTurn"), health.pause(), health.out], [false, 8000, true, 0, false]);
  // After half a minute, and then ever more rarely, it is time to start it anew.
  health.failed("assemble");
  const renewals: number[] = [];
  for (const begun = now; now < begun + 1_000_000; now += 1000) if (health.renewal()) renewals.push((now - begun) / 1000);
  assert.deepEqual(renewals, [30, 90, 270, 810]);
});

test("kept turns: nobody else can read them, each once, in their order", async (t) => {
  const root = mkdtempSync(join(tmpdir(), "owed-"));
  t.after(() => { rmSync(root, { recursive: true }); });
  const owed = new Owed(async () => join(root, "owed"));
  const who = { agent: "main", session: "s" };
  const turns = Array.from({ length: 12 }, (_, i) => ({ session: who, advancementKey: `k${i}`, messages: [user(`${i} \ud800 é`)] }));
  for (const turn of turns) await owed.keep(turn);
  await owed.keep(turns[3] ?? turns[0]!); // eslint-disable-line @typescript-eslint/no-non-null-assertion
  const files = await owed.of(who);
  assert.deepEqual(await Promise.all(files.map((file) => owed.read(file))), turns);
  const [folder] = readdirSync(join(root, "owed"));
  assert.equal(statSync(join(root, "owed", folder ?? "")).mode & 0o777, 0o700);
  assert.equal(statSync(files[0] ?? "").mode & 0o777, 0o600);
  assert.deepEqual(await owed.of({ agent: "main", session: "t" }), []);
  await owed.done(files[0] ?? "");
  await owed.done(files[0] ?? "");
  assert.equal(await owed.read(files[0] ?? ""), undefined);
  assert.deepEqual(await owed.sessions(), [who]);
  // What a process left that ended while it wrote is nobody's after an hour.
  const at = (name: string): string => join(root, "owed", folder ?? "", name);
  for (const name of ["1-a.json.new", "2-b.json.new"]) writeFileSync(at(name), "{");
  utimesSync(at("1-a.json.new"), 1, 1);
  await owed.tidy();
  assert.deepEqual([existsSync(at("1-a.json.new")), existsSync(at("2-b.json.new"))], [false, true]);
  assert.equal((await owed.of(who)).length, 11);
});
