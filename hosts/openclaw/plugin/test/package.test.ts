import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { PACKAGE, PLUGIN_ID, VERSION } from "../src/names.js";

interface Install { npmSpec: string; defaultChoice: string; minHostVersion: string }
interface Package {
  name: string; version: string; description: string; license: string; files: string[]; engines: { node: string };
  repository: { type: string; url: string; directory: string }; homepage: string; bugs: { url: string }; dependencies?: object; scripts: Record<string, string>;
  openclaw: { extensions: string[]; install: Install; compat: { pluginApi: string } };
}
const read = (path: string): string => readFileSync(path, "utf8");
const json = JSON.parse(read("package.json")) as Package;
const manifest = JSON.parse(read("openclaw.plugin.json")) as { id: string; version: string };

test("the package says whose it is, where it comes from and what may be done with it", () => {
  assert.equal(json.license, "MIT");
  assert.equal(read("LICENSE"), read("../../../LICENSE"));
  // The module's path is the one name of the project's home; deploy/rename-module changes both.
  const home = /^module (\S+)$/m.exec(read("../../../go.mod"))?.[1] ?? "";
  assert.deepEqual(json.repository, { type: "git", url: `git+https://${home}`, directory: "hosts/openclaw/plugin" });
  assert.ok(json.homepage.startsWith(`https://${home}/`) && json.homepage.includes(json.repository.directory), json.homepage);
  assert.equal(json.bugs.url, `https://${home}/issues`);
});

test("the host is told how to install it, and from which version on", () => {
  assert.deepEqual(json.openclaw.install, { npmSpec: json.name, defaultChoice: "npm", minHostVersion: json.openclaw.compat.pluginApi });
  assert.equal(json.engines.node, ">=24.16.0 <25 || >=26.1.0"); // that of the host, with which the end-to-end run compares it
  assert.equal((JSON.parse(read("package-lock.json")) as { packages: { "": Package } }).packages[""].engines.node, json.engines.node);
});

test("names and versions are the same everywhere", () => {
  assert.deepEqual([json.name, json.version, manifest.id, manifest.version], [PACKAGE, VERSION, PLUGIN_ID, VERSION]);
});

test("the tarball holds what the plugin needs, and nothing else", () => {
  const [packed] = JSON.parse(execFileSync("npm", ["pack", "--dry-run", "--json", "--ignore-scripts"], { encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] })) as [{ files: { path: string }[] }];
  const files = packed.files.map((file) => file.path).sort();
  const own = files.filter((file) => !file.startsWith("dist/"));
  assert.deepEqual(own, ["LICENSE", "README.md", "openclaw.plugin.json", "package.json", "skills/context-recall/SKILL.md"]);
  for (const entry of json.openclaw.extensions) assert.ok(files.includes(entry.replace("./", "")), entry);
  assert.equal(json.dependencies, undefined);
  for (const script of ["preinstall", "install", "postinstall", "prepare"]) assert.equal(json.scripts[script], undefined);
});
