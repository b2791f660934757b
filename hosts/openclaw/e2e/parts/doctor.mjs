// What doctor says about a live installation, in every known way of being installed and not used: the cause and what to do about it.
import { cpSync, existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { spawn } from 'node:child_process';
import { join } from 'node:path';

import { diagnosing, failing } from '../lib/diagnosis.mjs';
import { check, scenario } from '../lib/report.mjs';
import { leaks } from '../lib/secrets.mjs';
import { engineFile } from '../lib/setup.mjs';
import { dump } from '../lib/stored.mjs';
import { until } from '../lib/wait.mjs';
import { installing, uninstalling } from '../scenarios/installing.mjs';
import { stage } from './stage.mjs';

export async function doctorPart(context) {
  const { folder, plugin, secrets, helper } = context;
  const [program, ...serve] = context.sidecar;
  const store = join(folder, 'store.db');
  const socket = join(folder, 'ce.sock');
  const configFile = engineFile(folder, { engine: 'composed', store: { type: 'sqlite', path: store }, retriever: 'hybrid', compactor: 'archive' });
  let sidecar;
  const startSidecar = async () => {
    sidecar = spawn(program, [...serve.filter((a) => a !== '--stdio'), '--socket', socket], { env: { ...process.env, CONTEXTENGINE_CONFIG: configFile }, stdio: 'ignore' });
    sidecar.exited = new Promise((resolve) => { sidecar.once('exit', resolve); });
    await until(() => existsSync(socket), 20_000, 'the sidecar\'s socket');
  };
  const killSidecar = async () => {
    sidecar?.kill('SIGKILL');
    await sidecar?.exited;
  };
  await stage(context, 'doctor', { start: false, everything: true }, async ({ installation, talk }) => {
    const doctor = diagnosing([program, ...serve.filter((a) => a !== 'serve' && a !== '--stdio')], installation);
    const session = (name) => `agent:main:doctor-${name}`;
    /** Says whether the engine got what a turn says: it is what being used means. */
    const used = async (name) => {
      await talk.turn(session(name), `doctor-${name}-1`, 'Good morning.');
      await talk.turn(session(name), `doctor-${name}-2`, 'Good evening.');
      return (await dump(helper, store)).filter((entry) => entry.session === session(name)).length > 0;
    };
    /** Changes the host's configuration under the running gateway, which takes it up in a second. */
    const changed = (change) => installation.reconfigure(change);
    const copyOf = (name, edit) => {
      const copy = join(folder, name);
      rmSync(copy, { recursive: true, force: true });
      cpSync(plugin, copy, { recursive: true });
      const file = join(copy, 'dist/engine.js');
      const before = readFileSync(file, 'utf8');
      const after = edit(before);
      check(after !== before, `${name}: nothing was changed in the copy of the plugin`);
      writeFileSync(file, after);
      return copy;
    };
    /** Doctor's report once it holds what the host logs; the host writes its log when it has time. */
    const logged = (sign) => until(async () => {
      const report = await doctor();
      return report.findings.some((f) => f.name === 'gateway log' && f.status === 'fail' && sign.test(f.text)) ? report : undefined;
    }, 60_000, `doctor to find ${sign} in the log`);
    const settings = { socket };

    await scenario('doctor: before the installation', async () => {
      const report = await doctor();
      failing(report, 'plugin', /in none of the \d+ folders/, /openclaw plugins install -l/);
      failing(report, 'slot', /is not set/, /set plugins\.slots\.contextEngine to "openbrain"/);
    });
    await installing(installation, plugin, settings);
    await scenario('doctor: a good installation has no finding', async () => {
      const config = installation.readConfig();
      config.logging = { ...config.logging, file: join(folder, 'host.log') };
      installation.writeConfig(config);
      await startSidecar();
      await installation.start();
      check(await used('good'), 'the engine was not used');
      const report = await doctor();
      check(report.code === 0 && report.findings.every((f) => f.status === 'ok'), `exit code ${report.code}: ${report.text}`);
      return `${report.findings.length} checks`;
    });
    await scenario('doctor: the sidecar is gone, turns are answered without it', async () => {
      await killSidecar();
      check(!await used('gone'), 'the engine was used');
      const report = await logged(/without the engine/);
      failing(report, 'socket', /nobody listens on it|is not there/, /contextengine serve --socket /);
      failing(report, 'gateway log', /turns were answered without the engine/, /bring the sidecar and its store back/);
    });
    await scenario('doctor: the sidecar is back, what is past is only noted', async () => {
      rmSync(socket, { force: true });
      await startSidecar();
      check(await used('back'), 'the engine was not used');
      const report = await until(async () => {
        const now = await doctor();
        return now.code === 0 ? now : undefined;
      }, 60_000, 'doctor to find nothing wrong');
      check(report.findings.some((f) => f.status === 'note' && /before the engine was back/.test(f.text)), `nothing is noted: ${report.text}`);
      check((await dump(helper, store)).some((entry) => entry.session === session('gone')), 'the turns that waited in the host were not stored');
    });
    await scenario('doctor: the slot is legacy', async () => {
      await changed((config) => { config.plugins.slots.contextEngine = 'legacy'; });
      check(!await used('legacy'), 'the engine was used');
      failing(await doctor(), 'slot', /is legacy, the host's own engine/, /set plugins\.slots\.contextEngine to "openbrain" and restart/);
    });
    await scenario('doctor: the slot has a mistyped name', async () => {
      await changed((config) => { config.plugins.slots.contextEngine = 'openbrian'; });
      // Older hosts refuse every turn as long as the slot names an engine that there is not.
      const refuses = /^2026\.9\.[45]$/.test(installation.version);
      const was = await used('mistyped').catch((error) => { if (!refuses || !/plugin generation was superseded/.test(error.message)) throw error; });
      check(!was, 'the engine was used');
      failing(await doctor(), 'slot', /almost that of the plugin's engine: probably mistyped/, /set plugins\.slots\.contextEngine to "openbrain"/);
    });
    await scenario('doctor: the plugin is disabled', async () => {
      // As the host's command does it.
      await changed((config) => {
        config.plugins.slots.contextEngine = 'openbrain';
        config.plugins.entries.openbrain.enabled = false;
      });
      check(!await used('disabled'), 'the engine was used');
      failing(await doctor(), 'selection', /plugins\.entries\.openbrain\.enabled is false/, /set it to true and restart the gateway/);
    });
    const enable = (config) => {
      config.plugins.slots.contextEngine = 'openbrain';
      config.plugins.entries.openbrain = { enabled: true, config: settings };
    };
    await scenario('doctor: all plugins are off', async () => {
      await changed((config) => {
        enable(config);
        config.plugins.enabled = false;
      });
      check(!await used('off'), 'the engine was used');
      failing(await doctor(), 'selection', /plugins\.enabled is false/, /set plugins\.enabled to true/);
    });
    await scenario('doctor: no sidecar is configured', async () => {
      await changed((config) => {
        enable(config);
        config.plugins.enabled = true;
        config.plugins.entries.openbrain.config = { configFile };
      });
      check(!await used('unset'), 'the engine was used');
      failing(await doctor(), 'plugin config', /neither a socket nor allowLaunch/, /contextengine serve --socket PATH/);
    });
    await scenario('doctor: the durable contract is missing', async () => {
      const old = copyOf('plugin-old', (text) => text.replace(/transcriptSemantics: \{[^}]*\},/, ''));
      await changed((config) => {
        enable(config);
        config.plugins.load.paths = [old];
      });
      check(!await used('old'), 'the engine was used');
      const report = await logged(/does not declare/);
      failing(report, 'durable turns', /does not declare the contract of durable turns/, /npm ci && npm run build/);
      failing(report, 'gateway log', /turns ran on legacy: the plugin that is loaded does not declare the fence/, /build it again/);
    });
    await scenario('doctor: the engine is quarantined', async () => {
      const broken = copyOf('plugin-throwing', (text) => text.replace(/async compact\(params\) \{/, '$& throw new Error("broken on purpose");'));
      await changed((config) => {
        enable(config);
        config.plugins.load.paths = [broken];
      });
      check(await used('quarantined'), 'the engine was not used');
      await installation.compact(session('quarantined')).catch(() => undefined);
      failing(await logged(/quarantined/), 'gateway log', /the engine is quarantined/, /mend it, and restart the gateway/);
    });
    await scenario('doctor: uninstalled', async () => {
      // The host uninstalls what it installed.
      await installation.stop();
      const config = installation.readConfig();
      config.plugins.load.paths = [plugin];
      installation.writeConfig(config);
      await uninstalling(installation);
      const report = await doctor();
      failing(report, 'plugin', /in none of the \d+ folders/, /openclaw plugins install -l/);
    });
    await scenario('doctor: none of its reports holds a key or a token', () => {
      const file = join(folder, 'reports.txt');
      writeFileSync(file, doctor.said.join('\n'));
      const found = leaks(secrets, [file]);
      check(found.length === 0, `found: ${found.join(', ')}`);
      return `${doctor.said.length} reports`;
    });
  }).finally(killSidecar);
}
