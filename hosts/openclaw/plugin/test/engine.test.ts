import assert from "node:assert/strict";
import { test } from "node:test";

import type { CompactParams, RuntimeContext } from "../src/host-types.js";
import { MISSING_CREDENTIALS } from "../src/names.js";
import { printsOf } from "../src/prints.js";
import type { SessionState } from "../src/shared.js";
import { FakeSidecar, Refusal, silence, type Params } from "./fake-sidecar.js";
import { assistant, session, setup, settle, user } from "./setup.js";

const passing = (method: string, params: Params): unknown => {
  if (method !== "assemble") return { status: "committed", bootstrapped: true };
  const { skipped = 0, messages, digest } = params["transcript"] as { skipped?: number; messages: unknown[]; digest: string };
  const count = skipped + messages.length;
  return { items: count === 0 ? [] : [{ from: 0, to: count }], estimatedTokens: 10 * count, promptAuthority: "assembled", projectionEpoch: 0, output: { count, digest: `out:${digest}` } };
};
const prompt = { runtimeSettings: { limits: { promptTokenBudget: 8000, maxOutputTokens: 4000 } }, tokenBudget: 8000 };
const loop = { runtimeSettings: { limits: { promptTokenBudget: 12_000, maxOutputTokens: null } }, tokenBudget: 11_900 };

test("the engine declares the durable-turn contract", () => {
  const { engine } = setup(passing);
  assert.deepEqual(engine.info["transcriptSemantics"], { currentTurnFence: "before-current-turn-entry-v1", turnAdvancementIdempotency: "atomic-idempotent-v1" });
  assert.equal(engine.info["id"], "openbrain");
  assert.equal(engine.info["turnMaintenanceMode"], "background");
});

test("a turn: the list is sent once, then its tail; the loop's call names the output", async () => {
  const { engine, next, sidecar } = setup(passing);
  const history = [user("one"), assistant("two")];
  const first = await engine.assemble({ ...session, ...prompt, messages: history, prompt: "three?" });
  assert.deepEqual(first.messages, history);
  assert.equal(first.messages[0], history[0]);
  await engine.assemble({ ...session, ...loop, messages: first.messages, prompt: "three?" });
  await engine.commitTurn({ ...session, advancementKey: "k1", messages: [user("three?"), assistant("four")] });
  await next().assemble({ ...session, ...prompt, messages: [...structuredClone(history), user("three?"), assistant("four")], prompt: "five?" });
  const [a, b, c] = sidecar.calls("assemble");
  assert.ok(a && b && c);
  assert.deepEqual([a["call"], b["call"], c["call"]], ["prompt", "loop", "prompt"]);
  const sent = (params: Params): { skipped?: number; prefix?: string; messages: unknown[] } => params["transcript"] as never;
  assert.equal(sent(a).messages.length, 2);
  assert.deepEqual([sent(b).skipped, sent(b).messages.length], [2, 0]);
  assert.deepEqual([sent(c).skipped, sent(c).messages.length], [2, 2]);
  assert.equal(JSON.stringify(sent(c).messages[1]), JSON.stringify(assistant("four")));
  assert.equal(sidecar.opened, 1);
});

test("whatever the host did to its list, the sidecar is told the list as it is", async () => {
  const { next, sidecar } = setup(passing);
  // What the sidecar has, by the names that it was told.
  const told = new Map<string, string[]>();
  let history = [user("one"), assistant("two"), user("three"), assistant("four")];
  const changes: (() => void)[] = [
    () => { history.push(user("five"), assistant("six")); },
    () => { history = structuredClone(history); },
    () => { Object.assign(history[1] ?? {}, { content: [{ type: "text", text: "changed in place" }] }); },
    () => { history = history.slice(0, 2); }, // rewound
    () => { history = [...history, user("another branch")]; }, // forked
    () => { history = [user("reset")]; },
    () => { history.unshift(user("in front")); },
  ];
  for (const change of changes) {
    change();
    const result = await next().assemble({ ...session, ...prompt, messages: history, prompt: "?" });
    assert.deepEqual(result.messages, history);
    const { skipped = 0, prefix = "", messages, digest } = sidecar.calls("assemble").at(-1)?.["transcript"] as { skipped?: number; prefix?: string; messages: unknown[]; digest: string };
    const known = told.get(prefix) ?? [];
    assert.equal(known.length, skipped);
    const list = [...known, ...messages.map((m) => JSON.stringify(m))];
    assert.deepEqual(list, history.map((m) => JSON.stringify(m)));
    told.set(digest, list).set(`out:${digest}`, list); // the result is the list
  }
});

