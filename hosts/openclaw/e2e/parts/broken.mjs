// A broken engine never costs the user a reply.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

import { judge, scenario } from '../lib/report.mjs';
import { stage } from './stage.mjs';
import { judgePrompts } from './verdict.mjs';

export async function brokenPart(context) {
  const { folder, plugin } = context;
  const mode = join(folder, 'mode');
  writeFileSync(mode, 'error');
  const config = {
    engine: 'composed', allowLaunch: true, command: 'node', args: [fileURLToPath(new URL('../lib/broken-sidecar.mjs', import.meta.url)), mode],
    assembleTimeoutMs: 1500, commitTimeoutMs: 1500, callTimeoutMs: 1500, compactTimeoutMs: 3000, maintainTimeoutMs: 1500, connectTimeoutMs: 3000,
  };
  await stage(context, 'broken', { plugin: { id: 'openbrain', path: plugin, config } }, async ({ installation, talk, log, requests }) => {
    for (const how of ['error', 'hang', 'garbage', 'nonsense', 'exit']) {
      await scenario(`broken: an engine that answers with ${how} loses no reply`, async () => {
        writeFileSync(mode, how);
        for (let i = 1; i <= 3; i++) await talk.turn(`agent:main:${how}`, `${how}-${i}`, 'Are you there?');
      });
    }
    await scenario('broken: no sidecar at all loses no reply', async () => {
      await installation.reconfigure((config) => { config.plugins.entries.openbrain.config = { socket: join(folder, 'nobody.sock'), connectTimeoutMs: 1000 }; });
      for (let i = 1; i <= 3; i++) await talk.turn('agent:main:none', `none-${i}`, 'Are you there?');
    });
    judge('broken: the log says that something is wrong', /openclaw-openbrain-context: (assemble|bootstrap|commitTurn)/.test(log()) ? [] : ['it does not']);
    judgePrompts('broken', requests(), talk);
  });
}
