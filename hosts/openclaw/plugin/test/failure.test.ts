import assert from "node:assert/strict";
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test, type TestContext } from "node:test";

import { readSettings } from "../src/config.js";
import { Connection } from "../src/connection.js";
import type { CompactResult, ContextEngine, PluginApi } from "../src/host-types.js";
import { register } from "../src/index.js";
import { launch, sidecarEnvironment } from "../src/launch.js";
import { sharedFor } from "../src/shared.js";
import { Refusal, type Params } from "./fake-sidecar.js";
import { assistant, session, setup, user, type Setup } from "./setup.js";

const prompt = { runtimeSettings: { limits: { promptTokenBudget: 8000, maxOutputTokens: 4000 } }, tokenBudget: 8000, prompt: "and now?" };
const history = [user("one"), assistant("two")];
const unknown = 'error: registry: load "environment": engine: unknown engine "nosuch" (known: composed, legacy, openbrain)';

/** An engine that fails at everything, on a host that would compact and has a folder to keep turns in. */
function failing(t: TestContext, config: Params): Setup & { delegated: () => number } {
  const stateDir = mkdtempSync(join(tmpdir(), "state-"));
  t.after(() => { rmSync(stateDir, { recursive: true }); });
  let delegated = 0;
  const delegateCompactionToRuntime = async (): Promise<CompactResult> => { delegated++; return { ok: true, compacted: true, result: { tokensBefore: 2, tokensAfter: 1 } }; };
  return { ...setup(() => { throw new Refusal(-32603, {}, "disk on fire"); }, { config, sdk: { resolveStateDir: () => stateDir, delegateCompactionToRuntime } }), delegated: () => delegated };
}

/** Every call whose outcome somebody waits for. */
const calls = (engine: ContextEngine): Record<string, () => Promise<unknown>> => ({
  bootstrap: () => engine.bootstrap({ ...session }),
  assemble: () => engine.assemble({ ...session, ...prompt, messages: history }),
  commitTurn: () => engine.commitTurn({ ...session, advancementKey: "k", messages: history }),
  compact: () => engine.compact({ ...session }),
  afterTurn: () => engine.afterTurn({ ...session, messages: history, prePromptMessageCount: 0 }),
  ingestBatch: () => engine.ingestBatch({ ...session, messages: history }),
  ingest: () => engine.ingest({ ...session, message: user("x") }),
  prepareSubagentSpawn: () => engine.prepareSubagentSpawn({ parentSessionKey: "agent:main:main", childSessionKey: "agent:main:subagent:1" }),
});

test("strict: the host gets every error, and nothing stands in for the engine", async (t) => {
  const { next, shared, delegated, log } = failing(t, { failure: "strict" });
  for (const [name, call] of Object.entries(calls(next()))) await assert.rejects(call(), /disk on fire/, name);
  assert.equal(delegated(), 0);
  assert.deepEqual(await shared.owed.sessions(), []); // the host keeps the turn
  const [line = ""] = log.filter((one) => one.includes("this is said once"));
  assert.match(line, /failure is strict: until the engine is back, the host gets the errors/);
  assert.doesNotMatch(line, /newest messages/);
  // Nobody waits for these, and a throw would take the engine out of service in the host.
  const engine = next();
  await engine.maintain({ ...session, runtimeContext: { allowDeferredCompactionExecution: true } });
  await engine.onSubagentEnded({ childSessionKey: "agent:main:subagent:1", reason: "completed" });
});

test("degrade is the default: none of these throws, the host compacts and the turn is kept", async (t) => {
  for (const config of [{}, { failure: "degrade" }]) {
    const { next, shared, delegated } = failing(t, config);
    for (const call of Object.values(calls(next()))) await call();
    assert.equal(delegated(), 1);
    assert.equal((await shared.owed.sessions()).length, 1);
  }
});

test("strict: an engine that answers in another's place is an error too", async () => {
  const { engine } = setup((method) => (method === "assemble" ? { items: [{ from: 0, to: 2 }], degraded: "store" } : {}), { config: { failure: "strict" } });
  await assert.rejects(engine.assemble({ ...session, ...prompt, messages: history }), /the engine is degraded: store/);
});

