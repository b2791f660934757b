// What the sidecar's store holds, against what was accepted.
import { run } from './process.mjs';
import { turnsIn } from './directives.mjs';
import { calls } from './wire.mjs';

/** The entries of a SQLite store. */
export async function dump(helper, file) {
  const { code, stdout, stderr } = await run(helper, ['dump', file], { timeoutMs: 120_000 });
  if (code !== 0) throw new Error(`dump: ${stderr.slice(-300)}`);
  return stdout.split('\n').filter(Boolean).map((line) => {
    const entry = JSON.parse(line);
    return { ...entry, raw: Buffer.from(entry.raw ?? '', 'base64').toString('utf8') };
  });
}

/** Every message of every accepted turn is stored exactly once, byte for byte as the host handed it over. */
export function missingOrTwice(entries, accepted, wirePath) {
  const out = [];
  const key = (session, raw) => `${session}\n${raw}`;
  const stored = new Map();
  for (const e of entries) {
    if (e.type === 'message') stored.set(key(e.session, e.raw), (stored.get(key(e.session, e.raw)) ?? 0) + 1);
  }
  const commits = calls(wirePath).filter((c) => c.method === 'commitTurn' && c.result);
  const committed = new Set();
  for (const c of commits) {
    if (c.result.status !== 'committed') continue;
    for (const message of c.params.messages) {
      if (message.role === 'user') for (const name of turnsIn(textOf(message))) committed.add(name);
      const n = stored.get(key(c.params.session.session, JSON.stringify(message))) ?? 0;
      if (n !== 1) out.push(`a ${message.role} message of ${c.params.session.session} is stored ${n} times`);
    }
  }
  for (const turn of accepted) if (!committed.has(turn.name)) out.push(`turn ${turn.name} was never committed`);
  return out;
}

const textOf = (message) => (typeof message.content === 'string' ? message.content : message.content.map((part) => part.text ?? '').join('\n'));

/**
 * No message of the host is stored twice, and no turn has two user messages of its own. Where a turn failed, the host shows its user message merged with
 * the next one: such a message begins several turns and is another one.
 */
export function storedTwice(entries) {
  const seen = new Map();
  const count = (what) => seen.set(what, (seen.get(what) ?? 0) + 1);
  for (const e of entries) {
    if (e.type !== 'message') continue;
    if (e.raw) count(`${e.session} ${e.role} ${e.raw}`);
    const names = e.role === 'user' ? turnsIn(e.text) : [];
    if (names.length === 1) count(`${e.session} turn ${names[0]}`);
  }
  return [...seen].filter(([, n]) => n > 1).map(([what, n]) => `stored ${n} times: ${what.slice(0, 200)}`);
}
