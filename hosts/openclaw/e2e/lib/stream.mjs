// The streamed answer: server-sent events with text and tool calls in deltas, and usage at the end.
import { finalText } from './directives.mjs';

const pause = (ms) => new Promise((resolve) => { setTimeout(resolve, ms); });

/** Cuts text into pieces of about n characters. */
function pieces(text, n) {
  const out = [];
  for (let i = 0; i < text.length; i += n) out.push(text.slice(i, i + n));
  return out;
}

/**
 * Streams what the directives ask for: the calls of the round at hand, or the final answer.
 * @param {import('node:http').ServerResponse} response
 */
export async function answer(response, directives, { model, promptTokens, cut, delay }) {
  if (delay > 0) await pause(delay);
  const id = `chatcmpl-${Math.random().toString(36).slice(2, 12)}`;
  response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-cache' });
  const event = (fields) => response.write(`data: ${JSON.stringify({ id, object: 'chat.completion.chunk', created: Math.floor(Date.now() / 1000), model, ...fields })}\n\n`);
  const delta = (fields, finish = null) => event({ choices: [{ index: 0, delta: fields, finish_reason: finish }] });

  delta({ role: 'assistant', content: '' });
  const calls = directives.rounds[directives.round];
  let produced = 0;
  if (calls) {
    calls.forEach((call, index) => {
      const text = JSON.stringify(call.args ?? {});
      produced += text.length / 4;
      delta({ tool_calls: [{ index, id: `call_${directives.turn}_${directives.round}_${index}`, type: 'function', function: { name: call.name, arguments: '' } }] });
      for (const part of pieces(text, 12)) delta({ tool_calls: [{ index, function: { arguments: part } }] });
    });
  } else {
    const parts = pieces(finalText(directives), 200);
    for (const part of cut ? parts.slice(0, 1) : parts) {
      produced += part.length / 4;
      delta({ content: part });
    }
  }
  if (cut) {
    response.socket?.destroy();
    return;
  }
  delta({}, calls ? 'tool_calls' : 'stop');
  const completion = Math.ceil(produced);
  const prompt = directives.usage || promptTokens;
  event({ choices: [], usage: { prompt_tokens: prompt, completion_tokens: completion, total_tokens: prompt + completion } });
  response.end('data: [DONE]\n\n');
}