test("strict goes to the sidecar where no file decides, and other words are refused", () => {
  const told = (raw: Params): string | undefined => sidecarEnvironment(readSettings(raw, {}), {})["CONTEXTENGINE_FAILURE"];
  assert.deepEqual([told({ failure: "strict" }), told({}), told({ failure: "strict", configFile: "/etc/engine.yaml" })], ["strict", undefined, undefined]);
  assert.throws(() => readSettings({ failure: "loud" }, {}), /config: failure: must be degrade or strict/);
});

/** A program that says why it cannot be configured, as contextengine does, until it is mended. */
function program(t: TestContext, code = 2, says = unknown): { path: string; mend: () => void } {
  const folder = mkdtempSync(join(tmpdir(), "program-"));
  t.after(() => { rmSync(folder, { recursive: true }); });
  const path = join(folder, "contextengine");
  const write = (text: string): void => {
    writeFileSync(path, `#!/bin/sh\n${text}\n`);
    chmodSync(path, 0o755);
  };
  write(`echo '${says}' >&2; exit ${code}`);
  return { path, mend: () => { write(`read -r line; echo '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"1","engine":{"id":"composed","ownsCompaction":false}}}'; cat >/dev/null`); } };
}

test("a program that ends at once says why", async (t) => {
  const channel = launch(program(t).path, readSettings({}, {}), {}, () => undefined);
  assert.equal(await new Promise((resolve) => { channel.onClose(resolve); }), `it ended with code 2: ${unknown}`);
  assert.equal(channel.misconfigured?.(), true);
  const crashed = launch(program(t, 2, "goroutine 1 [running]:").path, readSettings({}, {}), {}, () => undefined);
  await crashed.gone;
  assert.equal(crashed.misconfigured?.(), false);
});

test("degrade: an engine that does not exist leaves the turn to the host's own, says why, and is there as soon as it can be made", async (t) => {
  const { path, mend } = program(t);
  const raw = { engine: "nosuch", allowLaunch: true, command: path };
  const quiet = { info: () => undefined, warn: () => undefined, error: () => undefined };
  const factories = new Map<string, (context: unknown) => Promise<ContextEngine>>();
  const api = (pluginConfig: Params): PluginApi => ({ pluginConfig, config: { plugins: { slots: { contextEngine: "openbrain" } } }, logger: quiet, registerContextEngine: (id, factory) => void factories.set(id, factory) });
  register(api(raw));
  assert.deepEqual([...factories.keys()], ["openbrain", "openclaw-openbrain-context", "nosuch"]);
  const make = (): Promise<ContextEngine> => factories.get("openbrain")?.({}) ?? assert.fail();
  const refused = { name: "Unusable", message: /^openclaw-openbrain-context: the engine cannot be used as configured: .*unknown engine "nosuch" \(known: composed, legacy, openbrain\).*; mend the configuration and restart the gateway/ };
  await assert.rejects(make(), refused);
  await assert.rejects(make(), refused); // also while it is left alone
  mend();
  let engine: ContextEngine | undefined;
  for (let i = 0; i < 100 && engine === undefined; i++) {
    await new Promise((resolve) => { setTimeout(resolve, 50); });
    engine = await make().catch(() => undefined);
  }
  assert.equal(engine?.info["ownsCompaction"], false);
  await sharedFor(readSettings(raw, process.env), quiet, undefined).connection.stop();

  // Strict leaves nothing to another engine: the turn's calls fail.
  const { path: again } = program(t);
  register(api({ ...raw, command: again, failure: "strict" }));
  await assert.rejects((await make()).bootstrap({ ...session }), /unknown engine "nosuch"/);
});

test("a program that fails in another way is the plugin's to stand in for", async (t) => {
  const settings = readSettings({ allowLaunch: true, command: program(t, 1).path }, {});
  const connection = new Connection({ settings, env: process.env, logger: { info: () => undefined, warn: () => undefined, error: () => undefined } });
  assert.equal(await connection.describe(5000), undefined);
  assert.equal(connection.unusable, undefined);
});
