import assert from "node:assert/strict";
import { test } from "node:test";

import { Agents } from "../src/agents.js";
import { newEngine } from "../src/engine.js";
import type { ContextEngine } from "../src/host-types.js";
import { contextTools } from "../src/tools.js";
import { FakeSidecar, Refusal } from "./fake-sidecar.js";
import { session, setup } from "./setup.js";

const host = {
  gateway: { auth: { token: "s3cr3t" } },
  channels: {
    defaults: { groupPolicy: "open" },
    telegram: {
      enabled: true, botToken: "s3cr3t", historyLimit: 50, dmHistoryLimit: 20, dms: { alice: { historyLimit: 5, name: "s3cr3t" }, bob: {} },
      accounts: { work: { botToken: "s3cr3t", dmHistoryLimit: 9, dms: { carol: { historyLimit: 0 } } }, idle: { botToken: "s3cr3t" } },
    },
    slack: { historyLimit: "s3cr3t", dms: ["s3cr3t"], accounts: { main: "s3cr3t", other: { dmHistoryLimit: { token: "s3cr3t" } } } },
    irc: true,
  },
};
const picked = {
  telegram: { historyLimit: 50, dmHistoryLimit: 20, dms: { alice: { historyLimit: 5 } }, accounts: { work: { dmHistoryLimit: 9, dms: { carol: { historyLimit: 0 } } } } },
  slack: { historyLimit: "", dms: [], accounts: { main: "", other: { dmHistoryLimit: {} } } },
  irc: false,
};
const folders = (agent: string): object => ({ agentDir: `/state/agents/${agent}/agent`, workspaceDir: `/ws/${agent}` });
const answers = (method: string): unknown => (method === "assemble" ? { items: [], estimatedTokens: 1 } : method === "bootstrap" ? { bootstrapped: true, known: 1 } : { status: "committed" });

test("of the host's configuration the limits of history cross, and nothing else", () => {
  const agents = new Agents();
  agents.configured(host);
  const facts = agents.facts("main");
  assert.deepEqual(facts, { channels: picked });
  assert.ok(!JSON.stringify(facts).includes("s3cr3t"));
  agents.configured({ channels: { telegram: { botToken: "s3cr3t" } } });
  assert.deepEqual(agents.facts("main"), {});
  agents.configured({ channels: JSON.parse('{"__proto__": {"historyLimit": 1}, "constructor": {"historyLimit": 2}}') as object });
  assert.equal(JSON.stringify(agents.facts("main")), '{"channels":{"__proto__":{"historyLimit":1},"constructor":{"historyLimit":2}}}');
});

test("a sidecar knows an agent's folders before the first call about it, and what the engine is made of from its first call on", async () => {
  const { sidecar, shared } = setup(answers);
  shared.connection.agents.configured(host);
  shared.connection.agents.made({ config: host, ...folders("main") });
  const engine = newEngine(shared, "openbrain", true, { config: host, ...folders("main") });
  await engine.bootstrap(session);
  await engine.assemble({ ...session, messages: [], tokenBudget: 1000 });
  const other = newEngine(shared, "openbrain", true, { config: host, ...folders("other") });
  await other.commitTurn({ sessionId: "id-2", sessionKey: "agent:other:main", advancementKey: "k", messages: [] });
  assert.deepEqual(sidecar.received.map((c) => c.method), ["initialize", "factory", "bootstrap", "assemble", "factory", "commitTurn"]);
  assert.deepEqual(sidecar.calls("initialize")[0]?.["factory"], { ...folders("main"), channels: picked });
  const told = sidecar.calls("factory").map((params) => ({ ...params, deadlineMs: 0 }));
  assert.deepEqual(told, [{ agent: "main", ...folders("main"), channels: picked, deadlineMs: 0 }, { agent: "other", ...folders("other"), channels: picked, deadlineMs: 0 }]);
  assert.ok(!sidecar.text.join("").includes("s3cr3t"));
});

test("another sidecar is told again, and so is one whose host was configured anew; folders stay", async () => {
  const { sidecar, shared, next } = setup(answers);
  const booted = async (engine: ContextEngine): Promise<void> => { await engine.bootstrap(session); await engine.dispose(); };
  shared.connection.agents.configured(host);
  await booted(newEngine(shared, "openbrain", true, folders("main")));
  sidecar.die();
  await booted(next());
  assert.equal(sidecar.calls("factory").length, 2);
  shared.connection.agents.configured({ channels: { irc: { historyLimit: 3 } } });
  await booted(newEngine(shared, "openbrain", true, { agentDir: "/elsewhere" }));
  await booted(next());
  const [, , last] = sidecar.calls("factory");
  assert.equal(sidecar.calls("factory").length, 3);
  assert.deepEqual([last?.["agentDir"], last?.["channels"]], ["/state/agents/main/agent", { irc: { historyLimit: 3 } }]);
});

test("calls that no engine was made for ask the host where the agent's folders are", async () => {
  const { sidecar, shared } = setup(() => ({ found: [], text: "" }));
  shared.connection.agents.configured(host, { resolveAgentDir: (config, agent) => (config === host && agent !== "gone" ? `/state/agents/${agent}/agent` : assert.fail()), resolveAgentWorkspaceDir: () => "relative" });
  for (const agent of ["main", "gone"]) {
    await contextTools(shared, { sessionKey: `agent:${agent}:main` })?.context_search.execute("1", { query: "x" });
  }
  assert.deepEqual(sidecar.calls("factory").map((p) => [p["agent"], p["agentDir"], p["workspaceDir"]]), [["main", "/state/agents/main/agent", undefined], ["gone", undefined, undefined]]);
});

test("what cannot be used of the host's limits is said, and costs nothing", async () => {
  const sidecar = new FakeSidecar((method) => (method === "factory" ? { ignored: ["channels.irc: want an object, found a boolean"] } : answers(method)));
  const { log, shared } = setup(answers, { sidecar });
  shared.connection.agents.configured(host);
  for (let i = 0; i < 2; i++) assert.deepEqual(await newEngine(shared, "openbrain", true, folders("main")).bootstrap(session), { bootstrapped: true });
  assert.deepEqual(log, ["openclaw-openbrain-context: ignored in the host's configuration: channels.irc: want an object, found a boolean"]);
  const refusing = new FakeSidecar((method) => { if (method === "factory") throw new Refusal(-32602, {}, "agentDir: refused"); return answers(method); });
  const other = setup(answers, { sidecar: refusing });
  assert.deepEqual(await newEngine(other.shared, "openbrain", true, folders("main")).bootstrap(session), { bootstrapped: true });
  assert.match(other.log.join(), /does not take what the host says about the agent: agentDir: refused/);
});

test("a sidecar that somebody else runs, or that does not ask, is told nothing", async () => {
  for (const how of ["socket", "old"]) {
    const { sidecar, shared } = setup(answers, how === "socket" ? { config: { socket: "/run/ce.sock" } } : {});
    if (how === "old") sidecar.methods = [];
    await newEngine(shared, "openbrain", true, folders("main")).bootstrap(session);
    assert.equal(sidecar.calls("factory").length, 0, how);
    assert.equal(sidecar.calls("initialize")[0]?.["factory"] === undefined, how === "socket", how);
  }
});
