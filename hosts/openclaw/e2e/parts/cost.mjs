// What a session costs with the plugin and with the host's own engine: the same turns, alternating, and the facts that stand in the prompts where they are
// asked for. E2E_COST lists runs as WINDOWxTURNSxTIMES, separated by commas; E2E_COST_ARMS=plugin or legacy plays one of the two alone, for sweeps.
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { bill } from '../lib/bill.mjs';
import { judge, scenario } from '../lib/report.mjs';
import { engineFile, launched } from '../lib/setup.mjs';
import { files, script, shown, summary } from '../scenarios/planted.mjs';
import { stage } from './stage.mjs';
import { degradations } from './verdict.mjs';

/** What holds, as shares of the cost of the host's own engine: without and with its summary calls, and where nothing has to leave. */
const GOALS = { small: [0.85, 0.75], large: [0.95, 0.9], fits: 1.02 };
/** The host audits its summaries unless it is told not to. */
const FULL = { qualityGuard: { enabled: true } };
const LARGE = 100_000;
const SESSION = 'agent:main:cost';

/** Plays the turns with one engine and returns what they cost; undefined where they were not played to their end. */
async function play(context, { label, window, turns, own }) {
  const folder = join(context.folder, label);
  mkdirSync(folder, { recursive: true });
  const played = script(turns);
  const answers = new Map(played.map((t) => [t.name, t.answer]));
  const config = () => launched({ folder, sidecar: context.sidecar, configFile: engineFile(folder, { engine: 'composed', store: { type: 'sqlite', path: join(folder, 'store.db') }, ...JSON.parse(process.env.E2E_COST_ENGINE ?? '{}') }), tee: false });
  const plugin = own ? undefined : { id: 'openbrain', path: context.plugin, config: config() };
  const result = { label };
  await stage({ ...context, folder }, label, { window, plugin, script: { answer: (turn) => answers.get(turn), summary }, compaction: FULL, everything: true }, async ({ installation, talk, requests }) => {
    for (const [name, text] of files()) writeFileSync(join(folder, 'ws', name), `${text}\n`);
    result.whole = await scenario(`${label}: ${turns} turns`, async () => {
      for (const { name, lines } of played) await talk.turn(SESSION, name, ...lines);
    });
    const log = requests();
    Object.assign(result, shown(played, log), bill(log));
    if (!own) judge(`${label}: no turn degraded`, degradations(installation.log()));
  });
  return result.whole ? result : undefined;
}

const k = (n) => `${Math.round(n / 1000)}k`;
const row = (r) => `| ${r.label} | ${r.calls} | ${k(r.tokens)} | ${r.reuse.toFixed(3)} | ${r.broken} | ${k(r.cost)} | ${r.summaries} (${k(r.summaryTokens)}) | ${k(r.meanHistory)} | ${k(r.recall)} | ${k(r.stray)} | ${r.facts} of ${r.asked} | ${r.cramped} |`;

export async function costPart(context) {
  const rows = [];
  const arms = (process.env.E2E_COST_ARMS ?? 'legacy,plugin').split(',');
  for (const run of (process.env.E2E_COST ?? '40000x72x1').split(',')) {
    const [window, turns, times] = run.split('x').map(Number);
    for (let n = 1; n <= times; n++) {
      const name = `${Math.round(window / 1000)}k, ${turns} turns, ${n}`;
      const legacy = arms.includes('legacy') ? await play(context, { label: `legacy ${name}`, window, turns, own: true }) : undefined;
      const ours = arms.includes('plugin') ? await play(context, { label: `plugin ${name}`, window, turns, own: false }) : undefined;
      if (legacy && ours) compare(name, window, legacy, ours);
      const both = [legacy, ours].filter(Boolean).map(row);
      rows.push(...both);
      console.log(both.join('\n')); // a run that is cut off has said what it measured
    }
  }
  console.log(['', '| engine, window | calls | tokens | reuse | broken prefixes | cost | summary calls (tokens) | mean history | recall | paid twice | facts | no room to answer |', `|---|${'--:|'.repeat(11)}`, ...rows, ''].join('\n'));
}

function compare(name, window, legacy, ours) {
  const fits = legacy.summaries === 0 && legacy.broken === 0;
  const [plain, counted] = fits ? [GOALS.fits, GOALS.fits] : window < LARGE ? GOALS.small : GOALS.large;
  const share = (a, b, most, what) => judge(`cost ${name}: ${what} at most ${most}`, a / b <= most ? [] : [(a / b).toFixed(3)], (a / b).toFixed(3));
  share(ours.cost, legacy.cost, plain, 'of the host\'s own engine');
  share(ours.cost, legacy.withSummaries, counted, 'its summary calls counted');
  judge(`cost ${name}: history shown, in the mean at least 0.7 of its`, ours.meanHistory >= 0.7 * legacy.meanHistory ? [] : [(ours.meanHistory / legacy.meanHistory).toFixed(3)], (ours.meanHistory / legacy.meanHistory).toFixed(3));
  judge(`cost ${name}: at least as many facts`, ours.facts >= legacy.facts ? [] : [`${ours.facts} of ${legacy.facts}`], `${ours.facts}, ${legacy.facts}`);
  judge(`cost ${name}: no more broken prefixes`, ours.broken <= legacy.broken ? [] : [`${ours.broken}, ${legacy.broken}`], `${ours.broken}, ${legacy.broken}`);
  judge(`cost ${name}: nothing is paid twice between them`, ours.stray < 1 ? [] : [`${Math.round(ours.stray)} tokens`]);
}
