// What a user's text can tell the model server. Every directive stands on a line of its own:
//
//	@@turn NAME          begins: the turn's name, for the log and the judge
//	@@say TEXT           the final answer; "ok NAME" when absent
//	@@words N            lengthens the answer to about N words
//	@@tools JSON         rounds of tool calls: [[{"name": "read", "args": {"path": "a.txt"}}], ...]; an argument {"found": REGEXP} is what the first group of
//	                     it matches in the turn's newest result that has it, as a model copies it
//	@@overflow N         answers the first N requests of the turn with context_length_exceeded
//	@@fail STATUS N      answers the first N requests of the turn with an error
//	@@cut N              breaks off the first N answers in the middle
//	@@delay MS           waits before the first answer of the turn
//
//	@@usage N            reports N prompt tokens for the answers of the turn, whatever they were
//
// A directive holds for the newest turn that has one, until that turn is answered. Other prompts, such as the host's own announcements
// and the requests of summarizers, are answered plainly.
import { textOf } from './tokens.mjs';

// A turn's first line, with what hosts put in front of it: a time, or what a subagent's task is introduced with. A directive inside the arguments of a tool
// is none.
const opening = /(?:^|\n|\] )@@turn (\S+)/g;

/** The names of the turns that begin in a text. */
export const turnsIn = (text) => [...text.matchAll(opening)].map((found) => found[1]);

/** No directives at all. */
export const plain = (kind) => ({ turn: '', kind, say: '', words: 0, rounds: [], round: 0, overflow: 0, fail: [], cut: 0, delay: 0, usage: 0 });

/** Reads the directives that the newest messages ask for, and how far the turn has come. */
export function currentDirectives(messages) {
  const out = plain('plain');
  let at = messages.length - 1;
  while (at >= 0 && !(messages[at].role === 'user' && turnsIn(textOf(messages[at].content)).length > 0)) at--;
  if (at < 0) return out;
  const after = messages.slice(at + 1);
  if (after.some((m) => m.role === 'assistant' && !m.tool_calls?.length)) return { ...out, kind: 'after' };
  parse(out, textOf(messages[at].content));
  out.kind = 'turn';
  out.round = after.filter((m) => m.role === 'assistant' && m.tool_calls?.length).length;
  const results = after.filter((m) => m.role === 'tool').map((m) => textOf(m.content)).reverse();
  out.rounds = out.rounds.map((calls, i) => (i === out.round ? calls.map((call) => ({ ...call, args: copied(call.args, results) })) : calls));
  return out;
}

function copied(args, results) {
  return Object.fromEntries(Object.entries(args ?? {}).map(([key, value]) => {
    if (typeof value?.found !== 'string') return [key, value];
    const pattern = new RegExp(value.found);
    return [key, results.map((text) => pattern.exec(text)?.[1]).find((text) => text !== undefined) ?? ''];
  }));
}

function parse(out, text) {
  // A message that the host merged from several turns holds the newest turn's directives last.
  const last = [...text.matchAll(opening)].at(-1);
  const lines = text.slice(last.index + last[0].indexOf('@@turn')).split('\n');
  for (const line of lines) {
    const found = /^@@(\w+)(?: (.*))?$/.exec(line.trim());
    if (!found) continue;
    const [, name, value = ''] = found;
    switch (name) {
      case 'turn': out.turn = value.trim(); break;
      case 'say': out.say = value; break;
      case 'words': out.words = Number(value); break;
      case 'tools': out.rounds = JSON.parse(value); break;
      case 'overflow': out.overflow = Number(value || 1); break;
      case 'cut': out.cut = Number(value || 1); break;
      case 'usage': out.usage = Number(value); break;
      case 'delay': out.delay = Number(value); break;
      case 'fail': {
        const [status, times = '1'] = value.split(' ');
        out.fail.push([Number(status), Number(times)]);
        break;
      }
      default: throw new Error(`unknown directive ${name}`);
    }
  }
}

const filler = 'the harbour keeps its lamps burning while grey boats drift past the long stone wall and children count gulls above the quiet market'.split(' ');

/** Words that are the same for the same seed and differ between seeds. */
export function words(seed, count) {
  let h = 2166136261;
  for (const c of seed) h = Math.imul(h ^ c.charCodeAt(0), 16777619) >>> 0;
  const out = [];
  for (let i = 0; i < count; i++) {
    h = (Math.imul(h, 1664525) + 1013904223) >>> 0;
    out.push(filler[h % filler.length] + (i % 11 === 0 ? (h % 997).toString() : ''));
  }
  return out.join(' ');
}

/** What a request of the host's summarizer is answered with: the sections it asks for. */
const summary = ['Decisions', 'Open TODOs', 'Constraints/Rules', 'Pending user asks', 'Exact identifiers'].map((name) => `## ${name}\nNone.`).join('\n\n');

/** The final answer that a turn's directives ask for. */
export function finalText(directives) {
  if (directives.text !== undefined) return directives.text;
  if (directives.kind === 'summary') return summary;
  const say = directives.say || (directives.turn ? `ok ${directives.turn}` : 'noted');
  return directives.words > 0 ? `${say} ${words(directives.turn, directives.words)}` : say;
}