test("what is kept of messages is bounded: the session that was used longest ago is hashed anew", () => {
  const { shared } = setup(passing, { maxWeight: 1000 });
  const use = (name: string): SessionState => {
    const state = shared.state({ agent: "main", session: name });
    state.memory.learn(printsOf([user("x".repeat(400)), assistant("y".repeat(400))]), name);
    shared.spare(state);
    return state;
  };
  const [a, b, c] = ["a", "b", "c"].map(use);
  assert.deepEqual([a?.memory.weight(), b?.memory.weight()], [0, 0]);
  assert.ok((c?.memory.weight() ?? 0) > 800);
});

test("need transcript: everything is sent again, once", async () => {
  let refusals = 0;
  const { next, sidecar } = setup((method, params) => {
    const { skipped } = (params["transcript"] ?? {}) as { skipped?: number };
    if (method === "assemble" && skipped !== undefined) {
      refusals++;
      throw new Refusal(-32010, { known: [] });
    }
    return passing(method, params);
  });
  const history = [user("one"), assistant("two")];
  await next().assemble({ ...session, ...prompt, messages: history });
  const result = await next().assemble({ ...session, ...prompt, messages: [...history, user("three"), assistant("four")] });
  assert.equal(result.messages.length, 4);
  assert.equal(refusals, 1);
  assert.equal(sidecar.calls("assemble").length, 3);
});

test("only listed fields cross", async () => {
  const { engine, sidecar } = setup(passing);
  const secret = "planted-secret";
  const runtimeContext = { config: { gateway: { token: secret } }, apiKey: secret, trigger: "manual", llm: { complete: () => Promise.reject(new Error(secret)) }, provider: "p" } as unknown as RuntimeContext;
  const more = { runtimeContext, config: secret, sessionTarget: { agentId: "main", token: secret }, transcriptScope: { sessionId: "id-1", url: secret }, runtimeSettings: { ...prompt.runtimeSettings, model: { provider: "p", resolved: "m" }, auth: secret } };
  await engine.bootstrap({ ...session, ...more });
  await engine.assemble({ ...session, ...more, tokenBudget: 8000, messages: [user("hello")], prompt: "hi", availableTools: new Set(["read", "exec"]) });
  await engine.commitTurn({ ...session, ...more, advancementKey: "k", messages: [user("hi")] });
  await engine.compact({ ...session, ...more });
  await engine.maintain({ ...session, ...more });
  assert.ok(!sidecar.text.join("").includes(secret));
  assert.deepEqual(sidecar.calls("assemble")[0]?.["settings"], { provider: "p", model: "m", resolvedModel: "m", maxOutputTokens: 4000, promptTokenBudget: 8000 });
  assert.deepEqual(sidecar.calls("assemble")[0]?.["memory"], { availableTools: ["exec", "read"] });
  assert.deepEqual(sidecar.calls("commitTurn")[0]?.["session"], { agent: "main", session: "agent:main:main" });
});

/** The settings of OpenClaw 2026.9.6, where a run went over to another model. */
const told = {
  schemaVersion: 1,
  runtime: { host: "openclaw", mode: "fallback", harnessId: "embedded", runtimeId: null },
  model: { requested: "large", resolved: "small", provider: "p", family: "f" },
  contextEngineSelection: { selectedId: "openbrain", source: "configured" },
  executionHost: { id: "openclaw-embedded", label: "OpenClaw embedded runner" },
  limits: { promptTokenBudget: 8000, maxOutputTokens: 4000 },
  diagnostics: { fallbackReason: "rate_limited", degradedReason: null },
};

