// The end-to-end proof: the plugin in the real host, with the real sidecar and a model server on loopback. Usage: main.mjs RIG WORK, see run.sh.
// E2E_SIDECAR is the sidecar's command line without "serve", E2E_HELPER the helper program. E2E_ONLY picks parts, E2E_TURNS shortens the long session,
// E2E_LANES says how many parts run at once.
import { cpSync, mkdirSync, rmSync } from 'node:fs';
import { join, resolve } from 'node:path';

import { judge, summary } from './lib/report.mjs';
import { newSecrets } from './lib/setup.mjs';
import { brokenPart } from './parts/broken.mjs';
import { costPart } from './parts/cost.mjs';
import { delegatingPart } from './parts/delegating.mjs';
import { doctorPart } from './parts/doctor.mjs';
import { legacyPart } from './parts/legacy.mjs';
import { mutePart } from './parts/mute.mjs';
import { openBrainPart } from './parts/openbrain.mjs';
import { overheadPart } from './parts/overhead.mjs';
import { owningPart } from './parts/owning.mjs';
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
const parts = { owning: owningPart, mute: mutePart, doctor: doctorPart, delegating: delegatingPart, legacy: legacyPart, tools: toolsPart, openbrain: openBrainPart, broken: brokenPart, overhead: overheadPart, cost: costPart };
// Costs take long and are measured on request.
const only = process.env.E2E_ONLY?.split(',') ?? Object.keys(parts).filter((name) => name !== 'cost');
// What is installed is what a package would hold, without the tools that build it.
const plugin = join(work, 'plugin');
rmSync(plugin, { recursive: true, force: true });
for (const name of ['package.json', 'openclaw.plugin.json', 'README.md', 'dist']) cpSync(resolve(import.meta.dirname, '../plugin', name), join(plugin, name), { recursive: true });
// Parts are independent: each has an installation, a model server and ports of its own. Two at a time keep two processors busy; what is measured runs alone.
const alone = ['overhead', 'cost'];
const play = async (name) => {
  const folder = join(work, name);
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  const port = 18_700 + 40 * Object.keys(parts).indexOf(name);
  await parts[name]({
    rig, folder, helper, sidecar: [...sidecar, 'serve', '--stdio'], secrets: newSecrets(), plugin,
    modelPort: port, gatewayPort: port + 1, extraPort: port + 20, turns: Number(process.env.E2E_TURNS ?? 60),
  });
};
// What goes wrong outside of a scenario ends its part and no other.
const whole = (name) => play(name).catch((error) => judge(`${name}: played to its end`, [error instanceof Error ? error.message : String(error)]));
const queue = only.filter((name) => !alone.includes(name));
const lane = async () => { for (let name = queue.shift(); name !== undefined; name = queue.shift()) await whole(name); };
await Promise.all(Array.from({ length: Number(process.env.E2E_LANES ?? 2) }, lane));
for (const name of only.filter((n) => alone.includes(n))) await whole(name);
process.exit(summary(Date.now() - started));
