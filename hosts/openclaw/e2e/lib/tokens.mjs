// How the model server counts a prompt: four bytes of text are a token, as the host itself assumes for Latin text. Everything
// that reaches the model counts: system prompt, messages, calls and their arguments, tool schemas.

/** Text of a message's content, whatever its form. */
export function textOf(content) {
  if (typeof content === 'string') return content;
  if (!Array.isArray(content)) return '';
  return content.map((part) => (typeof part?.text === 'string' ? part.text : '')).join('\n');
}

const size = (text) => Math.ceil(Buffer.byteLength(text, 'utf8') / 4);

export function messageTokens(message) {
  let n = 4 + size(textOf(message.content));
  for (const call of message.tool_calls ?? []) {
    n += 4 + size(call.function?.name ?? '') + size(call.function?.arguments ?? '');
  }
  return n;
}

/** Tokens of a request's prompt. */
export function countTokens(body) {
  let n = 0;
  for (const message of body.messages ?? []) n += messageTokens(message);
  return n + (body.tools ? size(JSON.stringify(body.tools)) : 0);
}
