// What prompts cost where a provider keeps the beginning of the last one: the rest at full price, what two requests in a row begin with at that of cached
// tokens. Four bytes are a token.
import { turnsIn } from './directives.mjs';
import { textOf } from './tokens.mjs';

const isRecall = (m) => m.role === 'user' && textOf(m.content).includes('<recalled>');
/** What the host says of its runtime behind every prompt: made anew for each request, and never part of what follows. */
const isNote = (text) => text.includes('<<<BEGIN_OPENCLAW_INTERNAL_CONTEXT>>>');
const size = (text) => Buffer.byteLength(text, 'utf8') / 4;

/** A request as a list of its pieces: tools first, as providers read them. */
const pieces = (r) => [JSON.stringify(r.body.tools ?? []), ...r.body.messages.map((m) => JSON.stringify(m))];

/** Length of the common beginning of two lists of texts, in bytes / 4. */
function common(a, b) {
  let n = 0;
  for (let i = 0; i < Math.min(a.length, b.length); i++) {
    if (a[i] === b[i]) { n += size(a[i]); continue; }
    let same = 0;
    while (same < a[i].length && a[i][same] === b[i][same]) same++;
    return n + size(a[i].slice(0, same));
  }
  return n;
}

/** The pieces in front of the newest turn, without the recall block that was made for it. */
function settled(r, texts) {
  const turn = r.body.messages.findLastIndex((m) => m.role === 'user' && turnsIn(textOf(m.content)).includes(r.turn));
  let end = turn < 0 ? r.body.messages.length : turn;
  if (end > 0 && isRecall(r.body.messages[end - 1])) end--;
  return texts.slice(0, end + 1);
}

/** Adds up a session's requests. price is what a cached token costs. */
export function bill(requests, price = 0.1) {
  const out = { calls: 0, tokens: 0, cached: 0, history: 0, broken: 0, stray: 0, summaries: 0, summaryTokens: 0, cramped: 0, recall: 0 };
  let before;
  for (const r of requests) {
    if (r.outcome !== 'answered') continue;
    const texts = pieces(r);
    const total = texts.reduce((n, t) => n + size(t), 0);
    if (!r.body.tools) {
      out.summaries++;
      out.summaryTokens += total;
      continue;
    }
    if (r.kind !== 'turn') continue;
    out.calls++;
    out.tokens += total;
    const front = texts.length > 1 && r.body.messages[0].role === 'system' ? size(texts[0]) + size(texts[1]) : size(texts[0]);
    out.history += total - front;
    out.recall += r.body.messages.filter(isRecall).reduce((n, m) => n + size(JSON.stringify(m)), 0);
    if ((r.body.max_completion_tokens ?? 4096) < 16) out.cramped++;
    if (before) {
      const cached = common(before.texts, texts);
      out.cached += cached;
      const old = before.settled;
      let same = 0;
      while (same < old.length && old[same] === texts[same]) same++;
      if (same < old.length) out.broken++;
      else {
        // Between broken prefixes nothing is paid twice but the newest turn's recall block and the host's note behind it.
        const twice = before.texts.slice(old.length).filter((t) => !t.includes('<recalled>') && !isNote(t) && texts.slice(old.length).includes(t)).reduce((n, t) => n + size(t), 0);
        out.stray += Math.max(0, Math.min(twice, size(old.join('')) + twice - cached));
      }
    }
    before = { texts, settled: settled(r, texts) };
  }
  const uncached = out.tokens - out.cached;
  return { ...out, reuse: out.cached / out.tokens, cost: uncached + price * out.cached, withSummaries: uncached + price * out.cached + out.summaryTokens, meanHistory: out.history / out.calls };
}
