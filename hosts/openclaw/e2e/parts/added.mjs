// What the plugin adds to a turn in the real host: the same turns with the host's own engine, with an engine that does nothing, and with the plugin, each in a
// gateway of its own, turn by turn in an order that changes. Beside the clock, which others move, stand the time inside the plugin's hooks, how much of it the
// gateway had nothing else to do, the processor time of the processes, and what the hooks take without a gateway. E2E_ADDED is how many turns are played (60).
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { availableParallelism, loadavg } from 'node:os';
import { join } from 'node:path';

import { alone } from '../lib/alone.mjs';
import { idle, timed } from '../lib/measured-plugin.mjs';
import { measured, scenario } from '../lib/report.mjs';
import { engineFile, launched } from '../lib/setup.mjs';
import { processorTime, within } from '../lib/processor.mjs';
import { files, script } from '../scenarios/planted.mjs';
import { stage } from './stage.mjs';

const SESSION = 'agent:main:added';
/** All turns fit: no arm compacts, and the prompts of all are the same. */
const WINDOW = 128_000;
/** The first turns start what the others use. */
const WARM = 5;
/** Milliseconds. */
const GOAL = 10;
/** What the user waits for; maintain runs behind the reply. */
const WAITED = ['register', 'factory', 'tools', 'bootstrap', 'assemble', 'commitTurn', 'compact', 'dispose'];

const quantile = (values, q) => [...values].sort((a, b) => a - b)[Math.min(values.length - 1, Math.floor(values.length * q))] ?? 0;
const ms = (n) => `${n.toFixed(1)} ms`;

