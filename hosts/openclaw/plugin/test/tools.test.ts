import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import type { AgentTool, PluginApi, ToolContext } from "../src/host-types.js";
import { register } from "../src/index.js";
import { contextTools, toolNames, type ToolName } from "../src/tools.js";
import { FakeSidecar, Refusal, silence, type Answer, type Params } from "./fake-sidecar.js";
import { setup, type Setup } from "./setup.js";

const context: ToolContext = { sessionKey: "agent:main:work", sessionId: "id-1", agentId: "main" };
const entry = (id: string, excerpt: string, more: Params = {}): Params => ({ id, session: "agent:main:work", turn: 3, seq: 4, role: "user", type: "message", time: "2026-01-01T10:02:03Z", tokens: 12, excerpt, whole: true, ...more });

async function call(answer: Answer, name: ToolName, args: unknown, options: { context?: ToolContext; config?: Params } = {}): Promise<Setup & { text: string; sent: Params | undefined; details: Params }> {
  const all = setup(answer, { config: options.config ?? {} });
  const tool = contextTools(all.shared, options.context ?? context)?.[name];
  assert.ok(tool);
  const { content, details } = await tool.execute("call-1", args);
  assert.equal(content.length, 1);
  return { ...all, text: content[0]?.text ?? "", sent: all.sidecar.received.find((c) => c.method !== "initialize")?.params, details };
}

test("the manifest declares what is registered", () => {
  const manifest = JSON.parse(readFileSync("openclaw.plugin.json", "utf8")) as { contracts: { tools: string[] }; toolMetadata: Record<string, { optional?: boolean; replaySafe?: boolean; profiles: string[] }> };
  assert.deepEqual(manifest.contracts.tools, [...toolNames]);
  assert.deepEqual(Object.keys(manifest.toolMetadata), [...toolNames]);
  for (const meta of Object.values(manifest.toolMetadata)) assert.ok(meta.replaySafe === true && meta.optional === undefined && meta.profiles.includes("coding"));
});

test("tools are offered to runs of sessions where the engine is chosen, and can be switched off", () => {
  const offered = (pluginConfig: Params, slot: string, run: ToolContext = context): (AgentTool | null)[] => {
    const factories: ((c: ToolContext) => AgentTool | null)[] = [];
    const quiet = (): void => undefined;
    const api: PluginApi = {
      registrationMode: "tool-discovery", pluginConfig, config: { plugins: { slots: { contextEngine: slot } } }, logger: { info: quiet, warn: quiet, error: quiet },
      registerContextEngine: quiet, registerTool: (factory, { name }) => { assert.equal(name, toolNames[factories.length]); factories.push(factory); },
    };
    register(api);
    return factories.map((factory) => factory(run));
  };
  const names = (tools: (AgentTool | null)[]): (string | undefined)[] => tools.map((t) => t?.name);
  const none = [undefined, undefined, undefined];
  assert.deepEqual(names(offered({ engine: "composed" }, "openbrain")), [...toolNames]);
  assert.deepEqual(names(offered({ engine: "composed", tools: false }, "openbrain")), none);
  assert.deepEqual(names(offered({ engine: "composed" }, "legacy")), none);
  assert.deepEqual(names(offered({}, "openbrain")), none); // no address, no key
  assert.deepEqual(names(offered({ engine: "composed" }, "openbrain", {})), none);
  for (const tool of offered({ engine: "composed" }, "openbrain")) {
    assert.equal(tool?.catalogMode, "direct-only");
    const { type, properties, required, additionalProperties } = tool.parameters as { type: string; properties: Params; required?: string[]; additionalProperties?: boolean };
    assert.ok(type === "object" && additionalProperties === undefined && (required ?? []).every((key) => key in properties));
    assert.ok(tool.description.length < 300); // every request pays for it
    assert.doesNotMatch(JSON.stringify(tool.parameters), /minimum|maximum/); // what is out of range is brought into it
  }
});