test("all that the host says about the run crosses, with every call that has it; what is null is left out", async () => {
  const { engine, sidecar } = setup(passing);
  const run = { ...session, runtimeSettings: told };
  await engine.bootstrap(run);
  await engine.assemble({ ...run, tokenBudget: 8000, messages: [user("hello")], prompt: "hi" });
  await engine.commitTurn({ ...run, advancementKey: "k", messages: [user("hi")] });
  await engine.maintain(run); // after a turn: there is nothing to do after a bootstrap
  await engine.afterTurn({ ...run, messages: [user("hi")], prePromptMessageCount: 0 });
  await engine.compact(run);
  const settings = {
    schemaVersion: 1, provider: "p", model: "small", modelFamily: "f", requestedModel: "large", resolvedModel: "small", maxOutputTokens: 4000, promptTokenBudget: 8000,
    mode: "fallback", fallbackReason: "rate_limited", host: "openclaw", harnessId: "embedded",
    contextEngineSelection: { selectedId: "openbrain", source: "configured" }, executionHost: { id: "openclaw-embedded", label: "OpenClaw embedded runner" },
  };
  for (const method of ["bootstrap", "assemble", "commitTurn", "maintain", "afterTurn", "compact"]) assert.deepEqual(sidecar.calls(method)[0]?.["settings"], settings, method);
});

test("where the host keeps the transcript crosses, under the one name or the other", async () => {
  const path = "/home/me/agents/main.sqlite";
  const target = { agentId: "main", sessionId: "id-1", sessionKey: "agent:main:main", storePath: path };
  for (const place of [{ transcriptScope: { agentId: "main", sessionId: "id-1", path } }, { sessionTarget: target }]) {
    const { engine, sidecar } = setup(passing);
    assert.ok((engine.info["acceptedHostParams"] as string[]).includes(Object.keys(place)[0] ?? ""));
    const run = { ...session, ...place };
    await engine.bootstrap(run);
    await engine.assemble({ ...run, tokenBudget: 8000, messages: [user("hello")], prompt: "hi" });
    await engine.commitTurn({ ...run, advancementKey: "k", messages: [user("hi")] });
    await engine.maintain(run);
    await engine.afterTurn({ ...run, messages: [user("hi")], prePromptMessageCount: 0 });
    await engine.compact(run);
    for (const method of ["bootstrap", "assemble", "commitTurn", "maintain", "afterTurn", "compact"]) assert.deepEqual(sidecar.calls(method)[0]?.["transcriptScope"], { agentId: "main", sessionId: "id-1", path }, method);
  }
  // What the scope leaves open is not taken from the target, which may be another transcript's; what the sidecar would refuse does not cross.
  const { engine, sidecar } = setup(passing);
  await engine.bootstrap({ ...session, sessionTarget: target, transcriptScope: { agentId: "main", sessionId: "x".repeat(1025), path: "x".repeat(4097) } });
  await engine.bootstrap({ ...session });
  await engine.dispose();
  assert.deepEqual(sidecar.calls("bootstrap").map((params) => params["transcriptScope"]), [{ agentId: "main" }, undefined]);
});

test("settings of another shape than the sidecar takes do not cross", async () => {
  const { engine, sidecar } = setup(passing);
  const wrong = { schemaVersion: "1", runtime: { mode: "x".repeat(1025), host: "a\0b" }, model: null, executionHost: { id: 5, label: null }, contextEngineSelection: "configured", limits: null };
  await engine.bootstrap({ ...session, runtimeSettings: wrong as unknown as typeof told });
  assert.equal(sidecar.calls("bootstrap")[0]?.["settings"], undefined);
});

test("rows that the host shows to no model are not stored", async () => {
  const { engine, sidecar } = setup(passing);
  await engine.commitTurn({ ...session, advancementKey: "k", messages: [user("hi"), { role: "custom", excludeFromContext: true, content: "" }, assistant("hello")] });
  assert.equal((sidecar.calls("commitTurn")[0]?.["messages"] as unknown[]).length, 2);
});

test("a sidecar that fails: the messages come back unchanged, the turn is not taken for stored", async () => {
  const { engine, log } = setup(() => { throw new Refusal(-32603); });
  const history = [user("one"), assistant("two")];
  assert.deepEqual((await engine.assemble({ ...session, ...prompt, messages: history })).messages, history);
  await assert.rejects(engine.commitTurn({ ...session, advancementKey: "k", messages: history }));
  const compaction = await engine.compact({ ...session });
  assert.deepEqual([compaction.ok, compaction.compacted], [false, false]);
  assert.ok(compaction.reason);
  assert.equal((await engine.bootstrap({ ...session })).bootstrapped, false);
  assert.equal(await engine.prepareSubagentSpawn({ parentSessionKey: "agent:main:main", childSessionKey: "agent:main:subagent:1" }), undefined);
  await engine.onSubagentEnded({ childSessionKey: "agent:main:subagent:1", reason: "completed" });
  assert.ok(log.some((line) => line.includes("assemble")));
});

