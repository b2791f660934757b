// The engine openbrain against a server on loopback, configured by the plugin's configuration alone: its key must be seen by its own server only.
import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';

import { check, judge, scenario } from '../lib/report.mjs';
import { leaks } from '../lib/secrets.mjs';
import { launched } from '../lib/setup.mjs';
import { until } from '../lib/wait.mjs';
import { calls } from '../lib/wire.mjs';
import { talking } from '../scenarios/shared.mjs';
import { stage } from './stage.mjs';
import { degradations, judgePrompts } from './verdict.mjs';

const MISSING = 'openclaw-openbrain-context: baseUrl and apiKey are required. Set them in your openclaw.json plugin config.';

export async function openBrainPart(context) {
  const { folder, sidecar, helper, plugin, secrets, extraPort } = context;
  const wire = join(folder, 'wire.jsonl');
  const baseUrl = `http://127.0.0.1:${extraPort}`;
  const session = 'agent:main:brain';
  const server = spawn(helper, ['openbrain', `127.0.0.1:${extraPort}`, secrets.openBrainKey], { stdio: ['pipe', 'ignore', 'ignore'] });
  const complete = { baseUrl, apiKey: secrets.openBrainKey };
  try {
    await until(() => fetch(`${baseUrl}/healthz`).then((r) => r.ok, () => false), 20_000, 'the OpenBrain server');
    const config = { ...launched({ folder, sidecar }), source: 'e2e' };
    await stage(context, 'openbrain', { plugin: { id: 'openbrain', path: plugin, config } }, async ({ installation, talk, requests }) => {
      await scenario('openbrain: without address and key every turn is answered, and the log says what to do', async () => {
        await talk.turn(session, 'bare-1', 'Hello.');
        await talk.turn(session, 'bare-2', 'Hello again.');
        check(installation.log().includes(MISSING), 'the log does not have the text');
        check(!existsSync(wire), 'a sidecar was started');
      });
      const from = installation.log().length;
      await scenario('openbrain: configured, gateway restart', async () => {
        await installation.stop();
        const now = installation.readConfig();
        Object.assign(now.plugins.entries.openbrain.config, complete);
        installation.writeConfig(now);
        await installation.start();
      });
      await talking('openbrain', talk, session);
      await scenario('openbrain: the server holds the conversation under the configured source', async () => {
        await talk.turn(session, 'brain-last', 'What did the note say?');
        let stats = {};
        // Messages are stored on this machine and delivered behind the turn.
        await until(async () => {
          stats = await fetch(`${baseUrl}/v1/stats`, { headers: { authorization: `Bearer ${secrets.openBrainKey}` } }).then((r) => r.json(), () => ({}));
          return stats.total > 0 && Object.keys(stats.by_source ?? {}).some((s) => s.startsWith('e2e'));
        }, 20_000, 'thoughts on the server');
        const { thoughts } = await fetch(`${baseUrl}/v1/thoughts/recent?limit=1&source=e2e:main`, { headers: { authorization: `Bearer ${secrets.openBrainKey}` } }).then((r) => r.json());
        const keys = Object.keys(thoughts?.[0]?.metadata ?? {});
        for (const key of ['sessionId', 'turn', 'role', 'type']) check(keys.includes(key), `metadata has ${keys}, and no ${key}`);
        return `${stats.total} thoughts`;
      });
      await installation.stop();
      judgePrompts('openbrain', requests(), talk);
      judge('openbrain: no turn degraded to legacy', degradations(installation.log().slice(from)).filter((line) => !line.includes('bare-')));
      const commits = calls(wire).filter((c) => c.method === 'commitTurn');
      judge('openbrain: every turn is committed', commits.filter((c) => !c.result).map((c) => JSON.stringify(c.error)), `${commits.length} turns`);
      judge('openbrain: no planted secret on the wire, in logs or files', leaks(secrets, [wire, installation.logPath, join(folder, 'requests.jsonl'), join(folder, 'home'), join(folder, 'ws')]));
    });
  } finally {
    server.stdin.end();
    server.kill();
  }
}
