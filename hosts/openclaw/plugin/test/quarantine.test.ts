import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test, type TestContext } from "node:test";

import { chatCommand } from "../src/commands.js";
import { FakeSidecar, Refusal } from "./fake-sidecar.js";
import { assistant, session, setup, user, type Setup } from "./setup.js";

const used = { plugins: { slots: { contextEngine: "openbrain" } } };
const why = 'core: engine "composed": commit turn failed 3 times in a row: disk on fire: set aside until it is asked to try again';

/** A sidecar whose engine sets itself aside, as the real one does: after three commits that failed, until it is started anew or asked. */
class Burning extends FakeSidecar {
  lit = true;
  failed = 0;
  #opened = 0;

  constructor() {
    super();
    this.answer = (method) => {
      if (this.opened !== this.#opened) this.failed = 0;
      this.#opened = this.opened;
      if (method === "retry") this.failed = 0;
      if (method === "health") return { version: "1", uptimeMs: 0, problems: this.failed < 3 ? [] : [{ part: "store", op: "commit turn", text: "disk on fire", since: "2026-01-01T10:00:00Z", count: 3, quarantined: true }] };
      if (!["bootstrap", "assemble", "commitTurn", "compact"].includes(method)) return {};
      if (this.failed >= 3) {
        if (method === "assemble") return { items: [{ from: 0, to: 2 }], degraded: "commit turn failed 3 times in a row" };
        throw new Refusal(-32019, {}, why);
      }
      if (method === "commitTurn" && this.lit) {
        this.failed++;
        throw new Refusal(-32603, {}, "disk on fire");
      }
      return { bootstrap: { bootstrapped: true, known: 2 }, assemble: { items: [{ from: 0, to: 2 }], estimatedTokens: 2 }, commitTurn: { status: "committed" } }[method];
    };
  }
}

function burning(t: TestContext, config: Record<string, unknown> = {}): Setup & { fire: Burning; turn: (key: string) => Promise<unknown>; say: (words: string) => Promise<string> } {
  const stateDir = mkdtempSync(join(tmpdir(), "state-"));
  t.after(() => { rmSync(stateDir, { recursive: true }); });
  const fire = new Burning();
  const all = setup(() => ({}), { sidecar: fire, config, sdk: { resolveStateDir: () => stateDir } });
  const turn = async (key: string): Promise<unknown> => {
    const engine = all.next();
    await engine.bootstrap({ ...session });
    const { messages } = await engine.assemble({ ...session, tokenBudget: 8000, prompt: "and now?", messages: [user("one"), assistant("two")] });
    assert.equal(messages.length, 2);
    return engine.commitTurn({ ...session, advancementKey: key, messages: [user(key), assistant("done")] });
  };
  const { handler } = chatCommand(all.shared, ["openbrain"], used);
  return { ...all, fire, turn, say: async (args) => (await handler({ args, sessionKey: session.sessionKey, sessionId: session.sessionId, config: used })).text };
}

test("an engine that is set aside is left so until a person asks: turns are answered and kept, and the log says it once", async (t) => {
  t.mock.timers.enable({ apis: ["Date"], now: 1_700_000_000_000 });
  const { fire, turn, say, log, shared } = burning(t);
  for (let i = 1; i <= 6; i++) {
    assert.deepEqual(await turn(`k${i}`), { status: "committed" });
    t.mock.timers.tick(3_600_000); // it is not started anew, however long it lasts
  }
  fire.lit = false; // nobody asks
  await turn("k7");
  assert.equal(fire.opened, 1);
  const lines = log.filter((line) => line.includes("set aside"));
  assert.equal(lines.length, 1, lines.join("\n"));
  assert.match(lines[0] ?? "", /commit turn failed 3 times in a row: disk on fire.* -> mend what failed, then type \/openbrain retry in a chat, or restart the gateway.*; this is said once$/);
  assert.match(await say("doctor"), /commit turn: disk on fire \(3 times since 2026-01-01 10:00\); the engine is set aside: \/openbrain retry lets it try again\./);
  assert.equal(await say("retry"), "The context engine was asked to try again, and works. 7 turns of this conversation that were kept are stored.");
  assert.equal(fire.opened, 2);
  assert.deepEqual(await shared.owed.sessions(), []);
  assert.ok(log.some((line) => line.includes("the engine is back")));
  assert.deepEqual(fire.calls("commitTurn").slice(-7).map((c) => c["advancementKey"]), ["k1", "k2", "k3", "k4", "k5", "k6", "k7"]);
  assert.equal(await say("retry"), "The context engine was asked to try again, and works.");
});

test("a sidecar that somebody else runs is asked, and an engine that fails still says so", async (t) => {
  const { fire, turn, say } = burning(t, { socket: "/run/ce.sock" });
  for (let i = 1; i <= 4; i++) await turn(`k${i}`);
  assert.match(await say("retry"), /^retry failed: disk on fire\. What to do: /);
  assert.deepEqual([fire.opened, fire.calls("retry").length], [1, 1]);
  fire.lit = false;
  assert.match(await say("retry"), /asked to try again, and works\. 4 turns/);
});

test("a session that is set aside says so once, whatever works in others, and the others are asked on", async (t) => {
  const damaged = "agent:main:old";
  const stateDir = mkdtempSync(join(tmpdir(), "state-"));
  t.after(() => { rmSync(stateDir, { recursive: true }); });
  let lit = true;
  const sidecar = new FakeSidecar((method, params) => {
    if (method === "commitTurn" && lit && JSON.stringify(params["session"]).includes(damaged)) throw new Refusal(-32019, {}, 'core: engine "composed" for "main/old": commit turn failed 3 times in a row: row 7 is damaged: set aside until it is asked to try again');
    return { bootstrap: { bootstrapped: true, known: 2 }, assemble: { items: [{ from: 0, to: 2 }], estimatedTokens: 2 }, commitTurn: { status: "committed" } }[method] ?? {};
  });
  const all = setup(() => ({}), { sidecar, sdk: { resolveStateDir: () => stateDir } });
  const { handler } = chatCommand(all.shared, ["openbrain"], used);
  const say = async (sessionKey: string, args: string): Promise<string> => (await handler({ args, sessionKey, sessionId: session.sessionId, config: used })).text;
  const turn = async (sessionKey: string, key: string): Promise<void> => {
    const engine = all.next();
    const ids = { ...session, sessionKey };
    await engine.bootstrap({ ...ids });
    await engine.assemble({ ...ids, tokenBudget: 8000, prompt: "and now?", messages: [user("one"), assistant("two")] });
    assert.deepEqual(await engine.commitTurn({ ...ids, advancementKey: key, messages: [user(key), assistant("done")] }), { status: "committed" });
  };
  for (let i = 1; i <= 3; i++) {
    await turn(damaged, `old${i}`);
    await turn(session.sessionKey, `main${i}`);
  }
  assert.equal(all.log.filter((line) => line.endsWith("; this is said once")).length, 1, all.log.join("\n"));
  assert.equal(all.log.filter((line) => line.includes(": the engine is back")).length, 0, all.log.join("\n"));
  assert.match(await say(session.sessionKey, "status"), /^The engine works\./);
  assert.match(await say(damaged, "status"), /^The engine is out of order since .*commitTurn\./);
  lit = false;
  await turn(damaged, "old4");
  assert.equal(all.log.filter((line) => line.includes("the engine is back in main/")).length, 1, all.log.join("\n"));
  assert.match(await say(damaged, "status"), /^The engine works\./);
});
