import assert from "node:assert/strict";
import { readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";

import { contextTools, toolNames } from "../src/tools.js";
import { setup } from "./setup.js";

const manifest = JSON.parse(readFileSync("openclaw.plugin.json", "utf8")) as { skills?: string[] };
const packed = JSON.parse(readFileSync("package.json", "utf8")) as { files: string[] };

test("the plugin ships a skill in the host's form, and the package holds it", () => {
  assert.deepEqual(manifest.skills, ["./skills"]);
  assert.ok(packed.files.includes("skills"));
  assert.deepEqual(readdirSync("skills"), ["context-recall"]);
  for (const name of readdirSync("skills")) {
    const [, head = "", body = ""] = /^---\n([\s\S]*?)\n---\n([\s\S]*)$/.exec(readFileSync(join("skills", name, "SKILL.md"), "utf8")) ?? [];
    const fields = new Map(head.split("\n").map((line) => [line.slice(0, line.indexOf(":")), line.slice(line.indexOf(":") + 1).trim()]));
    assert.equal(fields.get("name"), name);
    // Name and description are in every prompt, the rest is read when it is needed.
    const description = fields.get("description") ?? "";
    assert.ok(description.length > 40 && description.length < 200, `${description.length}`);
    assert.ok(body.length > 500 && body.length < 4000, `${body.length}`);
  }
});

test("the skill names every tool, and no argument that a tool does not have", () => {
  const text = readFileSync("skills/context-recall/SKILL.md", "utf8");
  const tools = contextTools(setup(() => ({})).shared, { sessionKey: "agent:main:main" });
  assert.ok(tools);
  const known = new Set(toolNames.flatMap((name) => Object.keys((tools[name].parameters as { properties: object }).properties)));
  for (const name of toolNames) assert.ok(text.includes(`\`${name}\``), name);
  const named = [...text.matchAll(/`([a-z]+)`/g)].map(([, word = ""]) => word);
  assert.ok(named.includes("query") && named.includes("since") && named.includes("id"));
  for (const word of named) assert.ok(known.has(word), word);
});
