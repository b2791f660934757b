// The engine openbrain against a server on loopback, configured by the plugin's configuration alone: its key must be seen by its own server only.
import { spawn } from 'node:child_process';
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';

import { check, judge, scenario } from '../lib/report.mjs';
import { turnsIn } from '../lib/directives.mjs';
import { leaks } from '../lib/secrets.mjs';
import { launched } from '../lib/setup.mjs';
import { textOf } from '../lib/tokens.mjs';
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
      await scenario('openbrain: configured under the running gateway', () => installation.reconfigure((now) => {
        Object.assign(now.plugins.entries.openbrain.config, complete);
        now.channels = { telegram: { enabled: false, botToken: secrets.gatewayToken, dmHistoryLimit: 2 } };
      }));
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
      await scenario("openbrain: the sidecar is told the agent's folders, and one file is for all agents", async () => {
        const told = calls(wire).filter((c) => c.method === 'factory').map((c) => c.params);
        const agent = join(installation.folder, 'state', 'agents', 'main', 'agent');
        check(told.some((p) => p.agent === 'main' && p.agentDir === agent && p.workspaceDir !== undefined), `the sidecar was told ${JSON.stringify(told)}`);
        const shared = join(installation.folder, 'home/.local/state/contextengine');
        for (const file of ['store.db', 'store.db-outbox']) check(existsSync(join(shared, file)), `${file} is not in ${shared}`);
        const stray = readdirSync(agent, { recursive: true }).filter((name) => /store\.db|contextengine/.test(name));
        check(stray.length === 0, `the agent's folder has ${stray}`);
      });
      await scenario("openbrain: limits of the host's channels hold in the engine", async () => {
        const direct = 'agent:main:telegram:direct:alice';
        for (let i = 1; i <= 5; i++) await talk.turn(direct, `limited-${i}`, 'Good day.');
        const last = requests().findLast((r) => r.turn === 'limited-5');
        const shown = last.body.messages.filter((m) => m.role === 'user' && !textOf(m.content).includes('<recalled>')).flatMap((m) => turnsIn(textOf(m.content)));
        check(shown.length >= 2 && shown.length <= 4, `the model was shown the turns ${shown}`);
        const channels = calls(wire).filter((c) => c.method === 'factory').at(-1)?.params.channels;
        check(JSON.stringify(channels) === '{"telegram":{"dmHistoryLimit":2}}', `the sidecar was told ${JSON.stringify(channels)}`);
        return shown.join(', ');
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
