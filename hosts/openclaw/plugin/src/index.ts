// The plugin's entry: registers the engine, and owns the sidecar while the gateway runs.
import { chatCommand } from "./commands.js";
import { engineIds, lacksCredentials, readSettings } from "./config.js";
import { installationProblems } from "./doctor.js";
import { newEngine } from "./engine.js";
import { Unusable } from "./errors.js";
import type { PluginApi } from "./host-types.js";
import { MISSING_CREDENTIALS, PACKAGE, PLUGIN_ID } from "./names.js";
import { named } from "./origin.js";
import { sharedFor } from "./shared.js";
import { contextTools, toolNames } from "./tools.js";

/** How long the first turn waits to learn whether there is an engine, and whether it compacts itself. */
const describeMs = 5_000;

/** The host calls this several times in a process, in several modes. Only the full registration may start anything. */
export function register(api: PluginApi): void {
  const settings = readSettings(api.pluginConfig ?? {}, process.env);
  const ids = engineIds(settings);
  const full = (api.registrationMode ?? "full") === "full";
  const logger = named(api.logger);
  const shared = sharedFor(settings, api.logger, hostVersion(api));
  if (full) {
    shared.logger = logger;
    shared.connection.agents.configured(api.config, api.runtime?.agent);
    shared.connection.revive();
    for (const problem of installationProblems(api.config, ids)) logger.info(`${PACKAGE}: installed, but not used: ${problem}`);
    api.registerService?.({
      id: `${PLUGIN_ID}-sidecar`,
      start: () => {
        shared.connection.revive();
        // What was kept when the process ended is stored without waiting for a turn.
        if (used && !lacksCredentials(settings)) void shared.catchUp();
      },
      stop: () => shared.connection.stop(),
    });
  }
  const used = installationProblems(api.config, ids).length === 0;
  // The gateway's start says it, and the host's doctor, which discovers plugins.
  if (used && lacksCredentials(settings) && (full || api.registrationMode === "discovery")) logger.error(MISSING_CREDENTIALS);
  // A tool looks into what the engine keeps: where another engine is chosen, or none can be reached, there is nothing to look into.
  const offered = settings.tools && !lacksCredentials(settings) && used;
  for (const name of toolNames) {
    api.registerTool?.((context) => (offered ? contextTools(shared, context)?.[name] ?? null : null), { name });
  }
  api.registerCommand?.(chatCommand(shared, ids, api.config));
  for (const id of ids) {
    api.registerContextEngine(id, async (context) => {
      shared.connection.agents.configured((context as { config?: unknown } | undefined)?.config);
      shared.connection.agents.made(context);
      const engine = full && !lacksCredentials(settings) ? await shared.connection.describe(describeMs) : undefined;
      // Nobody mends a configuration while a turn waits: the host's own engine does better than what the plugin could do, and the host says so with every turn.
      if (settings.failure === "degrade" && shared.connection.unusable !== undefined) throw new Unusable(shared.connection.unusable);
      const owns = settings.ownsCompaction ?? engine?.ownsCompaction ?? true;
      return newEngine(shared, id, owns, context);
    });
  }
}

function hostVersion(api: PluginApi): string | undefined {
  const version = api.runtime?.version;
  return typeof version === "string" ? version : undefined;
}

export default { id: PLUGIN_ID, name: "OpenBrain context engine", description: "Keeps every message and shows what fits.", register };
