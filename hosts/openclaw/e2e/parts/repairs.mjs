// What "doctor --fix" mends under a host: an outbox that could not deliver, while the gateway runs; after the gateway was killed a broken index, broken views and temporary files
// that nobody uses. What is overwritten is kept, nothing is lost, and the session goes on.
import { spawn } from 'node:child_process';
import { existsSync, mkdirSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { check, judge, scenario } from '../lib/report.mjs';
import { run } from '../lib/process.mjs';
import { turnsIn } from '../lib/directives.mjs';
import { engineFile, launched } from '../lib/setup.mjs';
import { dump, storedTwice } from '../lib/stored.mjs';
import { textOf } from '../lib/tokens.mjs';
import { until } from '../lib/wait.mjs';
import { stage } from './stage.mjs';
import { degradations, judgePrompts } from './verdict.mjs';

const SESSION = 'agent:main:repairs';
/** How names of temporary files of the program end. */
const TEMP = '.contextengine.tmp';

/** The file that doctor says it keeps, by how its path begins. */
function copyNamed(text, begin) {
  const from = text.indexOf(begin);
  const [path] = from < 0 ? [] : text.slice(from).split(/[\s;]/, 1);
  check(path !== undefined && existsSync(path), `no copy is named that there is: ${text.slice(0, 600)}`);
  return path.slice(path.lastIndexOf('/') + 1);
}

export async function repairsPart(context) {
  const { folder, sidecar, helper, plugin, secrets, extraPort } = context;
  const store = join(folder, 'store.db');
  const baseUrl = `http://127.0.0.1:${extraPort}`;
  const [program, ...before] = sidecar.slice(0, sidecar.indexOf('serve'));
  const brain = { type: 'openbrain', baseUrl, apiKey: secrets.openBrainKey };
  const configFile = engineFile(folder, { engine: brain, store: { local: { path: store } } });
  const doctor = async (...args) => {
    const { code, stdout, stderr } = await run(program, [...before, 'doctor', '--config', configFile, ...args], { timeoutMs: 120_000 });
    return { code, text: `${stdout}\n${stderr}`.replace(/\s+/g, ' ') };
  };
  const breaks = async (what) => {
    const { code, stderr } = await run(helper, ['break', what, store], { timeoutMs: 60_000 });
    check(code === 0, stderr);
  };
  let server;
  try {
    await stage(context, 'repairs', { plugin: { id: 'openbrain', path: plugin, config: launched({ folder, sidecar, configFile }) } }, async ({ installation, talk, log, requests, rest }) => {
      await scenario('repairs: an outbox that cannot deliver: doctor --fix says why, and delivers when the server is back', async () => {
        for (let i = 1; i <= 3; i++) await talk.turn(SESSION, `kept-${i}`, 'Remember this turn.');
        const away = await doctor('--fix', '--yes', '--timeout', '3s');
        check(away.code === 1 && away.text.includes('are not delivered; everything is kept'), `exit code ${away.code}: ${away.text.slice(0, 600)}`);
        server = spawn(helper, ['openbrain', `127.0.0.1:${extraPort}`, secrets.openBrainKey], { stdio: ['pipe', 'ignore', 'ignore'] });
        await until(() => fetch(`${baseUrl}/healthz`).then((r) => r.ok, () => false), 20_000, 'the OpenBrain server');
        const back = await doctor('--fix', '--yes');
        check(back.code === 0 && back.text.includes('outbox everything is delivered'), `exit code ${back.code}: ${back.text.slice(0, 600)}`);
        const { total } = await fetch(`${baseUrl}/v1/stats`, { headers: { authorization: `Bearer ${secrets.openBrainKey}` } }).then((r) => r.json());
        check(total >= 6, `the server holds ${total} thoughts`);
        return `${total} thoughts`;
      });
      await scenario('repairs: a killed gateway leaves no lock that anybody has to remove', async () => {
        await installation.kill();
        const { code, text } = await doctor('--fix', '--yes');
        check(code === 0 && text.includes('nothing that doctor could mend'), `exit code ${code}: ${text.slice(0, 600)}`);
      });
      await scenario('repairs: a broken index is made anew', async () => {
        await breaks('index');
        const broken = await doctor();
        check(broken.code === 1 && broken.text.includes('doctor --fix'), `exit code ${broken.code}: ${broken.text.slice(0, 600)}`);
        const { code, text } = await doctor('--fix', '--yes');
        check(code === 0 && text.includes('the indexes are made anew'), `exit code ${code}: ${text.slice(0, 600)}`);
        return copyNamed(text, `${store}.before-repair-`);
      });
      await scenario('repairs: views that name what nobody stored agree again', async () => {
        await breaks('views');
        check((await doctor()).code === 1, 'doctor does not see it');
        const { code, text } = await doctor('--fix', '--yes');
        check(code === 0 && text.includes('agree with their entries again'), `exit code ${code}: ${text.slice(0, 600)}`);
        return copyNamed(text, `${store}.views-before-repair-`);
      });
      await scenario('repairs: what killed processes left is told, and removed when asked; nothing else is', async () => {
        mkdirSync(join(`${store}.d`, 'lexical'), { recursive: true });
        const plant = (path, age) => {
          writeFileSync(path, 'half');
          utimesSync(path, Date.now() / 1000 - age, Date.now() / 1000 - age);
          return path;
        };
        const left = [plant(join(folder, `.write.1${TEMP}`), 3600), plant(join(`${store}.d`, 'lexical', `a.2${TEMP}`), 3600)];
        const others = [plant(join(folder, `.write.3${TEMP}`), 0), plant(join(folder, 'film.part'), 3600), plant(`${store}-outbox.lock`, 3600)];
        const told = await doctor();
        check(told.code === 0 && told.text.includes('2 temporary files'), `exit code ${told.code}: ${told.text.slice(0, 600)}`);
        check(left.every(existsSync), 'they are gone before anybody asked');
        const { code, text } = await doctor('--fix', '--yes');
        check(code === 0 && text.includes('2 temporary files removed'), `exit code ${code}: ${text.slice(0, 600)}`);
        check(!left.some(existsSync) && others.every(existsSync), `left are ${[...left, ...others].filter(existsSync)}`);
      });
      if (!await scenario('repairs: the gateway starts again', () => installation.start())) return;
      await scenario('repairs: the session goes on, and nothing is lost', async () => {
        await talk.turn(SESSION, 'after', 'What did I say?');
        const shown = requests().findLast((r) => r.turn === 'after').body.messages.flatMap((m) => turnsIn(textOf(m.content)));
        for (let i = 1; i <= 3; i++) check(shown.includes(`kept-${i}`), `the model is shown ${shown}`);
        return shown.join(', ');
      });
      await rest();
      judgePrompts('repairs', requests(), talk);
      judge('repairs: no turn degraded to legacy', degradations(log()));
      judge('repairs: no turn is stored twice', storedTwice(await dump(helper, store)));
    });
  } finally {
    server?.kill();
  }
}
