// What the model server's request log says about the prompts. Every function returns texts of what is wrong; an empty list is good.
import { turnsIn } from './directives.mjs';
import { messageTokens, textOf } from './tokens.mjs';

const isRecall = (m) => m.role === 'user' && textOf(m.content).includes('<recalled>');
const markers = (m) => (m.role === 'user' && !isRecall(m) ? turnsIn(textOf(m.content)) : []);
const where = (r) => `request ${r.n} (${r.label} ${r.turn})`;

/** The prompts of agents' turns: what has tools, and is no request of a summarizer. */
export const prompts = (log) => log.filter((r) => r.body.tools);

/** Every call of a tool is followed by its results, and by nothing else. */
export function tornPairs(log) {
  const out = [];
  for (const r of log) {
    let waiting = new Set();
    for (const m of r.body.messages) {
      if (m.role === 'tool') {
        if (!waiting.delete(m.tool_call_id)) out.push(`${where(r)}: a result without its call: ${m.tool_call_id}`);
        continue;
      }
      for (const id of waiting) out.push(`${where(r)}: a call without its result: ${id}`);
      waiting = new Set((m.tool_calls ?? []).map((c) => c.id));
    }
    for (const id of waiting) out.push(`${where(r)}: a call without its result: ${id}`);
  }
  return out;
}

/** No turn is there twice, the current one above all. */
export function repeatedTurns(log) {
  const out = [];
  for (const r of log) {
    const seen = new Set();
    for (const m of r.body.messages) {
      for (const name of markers(m)) {
        if (seen.has(name)) out.push(`${where(r)}: turn ${name} is there twice`);
        seen.add(name);
      }
    }
    if (r.kind === 'turn' && r.turn && !seen.has(r.turn)) out.push(`${where(r)}: the current turn is missing`);
  }
  return out;
}

/** No prompt is larger than the window, as the server counts. */
export const overWindow = (log) => log.filter((r) => r.tokens > r.window).map((r) => `${where(r)}: ${r.tokens} tokens of ${r.window}`);

/** The least that a model is to be left for its answer, in tokens. */
const ROOM = 512;

/** The host leaves the model what its own estimate of the prompt leaves of the window: no prompt is so large that there is no room for an answer. */
export const cramped = (log) => log.filter((r) => r.body.max_completion_tokens < ROOM).map((r) => `${where(r)}: max_completion_tokens ${r.body.max_completion_tokens}`);

/** Turns appear in the order in which they happened. */
export function disorder(log, order) {
  const at = new Map(order.map((name, i) => [name, i]));
  const out = [];
  for (const r of log) {
    let last = -1;
    for (const name of r.body.messages.flatMap(markers)) {
      const i = at.get(name);
      if (i === undefined) continue;
      if (i < last) out.push(`${where(r)}: turn ${name} comes too late`);
      last = Math.max(last, i);
    }
  }
  return out;
}

/** The messages of a prompt that have to stay: without system prompt, recall block and newest turn. */
function settled(r) {
  const messages = r.body.messages.filter((m) => m.role !== 'system');
  let end = messages.findLastIndex((m) => markers(m).includes(r.turn));
  if (end < 0) end = messages.length;
  return messages.slice(0, end).filter((m) => !isRecall(m)).map((m) => ({ text: JSON.stringify(m), tokens: messageTokens(m) }));
}

/**
 * How much of what was sent is sent again, for each turn's first prompt against the one of the turn before, in one session.
 * moved says whether the window moved between two requests.
 */
export function prefixReuse(requests, moved) {
  const out = [];
  let before;
  for (const r of requests) {
    if (r.kind !== 'turn' || r.outcome !== 'answered' || r.turn === before?.turn) continue;
    if (before) {
      const [old, now] = [settled(before), settled(r)];
      let same = 0;
      while (same < old.length && same < now.length && old[same].text === now[same].text) same++;
      const total = old.reduce((n, m) => n + m.tokens, 0);
      const kept = old.slice(0, same).reduce((n, m) => n + m.tokens, 0);
      out.push({ turn: r.turn, share: total === 0 ? 1 : kept / total, moved: moved(before, r), at: same, old: old[same]?.text, now: now[same]?.text });
    }
    before = r;
  }
  return out;
}