export async function addedPart(context) {
  const turns = Number(process.env.E2E_ADDED ?? 60);
  const played = script(turns);
  const answers = new Map(played.map((t) => [t.name, t.answer]));
  const arms = ['legacy', 'idle', 'plugin'].map((name, n) => {
    const folder = join(context.folder, name);
    mkdirSync(folder, { recursive: true });
    return { name, folder, modelPort: context.modelPort + 2 * n, gatewayPort: context.gatewayPort + 2 * n, wall: [], cpu: [], sidecar: [], hooks: {}, idle: {}, waited: [], waitedIdle: [] };
  });
  const [legacy, bare, ours] = arms;
  bare.plugin = { id: 'openbrain', path: idle(context.plugin, bare.folder), config: {} };
  const clock = timed(context.plugin, ours.folder);
  const engine = engineFile(ours.folder, { engine: 'composed', store: { type: 'sqlite', path: join(ours.folder, 'store.db') }, ...JSON.parse(process.env.E2E_COST_ENGINE ?? '{}') });
  ours.plugin = { id: 'openbrain', path: clock.path, config: launched({ folder: ours.folder, sidecar: context.sidecar, configFile: engine, tee: false }) };

  const turnOf = async (arm, i, talk, pid) => {
    const { name, lines } = played[i];
    const [gateway, child] = [processorTime(pid), arm === ours ? within(pid) : 0];
    const began = performance.now();
    await talk.turn(SESSION, name, ...lines);
    const wall = performance.now() - began;
    await new Promise((resolve) => { setTimeout(resolve, 150); }); // what runs behind the reply belongs to its turn
    if (i < WARM) {
      if (arm === ours) clock.rows();
      return;
    }
    arm.wall.push(wall);
    arm.cpu.push(processorTime(pid) - gateway);
    if (arm !== ours) return;
    arm.sidecar.push(within(pid) - child);
    const [sums, idles] = [{}, {}];
    for (const { hook, ms: spent, idle: nothing = 0 } of clock.rows()) {
      sums[hook] = (sums[hook] ?? 0) + spent;
      idles[hook] = (idles[hook] ?? 0) + nothing;
    }
    for (const hook of [...WAITED, 'maintain']) {
      (arm.hooks[hook] ??= []).push(sums[hook] ?? 0);
      (arm.idle[hook] ??= []).push(idles[hook] ?? 0);
    }
    arm.waited.push(WAITED.reduce((sum, hook) => sum + (sums[hook] ?? 0), 0));
    arm.waitedIdle.push(WAITED.reduce((sum, hook) => sum + (idles[hook] ?? 0), 0));
  };

  const play = async (stages) => {
    await scenario(`added: ${turns} turns with ${arms.map((a) => a.name).join(', ')}, turn by turn`, async () => {
      for (let i = 0; i < played.length; i++) {
        for (let n = 0; n < arms.length; n++) {
          const at = (i + n) % arms.length;
          await turnOf(arms[at], i, stages[at].talk, stages[at].installation.pid);
        }
      }
    });
    report();
  };
  const open = async (stages) => {
    const arm = arms[stages.length];
    if (!arm) return play(stages);
    await stage({ ...context, ...arm }, `added ${arm.name}`, { window: WINDOW, plugin: arm.plugin, env: arm === ours ? clock.env : {}, script: { answer: (turn) => answers.get(turn) }, everything: true }, async (set) => {
      for (const [name, text] of files()) writeFileSync(join(arm.folder, 'ws', name), `${text}\n`);
      await open([...stages, set]);
    });
  };
  await open([]);
  await scenario(`added: ${turns} turns with the plugin alone`, async () => {
    const folder = join(context.folder, 'alone');
    const configFile = engineFile(folder, { engine: 'composed', store: { type: 'sqlite', path: join(folder, 'store.db') } });
    const rows = (await alone({ plugin: context.plugin, config: launched({ folder, sidecar: context.sidecar, configFile, tee: false }), turns: played })).slice(WARM);
    const of = (hook) => rows.map((row) => row[hook] ?? 0);
    const whole = rows.map((row) => Object.values(row).reduce((a, b) => a + b, 0));
    console.log(['', '| hook of the plugin without a gateway, ms a turn | p50 | p95 |', '|---|--:|--:|',
      ...['bootstrap', 'assemble', 'commitTurn', 'dispose'].map((hook) => [hook, of(hook)]).concat([['all', whole]]).map(([hook, values]) => `| ${hook} | ${quantile(values, 0.5).toFixed(2)} | ${quantile(values, 0.95).toFixed(2)} |`), ''].join('\n'));
    measured(`the plugin's own time in a turn, p50, goal ${GOAL} ms (load ${loadavg()[0].toFixed(1)})`, `${ms(quantile(whole, 0.5))} (${quantile(whole, 0.5) <= GOAL ? 'met' : 'missed'})`);
  });

  function report() {
    const paired = (arm, key) => arm[key].map((value, i) => value - legacy[key][i]);
    const mean = (values) => values.reduce((a, b) => a + b, 0) / Math.max(1, values.length);
    const load = loadavg()[0];
    console.log(['', '| engine | turn p50 | p95 | added p50 (of pairs) | p95 | gateway\'s processor time, mean | added | sidecar\'s |', `|---|${'--:|'.repeat(7)}`,
      ...arms.map((a) => `| ${a.name} | ${ms(quantile(a.wall, 0.5))} | ${ms(quantile(a.wall, 0.95))} | ${a === legacy ? '' : ms(quantile(paired(a, 'wall'), 0.5))} | ${a === legacy ? '' : ms(quantile(paired(a, 'wall'), 0.95))} `
        + `| ${ms(mean(a.cpu))} | ${a === legacy ? '' : ms(mean(a.cpu) - mean(legacy.cpu))} | ${a === ours ? ms(mean(a.sidecar)) : ''} |`), '',
      '| hook of the plugin, ms a turn | p50 | p95 | gateway idle meanwhile, p50 |', '|---|--:|--:|--:|',
      ...[...Object.keys(ours.hooks).map((hook) => [hook, ours.hooks[hook], ours.idle[hook]]), ['all that a user waits for', ours.waited, ours.waitedIdle]]
        .map(([hook, values, nothing]) => `| ${hook} | ${quantile(values, 0.5).toFixed(2)} | ${quantile(values, 0.95).toFixed(2)} | ${quantile(nothing, 0.5).toFixed(2)} |`), ''].join('\n'));
    const inside = quantile(ours.waited, 0.5);
    const whole = quantile(paired(ours, 'wall'), 0.5);
    const verdict = (value) => (value <= GOAL ? 'met' : 'missed');
    measured(`added to a turn, p50, goal ${GOAL} ms${load > availableParallelism() / 2 ? `, on a busy machine (load ${load.toFixed(1)})` : ''}`,
      `inside the plugin's hooks ${ms(inside)} (${verdict(inside)}); by the clock ${ms(whole)} (${verdict(whole)}), of which an engine that does nothing has ${ms(quantile(paired(bare, 'wall'), 0.5))}`);
  }
}
