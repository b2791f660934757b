import assert from "node:assert/strict";
import { test } from "node:test";

import { readSettings } from "../src/config.js";
import { OutOfTime, ProtocolError, Unavailable } from "../src/errors.js";
import { sharedFor } from "../src/shared.js";

/** A module as the host loads it again: another instance of the same file. */
const again = async (name: string): Promise<unknown> => await import(new URL(`../src/${name}.js?again`, import.meta.url).href) as unknown;

test("instances of the plugin in one process share a sidecar", async () => {
  const other = await again("shared") as typeof import("../src/shared.js");
  assert.notEqual(other.sharedFor, sharedFor);
  const quiet = (): void => undefined;
  const logger = { info: quiet, warn: quiet, error: quiet };
  const settings = { engine: "composed", socket: "/nowhere" };
  assert.equal(other.sharedFor(readSettings(settings, {}), logger, "1"), sharedFor(readSettings(settings, {}), logger, "1"));
  assert.notEqual(other.sharedFor(readSettings({ ...settings, tools: false }, {}), logger, "1"), sharedFor(readSettings(settings, {}), logger, "1"));
});

test("an error of one instance is known in another", async () => {
  const other = await again("errors") as typeof import("../src/errors.js");
  assert.notEqual(other.ProtocolError, ProtocolError);
  assert.ok(new other.ProtocolError(-32013, "x") instanceof ProtocolError);
  assert.ok(new Unavailable("x") instanceof other.Unavailable);
  assert.ok(new OutOfTime("x", 1) instanceof other.OutOfTime);
  assert.ok(!(new Error("x") instanceof ProtocolError) && !(new Unavailable("x") instanceof ProtocolError) && !((undefined as unknown) instanceof ProtocolError));
});
