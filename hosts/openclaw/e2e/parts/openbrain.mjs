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
    await stage(context, 'openbrain', { plugin: { id: 'openbrain', path: plugin, config } }, async ({ installation, talk, log, requests, rest }) => {
      await scenario('openbrain: without address and key every turn is answered, and the log says what to do', async () => {
        await talk.turn(session, 'bare-1', 'Hello.');
        await talk.turn(session, 'bare-2', 'Hello again.');
        check(log().includes(MISSING), 'the log does not have the text');
        check(!existsSync(wire), 'a sidecar was started');
      });
      const from = log().length;
      await scenario('openbrain: configured under the running gateway', () => installation.reconfigure((now) => { Object.assign(now.plugins.entries.openbrain.config, complete); }));
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
      await rest();
      judgePrompts('openbrain', requests(), talk);
      judge('openbrain: no turn degraded to legacy', degradations(log().slice(from)).filter((line) => !line.includes('bare-')));
      const commits = calls(wire).filter((c) => c.method === 'commitTurn');
      judge('openbrain: every turn is committed', commits.filter((c) => !c.result).map((c) => JSON.stringify(c.error)), `${commits.length} turns`);
      judge('openbrain: no planted secret on the wire, in logs or files', leaks(secrets, [wire, installation.logPath, ...['requests.jsonl', 'home', 'ws'].map((name) => join(installation.folder, name))]));
    });
  } finally {
    server.stdin.end();
    server.kill();
  }
}
