// One installation with its model server, for one part of the run.
import { join } from 'node:path';

import { Installation } from '../lib/gateway.mjs';
import { startModel } from '../lib/model.mjs';
import { scenario } from '../lib/report.mjs';
import { hostConfig } from '../lib/setup.mjs';
import { Talk } from '../lib/talk.mjs';
import { readLines } from '../lib/wire.mjs';

export const WINDOW = 32_000;

/** Sets the stage, lets body play, and clears it whatever happens. plugin is {id, path, config}, or undefined for the host's own engine. */
export async function stage(context, label, { plugin, agents, window = WINDOW, env, start = true, script, compaction }, body) {
  const { folder, secrets, rig, modelPort, gatewayPort } = context;
  const requestLog = join(folder, 'requests.jsonl');
  const model = await startModel({ port: modelPort, window, log: requestLog, key: secrets.modelKey, script });
  const installation = new Installation({ rig, folder, port: gatewayPort, token: secrets.gatewayToken, env, config: hostConfig({ folder, modelPort, gatewayPort, secrets, window, plugin, agents, compaction }) });
  const talk = Object.assign(new Talk(installation, model, label), { requestLog, window });
  try {
    // Without a gateway there is nothing to play.
    if (start && !await scenario(`${label}: gateway start`, () => installation.start())) return;
    await body({ installation, model, talk, requests: () => readLines(requestLog) });
  } finally {
    await installation.close();
    await model.stop();
  }
}
