// The end-to-end proof: the plugin in the real host, with the real sidecar and a model server on loopback. Usage: main.mjs RIG WORK, see run.sh.
// E2E_SIDECAR is the sidecar's command line without "serve", E2E_HELPER the helper program. E2E_ONLY picks parts, E2E_TURNS is the length of the long
// session, E2E_LONG=1 plays it in full and kills the gateway in every mode, E2E_LANES says how many parts run at once.
import { cpSync, mkdirSync, readFileSync, rmSync } from 'node:fs';
import { join, resolve } from 'node:path';

import { judge, summary } from './lib/report.mjs';
import { newSecrets } from './lib/setup.mjs';
import { addedPart } from './parts/added.mjs';
import { brokenPart } from './parts/broken.mjs';
import { changesPart } from './parts/changes.mjs';
import { costPart } from './parts/cost.mjs';
import { delegatingPart } from './parts/delegating.mjs';
import { doctorPart } from './parts/doctor.mjs';
import { factsPart } from './parts/facts.mjs';
import { legacyPart } from './parts/legacy.mjs';
import { mutePart } from './parts/mute.mjs';
import { openBrainPart } from './parts/openbrain.mjs';
import { overheadPart } from './parts/overhead.mjs';
import { owningPart } from './parts/owning.mjs';
import { house } from './parts/stage.mjs';
import { packedPart } from './parts/packed.mjs';
import { repairsPart } from './parts/repairs.mjs';
import { sessionsPart } from './parts/sessions.mjs';
import { subagentsPart } from './parts/subagents.mjs';
import { toolsPart } from './parts/tools.mjs';

const [rig, work] = process.argv.slice(2).map((path) => resolve(path));
const helper = process.env.E2E_HELPER;
const sidecar = process.env.E2E_SIDECAR?.split(' ');
if (!rig || !work || !helper || !sidecar) {
  console.error('usage: E2E_SIDECAR=... E2E_HELPER=... main.mjs RIG WORK');
  process.exit(2);
}
for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => process.exit(130));
const started = Date.now();
// The longest first.
const parts = { owning: owningPart, mute: mutePart, doctor: doctorPart, delegating: delegatingPart, legacy: legacyPart, tools: toolsPart, subagents: subagentsPart, openbrain: openBrainPart, broken: brokenPart, overhead: overheadPart, cost: costPart, added: addedPart, facts: factsPart, changes: changesPart, repairs: repairsPart, sessions: sessionsPart, packed: packedPart };
// Costs and the longest session take long and are played on request; packed packages are installed where there are some.
const only = process.env.E2E_ONLY?.split(',') ?? Object.keys(parts).filter((name) => !['cost', 'added', 'facts', 'changes', 'repairs', 'sessions', 'packed'].includes(name) || name === 'packed' && process.env.E2E_PACKAGES);
const long = process.env.E2E_LONG === '1';
// What is installed is what a package would hold, without the tools that build it.
const plugin = join(work, 'plugin');
const source = process.env.E2E_PLUGIN ?? resolve(import.meta.dirname, '../plugin');
rmSync(plugin, { recursive: true, force: true });
for (const name of ['package.json', ...JSON.parse(readFileSync(join(source, 'package.json'), 'utf8')).files]) cpSync(join(source, name), join(plugin, name), { recursive: true });
// Parts are independent: each has folders, a model server and ports of its own. Two at a time keep two processors busy; what is measured runs alone. A gateway
// takes half a minute to start, and so those that leave it as it is share one, one after the other.
const alone = ['overhead', 'cost', 'added'];
const sharing = ['legacy', 'delegating', 'tools', 'subagents', 'openbrain', 'broken'].filter((name) => only.includes(name));
const contextOf = (name) => {
  const folder = join(work, name);
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  const port = 18_700 + 40 * (Object.keys(parts).indexOf(name) + 1);
  return {
    rig, folder, helper, sidecar: [...sidecar, 'serve', '--stdio'], secrets: newSecrets(), plugin, long,
    modelPort: port, gatewayPort: port + 1, extraPort: port + 20, turns: Number(process.env.E2E_TURNS ?? (long ? 60 : 36)),
  };
};
// What goes wrong outside of a scenario ends its part and no other.
const whole = (name, play) => play().catch((error) => judge(`${name}: played to its end`, [error instanceof Error ? error.message : String(error)]));
const part = (name, shared) => whole(name, () => parts[name]({ ...contextOf(name), ...(shared ? { house: shared, secrets: shared.context.secrets } : {}) }));
const together = () => whole('shared', () => house(contextOf('shared'), 'shared', sharing.map((name) => (shared) => part(name, shared))));
const queue = [...(sharing.length > 1 ? [together] : []), ...only.filter((name) => !alone.includes(name) && !(sharing.length > 1 && sharing.includes(name))).map((name) => () => part(name))];
const lane = async () => { for (let play = queue.shift(); play !== undefined; play = queue.shift()) await play(); };
await Promise.all(Array.from({ length: Number(process.env.E2E_LANES ?? 2) }, lane));
for (const name of only.filter((n) => alone.includes(n))) await part(name);
process.exit(summary(Date.now() - started));
