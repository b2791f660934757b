// The entry of a plugin whose work is measured: the plugin's own entry is beside it as plugin.js. Every call of the host is written down with the time until
// its answer, in milliseconds, at the end of the turn, in the file that E2E_HOOKS names: the host runs plugins from copies of its own.
import { appendFileSync } from 'node:fs';

import plugin from './plugin.js';

const file = process.env.E2E_HOOKS;
const HOOKS = ['bootstrap', 'maintain', 'assemble', 'commitTurn', 'compact', 'dispose'];
let rows = [];

const note = (written) => appendFileSync(file, written.map((row) => `${JSON.stringify(row)}\n`).join(''));

async function timed(hook, work) {
  const [began, before] = [performance.now(), performance.eventLoopUtilization()];
  try {
    return await work();
  } finally {
    // The gateway goes on working while the plugin waits: idle is how long nobody in it had anything to do.
    rows.push({ hook, ms: performance.now() - began, idle: performance.eventLoopUtilization(before).idle });
  }
}

function clocked(engine) {
  const out = Object.create(engine, { info: { value: engine.info, enumerable: true } });
  for (const hook of HOOKS) {
    out[hook] = async (...args) => {
      const result = await timed(hook, () => engine[hook]?.(...args));
      if (hook === 'dispose' || hook === 'maintain') {
        const written = rows;
        rows = [];
        note(written);
      }
      return result;
    };
  }
  for (const hook of ['ingest', 'ingestBatch', 'afterTurn', 'prepareSubagentSpawn', 'onSubagentEnded']) if (engine[hook]) out[hook] = engine[hook].bind(engine);
  return out;
}

export default {
  ...plugin,
  register(api) {
    const registerContextEngine = (id, factory) => api.registerContextEngine(id, (context) => timed('factory', async () => clocked(await factory(context))));
    const registerTool = (factory, options) => api.registerTool(typeof factory !== 'function' ? factory : (context) => {
      const began = performance.now();
      const tool = factory(context);
      const ms = performance.now() - began;
      setImmediate(() => note([{ hook: 'tools', ms }])); // the host makes tools with a copy of the plugin that never sees an engine
      return tool;
    }, options);
    const began = performance.now();
    plugin.register(Object.assign(Object.create(api), { registerContextEngine, registerTool }));
    note([{ hook: 'register', ms: performance.now() - began }]); // the host may do that for a turn as well
  },
};
