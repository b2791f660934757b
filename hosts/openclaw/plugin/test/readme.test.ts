import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { readSettings } from "../src/config.js";
import { sidecarEnvironment } from "../src/launch.js";

interface Option { type: string; minimum?: number; maximum?: number; enum?: string[]; default?: string | number | boolean }
const readme = readFileSync("README.md", "utf8");
const { properties } = (JSON.parse(readFileSync("openclaw.plugin.json", "utf8")) as { configSchema: { properties: Record<string, Option> } }).configSchema;

/** A part of the README, from its heading to the next one of the same or a higher level. */
function section(heading: string): string {
  const level = heading.indexOf(" ");
  const from = readme.indexOf(`\n${heading}\n`);
  assert.ok(from >= 0, `there is no ${heading}`);
  const rest = readme.slice(from + heading.length + 2);
  const end = rest.search(new RegExp(`^#{1,${level}} `, "m"));
  return end < 0 ? rest : rest.slice(0, end);
}

const rows = (text: string): string[][] => text.split("\n").filter((line) => line.startsWith("| `")).map((line) => line.slice(2, -2).split(" | "));
/** The blocks of JSON in a text, read. */
const blocks = (text: string): unknown[] => [...text.matchAll(/```json\n([\s\S]*?)```/g)].map(([, body = ""]) => JSON.parse(body) as unknown);

function typeOf({ type, minimum, maximum, enum: words }: Option): string {
  if (words) return words.map((word) => `\`${word}\``).join(" or ");
  if (type === "array") return "list of strings";
  return minimum === undefined ? type : `${type}, ${minimum} to ${maximum ?? 0}`;
}

test("the table of options is the configuration schema: every key, in its order, with type and default", () => {
  const table = rows(section("## Configuration").split("###")[0] ?? "");
  assert.deepEqual(table.map(([key]) => key), Object.keys(properties).map((key) => `\`${key}\``));
  for (const [key = "", type, standard = "", meaning = ""] of table) {
    const option = properties[key.replaceAll("`", "")];
    assert.ok(option);
    assert.equal(type, typeOf(option), key);
    assert.notEqual(standard, "", key);
    if (option.default !== undefined) assert.equal(standard, `\`${String(option.default)}\``, key);
    assert.ok(meaning.length > 10, key);
  }
});

test("the README's configurations are accepted", () => {
  let seen = 0;
  for (const block of blocks(readme) as { plugins?: { entries?: { openbrain?: { config?: Record<string, unknown> } } } }[]) {
    const config = block.plugins ? block.plugins.entries?.openbrain?.config : block as Record<string, unknown>;
    assert.ok(config);
    readSettings(config, {});
    for (const key of Object.keys(config)) assert.ok(key in properties, key);
    seen++;
  }
  assert.ok(seen >= 4);
});

test("every environment variable that counts is told", () => {
  const named = (name: string): void => { assert.ok(section("### Environment").includes(`\`${name}\``), name); };
  const asked: string[] = [];
  const env = new Proxy<Record<string, string>>({}, { get: (_, name) => { asked.push(String(name)); return undefined; } });
  sidecarEnvironment(readSettings({ passEnv: [] }, env), env);
  assert.ok(asked.includes("OPENBRAIN_URL") && asked.includes("PATH"));
  for (const name of asked) named(name);
});

test("it tells a newcomer how to run a server, and why its tools are what they are", () => {
  const server = section("## A server of your own");
  for (const words of ["openbrain key new", "openbrain serve", "openbrain health", "\"baseUrl\"", "\"apiKey\""]) assert.ok(server.includes(words), words);
  const work = section("## Work on it");
  for (const words of ["npm", "pnpm", "vitest", "node --test"]) assert.ok(work.includes(words), words);
});