test("a sidecar that lies: the messages come back unchanged", async () => {
  for (const items of [[{ from: 0, to: 99 }], "text", [{ message: 5 }]]) {
    const { engine } = setup(() => ({ items }));
    const history = [user("one")];
    assert.deepEqual((await engine.assemble({ ...session, ...prompt, messages: history })).messages, history);
  }
  const { engine } = setup(() => ({ status: "perhaps" }));
  await assert.rejects(engine.commitTurn({ ...session, advancementKey: "k", messages: [user("hi")] }), /did not say that the turn is stored/);
});

test("an engine that hangs costs one call its time; then it is left alone for a while", async () => {
  const ms = 200;
  const { engine, shared, sidecar } = setup(() => silence, { config: { assembleTimeoutMs: ms, commitTimeoutMs: ms, callTimeoutMs: ms, compactTimeoutMs: ms } });
  await shared.connection.describe(60_000);
  const history = [user("one")];
  assert.deepEqual((await engine.assemble({ ...session, ...prompt, messages: history })).messages, history);
  await assert.rejects(engine.commitTurn({ ...session, advancementKey: "k", messages: history }), /took too long/);
  assert.equal((await engine.compact({ ...session })).ok, false);
  assert.deepEqual([sidecar.calls("rpc.cancel").length, sidecar.calls("commitTurn").length, sidecar.calls("compact").length], [1, 0, 0]);
  // Another agent's engine may be another one.
  assert.deepEqual((await engine.assemble({ ...session, sessionKey: "agent:other:main", ...prompt, messages: history })).messages, history);
  assert.equal(sidecar.calls("assemble").length, 2);
});

test("without address and key nothing is started, and the text says what to do", async () => {
  const sidecar = new FakeSidecar(passing);
  const { engine, log } = setup(passing, { config: { engine: "openbrain" }, sidecar });
  await assert.rejects(engine.bootstrap({ ...session }), { name: "OpenBrainConfigError", message: MISSING_CREDENTIALS });
  await assert.rejects(engine.commitTurn({ ...session, advancementKey: "k", messages: [user("hi")] }), { name: "OpenBrainConfigError", message: MISSING_CREDENTIALS });
  const history = [user("one")];
  assert.deepEqual((await engine.assemble({ ...session, ...prompt, messages: history })).messages, history);
  assert.equal(sidecar.opened, 0);
  assert.ok(log.some((line) => line.includes("baseUrl and apiKey are required")));
});

test("bootstrap hands over what the host has stored of a session that is new to the engine", async () => {
  const rows = [user("old"), assistant("broken", { stopReason: "error" }), { role: "custom", excludeFromContext: true }, assistant("answer")];
  const sdk = {
    readSessionTranscriptVisibleMessageDelta: (query: { cursor?: unknown }) => query.cursor === undefined
      ? { kind: "page" as const, cursor: 1, hasMore: true, entries: rows.slice(0, 2).map((message) => ({ message })) }
      : { kind: "page" as const, cursor: 2, hasMore: false, entries: rows.slice(2).map((message) => ({ message })) },
  };
  for (const [known, transcripts] of [[0, [undefined, [rows[0], rows[3]], undefined]], [5, [undefined, undefined]], [undefined, [undefined, undefined]]] as const) {
    const { next, sidecar } = setup(() => ({ bootstrapped: true, imported: 0, ...(known === undefined ? {} : { known }) }), { sdk });
    await next().bootstrap({ ...session });
    const again = next();
    await again.bootstrap({ ...session });
    await again.dispose();
    assert.deepEqual(sidecar.calls("bootstrap").map((c) => (c["transcript"] as Params | undefined)?.["messages"]), transcripts);
  }
});

test("delegated compaction: the host is asked once, and its own result comes back whole", async () => {
  const answer = { ok: true, compacted: true, result: { summary: "s", firstKeptEntryId: "e7", tokensBefore: 100, tokensAfter: 10, details: { kept: 3 }, sessionId: "id-2", sessionTarget: { agentId: "main", sessionId: "id-2", sessionKey: session.sessionKey } } };
  let asked = 0;
  const sdk = { delegateCompactionToRuntime: async (params: CompactParams) => { asked++; assert.equal(params.sessionId, "id-1"); return answer; } };
  const { engine } = setup(async (method, _params, id, sidecar) => {
    if (method !== "compact") return {};
    const reply = await sidecar.ask("host.compact", { call: id, session: {} });
    assert.deepEqual(reply["result"], { ok: true, compacted: true, summary: "s", firstKeptEntryId: "e7", tokensBefore: 100, tokensAfter: 10, delegated: true });
    return { ok: true, compacted: true, tokensBefore: 100, tokensAfter: 10, delegated: true };
  }, { sdk });
  assert.equal(await engine.compact({ ...session }), answer);
  assert.equal(asked, 1);
});

