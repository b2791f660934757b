// The plugin without a host: the same turns through its engine, with the real sidecar, in a process that does nothing else meanwhile. What its hooks take here
// is the plugin's own; inside a gateway the time until an answer also holds what the gateway does in between.
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

const SESSION = { sessionId: 'alone', sessionKey: 'agent:main:alone' };
const WINDOW = 128_000;
const RESERVE = 20_000;

/** Plays turns and returns, for each, the milliseconds that its hooks took. plugin is the plugin's folder, config its configuration. */
export async function alone({ plugin, config, turns }) {
  const part = (name) => import(pathToFileURL(join(plugin, 'dist', `${name}.js`)).href);
  const [{ readSettings }, { Connection }, { newEngine }, { Shared }] = await Promise.all(['config', 'connection', 'engine', 'shared'].map(part));
  const problems = [];
  const logger = { info: () => {}, warn: (line) => problems.push(line), error: (line) => problems.push(line) };
  const settings = readSettings(config, {});
  const connection = new Connection({ settings, env: process.env, logger, hostVersion: 'none' });
  const shared = new Shared(settings, connection, logger, async () => ({}));
  const history = [];
  const out = [];
  try {
    for (const [i, { lines, answer }] of turns.entries()) {
      const prompt = lines.filter((line) => !line.startsWith('@@')).join('\n');
      // Hosts hand over copies. Making them is not the plugin's work.
      const [before, turn] = structuredClone([history, [said('user', prompt, i), { ...said('assistant', [{ type: 'text', text: answer }], i), stopReason: 'stop' }]]);
      const engine = newEngine(shared, 'openbrain', true, {});
      const spent = {};
      const timed = async (hook, params) => {
        const began = performance.now();
        const result = await engine[hook]({ ...SESSION, ...params });
        spent[hook] = (spent[hook] ?? 0) + performance.now() - began;
        return result;
      };
      if (history.length > 0) await timed('bootstrap', {});
      const granted = WINDOW - RESERVE;
      const { messages } = await timed('assemble', { messages: before, prompt, tokenBudget: granted, model: 'm', runtimeSettings: { limits: { promptTokenBudget: granted, maxOutputTokens: RESERVE } } });
      const again = structuredClone(messages);
      await timed('assemble', { messages: again, prompt, tokenBudget: WINDOW - 500, model: 'm', runtimeSettings: { limits: { promptTokenBudget: WINDOW, maxOutputTokens: null } } });
      await timed('commitTurn', { advancementKey: `turn ${i}`, messages: turn });
      await engine.maintain({ ...SESSION, runtimeContext: { allowDeferredCompactionExecution: true } });
      await timed('dispose', {});
      history.push(...turn);
      out.push(spent);
    }
  } finally {
    await connection.stop();
  }
  if (problems.length > 0) throw new Error(`the plugin alone: ${problems[0]}`);
  return out;
}

const said = (role, content, i) => ({ role, content, timestamp: 1_700_000_000_000 + 1000 * i });