test("a search: the run's own session, whatever the model says", async () => {
  const { sent, text, details } = await call(() => ({ found: [entry("e1", "the <b>fact</b>\n  and more", { whole: false, tokens: 900 }), entry("e2", "other", { session: "agent:main:old" })], next: 2, text: "", tokens: 5 }),
    "context_search", { query: " fact ", limit: "3", since: "2026-01-01", session: "agent:other:main", agent: "other" });
  assert.deepEqual(sent, { session: { agent: "main", session: "agent:main:work" }, query: "fact", limit: 3, from: "2026-01-01T00:00:00.000Z", tokens: 2000, deadlineMs: sent?.["deadlineMs"] });
  assert.ok(text.includes("[2026-01-01 10:02 user, turn 3 #e1]\n> the <b>fact</b>\n>   and more\n"), text); // as it is stored
  assert.ok(text.includes("session agent:main:old #e2]"), text);
  assert.match(text, /#e1 \(900 tokens\)/);
  assert.match(text, /offset 2/);
  assert.deepEqual(details, { ok: true, ids: ["e1", "e2"], next: 2 });
});

test("nothing found is said, with what to try", async () => {
  const { text } = await call(() => ({ found: [], text: "", tokens: 0 }), "context_search", { query: "nobody" });
  assert.match(text, /Nothing is stored that matches "nobody"/);
});

test("an expansion: pages, neighbours, and an id that was copied with its citation", async () => {
  const page = await call(() => ({ found: [entry("e1", "é".repeat(50), { whole: false })], next: 150, total: 400, text: "", tokens: 5 }), "context_expand", { id: "[2026-01-01 10:02 user, turn 3 #e1]", offset: 50 });
  assert.equal(page.sent?.["id"], "e1");
  assert.match(page.text, /^Bytes 50 to 150 of 400\./);
  assert.match(page.text, /context_expand with {"id":"e1","offset":150}/);
  const numbered = await call(() => ({ found: [entry("e1", "all")], total: 3, text: "", tokens: 5 }), "context_expand", { id: 17 });
  assert.equal(numbered.sent?.["id"], "17");
  const last = await call(() => ({ found: [entry("e1", "end", { whole: false })], total: 400, text: "", tokens: 5 }), "context_expand", { id: "#e1", offset: 397 });
  assert.match(last.text, /^Bytes 397 to 400 of 400, the end\./);
  const all = await call(() => ({ found: [entry("e1", "all")], total: 3, text: "", tokens: 5 }), "context_expand", { id: "e1" });
  assert.match(all.text, /^All of the entry\. .*\n\n\[.*#e1\]\n> all$/);
  const around = await call(() => ({ found: [entry("e0", "before"), entry("e1", "it", { whole: false })], next: 2, total: 5, text: "", tokens: 5 }), "context_expand", { id: "e1", before: 1, after: 99 });
  assert.deepEqual([around.sent?.["before"], around.sent?.["after"]], [1, 20]);
  assert.match(around.text, /^2 entries of 5, oldest first\./);
  assert.match(around.text, /{"id":"e1","before":1,"after":20,"offset":2}/);
});

test("a description is bounded", async () => {
  const text = `9 messages in 4 turns.\n${"- leaf #s of 5 messages, 9 tokens\n> head\n".repeat(5000)}`;
  const { text: said, sent } = await call(() => ({ entries: 9, left: 3, summaries: [1], text, tokens: 99 }), "context_describe", undefined);
  assert.deepEqual(Object.keys(sent ?? {}).sort(), ["deadlineMs", "session"]);
  assert.ok(said.startsWith("9 messages in 4 turns.\n- leaf") && said.length < 30_000 && said.includes("are left out"), said.slice(-300));
});

test("an answer is never more than a share of the session's prompt", async () => {
  const sidecar = new FakeSidecar(() => ({ found: [], text: "", tokens: 0 }));
  const { shared } = setup(() => undefined, { sidecar });
  shared.state({ agent: "main", session: "agent:main:work" }).budget.grant(6000, "m");
  const tools = contextTools(shared, context);
  await tools?.context_search.execute("1", { query: "x" });
  await tools?.context_search.execute("2", { query: "x", tokens: 8000 });
  await tools?.context_search.execute("3", { query: "x", tokens: 300 });
  assert.deepEqual(sidecar.calls("search").map((p) => p["tokens"]), [1200, 1200, 300]);
});

test("failures are words that a model can act on", async () => {
  for (const [failure, args, says, warned] of [
    [new Refusal(-32013), { id: "x" }, /no entry with this id/, false],
    [new Refusal(-32602), { id: "x" }, /arguments cannot be used/, false],
    [new Refusal(-32017), { id: "x" }, /cannot look into its history/, true],
    [new Refusal(-32603), { id: "x" }, /failed\. Go on/, true],
    [silence, { id: "x" }, /cannot be reached right now/, true],
    [undefined, { id: " # " }, /id: give what stands behind/, false],
    [undefined, { id: true }, /id: must be a text/, false],
    [undefined, { id: "x", offset: "soon" }, /offset: must be a whole number/, false],
    [{}, { id: "x" }, /failed\. Go on/, true], // an answer that is none
  ] as const) {
    const { text, details, log } = await call(() => { if (failure instanceof Refusal) throw failure; return failure; }, "context_expand", args, { config: { callTimeoutMs: 30 } });
    assert.match(text, says);
    assert.deepEqual(details, { ok: false });
    assert.equal(log.some((line) => line.includes("context_expand")), warned, text);
  }
});

test("a call that is cancelled throws", async () => {
  const { shared } = setup(() => silence);
  const controller = new AbortController();
  const pending = contextTools(shared, context)?.context_search.execute("1", { query: "x" }, controller.signal);
  controller.abort();
  await assert.rejects(pending ?? Promise.resolve(), { name: "AbortError" });
});
