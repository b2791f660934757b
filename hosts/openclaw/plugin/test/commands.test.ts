import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test, type TestContext } from "node:test";

import { chatCommand } from "../src/commands.js";
import type { ChatCommand, CommandContext, PluginApi } from "../src/host-types.js";
import { register } from "../src/index.js";
import { MISSING_CREDENTIALS } from "../src/names.js";
import { Refusal, silence, type Answer, type Params } from "./fake-sidecar.js";
import { setup, type Setup } from "./setup.js";

const used = { plugins: { slots: { contextEngine: "openbrain" } } };
const here = { sessionKey: "agent:main:work", sessionId: "id-1", agentId: "main", config: used };
const entry = (id: string, excerpt: string, more: Params = {}): Params => ({ id, session: "agent:main:work", turn: 3, role: "user", type: "message", time: "2026-01-01T10:02:03Z", tokens: 12, excerpt, whole: true, ...more });

/** What a sidecar in good order answers. */
const well: Answer = (method) => ({
  health: { status: "ok", version: "0.2.0", uptimeMs: 7_260_000, problems: [] },
  info: { engine: { id: "composed", ownsCompaction: true, parts: { store: "sqlite", retriever: "hybrid", compactor: "archive" } }, arm: { name: "b", share: 1 } },
  describe: { entries: 1200, turns: 40, first: "2026-01-01T10:00:00Z", last: "2026-01-02T11:30:00Z", shown: 30, left: 1170, shortened: 2, summaries: [1, 2], text: "" },
  search: { found: [entry("e1", "the <b>fact</b>\n  and more")] },
  compact: { ok: true, compacted: true, tokensBefore: 18_733, tokensAfter: 3665 },
})[method] ?? {};

interface Asked extends Setup { say: (args: string | undefined, more?: Partial<CommandContext>) => Promise<string> }

function command(t: TestContext, answer: Answer = well, config: Params = {}): Asked {
  const stateDir = mkdtempSync(join(tmpdir(), "state-"));
  t.after(() => { rmSync(stateDir, { recursive: true }); });
  const all = setup(answer, { config, sdk: { resolveStateDir: () => stateDir } });
  const { handler } = chatCommand(all.shared, ["openbrain"], used);
  return { ...all, say: async (args, more = {}) => (await handler({ ...here, ...(args === undefined ? {} : { args }), ...more })).text };
}

test("the command is registered once, under a name that the host gives away, for those who may command", () => {
  const commands: ChatCommand[] = [];
  const quiet = (): void => undefined;
  const api: PluginApi = { pluginConfig: { engine: "composed" }, config: used, logger: { info: quiet, warn: quiet, error: quiet }, registerContextEngine: quiet, registerCommand: (c) => void commands.push(c) };
  register(api);
  assert.deepEqual(commands.map(({ name, acceptsArgs, requireAuth }) => ({ name, acceptsArgs, requireAuth })), [{ name: "openbrain", acceptsArgs: true, requireAuth: true }]);
  const manifest = JSON.parse(readFileSync("openclaw.plugin.json", "utf8")) as { commandAliases: { name: string; kind: string }[] };
  assert.deepEqual(manifest.commandAliases, [{ name: "openbrain", kind: "runtime-slash" }]);
});

test("without a word, and with a wrong one, it says what there is", async (t) => {
  const { say, sidecar } = command(t);
  for (const args of [undefined, "", "  ", "help"]) assert.match(await say(args), /^\/openbrain status - .*\n\/openbrain doctor - .*\n\/openbrain search <words> - .*\n\/openbrain compact - .*\n\/openbrain retry - .*$/);
  assert.match(await say("frobnicate"), /^There is no \/openbrain frobnicate\. There are:\n\/openbrain status/);
  assert.equal(sidecar.opened, 0);
});

