// What an operator decides about sessions: how much is kept across a reset, and of which sessions nothing is.
import { join } from 'node:path';

import { check, judge, scenario } from '../lib/report.mjs';
import { turnsIn } from '../lib/directives.mjs';
import { engineFile, launched } from '../lib/setup.mjs';
import { dump, storedTwice } from '../lib/stored.mjs';
import { textOf } from '../lib/tokens.mjs';
import { stage } from './stage.mjs';
import { degradations } from './verdict.mjs';

const CODE = 'locker-8471';

export async function sessionsPart(context) {
  const { folder, sidecar, helper, plugin } = context;
  const store = join(folder, 'store.db');
  const engine = { engine: 'composed', store: { type: 'sqlite', path: store }, arms: [{ name: 'passing', sessions: ['agent:*:cron:*'], override: { store: 'memory' } }, { name: 'ignored', sessions: ['agent:*:hook:*'], override: { engine: 'legacy' } }] };
  const config = { folder, sidecar, configFile: engineFile(folder, engine) };
  await stage(context, 'sessions', { plugin: { id: 'openbrain', path: plugin, config: launched(config) } }, async ({ installation, talk, log, requests, rest }) => {
    const prompt = (turn) => requests().findLast((r) => r.turn === turn).body.messages.map((m) => textOf(m.content)).join('\n');
    const afterReset = async (name, next = 'What is the code of my locker at the station?') => {
      const session = `agent:main:${name}`;
      await talk.turn(session, `${name}-1`, `The code of my locker at the station is ${CODE}.`);
      await talk.turn(session, `${name}-2`, 'Thank you.');
      await installation.call('sessions.reset', { key: session });
      await talk.turn(session, `${name}-3`, next);
      return prompt(`${name}-3`).includes(CODE);
    };
    await scenario('sessions: after a reset nothing is recalled of what was before', async () => check(!await afterReset('forgets'), 'it is recalled'));
    await scenario('sessions: with resetHistory it is', async () => {
      engineFile(folder, { ...engine, recall: { resetHistory: true } });
      await installation.kill();
      await installation.start();
      check(await afterReset('recalls'), 'it is not recalled');
    });
    await scenario('sessions: with resetMessages the first turn is given the newest messages, asked or not', async () => {
      engineFile(folder, { ...engine, recall: { resetMessages: 4 } });
      await installation.kill();
      await installation.start();
      check(await afterReset('carries', 'Good morning.'), 'they are not shown');
      await talk.turn('agent:main:carries', 'carries-4', 'And good evening.');
      check(prompt('carries-4').split(CODE).length === 2, 'the next turn does not show them once');
    });
    for (const [what, key] of [['of which nothing is kept', 'cron:daily'], ['that is left to the host', 'hook:mail']]) {
      await scenario(`sessions: one ${what} goes on like others`, async () => {
        for (let i = 1; i <= 3; i++) await talk.turn(`agent:main:${key}`, `${key}-${i}`, 'Look at the mail.');
        const shown = turnsIn(prompt(`${key}-3`));
        check([1, 2].every((i) => shown.includes(`${key}-${i}`)), `the model is shown ${shown}`);
      });
    }
    await rest();
    const entries = await dump(helper, store);
    judge('sessions: the store holds the others alone', entries.filter((entry) => /cron|hook/.test(entry.session)).map((entry) => `${entry.session}: ${entry.role}`));
    judge('sessions: no turn degraded to legacy', degradations(log()));
    judge('sessions: no turn is stored twice', storedTwice(entries));
  });
}
