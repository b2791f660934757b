// What changes under a session while it goes on: the model and its window, the configuration, the sidecar and the gateway in the middle of a turn, and a reset.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

import { check, judge, scenario } from '../lib/report.mjs';
import { turnsIn, words } from '../lib/directives.mjs';
import { engineFile, launched } from '../lib/setup.mjs';
import { dump, missingOrTwice, storedTwice } from '../lib/stored.mjs';
import { textOf } from '../lib/tokens.mjs';
import { stage } from './stage.mjs';
import { degradations, judgePrompts } from './verdict.mjs';

const LARGE = 64_000;
const SMALL = 20_000;
const SESSION = 'agent:main:changes';

const sleep = (ms) => new Promise((resolve) => { setTimeout(resolve, ms); });

export async function changesPart(context) {
  const { folder, sidecar, helper, plugin } = context;
  const store = join(folder, 'store.db');
  const wire = join(folder, 'wire.jsonl');
  const configFile = engineFile(folder, { engine: 'composed', store: { type: 'sqlite', path: store } });
  const settings = { window: LARGE, start: false, plugin: { id: 'openbrain', path: plugin, config: launched({ folder, sidecar, configFile }) } };
  await stage(context, 'changes', settings, async ({ installation, talk, log, requests, rest }) => {
    const say = async (name, count, ...lines) => {
      for (let i = 1; i <= count; i++) await talk.turn(SESSION, `${name}-${i}`, words(`${name} ${i}`, 700), '@@words 900', ...lines);
    };
    const use = async (model, window) => {
      await installation.call('sessions.patch', { key: SESSION, model: `fake/${model}` });
      talk.model.resize(window);
    };
    if (!await scenario('changes: gateway start', async () => {
      const config = installation.readConfig();
      const { models } = config.models.providers.fake;
      models.push({ ...models[0], id: 'fake-small', name: 'Small', contextWindow: SMALL });
      installation.writeConfig(config);
      await installation.start();
    })) return;
    await scenario('changes: a session for the large model', () => say('large', 12));
    await scenario('changes: a model with a smaller window goes on with it, and the first one again', async () => {
      await use('fake-small', SMALL);
      await say('small', 4);
      await use('fake-1', LARGE);
      await say('again', 2);
      const sizes = requests().filter((r) => r.kind === 'turn').map((r) => `${r.body.model} ${r.tokens}`);
      check(requests().some((r) => r.body.model === 'fake-small' && r.turn === 'small-1'), `the model was not changed: ${sizes.join(', ')}`);
      return sizes.slice(-8).join(', ');
    });
    await scenario('changes: another configuration of the plugin', async () => {
      await installation.reconfigure((config) => { config.plugins.entries.openbrain.config.callTimeoutMs = 29_000; });
      await say('configured', 2);
    });
    await scenario('changes: the sidecar is killed while the model answers', async () => {
      for (let i = 1; i <= 3; i++) {
        const turn = talk.turn(SESSION, `killed-${i}`, 'Take your time.', '@@delay 1500');
        await sleep(700);
        process.kill(Number(readFileSync(`${wire}.pid`, 'utf8')), 'SIGKILL');
        await turn;
      }
    });
    await scenario('changes: the gateway is killed while the model answers', async () => {
      const cut = talk.attempt(SESSION, 'cut-1', 'This one is not answered.', '@@delay 4000');
      await sleep(2000);
      await installation.kill();
      await cut;
      await installation.start();
      await talk.turnAfterRestart(SESSION, 'started-1', 'And on.');
      await say('restarted', 2);
    });
    await scenario('changes: what was before a reset is not shown after it', async () => {
      await installation.call('sessions.reset', { key: SESSION });
      await say('reset', 2);
      const shown = requests().at(-1).body.messages.filter((m) => m.role === 'user').flatMap((m) => turnsIn(textOf(m.content)));
      check(shown.every((name) => name.startsWith('reset')), `shown are ${shown.join(', ')}`);
    });
    await rest();
    judgePrompts('changes', requests(), talk);
    judge('changes: no turn degraded to legacy', degradations(log()));
    const entries = await dump(helper, store);
    judge('changes: every accepted turn is stored exactly once, byte for byte', missingOrTwice(entries, talk.accepted(), wire), `${talk.accepted().length} turns`);
    judge('changes: no turn is stored twice', storedTwice(entries));
  });
}
