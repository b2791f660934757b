// What plugin and sidecar add to a turn, measured where the host calls the plugin: assemble and commitTurn at 5,000 stored messages. The host is not
// part of it; its sidecar, store and plugin are the real ones.
import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { availableParallelism, loadavg } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

import { check, measured, scenario } from '../lib/report.mjs';
import { words } from '../lib/directives.mjs';
import { children, processorTime } from '../lib/processor.mjs';
import { engineFile } from '../lib/setup.mjs';
import { until } from '../lib/wait.mjs';


const STORED = 5000;
const TURNS = 100;
/** Milliseconds. */
const GOAL = 15;

/** A host's messages of one turn. */
function turnOf(i) {
  const at = 1_767_225_600_000 + i * 60_000;
  return [
    { role: 'user', content: `Question ${i}: ${words(`q${i}`, 25)}`, timestamp: at, idempotencyKey: `key-${i}:user` },
    {
      role: 'assistant', content: [{ type: 'text', text: `Answer ${i}: ${words(`a${i}`, 60)}` }], api: 'openai-completions', provider: 'fake', model: 'fake-1',
      usage: { input: 1000 + i, output: 80, cacheRead: 0, cacheWrite: 0, totalTokens: 1080 + i }, stopReason: 'stop', timestamp: at + 1000, responseId: `r-${i}`,
    },
  ];
}

/** The newest child process of this one. */
const newestChild = () => Math.max(...children('self'));

const median = (values) => [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)];

/** Registers the plugin as the host does and returns a maker of engines, and what ends the sidecar. */
async function load(plugin, pluginConfig) {
  const { default: entry } = await import(pathToFileURL(join(plugin, 'dist/index.js')).href);
  const factories = new Map();
  let service;
  const quiet = () => {};
  entry.register({
    registrationMode: 'full', pluginConfig, config: { plugins: { slots: { contextEngine: 'openbrain' } } },
    logger: { info: quiet, warn: (text) => console.log(text), error: console.log },
    registerContextEngine: (id, factory) => factories.set(id, factory),
    registerService: (s) => { service = s; },
  });
  return { engine: () => factories.get('openbrain')({}), stop: () => service.stop() };
}

async function measure(label, plugin, pluginConfig, pid = newestChild) {
  const { engine, stop } = await load(plugin, pluginConfig);
  const session = { sessionId: 's1', sessionKey: 'agent:main:overhead' };
  const runtimeSettings = { model: { provider: 'fake', resolved: 'fake-1' }, limits: { promptTokenBudget: 100_000, maxOutputTokens: 4096 } };
  const loopSettings = { ...runtimeSettings, limits: { promptTokenBudget: 128_000, maxOutputTokens: null } };
  let history = [];
  for (let i = 0; i < STORED / 2; i++) history.push(...turnOf(i));
  // The host reads its messages anew for every turn: objects that were never seen before.
  const fresh = () => structuredClone(history);
  let own = 0;
  const timed = async (work) => {
    const before = process.cpuUsage();
    const begin = performance.now();
    const value = await work();
    const wall = performance.now() - begin;
    const { user, system } = process.cpuUsage(before);
    own += (user + system) / 1000;
    return [wall, value];
  };
  try {
    const first = await engine();
    const [cold, seeded] = await timed(() => first.assemble({ ...session, messages: fresh(), tokenBudget: 100_000, prompt: 'Where were we?', runtimeSettings }));
    check(seeded.estimatedTokens > 0, 'the first call was not answered by the engine');
    const times = { both: [], assemble: [], loop: [], commit: [] };
    own = 0;
    const sidecarBefore = processorTime(pid());
    for (let i = 0; i < TURNS; i++) {
      const e = await engine();
      const turn = turnOf(STORED / 2 + i);
      const messages = fresh();
      const [assemble, result] = await timed(() => e.assemble({ ...session, messages, tokenBudget: 100_000, prompt: turn[0].content, runtimeSettings }));
      check(result.estimatedTokens > 0, `call ${i} was not answered by the engine`);
      const [loop] = await timed(() => e.assemble({ ...session, messages: result.messages, tokenBudget: 127_000, prompt: turn[0].content, runtimeSettings: loopSettings }));
      const [commit, done] = await timed(() => e.commitTurn({ ...session, advancementKey: `turn-${i}`, messages: turn }));
      check(done.status === 'committed', `turn ${i} was not committed`);
      times.both.push(assemble + commit);
      times.assemble.push(assemble);
      times.loop.push(loop);
      times.commit.push(commit);
      history.push(...turn);
      await e.maintain({ ...session, runtimeContext: { allowDeferredCompactionExecution: true } });
    }
    const m = Object.fromEntries(Object.entries(times).map(([key, values]) => [key, median(values).toFixed(1)]));
    const pluginTime = own / TURNS;
    const sidecar = (processorTime(pid()) - sidecarBefore) / TURNS;
    const load = loadavg()[0];
    const busy = load > availableParallelism() / 2;
    const text = `assemble ${m.assemble} ms, commit ${m.commit} ms, together ${m.both} ms (median of ${TURNS}), each loop call ${m.loop} ms, cold first call ${cold.toFixed(0)} ms; `
      + `processor time a turn, loop call and maintenance included: plugin ${pluginTime.toFixed(1)} ms, sidecar ${sidecar.toFixed(1)} ms; load ${load.toFixed(1)}`;
    const met = median(times.both) < GOAL;
    // Where others use the machine, the clock measures them.
    measured(`overhead, ${label}: assemble plus commit at ${STORED} messages, goal ${GOAL} ms ${met ? 'met' : 'missed'}${busy ? ' on a busy machine' : ''}`, text);
  } finally {
    await stop();
  }
}

export async function overheadPart(context) {
  const { folder, sidecar, plugin } = context;
  const [command, ...args] = sidecar;
  const file = (name) => engineFile(join(folder, name), { engine: 'composed', store: { type: 'sqlite', path: join(folder, name, 'store.db') }, retriever: 'hybrid', compactor: 'archive' });
  await scenario('overhead: a sidecar that the plugin starts', () => measure('stdio', plugin, { allowLaunch: true, command, args, configFile: file('stdio') }));
  await scenario('overhead: a sidecar behind a socket', async () => {
    const socket = join(folder, 'ce.sock');
    const child = spawn(command, [...args.filter((a) => a !== '--stdio'), '--socket', socket], { env: { ...process.env, CONTEXTENGINE_CONFIG: file('socket') }, stdio: ['ignore', 'ignore', 'ignore'] });
    try {
      await until(() => existsSync(socket), 20_000, 'the socket');
      await measure('socket', plugin, { socket }, () => child.pid);
    } finally {
      child.kill('SIGTERM');
    }
  });
}
