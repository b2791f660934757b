// One installation with its model server, for one part of the run, or for several that follow each other.
import { join } from 'node:path';

import { Installation } from '../lib/gateway.mjs';
import { startModel } from '../lib/model.mjs';
import { judge, scenario } from '../lib/report.mjs';
import { hostConfig } from '../lib/setup.mjs';
import { Talk } from '../lib/talk.mjs';
import { readLines } from '../lib/wire.mjs';
import { unnamed } from './verdict.mjs';

export const WINDOW = 32_000;

async function build(context, { plugin, agents, window, env, script, compaction, everything, memory }) {
  const { folder, secrets, rig, modelPort, gatewayPort } = context;
  const requestLog = join(folder, 'requests.jsonl');
  const model = await startModel({ port: modelPort, window, log: requestLog, key: secrets.modelKey, script });
  const installation = new Installation({ rig, folder, port: gatewayPort, token: secrets.gatewayToken, env, config: hostConfig({ folder, modelPort, gatewayPort, secrets, window, plugin, agents, compaction, everything, memory }) });
  return { model, installation, requestLog, close: async () => { await installation.close(); await model.stop(); } };
}

const talking = ({ installation, model, requestLog }, label, window) => Object.assign(new Talk(installation, model, label), { requestLog, window });

/**
 * Sets the stage, lets body play, and clears it whatever happens. plugin is {id, path, config}, or undefined for the host's own engine. body gets log, what
 * the gateway logged, requests, what the model was asked, and rest, which ends the engine's work: then its store can be judged. Where context has a house,
 * the part is played in it: an installation whose gateway runs, and goes on.
 */
export async function stage(context, label, { plugin, agents, window = WINDOW, env, start = true, script, compaction, everything, memory }, body) {
  if (context.house) {
    await played(context.house, label, plugin, body);
    return;
  }
  const set = await build(context, { plugin, agents, window, env, script, compaction, everything, memory });
  const { installation, model, requestLog } = set;
  try {
    // Without a gateway there is nothing to play.
    if (start && !await scenario(`${label}: gateway start`, () => installation.start())) return;
    await body({ installation, model, talk: talking(set, label, window), log: () => installation.log(), requests: () => readLines(requestLog), rest: () => installation.stop() });
    judgeLog(label, installation, installation.log(), plugin);
  } finally {
    await set.close();
  }
}

/** What holds for the log of every part. */
function judgeLog(label, installation, log, plugin) {
  judge(`${label}: each line of the plugin in the log names its gateway`, unnamed(log, installation.port, plugin?.config?.command !== undefined));
}

async function played(house, label, plugin, body) {
  const { installation, model, requestLog } = house;
  const configure = async (which) => {
    const { plugins } = hostConfig({ ...house.context, window: WINDOW, plugin: which });
    if (JSON.stringify(installation.readConfig().plugins) !== JSON.stringify(plugins)) await installation.reconfigure((config) => { config.plugins = plugins; });
  };
  const from = installation.log().length;
  if (!await scenario(`${label}: the host takes up its configuration`, () => configure(plugin))) return;
  const requests = () => readLines(requestLog).filter((r) => r.label === label);
  try {
    await body({ installation, model, talk: talking(house, label, WINDOW), log: () => installation.log().slice(from), requests, rest: () => configure() });
    judgeLog(label, installation, installation.log().slice(from), plugin);
  } finally {
    await configure();
  }
}

/** Lets several parts play one after the other in one installation, which begins with the host's own engine and two agents. */
export async function house(context, label, parts) {
  const set = await build(context, { agents: ['main', 'other'], window: WINDOW });
  try {
    if (!await scenario(`${label}: gateway start`, () => set.installation.start())) return;
    for (const part of parts) await part({ ...set, context });
  } finally {
    await set.close();
  }
}
