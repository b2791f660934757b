// The traffic between plugin and sidecar, as the tee wrote it down.
import { existsSync, readFileSync } from 'node:fs';

/** @typedef {{at: number, answered?: number, method: string, params: any, result?: any, error?: any, asked: {method: string}[]}} Call */

/** The lines of a log of JSON; one that is still being written is left out. */
export function readLines(path) {
  if (!existsSync(path)) return [];
  const text = readFileSync(path, 'utf8');
  return text.slice(0, text.lastIndexOf('\n') + 1).split('\n').filter(Boolean).map((line) => JSON.parse(line));
}

/** The calls in order, each with its answer. Ids begin anew with every sidecar. @returns {Call[]} */
export function calls(path) {
  const out = [];
  let open = new Map();
  for (const { at, direction, line } of readLines(path)) {
    if (direction === 'log') continue;
    let frame;
    try { frame = JSON.parse(line); } catch { continue; }
    if (direction === 'to' && frame.method) {
      if (frame.method === 'initialize') open = new Map();
      const call = { at, method: frame.method, params: frame.params, asked: [] };
      if (frame.id !== undefined) open.set(frame.id, call);
      out.push(call);
    } else if (direction === 'from' && frame.method) {
      if (frame.params?.call !== undefined) open.get(frame.params.call)?.asked.push({ method: frame.method });
    } else if (direction === 'from') {
      const call = open.get(frame.id);
      if (call) Object.assign(call, { answered: at, result: frame.result, error: frame.error });
    }
  }
  return out;
}
