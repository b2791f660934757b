// Asking doctor about an installation.
import { join } from 'node:path';

import { run } from './process.mjs';
import { check } from './report.mjs';

/**
 * Returns a function that runs doctor as an operator of the installation does, and what it said so far. It is told nothing: it finds the host's
 * configuration, log and program as the environment says.
 */
export function diagnosing([program, ...args], installation) {
  const env = { ...installation.env, PATH: `${join(installation.rig, 'host/node_modules/.bin')}:${installation.env.PATH}` };
  const said = [];
  const ask = async () => {
    // On a busy machine a sidecar takes its time.
    const { code, stdout, stderr } = await run(program, [...args, 'doctor', '--openclaw', '--openclaw-wait', '20s', '--timeout', '60s', '--json'], { env, cwd: installation.folder, timeoutMs: 90_000 });
    said.push(stdout, stderr);
    let report;
    try { report = JSON.parse(stdout); } catch { throw new Error(`doctor: exit code ${code}: ${stdout.slice(0, 500)} ${stderr.slice(0, 500)}`); }
    check(report.ok === (code === 0), `doctor says ok ${report.ok}, with exit code ${code}`);
    return { code, findings: report.findings, text: report.findings.filter((f) => f.status !== 'ok').map((f) => `${f.status} ${f.name}: ${f.text} -> ${f.do}`).join(' | ') };
  };
  return Object.assign(ask, { said });
}

/** Throws unless a report has a failure of that name which tells cause and remedy. */
export function failing(report, name, cause, remedy) {
  check(report.code !== 0, `doctor finds nothing wrong: ${report.text}`);
  const found = report.findings.filter((f) => f.status === 'fail' && f.name === name && cause.test(f.text));
  check(found.length > 0, `no failure "${name}" that says ${cause}: ${report.text}`);
  check(found.some((f) => remedy.test(f.do ?? '')), `"${name}" does not say ${remedy}: ${found.map((f) => f.do).join(' | ')}`);
}
