// A subagent that begins with nothing: what its task asks about its parent's earlier turns stands in its prompt, once, and not at all where the key is off.
import { join } from 'node:path';

import { check, judge, scenario } from '../lib/report.mjs';
import { engineFile, launched } from '../lib/setup.mjs';
import { dump, missingOrTwice } from '../lib/stored.mjs';
import { catalogued, tools } from '../lib/talk.mjs';
import { until } from '../lib/wait.mjs';
import { calls, readLines } from '../lib/wire.mjs';
import { stage } from './stage.mjs';
import { degradations, judgePrompts } from './verdict.mjs';

const FACTS = [
  ['The gateway of the herring fleet listens on port 8471.', '8471', 'On which port does the gateway of the herring fleet listen?'],
  ['Marta signs the release notes of the lighthouse project.', 'Marta', 'Who signs the release notes of the lighthouse project?'],
  ['The nightly backup goes to the bucket osprey-cold-3.', 'osprey-cold-3', 'To which bucket does the nightly backup go?'],
  ['We agreed that the migration starts on the 19th of March.', '19th of March', 'When does the migration start?'],
  ['Invoices of the tannery are rounded down to ten cents.', 'ten cents', 'How are invoices of the tannery rounded?'],
];

export async function subagentsPart(context) {
  const { folder, sidecar, helper, plugin } = context;
  const store = join(folder, 'store.db');
  const wire = join(folder, 'wire.jsonl');
  const configFile = engineFile(folder, { engine: 'composed', store: { type: 'sqlite', path: store }, agents: { other: { subagents: { recall: false } } } });
  const settings = { plugin: { id: 'openbrain', path: plugin, config: launched({ folder, sidecar, configFile }) }, agents: ['main', 'other'] };
  await stage(context, 'subagents', settings, async ({ talk, log, requests, rest }) => {
    const ended = () => calls(wire).filter((c) => c.method === 'onSubagentEnded' && c.result).length;
    const child = async (agent) => {
      const session = `agent:${agent}:subagents`;
      for (const [i, [fact]] of FACTS.entries()) {
        await talk.turn(session, `${agent}-told-${i}`, fact);
        await talk.turn(session, `${agent}-diary-${i}`, `Chapter ${i} of the travel diary, please.`, '@@words 300');
      }
      const before = ended();
      const task = [`@@turn ${agent}-child`, `@@say ok ${agent}-child`, ...FACTS.map(([, , question]) => question)].join('\n');
      await talk.turn(session, `${agent}-spawns`, 'Send somebody.', tools([catalogued('sessions_spawn', { task, context: 'isolated' })]));
      await until(() => ended() > before, 60_000, 'the subagent to end');
      const asked = readLines(talk.requestLog).find((r) => r.turn === `${agent}-child`);
      check(asked, 'the child was not asked');
      const text = JSON.stringify(asked.body.messages);
      return FACTS.map(([, answer]) => text.split(answer).length - 1);
    };
    await scenario('subagents: an isolated child is told what its task asks of its parent, once', async () => {
      const times = await child('main');
      check(times.every((n) => n === 1), `the answers stand in its prompt ${times.join(', ')} times`);
      return `${times.length} of ${FACTS.length} answers`;
    });
    await scenario('subagents: with the key off it is told nothing', async () => {
      const times = await child('other');
      check(times.every((n) => n === 0), `the answers stand in its prompt ${times.join(', ')} times`);
    });
    await rest();
    judgePrompts('subagents', requests(), talk);
    judge('subagents: no turn degraded to legacy', degradations(log()));
    judge('subagents: every accepted turn is stored exactly once, byte for byte', missingOrTwice(await dump(helper, store), talk.accepted(), wire), `${talk.accepted().length} turns`);
  });
}
