// An installation's beginning and end, with the host's own commands.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

import { check, scenario } from '../lib/report.mjs';

const packageOf = (folder) => JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));

/**
 * What the host remarks about our package; why it must remark that the names differ stands in the plugin's README, under Names. Hosts before 2026.9.6 say
 * that they set the slot, too.
 */
const REMARKS = /^(Plugin manifest id "openbrain" differs from npm package name "openclaw-openbrain-context"; using manifest id as the config key|Exclusive slot "contextEngine" switched from "legacy" to "openbrain")\.$/;

export async function installing(installation, pluginFolder, pluginConfig) {
  let said = '';
  await scenario('link install', async () => {
    const before = installation.readConfig();
    check(!before.plugins.slots?.contextEngine, 'the slot is set before anything was installed');
    const { code, stdout, stderr } = await installation.cli(['plugins', 'install', '-l', pluginFolder, '--force', '--accept-capabilities']);
    check(code === 0, `exit code ${code}: ${stdout.slice(-300)} ${stderr.slice(-300)}`);
    said = `${stdout}\n${stderr}`;
  });
  await scenario('the package: the host remarks nothing but that its two names differ, and needs the Node that it asks for', async () => {
    const remarks = said.split('\n').filter((line) => /manifest|package|node|engine|deprecat|unsupported|unknown|compat/i.test(line) && !/local path|outside ClawHub|plugins\.allow/.test(line));
    check(remarks.every((line) => REMARKS.test(line)), remarks.join(' | '));
    const { diagnostics = [] } = JSON.parse((await installation.cli(['plugins', 'inspect', 'openbrain', '--json'])).stdout);
    check(diagnostics.length === 0, JSON.stringify(diagnostics));
    const [ours, hosts] = [packageOf(pluginFolder).engines.node, packageOf(installation.hostPackage).engines.node];
    check(ours === hosts, `the plugin asks for Node ${ours}, the host for ${hosts}`);
  });
  await scenario('selection: the slot names the engine', async () => {
    const config = installation.readConfig();
    check(config.plugins.slots.contextEngine === 'openbrain', `the slot is ${config.plugins.slots.contextEngine}`);
    check(config.plugins.entries.openbrain.enabled === true, 'the plugin is not enabled');
    config.plugins.entries.openbrain.config = pluginConfig;
    installation.writeConfig(config);
  });
}

export async function uninstalling(installation) {
  await scenario('uninstall: the slot is back to legacy', async () => {
    const { code, stdout, stderr } = await installation.cli(['plugins', 'uninstall', 'openbrain', '--force']);
    check(code === 0, `exit code ${code}: ${stdout.slice(-300)} ${stderr.slice(-300)}`);
    const { plugins } = installation.readConfig();
    check((plugins.slots?.contextEngine ?? 'legacy') === 'legacy', `the slot is ${plugins.slots?.contextEngine}`);
    check((plugins.load?.paths ?? []).length === 0, 'the load path is still there');
    check(plugins.entries?.openbrain?.config === undefined, 'the configuration is still there');
  });
}
