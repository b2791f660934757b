import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { engineIds, lacksCredentials, readSettings } from "../src/config.js";
import { sidecarArguments, sidecarEnvironment } from "../src/launch.js";
import { MISSING_CREDENTIALS } from "../src/names.js";

interface Manifest { id: string; kind: string; configSchema: { additionalProperties: boolean; properties: Record<string, { description?: string; default?: unknown }> } }
const manifest = JSON.parse(readFileSync("openclaw.plugin.json", "utf8")) as Manifest;

test("the manifest and the code know the same settings and defaults", () => {
  const { properties } = manifest.configSchema;
  assert.equal(manifest.configSchema.additionalProperties, false);
  for (const [key, schema] of Object.entries(properties)) {
    assert.ok(schema.description, `${key} has no description`);
    if (schema.default !== undefined) readSettings({ [key]: schema.default }, {}); // accepted
  }
  assert.throws(() => readSettings({ nosuch: 1 }, {}), (error: Error) => {
    const known = /known: (.*)\)/.exec(error.message)?.[1]?.split(", ");
    assert.deepEqual(known, Object.keys(properties).sort());
    return true;
  });
  const defaults = readSettings({}, {});
  assert.equal(defaults.recentMessages, properties["recentMessages"]?.default);
  assert.equal(defaults.semanticSearchLimit, properties["semanticSearchLimit"]?.default);
  assert.equal(defaults.subagentRecentMessages, properties["subagentRecentMessages"]?.default);
  // What is started, and whether, depends on what is installed: the host must not fill either in.
  for (const key of ["command", "allowLaunch"]) assert.equal(properties[key]?.default, undefined);
  assert.equal(defaults.tools, properties["tools"]?.default);
  for (const [key, value] of Object.entries(defaults.timeouts)) assert.equal(value, properties[`${key}TimeoutMs`]?.default, key);
});

test("the configuration wins over the environment", () => {
  const env = { OPENBRAIN_URL: "http://127.0.0.1:1", OPENBRAIN_API_KEY: "from-env" };
  assert.equal(readSettings({}, env).apiKey, "from-env");
  assert.equal(readSettings({ apiKey: "from-config" }, env).apiKey, "from-config");
  assert.equal(lacksCredentials(readSettings({}, env)), false);
  assert.equal(lacksCredentials(readSettings({}, {})), true);
  assert.equal(lacksCredentials(readSettings({ baseUrl: "http://127.0.0.1:1" }, {})), true);
  assert.equal(lacksCredentials(readSettings({ engine: "composed" }, {})), false);
  assert.equal(lacksCredentials(readSettings({ configFile: "/etc/engine.yaml" }, {})), false);
  assert.equal(MISSING_CREDENTIALS, "openclaw-openbrain-context: baseUrl and apiKey are required. Set them in your openclaw.json plugin config.");
});

test("wrong settings name the key and never the value", () => {
  for (const raw of [{ recentMessages: "secret-value" }, { recentMessages: -1 }, { apiKey: 5 }, { allowLaunch: "yes" }, { args: ["ok", 5] }, { assembleTimeoutMs: 1 }, { engine: "legacy" }]) {
    const [key = ""] = Object.keys(raw);
    assert.throws(() => readSettings(raw, {}), (error: Error) => error.message.includes(key) && !error.message.includes("secret-value"));
  }
});

test("the engine is registered under the plugin's id, the package's name and its own", () => {
  assert.deepEqual(engineIds(readSettings({}, {})), ["openbrain", "openclaw-openbrain-context"]);
  assert.deepEqual(engineIds(readSettings({ engine: "composed" }, {})), ["openbrain", "openclaw-openbrain-context", "composed"]);
  assert.equal(manifest.id, "openbrain");
});

test("a sidecar gets what it needs of the environment, and nothing of the host's", () => {
  const env = { PATH: "/bin", HOME: "/home/x", OPENAI_API_KEY: "model-key", OPENCLAW_GATEWAY_TOKEN: "token", SUMMARY_KEY: "s" };
  const own = sidecarEnvironment(readSettings({ baseUrl: "http://127.0.0.1:8000", apiKey: "brain-key", source: "mine", recentMessages: 7, passEnv: ["SUMMARY_KEY"] }, env), env);
  assert.deepEqual(own, {
    PATH: "/bin", HOME: "/home/x", SUMMARY_KEY: "s", OPENBRAIN_URL: "http://127.0.0.1:8000", OPENBRAIN_API_KEY: "brain-key", CONTEXTENGINE_ENGINE: "openbrain",
    CONTEXTENGINE_ENGINE__RECENT_MESSAGES: "7", CONTEXTENGINE_ENGINE__SUBAGENT_RECENT_MESSAGES: "8", CONTEXTENGINE_ENGINE__SEMANTIC_SEARCH_LIMIT: "10", CONTEXTENGINE_ENGINE__SOURCE: "mine",
  });
  const file = sidecarEnvironment(readSettings({ configFile: "/etc/engine.yaml" }, {}), env);
  assert.deepEqual(file, { PATH: "/bin", HOME: "/home/x", CONTEXTENGINE_CONFIG: "/etc/engine.yaml" });
  assert.deepEqual(sidecarArguments(readSettings({ apiKey: "brain-key" }, {})), ["serve", "--stdio"]);
});
