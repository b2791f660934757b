// Plugins to measure with: copies of the plugin in a folder of a run.
import { copyFileSync, cpSync, existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const beside = (name) => fileURLToPath(new URL(name, import.meta.url));

/** A copy of the plugin whose hooks are timed, and what the gateway needs in its environment. rows returns what was written down since it was asked last. */
export function timed(plugin, folder) {
  const path = join(folder, 'timed-plugin');
  cpSync(plugin, path, { recursive: true });
  renameSync(join(path, 'dist/index.js'), join(path, 'dist/plugin.js'));
  copyFileSync(beside('./stopwatch.mjs'), join(path, 'dist/index.js'));
  const file = join(folder, 'hooks.jsonl');
  let from = 0;
  const rows = () => {
    if (!existsSync(file)) return [];
    const all = readFileSync(file, 'utf8').split('\n').filter(Boolean);
    const out = all.slice(from).map((line) => JSON.parse(line));
    from = all.length;
    return out;
  };
  return { path, env: { E2E_HOOKS: file }, rows };
}

/** The plugin's shell around an engine that does nothing: no tools, no sidecar. */
export function idle(plugin, folder) {
  const path = join(folder, 'idle-plugin');
  cpSync(plugin, path, { recursive: true });
  copyFileSync(beside('./idle-engine.mjs'), join(path, 'dist/index.js'));
  const manifest = join(path, 'openclaw.plugin.json');
  const { contracts, toolMetadata, ...rest } = JSON.parse(readFileSync(manifest, 'utf8'));
  writeFileSync(manifest, JSON.stringify({ ...rest, configSchema: { type: 'object', properties: {} } }));
  return path;
}
