// The engine owns compaction: what a session can live through.
import { readFileSync, rmSync, writeFileSync } from 'node:fs';

import { check, scenario } from '../lib/report.mjs';
import { call, catalogued, tools } from '../lib/talk.mjs';
import { until } from '../lib/wait.mjs';
import { calls, readLines } from '../lib/wire.mjs';

export const FACT = 'saffron-quartz-7741';

/** Turns that pass the window several times, with a fact stated early and asked for late. */
export async function longSession(talk, session, { turns }) {
  await scenario(`owning: a session of ${turns} turns`, async () => {
    for (let i = 1; i <= turns; i++) {
      const name = `long-${i}`;
      if (i === 3) await talk.turn(session, name, `Keep this in mind: the vault phrase of the observatory is ${FACT}.`, '@@words 30');
      else if (i === turns - 10) await talk.turn(session, name, 'What was the vault phrase of the observatory that I told you?');
      else if (i % 9 === 5) await talk.turn(session, name, 'Look it up.', tools([call('read', { path: 'note.txt' })], [call('ls', { path: '.' })]), '@@words 300');
      else await talk.turn(session, name, `Chapter ${i} of the travel diary, please.`, '@@words 620');
    }
  });
}

export async function subagents(talk, session, wirePath) {
  const ended = () => calls(wirePath).filter((c) => c.method === 'onSubagentEnded' && c.result);
  for (const mode of ['isolated', 'fork']) {
    await scenario(`owning: a subagent in ${mode} mode, its result back`, async () => {
      const before = ended().length;
      const result = `the ${mode} child counted 42 herons`;
      await talk.turn(session, `sub-${mode}`, 'Send somebody.', tools([catalogued('sessions_spawn', { task: `@@turn child-${mode}\n@@say ok child-${mode} ${result}`, context: mode })]));
      await until(() => ended().length > before, 60_000, `the ${mode} subagent to end`);
      const prepared = calls(wirePath).filter((c) => c.method === 'prepareSubagentSpawn' && c.params.contextMode === mode);
      check(prepared.length === 1 && prepared[0].result?.spawnId, `${prepared.length} preparations`);
      // An isolated child has no transcript yet: the host gives its key for a file, and no ids.
      const named = ['parentSessionFile', 'childSessionFile', ...(mode === 'fork' ? ['parentSessionId', 'childSessionId'] : [])];
      check(named.every((field) => prepared[0].params[field]), `the preparation does not name the transcripts: ${JSON.stringify(prepared[0].params)}`);
      // The host announces the result to the parent, with a turn of its own.
      const announced = () => readLines(talk.requestLog).some((r) => ![`sub-${mode}`, `child-${mode}`].includes(r.turn) && JSON.stringify(r.body.messages).includes(result));
      await until(announced, 20_000, 'the announcement of the result');
      await talk.turn(session, `sub-${mode}-after`, 'What did the child find?');
      const log = readLines(talk.requestLog);
      const asked = log.filter((r) => r.turn === `sub-${mode}-after`).at(-1);
      check(JSON.stringify(asked.body.messages.slice(0, -1)).includes(result), 'the result is not in the parent\'s prompt');
      if (mode === 'fork') {
        const child = log.find((r) => r.turn === 'child-fork');
        check(child && JSON.stringify(child.body.messages).includes('@@turn sub-fork'), 'the forked child does not see its parent\'s conversation');
      }
    });
  }
  await scenario('owning: a spawn that fails after its preparation, rolled back', async () => {
    const made = (method) => calls(wirePath).filter((c) => c.method === method);
    const before = made('prepareSubagentSpawn').length;
    const rolledBack = made('rollbackSubagentSpawn').length;
    // The child's session is archived while its preparation is under way, so that it cannot start.
    writeFileSync(`${wirePath}.hold`, 'prepareSubagentSpawn');
    const turn = talk.attempt(session, 'sub-broken', 'Send somebody who cannot start.', tools([catalogued('sessions_spawn', { task: 'never' })]));
    try {
      await until(() => made('prepareSubagentSpawn').length > before, 60_000, 'the preparation');
      const key = made('prepareSubagentSpawn').at(-1).params.child.session;
      const { sessions } = await talk.installation.call('sessions.list', { limit: 200 });
      await talk.installation.call('sessions.patch', { key, archived: true, expectedSessionId: sessions.find((s) => s.key === key)?.sessionId });
    } finally {
      rmSync(`${wirePath}.hold`);
    }
    check((await turn).status === 'ok', 'the parent\'s turn failed');
    await until(() => made('rollbackSubagentSpawn').length > rolledBack, 20_000, 'the rollback');
    check(made('rollbackSubagentSpawn').at(-1).result, 'the rollback failed');
    await talk.turn(session, 'sub-broken-after', 'Never mind.');
  });
}

export async function providerFailures(talk, session) {
  await scenario('owning: the provider fails: 500, 429, cut off', async () => {
    const outcomes = [];
    for (const [name, ...lines] of [['bad-500', '@@fail 500 1'], ['bad-429', '@@fail 429 1'], ['bad-cut', '@@cut 1', '@@words 200']]) {
      const { status } = await talk.attempt(session, name, 'Something goes wrong at the provider.', ...lines);
      outcomes.push(`${name} ${status}`);
      await talk.turn(session, `${name}-after`, 'Next.');
    }
    return outcomes.join(', ');
  });
}

export async function sidecarKilled(talk, session, wirePath) {
  const kill = () => process.kill(Number(readFileSync(`${wirePath}.pid`, 'utf8')), 'SIGKILL');
  await scenario('owning: sidecar SIGKILL between turns, back for the next', async () => {
    kill();
    await talk.turn(session, 'crash-1', 'The sidecar died before this.');
    await talk.turn(session, 'crash-2', 'And on.');
  });
  await scenario('owning: sidecar SIGKILL in the middle of a turn, nothing lost', async () => {
    const before = talk.model.requests();
    const turn = talk.attempt(session, 'crash-3', 'The sidecar dies while this is answered.', '@@delay 1500');
    await until(() => talk.model.requests() > before, 60_000, 'the model to be asked');
    kill();
    const { status, text } = await turn;
    check(status === 'ok' && text.includes('ok crash-3'), `the turn ended with ${status}: ${text}`);
    await talk.turn(session, 'crash-4', 'And on.');
  });
}
