import assert from "node:assert/strict";
import { readFileSync, readdirSync, mkdtempSync, rmSync } from "node:fs";
import { execFileSync } from "node:child_process";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";

import { adviceFor, installationProblems } from "../src/doctor.js";
import { OutOfTime, ProtocolError, Unavailable } from "../src/errors.js";
import plugin, { register } from "../src/index.js";
import type { PluginApi } from "../src/host-types.js";

function api(mode: string, pluginConfig: Record<string, unknown> = {}): { api: PluginApi; engines: string[]; services: string[]; log: string[] } {
  const engines: string[] = [];
  const services: string[] = [];
  const log: string[] = [];
  const say = (m: string): void => void log.push(m);
  return {
    engines, services, log,
    api: {
      registrationMode: mode, pluginConfig, config: { plugins: { slots: { contextEngine: "legacy" } } }, logger: { info: say, warn: say, error: say },
      registerContextEngine: (id) => void engines.push(id), registerService: ({ id }) => void services.push(id),
    },
  };
}

test("only the full registration owns a sidecar", () => {
  const full = api("full");
  register(full.api);
  assert.deepEqual(full.engines, ["openbrain", "openclaw-openbrain-context"]);
  assert.deepEqual(full.services, ["openbrain-sidecar"]);
  assert.ok(full.log.some((line) => line.includes('set it to "openbrain"')));
  for (const mode of ["discovery", "tool-discovery", "cli-metadata"]) {
    const other = api(mode);
    plugin.register(other.api);
    assert.deepEqual([other.engines.length, other.services.length, other.log.length], [2, 0, 0]);
  }
  assert.equal(plugin.id, "openbrain");
});

test("why an installed plugin is not used", () => {
  const ids = ["openbrain"];
  assert.deepEqual(installationProblems({ plugins: { slots: { contextEngine: "openbrain" } } }, ids), []);
  assert.equal(installationProblems({}, ids).length, 1);
  const all = installationProblems({ plugins: { enabled: false, deny: ["openbrain"], allow: ["other"], entries: { openbrain: { enabled: false } }, slots: { contextEngine: "legacy" } } }, ids);
  assert.equal(all.length, 5);
});

test("advice for what goes wrong", () => {
  assert.match(adviceFor(new Unavailable("x")), /doctor/);
  assert.match(adviceFor(new OutOfTime("assemble", 5)), /timeouts/);
  assert.match(adviceFor(new ProtocolError(-32018, "x")), /configuration/);
  assert.equal(adviceFor(new Error("x")), "");
});

test("dist is what the sources build to", () => {
  const out = mkdtempSync(join(tmpdir(), "dist-"));
  try {
    execFileSync(process.execPath, ["node_modules/typescript/bin/tsc", "-p", "tsconfig.json", "--outDir", out]);
    assert.deepEqual(readdirSync("dist").sort(), readdirSync(out).sort());
    for (const name of readdirSync(out)) assert.equal(readFileSync(join("dist", name), "utf8"), readFileSync(join(out, name), "utf8"), name);
  } finally {
    rmSync(out, { recursive: true });
  }
});
