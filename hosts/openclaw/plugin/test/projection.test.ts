import assert from "node:assert/strict";
import { test } from "node:test";

import type { AssembleParams } from "../src/host-types.js";
import type { Params } from "./fake-sidecar.js";
import { assistant, session, setup, user } from "./setup.js";

/** A sidecar that shows everything, in the epoch that is set. */
function engineAt(): { answer: (method: string, params: Params) => unknown; epoch: number; broken: boolean } {
  const engine = {
    epoch: 0,
    broken: false,
    answer: (method: string, params: Params): unknown => {
      if (method !== "assemble") return { status: "committed", bootstrapped: true };
      if (engine.broken) throw new Error("out of order");
      const { skipped = 0, messages, digest } = params["transcript"] as { skipped?: number; messages: unknown[]; digest: string };
      const count = skipped + messages.length;
      return { items: [{ from: 0, to: count }], estimatedTokens: 10, promptAuthority: "assembled", projectionEpoch: engine.epoch, output: { count, digest: `out:${digest}` } };
    },
  };
  return engine;
}

const on = (id: string): AssembleParams => ({
  ...session, messages: [user("one"), assistant("two")], prompt: "three?", tokenBudget: 8000,
  runtimeSettings: { executionHost: { id, label: id }, limits: { promptTokenBudget: 8000, maxOutputTokens: null } },
});
const codex = on("codex-app-server");

test("where Codex runs the model, its thread is kept for as long as the engine's view only grows", async () => {
  const engine = engineAt();
  const { next } = setup(engine.answer);
  const told = async (): Promise<unknown> => (await next().assemble(codex)).contextProjection;
  assert.deepEqual(await told(), { mode: "thread_bootstrap", epoch: "0" });
  assert.deepEqual(await told(), { mode: "thread_bootstrap", epoch: "0" });
  engine.epoch = 7;
  assert.deepEqual(await told(), { mode: "thread_bootstrap", epoch: "7" });
  // What is in the thread already stays there while the engine is away.
  engine.broken = true;
  assert.deepEqual(await told(), { mode: "thread_bootstrap", epoch: "7" });
});

test("an engine that never answered begins no thread", async () => {
  const engine = engineAt();
  engine.broken = true;
  const result = await setup(engine.answer).engine.assemble(codex);
  assert.equal(result.messages.length, 2);
  assert.equal(result.contextProjection, undefined);
});

test("other hosts are told nothing of threads, nor is Codex where the configuration says so", async () => {
  const elsewhere = await setup(engineAt().answer).engine.assemble(on("openclaw-embedded"));
  assert.equal("contextProjection" in elsewhere, false);
  const off = await setup(engineAt().answer, { config: { codexProjection: "turn" } }).engine.assemble(codex);
  assert.equal("contextProjection" in off, false);
});

test("the host asks again for Codex within a turn, with its own list: that is no tool loop", async () => {
  const { engine, sidecar } = setup(engineAt().answer);
  await engine.assemble(codex);
  await engine.assemble(codex);
  assert.deepEqual(sidecar.calls("assemble").map((params) => params["call"]), ["prompt", "prompt"]);
});