test("what a compaction names reaches the host: the first kept entry, and the session that goes on", async () => {
  const done = { ok: true, compacted: true, summary: "s", firstKeptEntryId: "e7", tokensBefore: 100, tokensAfter: 10 };
  const common = { summary: "s", firstKeptEntryId: "e7", tokensBefore: 100, tokensAfter: 10 };
  for (const [successor, more] of [
    [undefined, {}],
    [{ agent: "main", session: "agent:main:next" }, { sessionTarget: { agentId: "main", sessionKey: "agent:main:next" } }],
    [{ agent: "main", session: "id-2" }, { sessionId: "id-2", sessionTarget: { agentId: "main", sessionId: "id-2" } }],
  ] as const) {
    const { engine } = setup(() => ({ ...done, ...(successor ? { successor } : {}) }));
    assert.deepEqual(await engine.compact({ ...session }), { ok: true, compacted: true, result: { ...common, ...more } });
  }
});

test("a session without a key goes on as another one where the host's compaction changed its transcript", async () => {
  const sdk = { delegateCompactionToRuntime: async () => ({ ok: true, compacted: true, result: { tokensBefore: 9, tokensAfter: 1, sessionId: "id-2" } }) };
  const { engine } = setup(async (method, _params, id, sidecar) => {
    if (method !== "compact") return {};
    const reply = await sidecar.ask("host.compact", { call: id, session: {} });
    assert.deepEqual(reply["result"], { ok: true, compacted: true, tokensBefore: 9, tokensAfter: 1, successor: { agent: "main", session: "id-2" }, delegated: true });
    return reply["result"];
  }, { sdk });
  assert.equal((await engine.compact({ sessionId: "id-1" })).result?.sessionId, "id-2");
});

test("the host's model: asked through the call that lends it, its errors stay here", async () => {
  const replies: Params[] = [];
  const { engine } = setup(async (method, _params, id, sidecar) => {
    if (method === "maintain") replies.push(await sidecar.ask("host.complete", { call: id, prompt: "p", system: "s", maxTokens: 5 }));
    return {};
  });
  const lend = (complete: NonNullable<RuntimeContext["llm"]>["complete"]): RuntimeContext => ({ llm: { complete }, allowDeferredCompactionExecution: true });
  await engine.maintain({ ...session, runtimeContext: lend(async (params) => { assert.equal(params.systemPrompt, "s"); return { text: "t", usage: { inputTokens: 3 } }; }) });
  await engine.maintain({ ...session, runtimeContext: lend(async () => { throw new Error("key sk-123 is wrong"); }) });
  await engine.maintain({ ...session, runtimeContext: { allowDeferredCompactionExecution: true } });
  assert.deepEqual(replies[0]?.["result"], { text: "t", inputTokens: 3 });
  assert.ok(!JSON.stringify(replies[1]).includes("sk-123"));
  assert.equal((replies[2]?.["error"] as Params)["code"], -32016);
});

test("maintenance waits for the background", async () => {
  const { engine, sidecar } = setup(passing);
  await engine.bootstrap({ ...session });
  await engine.maintain({ ...session });
  assert.equal(sidecar.calls("maintain").length, 0);
  await engine.commitTurn({ ...session, advancementKey: "k", messages: [user("hi")] });
  await engine.maintain({ ...session });
  assert.equal(sidecar.calls("maintain").length, 1);
});

