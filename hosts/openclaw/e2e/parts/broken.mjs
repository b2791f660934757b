// A broken engine never costs the user a reply.
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

import { turnsIn } from '../lib/directives.mjs';
import { check, judge, scenario } from '../lib/report.mjs';
import { engineFile } from '../lib/setup.mjs';
import { dump } from '../lib/stored.mjs';
import { stage } from './stage.mjs';
import { degradations, judgePrompts } from './verdict.mjs';

/** An engine that fails at everything through a fault of its own is set aside, until somebody asks for it in a chat. */
async function setAside({ folder, sidecar, helper }, { installation, talk, other }) {
  const store = join(folder, 'aside.db');
  const session = 'agent:main:aside';
  const [command, ...args] = sidecar;
  await scenario('broken: an engine whose store was removed is set aside, and every turn is answered', async () => {
    await other({ allowLaunch: true, command, args, configFile: engineFile(folder, { engine: 'composed', store: { type: 'sqlite', path: store }, retriever: 'recent', compactor: 'archive' }) });
    await talk.turn(session, 'aside-0', 'Good day.', '@@words 400');
    installation.mark();
    for (const suffix of ['', '-wal', '-shm']) rmSync(`${store}${suffix}`, { force: true });
    for (let i = 1; i <= 5; i++) await talk.turn(session, `aside-${i}`, 'Are you there?');
    const said = installation.newLog().split('\n').filter((line) => /failed 3 times in a row: .*type \/openbrain retry/.test(line));
    check(said.length === 1, `the log says ${said.length} times that the engine is set aside: ${installation.newLog().slice(-600)}`);
    return said[0].slice(0, 400);
  });
  await scenario('broken: /openbrain retry brings it back, with what was said meanwhile', async () => {
    const answer = await installation.command(session, '/openbrain retry');
    check(/^The context engine was asked to try again, and works\. 5 turns of this conversation/.test(answer), answer);
    await talk.turn(session, 'aside-6', 'And now?');
    const stored = (await dump(helper, store)).filter((entry) => entry.session === session && entry.role === 'user').flatMap((entry) => turnsIn(entry.text));
    for (const i of [1, 2, 3, 4, 5, 6]) check(stored.includes(`aside-${i}`), `turn aside-${i} is not in the store, which has ${stored}`);
    return answer;
  });
}

export async function brokenPart(context) {
  const { folder, plugin } = context;
  const mode = join(folder, 'mode');
  writeFileSync(mode, 'error');
  const config = {
    engine: 'composed', allowLaunch: true, command: 'node', args: [fileURLToPath(new URL('../lib/broken-sidecar.mjs', import.meta.url)), mode],
    assembleTimeoutMs: 1500, commitTimeoutMs: 1500, callTimeoutMs: 1500, compactTimeoutMs: 3000, maintainTimeoutMs: 1500, connectTimeoutMs: 3000,
  };
  await stage(context, 'broken', { plugin: { id: 'openbrain', path: plugin, config } }, async ({ installation, talk, log, requests }) => {
    for (const how of ['error', 'hang', 'garbage', 'nonsense', 'exit']) {
      await scenario(`broken: an engine that answers with ${how} loses no reply`, async () => {
        writeFileSync(mode, how);
        for (let i = 1; i <= 3; i++) await talk.turn(`agent:main:${how}`, `${how}-${i}`, 'Are you there?');
      });
    }
    await scenario('broken: no sidecar at all loses no reply', async () => {
      await installation.reconfigure((config) => { config.plugins.entries.openbrain.config = { socket: join(folder, 'nobody.sock'), connectTimeoutMs: 1000 }; });
      for (let i = 1; i <= 3; i++) await talk.turn('agent:main:none', `none-${i}`, 'Are you there?');
    });
    const other = (change) => installation.reconfigure((config) => { config.plugins.entries.openbrain.config = change; });
    await scenario("broken: an engine that does not exist leaves turns to the host's own, and the log says why", async () => {
      installation.mark();
      const [command, ...args] = context.sidecar;
      await other({ engine: 'nosuch', allowLaunch: true, command, args });
      for (let i = 1; i <= 2; i++) await talk.turn('agent:main:unknown', `unknown-${i}`, 'Are you there?');
      const said = degradations(installation.newLog()).filter((line) => /degraded to "legacy" for this logical turn/.test(line));
      check(said.length >= 2 && said.every((line) => /the engine cannot be used as configured: .*unknown engine "nosuch" \(known: /.test(line)), said.join(' | ') || installation.newLog().slice(-600));
      return said[0].slice(0, 400);
    });
    await scenario('broken: strict passes every error to the host, and the host says so', async () => {
      installation.mark();
      writeFileSync(mode, 'error');
      await other({ ...config, failure: 'strict' });
      for (let i = 1; i <= 3; i++) await talk.turn('agent:main:strict', `strict-${i}`, 'Are you there?');
      const compaction = await installation.compact('agent:main:strict');
      const log = installation.newLog();
      for (const [what, line] of [
        ['assemble', /context engine assemble failed, using pipeline messages: .*engine failed/], ['commitTurn', /durable turn advancement remains queued: .*engine failed/],
        ['the next turn', /degraded to "legacy" for this logical turn: pending durable turn advancement/], ['compact', /failed during compact: engine failed; quarantining/],
      ]) check(line.test(log), `${what}: the host's log does not have it: ${log.slice(-600)}`);
      check(compaction.ok === false && compaction.reason === 'engine failed', JSON.stringify(compaction));
      check(/failure is strict/.test(log) && !/newest messages that fit/.test(log), 'the plugin says that it stands in');
    });
    if (context.long) await setAside(context, { installation, talk, other });
    judge('broken: the log says that something is wrong', /openclaw-openbrain-context: (assemble|bootstrap|commitTurn)/.test(log()) ? [] : ['it does not']);
    judgePrompts('broken', requests(), talk);
  });
}
