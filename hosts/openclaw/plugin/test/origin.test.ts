import assert from "node:assert/strict";
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";

import { register } from "../src/index.js";
import type { ContextEngine, Logger, PluginApi } from "../src/host-types.js";
import { named, origin } from "../src/origin.js";

function recorder(): { logger: Logger; log: string[] } {
  const log: string[] = [];
  const say = (m: string): void => void log.push(m);
  return { log, logger: { debug: say, info: say, warn: say, error: say } };
}

test("a line's origin: the host's profile and port, as far as they are plain, and the processes", () => {
  for (const [env, sidecar, want] of [
    [{ OPENCLAW_GATEWAY_PORT: "18789" }, undefined, "gateway 18789, pid 7"],
    [{ OPENCLAW_GATEWAY_PORT: "18789", OPENCLAW_PROFILE: "work" }, 9, "gateway work:18789, pid 7, sidecar 9"],
    [{ OPENCLAW_PROFILE: "work" }, undefined, "gateway work, pid 7"],
    [{}, 9, "pid 7, sidecar 9"],
    [{ OPENCLAW_GATEWAY_PORT: "http://user:secret@host", OPENCLAW_PROFILE: "a\nb" }, undefined, "pid 7"],
    [{ OPENCLAW_PROFILE: "x".repeat(65) }, undefined, "pid 7"],
  ] as const) assert.equal(origin(env, 7, sidecar), want);
});

test("every line of a text is named, in every level that the host has", () => {
  const { logger, log } = recorder();
  const env = { OPENCLAW_GATEWAY_PORT: "1", OPENBRAIN_API_KEY: "s3cr3t" };
  const own = named(logger, env, 7);
  own.debug?.("a");
  own.info("b\nc");
  own.warn("d");
  own.of(9).error("e");
  assert.deepEqual(log, ["[gateway 1, pid 7] a", "[gateway 1, pid 7] b\n[gateway 1, pid 7] c", "[gateway 1, pid 7] d", "[gateway 1, pid 7, sidecar 9] e"]);
  env.OPENCLAW_GATEWAY_PORT = "2"; // the gateway started meanwhile
  own.info("f");
  assert.equal(log.at(-1), "[gateway 2, pid 7] f");
  assert.equal(named({ info: logger.info, warn: logger.warn, error: logger.error }).debug, undefined);
});

test("whatever the plugin and its sidecar say in a process bears its name", async (t) => {
  const folder = mkdtempSync(join(tmpdir(), "origin-"));
  t.after(() => { rmSync(folder, { recursive: true }); });
  const program = join(folder, "sidecar");
  writeFileSync(program, "#!/bin/sh\necho 'level=WARN msg=\"a warning\"' >&2\necho 'level=INFO msg=news' >&2\necho 'something else' >&2\nexit 1\n");
  chmodSync(program, 0o755);
  const { logger, log } = recorder();
  const engines = new Map<string, (context: unknown) => Promise<ContextEngine>>();
  let stop: () => Promise<void> = async () => undefined;
  const api = (slot: string): PluginApi => ({
    pluginConfig: { command: program, allowLaunch: true, engine: "composed" }, config: { plugins: { slots: { contextEngine: slot } } }, logger,
    registerContextEngine: (id, factory) => void engines.set(id, factory), registerService: (service) => { stop = service.stop; },
  });
  register(api("legacy"));
  register(api("openbrain"));
  const engine = await engines.get("openbrain")?.({});
  await engine?.assemble({ sessionId: "s", sessionKey: "agent:main:s", messages: [], tokenBudget: 1000, prompt: "x" }).catch(() => undefined);
  await stop();
  const own = new RegExp(`^\\[(gateway \\S+, )?pid ${process.pid}(, sidecar \\d+)?\\] openclaw-openbrain-context: `);
  assert.deepEqual(log.filter((line) => !own.test(line)), []);
  for (const part of ["installed, but not used", "a warning", "news", "something else", "assemble: "]) assert.ok(log.some((line) => line.includes(part)), `${part} is missing: ${log.join("\n")}`);
  assert.deepEqual(log.filter((line) => line.includes("sidecar: ") && !/, sidecar \d+\] /.test(line)), []);
});