test("subagents: prepared, rolled back, ended", async () => {
  const { engine, sidecar } = setup((method) => (method === "prepareSubagentSpawn" ? { spawnId: "s-1" } : {}));
  const spawn = await engine.prepareSubagentSpawn({ parentSessionKey: "agent:main:main", childSessionKey: "agent:helper:subagent:1", contextMode: "fork", ttlMs: 1000.5 });
  await spawn?.rollback();
  await engine.onSubagentEnded({ childSessionKey: "agent:helper:subagent:1", reason: "completed" });
  assert.deepEqual(sidecar.calls("prepareSubagentSpawn").map(({ parent, child, contextMode, ttlMs }) => ({ parent, child, contextMode, ttlMs })), [
    { parent: { agent: "main", session: "agent:main:main" }, child: { agent: "helper", session: "agent:helper:subagent:1" }, contextMode: "fork", ttlMs: 1000 },
  ]);
  assert.equal(sidecar.calls("rollbackSubagentSpawn")[0]?.["spawnId"], "s-1");
  assert.equal(sidecar.calls("onSubagentEnded").length, 1);
});

test("a preparation names the transcripts of parent and child, as far as the host does", async () => {
  const { engine, sidecar } = setup(() => ({ spawnId: "s-1" }));
  const keys = { parentSessionKey: "agent:main:main", childSessionKey: "agent:main:subagent:1" };
  const named = { parentSessionId: "id-1", parentSessionFile: "agent:main:main", childSessionId: "id-2", childSessionFile: "/t/id-2.jsonl" };
  await engine.prepareSubagentSpawn({ ...keys, ...named });
  // An isolated child of OpenClaw 2026.9.6 has no ids; what the sidecar would refuse does not cost the preparation.
  await engine.prepareSubagentSpawn({ ...keys, parentSessionId: undefined, parentSessionFile: "agent:main:main", childSessionId: "x".repeat(1025), childSessionFile: "x".repeat(4097) });
  const sent = sidecar.calls("prepareSubagentSpawn").map(({ parentSessionId, parentSessionFile, childSessionId, childSessionFile }) => ({ parentSessionId, parentSessionFile, childSessionId, childSessionFile }));
  assert.deepEqual(sent, [named, { parentSessionId: undefined, parentSessionFile: "agent:main:main", childSessionId: undefined, childSessionFile: undefined }]);
});

test("hosts that do not commit turns", async () => {
  const { engine, sidecar } = setup(() => ({ ingested: 2 }));
  const all = [user("old"), assistant("old"), user("new"), assistant("new")];
  await engine.afterTurn({ ...session, messages: all, prePromptMessageCount: 2 });
  assert.deepEqual(sidecar.calls("afterTurn")[0]?.["messages"], all.slice(2));
  assert.deepEqual(await engine.ingestBatch({ ...session, messages: all }), { ingestedCount: 2 });
  assert.deepEqual(await engine.ingest({ ...session, message: user("x"), isHeartbeat: true }), { ingested: true });
  assert.equal(sidecar.calls("ingest")[0]?.["heartbeat"], true);
  assert.equal(typeof sidecar.calls("ingest")[0]?.["idempotencyKey"], "string");
});

test("an aborted compaction is cancelled there and rejected here", async () => {
  const controller = new AbortController();
  const { engine, sidecar } = setup((method) => (method === "compact" ? silence : {}));
  const compaction = engine.compact({ ...session, abortSignal: controller.signal });
  while (sidecar.calls("compact").length === 0) await settle();
  controller.abort();
  await assert.rejects(compaction, { name: "AbortError" });
  assert.equal(sidecar.calls("rpc.cancel").length, 1);
});

test("a turn in a session that the engine knows does not wait for its bootstrap, and dispose does", async () => {
  const bootstraps: (() => void)[] = [];
  const { next, sidecar } = setup((method) => {
    if (method !== "bootstrap") return { items: [], estimatedTokens: 1, status: "committed" };
    return new Promise((resolve) => { bootstraps.push(() => { resolve({ bootstrapped: true, known: 2 }); }); });
  });
  const first = next().bootstrap({ ...session });
  while (bootstraps.length < 1) await settle();
  bootstraps[0]?.();
  assert.deepEqual(await first, { bootstrapped: true }); // a new session's is waited for

  const engine = next();
  assert.deepEqual(await engine.bootstrap({ ...session }), { bootstrapped: true });
  assert.deepEqual((await engine.assemble({ ...session, messages: [], tokenBudget: 1000 })).messages, []);
  assert.deepEqual(sidecar.received.slice(-2).map((call) => call.method), ["bootstrap", "assemble"]); // in this order
  let gone = false;
  const disposed = engine.dispose().then(() => { gone = true; });
  await settle();
  assert.equal(gone, false);
  bootstraps[1]?.();
  await disposed;
});
