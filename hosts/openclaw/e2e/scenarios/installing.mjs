// An installation's beginning and end, with the host's own commands.
import { check, scenario } from '../lib/report.mjs';

export async function installing(installation, pluginFolder, pluginConfig) {
  await scenario('link install', async () => {
    const before = installation.readConfig();
    check(!before.plugins.slots?.contextEngine, 'the slot is set before anything was installed');
    const { code, stdout, stderr } = await installation.cli(['plugins', 'install', '-l', pluginFolder, '--force', '--accept-capabilities']);
    check(code === 0, `exit code ${code}: ${stdout.slice(-300)} ${stderr.slice(-300)}`);
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
