// What was checked, and how it went. One line for each scenario and each judged property; E2E_EVENTS names a file that gets the same as `go test -json` writes it.
import { appendFileSync } from 'node:fs';

const entries = [];

/** A scenario: passes unless body throws; the result says which. Those that follow run anyway. */
export async function scenario(name, body) {
  const started = Date.now();
  try {
    const detail = await body();
    note(true, name, detail, started);
    return true;
  } catch (error) {
    note(false, name, error instanceof Error ? error.message : String(error), started);
    if (process.env.E2E_VERBOSE && error instanceof Error) console.log(error.stack);
    return false;
  }
}

/** A judged property. */
export function judge(name, problems, detail = '') {
  note(problems.length === 0, name, problems.length === 0 ? detail : `${problems.length} times, first: ${problems[0]}`);
}

/** A figure. It is printed and passes whatever it is: machines differ. */
export function measured(name, text) {
  console.log(`      ${name}: ${text}`);
}

function note(ok, name, detail, started = Date.now()) {
  const seconds = (Date.now() - started) / 1000;
  entries.push({ ok, name, detail: detail ?? '' });
  const line = `${ok ? 'pass' : 'FAIL'}  ${name}${detail ? `: ${String(detail).replace(/\s+/g, ' ').slice(0, 400)}` : ''}  (${seconds.toFixed(1)} s)`;
  console.log(line);
  const Test = `${entries.length} ${name}`.replaceAll(' ', '_');
  event({ Action: 'run', Test });
  event({ Action: 'output', Test, Output: `${line}\n` });
  event({ Action: ok ? 'pass' : 'fail', Test, Elapsed: seconds });
}

function event(fields) {
  if (process.env.E2E_EVENTS) appendFileSync(process.env.E2E_EVENTS, `${JSON.stringify({ Package: 'hosts/openclaw/e2e', ...fields })}\n`);
}

/** Throws with a text unless the condition holds. */
export function check(condition, text) {
  if (!condition) throw new Error(text);
}

/** Prints the list of everything and returns the exit code. */
export function summary(elapsed) {
  const failed = entries.filter((e) => !e.ok);
  console.log(`\n${entries.length - failed.length} passed, ${failed.length} failed, ${Math.round(elapsed / 1000)} s`);
  for (const e of failed) console.log(`  FAIL  ${e.name}: ${String(e.detail).slice(0, 400)}`);
  return failed.length === 0 ? 0 : 1;
}
