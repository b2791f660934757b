// Stands between the plugin and a sidecar on stdio and writes down every line that crosses. Usage: tee.mjs LOG COMMAND ARGS...
// The sidecar's process id is in LOG.pid. As long as there is a file LOG.hold, answers to the method it names are held back.
import { spawn } from 'node:child_process';
import { appendFileSync, existsSync, readFileSync, writeFileSync } from 'node:fs';

const [log, command, ...args] = process.argv.slice(2);
const child = spawn(command, args, { stdio: ['pipe', 'pipe', 'pipe'] });
writeFileSync(`${log}.pid`, String(child.pid));

const methods = new Map();
const hold = `${log}.hold`;

function note(direction, line) {
  appendFileSync(log, `${JSON.stringify({ at: Date.now(), direction, line })}\n`);
}

function held(line) {
  if (!existsSync(hold)) return false;
  const { id, method } = JSON.parse(line);
  return method === undefined && methods.get(id) === readFileSync(hold, 'utf8').trim();
}

function release(line) {
  if (existsSync(hold)) setTimeout(release, 20, line);
  else process.stdout.write(`${line}\n`);
}

function lines(from, each, end) {
  let rest = '';
  from.setEncoding('utf8');
  from.on('data', (text) => {
    const parts = (rest + text).split('\n');
    rest = parts.pop();
    for (const line of parts) if (line) each(line);
  });
  from.on('end', end);
}

lines(process.stdin, (line) => {
  note('to', line);
  const { id, method } = JSON.parse(line);
  if (id !== undefined && method) methods.set(id, method);
  child.stdin.write(`${line}\n`);
}, () => child.stdin.end());
lines(child.stdout, (line) => {
  note('from', line);
  if (held(line)) release(line);
  else process.stdout.write(`${line}\n`);
}, () => {});
lines(child.stderr, (line) => {
  note('log', line);
  process.stderr.write(`${line}\n`);
}, () => {});
child.stdin.on('error', () => {});
child.on('error', () => process.exit(127));
child.on('close', (code, signal) => process.exit(signal ? 1 : code));
process.on('SIGTERM', () => child.kill('SIGTERM'));
