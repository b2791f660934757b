import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";

import { readSettings } from "../src/config.js";
import { nothingToStart, packagedProgram, platformPackage, programToStart } from "../src/packaged.js";

test("the packaged program of this platform is found beside the plugin, and no other", () => {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), "packaged-")));
  try {
    const plugin = join(folder, "node_modules/plugin/dist/index.js");
    assert.equal(packagedProgram(plugin, "linux", "x64"), undefined);
    for (const [name, file] of [["contextengine-linux-x64", "contextengine"], ["contextengine-win32-arm64", "contextengine.exe"]] as const) {
      mkdirSync(join(folder, "node_modules", name, "bin"), { recursive: true });
      writeFileSync(join(folder, "node_modules", name, "package.json"), JSON.stringify({ name }));
      writeFileSync(join(folder, "node_modules", name, "bin", file), "");
    }
    assert.equal(packagedProgram(plugin, "linux", "x64"), join(folder, "node_modules/contextengine-linux-x64/bin/contextengine"));
    assert.equal(packagedProgram(plugin, "win32", "arm64"), join(folder, "node_modules/contextengine-win32-arm64/bin/contextengine.exe"));
    assert.equal(packagedProgram(plugin, "linux", "arm64"), undefined);
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test("the packaged program needs no permission; any other does", () => {
  const start = (raw: Record<string, unknown>, packaged?: string): string | undefined => programToStart(readSettings(raw, {}), packaged);
  assert.equal(start({}, "/p"), "/p");
  assert.equal(start({ allowLaunch: true }, "/p"), "/p");
  assert.equal(start({ allowLaunch: false }, "/p"), undefined);
  assert.equal(start({ command: "/mine" }, "/p"), undefined);
  assert.equal(start({ command: "/mine", allowLaunch: true }, "/p"), "/mine");
  assert.equal(start({}), undefined);
  assert.equal(start({ allowLaunch: true }), "contextengine");
  assert.match(nothingToStart(readSettings({}, {}), undefined), new RegExp(`${platformPackage()}.*socket.*allowLaunch`));
  assert.match(nothingToStart(readSettings({ command: "/mine" }, {}), "/p"), /allowLaunch.*take command out/);
  assert.match(nothingToStart(readSettings({ allowLaunch: false }, {}), "/p"), /take allowLaunch: false out/);
});
