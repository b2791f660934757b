// Whatever happens to the engine, a turn on a session that is longer than the model's window is answered within that window, and afterwards everything is stored.
// One outage of the sidecar and one of its store; E2E_MUTE=long plays all outages, with more turns; names of outages, such as E2E_MUTE=full,readonly, play those alone.
import { copyFileSync } from 'node:fs';
import { join } from 'node:path';

import { check, judge, scenario } from '../lib/report.mjs';
import { turnsIn, words } from '../lib/directives.mjs';
import { outages, smallDisk } from '../lib/outages.mjs';
import { engineFile } from '../lib/setup.mjs';
import { dump, storedTwice } from '../lib/stored.mjs';
import { textOf } from '../lib/tokens.mjs';
import { hostMessages } from '../lib/transcript.mjs';
import { stage } from './stage.mjs';
import { degradations, judgePrompts } from './verdict.mjs';

const WINDOW = 40_000;
const SESSION = 'agent:main:long';

/** What the engine cannot make smaller, the host or the plugin does, when the host finds a prompt too large and when the provider does. */
async function smallerWithoutEngine(talk, requests) {
  for (const [how, line] of [['preflight', `@@usage ${Math.floor(WINDOW * 0.9)}`], ['overflow', '@@overflow 1']]) {
    await scenario(`mute: without the engine a prompt that is too large gets smaller: ${how}`, async () => {
      const before = talk.model.requests();
      await talk.turn(SESSION, `${how}-1`, 'The provider counts this one high.', line);
      await talk.turn(SESSION, `${how}-2`, 'And on.');
      const log = requests().filter((r) => r.n > before);
      const summaries = log.filter((r) => r.kind === 'summary').length;
      check(how === 'overflow' || summaries > 0, 'the host never asked for a summary');
      // A demand of the host comes between the turns, a refusal within the first.
      const sizes = log.filter((r) => r.turn === `${how}-1` || (how === 'preflight' && r.turn === 'preflight-2')).map((r) => r.tokens);
      check(sizes.length > 1 && sizes.at(-1) < sizes[0], `the prompts cost ${sizes.join(', ')} tokens`);
      return `${sizes[0]} tokens, then ${sizes.at(-1)}; ${summaries} summaries`;
    });
  }
}

export async function mutePart(context) {
  const { folder, helper, plugin } = context;
  const long = process.env.E2E_MUTE === 'long';
  const turns = long ? 12 : 3;
  const disk = smallDisk(join(folder, 'disk'), '64m');
  const store = join(folder, 'disk', 'store.db');
  const program = join(folder, 'contextengine');
  const [original, ...args] = context.sidecar;
  copyFileSync(original, program);
  const ways = outages({ program, original, store, disk });
  const only = long ? Object.keys(ways) : process.env.E2E_MUTE?.split(',') ?? ['removed', disk ? 'full' : 'truncated'];
  const configFile = engineFile(folder, { engine: 'composed', store: { type: 'sqlite', path: store }, retriever: 'hybrid', compactor: 'archive' });
  const config = { allowLaunch: true, command: program, args, configFile, unresponsiveTimeoutMs: 3000, connectTimeoutMs: 8000 };
  try {
    await stage(context, 'mute', { window: WINDOW, plugin: { id: 'openbrain', path: plugin, config } }, async ({ installation, talk, requests }) => {
      const state = join(folder, 'state');
      /** Turns that the store lacks, of those that are named. */
      const missing = async (names) => {
        const stored = (await dump(helper, store)).filter((entry) => entry.session === SESSION && entry.type === 'message');
        const asked = new Set(stored.filter((entry) => entry.role === 'user').flatMap((entry) => turnsIn(entry.text)));
        const said = stored.filter((entry) => entry.role === 'assistant').map((entry) => entry.text).join('\n');
        return names.filter((name) => !asked.has(name) || !new RegExp(`\\bok ${name}\\b`).test(said)).map((name) => `turn ${name} is not in the store`);
      };
      await scenario('mute: a session of 70,000 tokens', async () => {
        for (let i = 1; i <= 10; i++) await talk.turn(SESSION, `grow-${i}`, words(`page ${i}`, 2000), '@@words 2900');
        const size = hostMessages(state, SESSION).reduce((n, message) => n + Buffer.byteLength(textOf(message.content)) / 4, 0);
        check(size > 70_000, `it has ${Math.round(size)} tokens only`);
        return `${Math.round(size)} tokens`;
      });
      for (const [name, way] of Object.entries(ways).filter(([n]) => only.includes(n))) {
        await scenario(`mute: ${name}: every turn is answered`, async () => {
          installation.mark();
          await way.begin?.();
          const times = [];
          for (let i = 1; i <= turns; i++) {
            way.each?.();
            const begun = Date.now();
            await talk.turn(SESSION, `${name}-${i}`, 'Are you there?', '@@words 60');
            times.push(Date.now() - begun);
          }
          const said = installation.newLog().split('\n').filter((line) => line.includes('until the engine is back')).length;
          check(way.lasts ? said === 1 : said <= 1, `the log says ${said} times that the engine is away`);
          return `${turns} turns, the slowest in ${(Math.max(...times) / 1000).toFixed(1)} s`;
        });
        if (name === 'removed') await smallerWithoutEngine(talk, requests);
        await scenario(`mute: ${name}: afterwards everything is in the store`, async () => {
          way.end?.();
          for (let i = 1; ; i++) {
            await talk.turn(SESSION, `${name}-back-${i}`, 'And now?');
            if (!way.lasts || /the engine is back (in \S+ )?after/.test(installation.newLog())) break;
            check(i < 20, 'the engine does not come back');
            await new Promise((resolve) => { setTimeout(resolve, 2000); });
          }
          // All that the host holds, and all that was said since the store was lost.
          const held = hostMessages(state, SESSION).filter((message) => message.role === 'user').flatMap((message) => turnsIn(textOf(message.content)));
          const answered = talk.accepted().map((turn) => turn.name);
          const names = way.loses ? answered.filter((turn) => held.includes(turn)) : answered;
          const lost = await missing(names);
          check(lost.length === 0, `${lost.length} of ${names.length}: ${lost[0]}`);
          return `${names.length} turns`;
        });
      }
      await installation.stop();
      const log = requests();
      judgePrompts('mute', log, talk);
      judge('mute: no request was refused', log.filter((r) => r.outcome.startsWith('refused')).map((r) => `${r.turn}: ${r.outcome}`));
      // The sidecar's own lines speak of its parts.
      judge('mute: no turn degraded to legacy', degradations(installation.log()).filter((line) => !line.includes('sidecar:')));
      judge('mute: no turn is stored twice', storedTwice(await dump(helper, store)));
      if (!disk) console.log('      mute: not run: no disk of its own for a full and a read-only store: mounting is not allowed here');
    });
  } finally {
    disk?.unmount();
  }
}