test("status: the engine, the conversation and the budget", async (t) => {
  const { say, shared, sidecar } = command(t);
  shared.state({ agent: "main", session: "agent:main:work" }).budget.grant(26_000, "m");
  assert.equal(await say("status"), [
    "The engine works.",
    "Engine: composed (store sqlite, retriever hybrid, compactor archive), arm b; the engine compacts.",
    "This conversation: 1,200 messages in 40 turns, 2026-01-01 10:00 to 2026-01-02 11:30; 30 messages shown to the model; 2 of them shortened; 2 summaries; 1170 stored but not shown.",
    "A prompt may cost 26,000 tokens.",
  ].join("\n"));
  assert.deepEqual(sidecar.calls("describe")[0]?.["session"], { agent: "main", session: "agent:main:work" });
  assert.match(await say("Status", { sessionKey: "agent:main:new" }), /^The engine works/);
});

test("status of an engine that does not answer says why and what to do", async (t) => {
  const { say, shared } = command(t, () => { throw new Refusal(-32018, {}, "engine: open store: read-only file system"); });
  assert.match(await say("status"), /^status failed: engine: open store: read-only file system\. What to do: mend the engine's configuration and restart the gateway/);
  shared.failed({ agent: "main", session: "agent:main:work" }, "assemble", new Refusal(-32603, {}, "x"));
  await shared.owed.keep({ session: { agent: "main", session: "agent:main:work" }, advancementKey: "k", messages: [] });
  const said = await say("status");
  assert.match(said, /^The engine is out of order since \d+ seconds?: assemble\. Turns are answered with the newest messages that fit\. \/openbrain doctor says what to do\.\nstatus failed/);
  assert.match(said, /1 turn of this conversation is kept on disk and stored when the engine is back\.$/);
});

test("doctor: all is well", async (t) => {
  const { say } = command(t);
  assert.equal(await say("doctor"), [
    "All is well.",
    "ok  The plugin is enabled, and the host's slot names its engine.",
    "ok  The sidecar answers: version 0.2.0, running for 121 minutes.",
    "ok  The engine is composed (store sqlite, retriever hybrid, compactor archive), arm b; the engine compacts.",
    "ok  This conversation can be read: 1,200 messages in 40 turns, 2026-01-01 10:00 to 2026-01-02 11:30; 30 messages shown to the model; 2 of them shortened; 2 summaries; 1170 stored but not shown.",
    "ok  No turn waits to be stored.",
  ].join("\n"));
});

test("doctor: every trouble comes with its remedy", async (t) => {
  const off = command(t);
  const said = await off.say("doctor", { config: { plugins: { slots: { contextEngine: "legacy" } } } });
  assert.match(said, /^1 thing to look at\.\n!! {2}Not used: plugins\.slots\.contextEngine is "legacy": set it to "openbrain" and restart the gateway\./);
  assert.equal(off.sidecar.opened, 0); // nothing is started for an engine that is not chosen
  assert.match(said, /contextengine doctor --openclaw$/);

  const bare = await command(t, well, { engine: "openbrain" }).say("doctor");
  assert.ok(bare.includes(`!!  ${MISSING_CREDENTIALS}`), bare);

  const sick = command(t, (method) => (method === "health" ? { version: "1", uptimeMs: 0, problems: [{ part: "store", op: "append", text: "disk full", since: "2026-01-01T10:00:00Z", count: 3 }] } : method === "describe" ? silence : well(method, {}, 0, undefined as never)), { callTimeoutMs: 50 });
  await sick.shared.owed.keep({ session: { agent: "main", session: "agent:main:work" }, advancementKey: "k", messages: [] });
  sick.shared.failed({ agent: "main", session: "agent:main:work" }, "commitTurn", new Refusal(-32603, {}, "x"));
  const sickSaid = await sick.say("doctor");
  assert.match(sickSaid, /^4 things to look at\./);
  assert.match(sickSaid, /!! {2}store: append: disk full \(3 times since 2026-01-01 10:00\)\./);
  assert.match(sickSaid, /!! {2}Reading this conversation failed: describe: no answer from the sidecar within \d+ ms\. What to do: .*timeouts\./);
  assert.match(sickSaid, /!! {2}Out of order since \d+ seconds?: commitTurn\. It is tried again with the next turn\./);
  assert.match(sickSaid, /!! {2}1 turn waits on disk to be stored\. That happens by itself when the engine works; nothing is lost\./);

  const gone = command(t, () => silence, { callTimeoutMs: 40 });
  assert.match(await gone.say("doctor"), /!! {2}Reaching the sidecar failed: health: no answer from the sidecar within \d+ ms\. What to do: /);
});

test("search: this conversation's own entries, and no other's", async (t) => {
  const found = [entry("e1", "the <b>fact</b>\n  and more"), entry("e2", "told elsewhere", { session: "agent:main:private" }), entry("e3", "/openbrain search the fact"), entry("e4", "what was said before", { type: "summary" }), ...Array.from({ length: 6 }, (_, i) => entry(`f${i}`, "x".repeat(500), { whole: false }))];
  const { say, sidecar } = command(t, (method) => (method === "search" ? { found } : {}));
  const said = await say("search  the fact ");
  assert.equal(sidecar.calls("search")[0]?.["query"], "the fact");
  assert.ok(said.startsWith("The best 5 matches:\n\n2026-01-01 10:02, user, turn 3 (#e1)\n> the <b>fact</b>\n>   and more\n"), said);
  assert.ok(said.includes(", summary, turn 3 (#e4)") && !said.includes("/openbrain"), said);
  assert.ok(!said.includes("told elsewhere") && said.endsWith("They are not shown here."), said);
  assert.ok(said.includes(`> ${"x".repeat(400)} ...`) && !said.includes("x".repeat(401)));
  assert.equal(await say("search"), "Say what to look for: /openbrain search <words>");
  const none = command(t, () => ({ found: [] }));
  assert.match(await none.say("search nobody"), /^Nothing in this conversation matches "nobody"\. Try fewer or other words\.$/);
  const cannot = command(t, () => { throw new Refusal(-32017); });
  assert.match(await cannot.say("search x"), /^search failed: refused\. What to do: this engine cannot do that/);
});

test("compact: the host's own way where there is one, else the engine's", async (t) => {
  const { say, sidecar } = command(t);
  const by = (result: { compacted: boolean; reason?: string; tokensBefore?: number; tokensAfter?: number }): Partial<CommandContext> => ({ runtimeContext: { compactCurrent: async () => result } });
  assert.equal(await say("compact", by({ compacted: true, tokensBefore: 18_733, tokensAfter: 3665 })), "Compacted: 18,733 tokens before, 3,665 after. Everything is still stored and can be found.");
  assert.equal(await say("compact", by({ compacted: true })), "Compacted. Everything is still stored and can be found.");
  assert.equal(await say("compact", by({ compacted: false, reason: "already under target" })), "Nothing to compact: already under target.");
  assert.equal(await say("compact", by({ compacted: false })), "Nothing to compact.");
  assert.equal(await say("compact", by({ compacted: false, reason: "summary model failed" })), "Not compacted: summary model failed. /openbrain doctor says what to do.");
  assert.equal(sidecar.calls("compact").length, 0);
  assert.match(await say("compact"), /^Compacted: 18,733 tokens before/);
  const { force, trigger } = sidecar.calls("compact")[0] ?? {};
  assert.deepEqual([force, trigger], [true, "manual"]);
});

test("where there is nothing to ask, that is said", async (t) => {
  const { say, sidecar } = command(t);
  for (const what of ["status", "search x", "compact"]) {
    assert.match(await say(what, { config: {} }), /^The context engine is installed, but not used: plugins\.slots\.contextEngine is not set: set it to "openbrain"/);
    assert.equal(await say(what, { sessionKey: "" }), "This chat has no conversation yet. Send a message first.");
  }
  assert.equal(await command(t, well, { engine: "openbrain" }).say("status"), MISSING_CREDENTIALS);
  assert.equal(sidecar.opened, 0);
});

test("no answer holds the key", async (t) => {
  const { say } = command(t, () => { throw new Refusal(-32603, {}, "refused with sk-planted"); }, { apiKey: "sk-planted" });
  for (const what of ["status", "doctor", "search x", "compact"]) {
    const said = await say(what);
    assert.ok(said.includes("(key)") && !said.includes("sk-planted"), said);
  }
});
