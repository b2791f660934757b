// The folders, configurations and secrets of one run.
import { randomBytes } from 'node:crypto';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const secret = (name) => `e2e-${name}-${randomBytes(12).toString('hex')}`;

/** Unique texts that must be found nowhere but where they belong. */
export const newSecrets = () => ({ gatewayToken: secret('gateway'), modelKey: secret('model'), openBrainKey: secret('brain') });

/** A memory of the host's that says lines. */
const MEMORY = { id: 'e2e-memory', path: fileURLToPath(new URL('./memory-plugin', import.meta.url)) };

/**
 * The host's configuration. everything loads the plugins that the host has on by itself; memory adds one that says lines.
 * @param {{folder: string, modelPort: number, gatewayPort: number, secrets: ReturnType<typeof newSecrets>, window: number, plugin?: {id: string, path: string, config: object}, agents?: string[], compaction?: object, everything?: boolean, memory?: boolean}} o
 */
export function hostConfig({ folder, modelPort, gatewayPort, secrets, window, plugin, agents = [], compaction = { keepRecentTokens: 3000 }, everything = false, memory = false }) {
  const loaded = [...(plugin ? [plugin] : []), ...(memory ? [MEMORY] : [])];
  return {
    gateway: { mode: 'local', bind: 'loopback', port: gatewayPort, auth: { mode: 'token', token: secrets.gatewayToken } },
    agents: {
      defaults: {
        workspace: join(folder, 'ws'), skipBootstrap: true, model: { primary: 'fake/fake-1' },
        // The host's audit of summaries is not what is tested here.
        compaction: { memoryFlush: { enabled: false }, qualityGuard: { enabled: false }, ...compaction },
        heartbeat: { every: '0m' },
      },
      ...(agents.length > 0 ? { entries: Object.fromEntries(agents.map((id) => [id, {}])) } : {}),
    },
    models: {
      mode: 'merge',
      providers: {
        fake: {
          baseUrl: `http://127.0.0.1:${modelPort}/v1`, apiKey: secrets.modelKey, api: 'openai-completions',
          models: [{ id: 'fake-1', name: 'Fake 1', reasoning: false, input: ['text'], cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 }, contextWindow: window, maxTokens: 4096 }],
        },
      },
    },
    // As newer hosts do by themselves: others put 84 kB of tool schemas into every prompt.
    tools: { toolSearch: { mode: 'tools' } },
    plugins: {
      enabled: true,
      // What the host brings along takes a fifth of the processor time of its start.
      ...(everything ? {} : { allow: ['openbrain', ...(memory ? [MEMORY.id] : [])] }),
      slots: { memory: memory ? MEMORY.id : 'none', ...(plugin ? { contextEngine: plugin.id } : {}) },
      ...(loaded.length > 0 ? { load: { paths: loaded.map((p) => p.path) }, entries: Object.fromEntries(loaded.map(({ id, config = {} }) => [id, { enabled: true, config }])) } : {}),
    },
  };
}

/** Writes an engine configuration and returns its path. */
export function engineFile(folder, engine) {
  mkdirSync(folder, { recursive: true });
  const path = join(folder, 'engine.json');
  writeFileSync(path, JSON.stringify(engine, null, 2));
  return path;
}

/** The plugin's configuration for a sidecar that it starts itself, with a tee on the wire unless time is measured. */
export function launched({ folder, sidecar, configFile, tee = true, more = {} }) {
  const [command, ...args] = tee ? ['node', fileURLToPath(new URL('./tee.mjs', import.meta.url)), join(folder, 'wire.jsonl'), ...sidecar] : sidecar;
  return { allowLaunch: true, command, args, configFile, ...more };
}
