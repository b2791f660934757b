// A session three times as long as the window, in a gateway that is restarted twice: everything that was said early is there when it is asked for late.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { check, judge, scenario } from '../lib/report.mjs';
import { engineFile, launched } from '../lib/setup.mjs';
import { dump, missingOrTwice, storedTwice } from '../lib/stored.mjs';
import { files, script, shown } from '../scenarios/planted.mjs';
import { stage } from './stage.mjs';
import { degradations, judgePrompts } from './verdict.mjs';

const WINDOW = 40_000;
const TURNS = 120;
const SESSION = 'agent:main:facts';

export async function factsPart(context) {
  const { folder, sidecar, helper, plugin } = context;
  const store = join(folder, 'store.db');
  const configFile = engineFile(folder, { engine: 'composed', store: { type: 'sqlite', path: store } });
  const turns = script(TURNS);
  const answers = new Map(turns.map((t) => [t.name, t.answer]));
  const settings = { window: WINDOW, plugin: { id: 'openbrain', path: plugin, config: launched({ folder, sidecar, configFile }) }, script: { answer: (turn) => answers.get(turn) } };
  await stage(context, 'facts', settings, async ({ installation, talk, log, requests, rest }) => {
    for (const [name, text] of files()) writeFileSync(join(folder, 'ws', name), `${text}\n`);
    const third = Math.floor(TURNS / 3);
    for (let part = 0; part < 3; part++) {
      if (part > 0) {
        await scenario(`facts: gateway restart ${part}`, async () => {
          await installation.stop();
          await installation.start();
        });
      }
      await scenario(`facts: turns ${part * third + 1} to ${(part + 1) * third} of ${TURNS}`, async () => {
        for (const [i, { name, lines }] of turns.slice(part * third, (part + 1) * third).entries()) {
          await (i === 0 ? talk.turnAfterRestart(SESSION, name, ...lines) : talk.turn(SESSION, name, ...lines));
        }
      });
    }
    await rest();
    const asked = requests();
    const { asked: wanted, facts, missing } = shown(turns, asked);
    check(wanted === 10, `${wanted} facts are asked for`);
    judge('facts: all that were planted stand in the prompts that ask for them', missing, `${facts} of ${wanted}`);
    judgePrompts('facts', asked, talk);
    judge('facts: no turn degraded to legacy', degradations(log()));
    judge('facts: every accepted turn is stored exactly once, byte for byte', missingOrTwice(await dump(helper, store), talk.accepted(), join(folder, 'wire.jsonl')), `${talk.accepted().length} turns`);
    judge('facts: no turn is stored twice', storedTwice(await dump(helper, store)));
  });
}
