import assert from "node:assert/strict";
import { test } from "node:test";

import { readSettings } from "../src/config.js";
import { Connection } from "../src/connection.js";
import { Unavailable } from "../src/errors.js";
import type { Logger } from "../src/host-types.js";
import { FakeSidecar, silence } from "./fake-sidecar.js";
import { settle } from "./setup.js";

const logger: Logger = { info: () => undefined, warn: () => undefined, error: () => undefined };
const call = { timeoutMs: 5000 };

test("opened when first needed, and again after it broke", async () => {
  const sidecar = new FakeSidecar(() => ({ fine: true }));
  const connection = new Connection({ settings: readSettings({}, {}), env: {}, logger, open: sidecar.open });
  assert.equal(sidecar.opened, 0);
  assert.deepEqual(await connection.call("ping", {}, call), { fine: true });
  assert.deepEqual(await connection.call("ping", {}, call), { fine: true });
  assert.equal(sidecar.opened, 1);
  sidecar.die();
  assert.deepEqual(await connection.call("ping", {}, call), { fine: true });
  assert.equal(sidecar.opened, 2);
  assert.equal(connection.engine?.id, "composed");
  await connection.stop();
});

test("a call whose connection is lost is made once more", async () => {
  let n = 0;
  const sidecar = new FakeSidecar((_method, _params, _id, self) => {
    if (n++ > 0) return { second: true };
    self.die();
    return silence;
  });
  const connection = new Connection({ settings: readSettings({}, {}), env: {}, logger, open: sidecar.open });
  assert.deepEqual(await connection.call("commitTurn", {}, call), { second: true });
  await connection.stop();
});

test("pauses grow while it cannot be opened, and calls fail at once meanwhile", async () => {
  let now = 1_000_000;
  let opened = 0;
  const connection = new Connection({
    settings: readSettings({}, {}), env: {}, logger, now: () => now,
    open: () => { opened++; const channel = new FakeSidecar().open(); return { ...channel, write: () => { channel.destroy(); } }; },
  });
  const attempts: number[] = [];
  for (let i = 0; i < 200; i++) {
    await assert.rejects(connection.call("ping", {}, call), Unavailable);
    attempts.push(opened);
    now += 100;
  }
  // The first failure costs no pause; afterwards attempts get rarer.
  assert.ok(opened >= 4 && opened <= 12, `${opened} attempts in 20 s`);
  assert.deepEqual(attempts.slice(0, 2), [1, 2]);
});

test("calls at the same time share one connection", async () => {
  const sidecar = new FakeSidecar(() => ({}));
  const connection = new Connection({ settings: readSettings({}, {}), env: {}, logger, open: sidecar.open });
  await Promise.all(Array.from({ length: 20 }, () => connection.call("ping", {}, call)));
  assert.equal(sidecar.opened, 1);
  await connection.stop();
});

test("garbage between frames is passed over", async () => {
  const sidecar = new FakeSidecar((_method, _params, _id, self) => { self.say('\u0000nothing\n[1,2]\n{"jsonrpc":\n{"id":999,"result":{}}\n'); return { fine: true }; });
  const connection = new Connection({ settings: readSettings({}, {}), env: {}, logger, open: sidecar.open });
  assert.deepEqual(await connection.call("ping", {}, call), { fine: true });
  await connection.stop();
});

test("nothing is started without permission, and nothing after the end", async () => {
  const bare = new Connection({ settings: readSettings({}, {}), env: {}, logger });
  await assert.rejects(bare.call("ping", {}, call), /allowLaunch/);
  const sidecar = new FakeSidecar(() => ({}));
  const connection = new Connection({ settings: readSettings({}, {}), env: {}, logger, open: sidecar.open });
  await connection.call("ping", {}, call);
  await connection.stop();
  assert.equal(sidecar.calls("shutdown").length, 1);
  await assert.rejects(connection.call("ping", {}, call), /stopped/);
  connection.revive();
  await connection.call("ping", {}, call);
  assert.equal(sidecar.opened, 2);
  await connection.stop();
});

test("a sidecar that is slow to come does not hold a call beyond its time", async () => {
  const sidecar = new FakeSidecar(() => ({}));
  const channel = sidecar.open();
  const connection = new Connection({ settings: readSettings({ connectTimeoutMs: 60_000 }, {}), env: {}, logger, open: () => ({ ...channel, write: () => undefined }) });
  await assert.rejects(connection.call("ping", {}, { timeoutMs: 20 }), Unavailable);
  await settle();
  channel.destroy();
});

test("a sidecar that hangs is ended and started again long before the call's time is over; one that only takes its time is left alone", async () => {
  let hangs = true;
  const sidecar = new FakeSidecar((method, _params, _id, self) => {
    if (method === "ping") return hangs ? silence : {};
    if (hangs) return silence;
    return new Promise((resolve) => { setTimeout(resolve, 300, { opened: self.opened }); });
  });
  const settings = readSettings({ unresponsiveTimeoutMs: 60 }, {});
  const connection = new Connection({ settings, env: {}, logger, open: () => { if (sidecar.opened === 1) hangs = false; return sidecar.open(); } });
  assert.deepEqual(await connection.call("commitTurn", {}, { timeoutMs: 60_000 }), { opened: 2 });
  // The ping before the end, and those that were answered while the second one worked.
  assert.ok(sidecar.calls("ping").length >= 2);
  assert.equal(sidecar.opened, 2);
  await connection.stop();
});
