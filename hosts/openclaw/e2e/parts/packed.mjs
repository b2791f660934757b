// The packed packages of a release, installed by the host from a registry on loopback, on a machine without Go: one install and the product document's five keys are all there is to do.
// E2E_PACKAGES is the folder with the packages.
import { spawn } from 'node:child_process';
import { readdirSync, readlinkSync, realpathSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { startRegistry } from '../lib/npm-registry.mjs';
import { run } from '../lib/process.mjs';
import { check, judge, scenario } from '../lib/report.mjs';
import { leaks } from '../lib/secrets.mjs';
import { until } from '../lib/wait.mjs';
import { talking } from '../scenarios/shared.mjs';
import { uninstalling } from '../scenarios/installing.mjs';
import { stage } from './stage.mjs';
import { degradations, judgePrompts } from './verdict.mjs';

const PACKAGE = 'openclaw-openbrain-context';
const platform = `contextengine-${process.platform}-${process.arch}`;

/** The paths of all running programs. */
const running = () => readdirSync('/proc').filter((name) => /^\d+$/.test(name)).map((pid) => {
  try { return readlinkSync(`/proc/${pid}/exe`); } catch { return ''; }
});

export async function packedPart(context) {
  const { folder, rig, helper, secrets, extraPort } = context;
  const packages = process.env.E2E_PACKAGES;
  if (!packages) throw new Error('E2E_PACKAGES names no folder; "make release" makes one');
  const registry = await startRegistry({ folder: packages, port: extraPort + 1 });
  const baseUrl = `http://127.0.0.1:${extraPort}`;
  const session = 'agent:main:packed';
  const server = spawn(helper, ['openbrain', `127.0.0.1:${extraPort}`, secrets.openBrainKey], { stdio: ['pipe', 'ignore', 'ignore'] });
  // Node and npm, and the system's own programs: no Go, no contextengine.
  const path = `${join(rig, 'node/node_modules/node/bin')}:/usr/bin:/bin`;
  const env = { PATH: path, npm_config_registry: registry.url, npm_config_ignore_scripts: 'true', npm_config_cache: join(folder, 'npm-cache'), npm_config_update_notifier: 'false' };
  try {
    await until(() => fetch(`${baseUrl}/healthz`).then((r) => r.ok, () => false), 20_000, 'the OpenBrain server');
    await stage(context, 'packed', { env, start: false }, async ({ installation, talk, log, requests }) => {
      writeFileSync(join(folder, 'home/.npmrc'), `registry=${registry.url}\nignore-scripts=true\n`);
      await scenario('packed: there is no Go and no contextengine on the path', async () => {
        for (const name of ['go', 'contextengine']) {
          const { code } = await run('sh', ['-c', `command -v ${name}`], { env: { PATH: path } });
          check(code !== 0, `${name} is there`);
        }
      });
      // The version is named because the host takes no prerelease by itself.
      const installed = await scenario('packed: the host installs one package, and of the platforms only this one comes along', async () => {
        const { code, stdout, stderr } = await installation.cli(['plugins', 'install', `${PACKAGE}@${registry.versions.get(PACKAGE)}`, '--force', '--accept-capabilities']);
        check(code === 0, `exit code ${code}: ${stdout.slice(-600)} ${stderr.slice(-600)}`);
        const fetched = [...new Set(registry.fetched)].sort();
        check(JSON.stringify(fetched) === JSON.stringify([platform, PACKAGE].sort()), `fetched were ${fetched}`);
        return fetched.join(', ');
      });
      if (!installed) return;
      await scenario("packed: the host's slot, and the document's five keys", async () => {
        const config = installation.readConfig();
        check(config.plugins.slots.contextEngine === 'openbrain', `the slot is ${config.plugins.slots.contextEngine}`);
        config.plugins.entries.openbrain.config = { baseUrl, apiKey: secrets.openBrainKey, source: 'e2e', recentMessages: 20, semanticSearchLimit: 10 };
        installation.writeConfig(config);
      });
      if (!await scenario('packed: gateway start', () => installation.start())) return;
      await talking('packed', talk, session);
      await scenario('packed: the sidecar is the program that was installed', async () => {
        const own = running().filter((exe) => exe.startsWith(`${realpathSync(folder)}/`));
        check(own.length > 0 && own.every((exe) => exe.endsWith(`/${platform}/bin/contextengine`)), `running are ${own}`);
      });
      await scenario('packed: the server holds the conversation', async () => {
        const headers = { authorization: `Bearer ${secrets.openBrainKey}` };
        await until(async () => {
          const stats = await fetch(`${baseUrl}/v1/stats`, { headers }).then((r) => r.json(), () => ({}));
          return Object.keys(stats.by_source ?? {}).some((s) => s.startsWith('e2e'));
        }, 20_000, 'thoughts on the server');
      });
      await scenario('packed: npx runs the program', async () => {
        const { code, stdout, stderr } = await run('npx', ['--yes', 'contextengine', 'version'], { env: { ...installation.env }, cwd: folder, timeoutMs: 120_000 });
        check(code === 0 && stdout.startsWith(`contextengine ${registry.versions.get('contextengine')} `), `exit code ${code}: ${stdout} ${stderr.slice(-300)}`);
        return stdout.split('\n')[0];
      });
      await installation.stop();
      judgePrompts('packed', requests(), talk);
      judge('packed: no turn degraded to legacy', degradations(log()));
      judge('packed: no planted secret in logs', leaks(secrets, [installation.logPath, join(folder, 'requests.jsonl')]));
      await uninstalling(installation);
    });
  } finally {
    await registry.stop();
    server.stdin.end();
    server.kill();
  }
}
