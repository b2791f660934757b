// A model server on loopback. It speaks the streaming chat protocol of OpenAI, does what directives in the user's text
// tell it, refuses what is larger than its window, and logs every request for the judge.
import { appendFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';

import { currentDirectives, plain } from './directives.mjs';
import { answer } from './stream.mjs';
import { countTokens } from './tokens.mjs';

/**
 * @typedef {object} ModelOptions
 * @property {number} port
 * @property {number} window largest prompt in tokens, as countTokens counts them
 * @property {string} log path of the JSONL request log; it is emptied first
 * @property {string} [key] the bearer token that requests must carry
 * @property {{answer?: (turn: string) => string | undefined, summary?: (body: any) => string}} [script] what it says instead of what directives ask for
 */

/** Starts a model server; the result stops it and says what it refused. @param {ModelOptions} options */
export async function startModel(options) {
  writeFileSync(options.log, '');
  const state = { window: options.window, seen: new Map(), label: '', requests: 0 };
  const server = createServer((request, response) => {
    const chunks = [];
    request.on('data', (chunk) => chunks.push(chunk));
    request.on('end', () => {
      if (request.url?.endsWith('/models')) {
        response.setHeader('content-type', 'application/json');
        response.end(JSON.stringify({ object: 'list', data: [{ id: 'fake-1', object: 'model' }] }));
        return;
      }
      if (options.key && request.headers.authorization !== `Bearer ${options.key}`) {
        refuse(response, 401, 'invalid_api_key', 'Incorrect API key provided.');
        return;
      }
      respond(state, options, JSON.parse(Buffer.concat(chunks).toString('utf8')), response);
    });
  });
  server.keepAliveTimeout = 1000;
  await new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(options.port, '127.0.0.1', resolve);
  });
  return {
    /** Names the part of the run that the following requests belong to. */
    label: (/** @type {string} */ text) => { state.label = text; },
    /** Changes the window, in tokens. */
    resize: (/** @type {number} */ window) => { state.window = window; },
    requests: () => state.requests,
    stop: () => new Promise((resolve) => { server.closeAllConnections(); server.close(resolve); }),
  };
}

function respond(state, { log, script = {} }, body, response) {
  const messages = body.messages ?? [];
  const tokens = countTokens(body);
  // A request without tools is a summarizer's.
  const directives = body.tools ? currentDirectives(messages) : plain('summary');
  directives.text = directives.kind === 'summary' ? script.summary?.(body) : script.answer?.(directives.turn);
  const record = { n: ++state.requests, label: state.label, at: Date.now(), window: state.window, tokens, outcome: 'answered', turn: directives.turn, kind: directives.kind, body };
  const note = (outcome) => {
    record.outcome = outcome;
    appendFileSync(log, `${JSON.stringify(record)}\n`);
  };
  // A directive with a budget of times holds for that many requests of its turn.
  const due = (name, times) => {
    const key = `${state.label}/${directives.turn}/${name}`;
    const n = state.seen.get(key) ?? 0;
    if (n >= times) return false;
    state.seen.set(key, n + 1);
    return true;
  };
  if (tokens > state.window) {
    note('refused: over the window');
    refuse(response, 400, 'context_length_exceeded', overflowText(state.window, tokens));
    return;
  }
  if (directives.overflow > 0 && due('overflow', directives.overflow)) {
    note('told to overflow');
    refuse(response, 400, 'context_length_exceeded', overflowText(state.window, state.window + 1000));
    return;
  }
  for (const [status, times] of directives.fail) {
    if (due(`fail${status}`, times)) {
      note(`told to fail ${status}`);
      refuse(response, status, status === 429 ? 'rate_limit_exceeded' : 'server_error', status === 429 ? 'Rate limit reached.' : 'The server had an error.');
      return;
    }
  }
  const delay = directives.delay > 0 && due('delay', 1) ? directives.delay : 0;
  const cut = directives.cut > 0 && due('cut', directives.cut);
  note(cut ? 'told to cut' : 'answered');
  void answer(response, directives, { model: body.model, promptTokens: tokens, cut, delay });
}

const overflowText = (window, tokens) =>
  `This model's maximum context length is ${window} tokens. However, your messages resulted in ${tokens} tokens. Please reduce the length of the messages.`;

function refuse(response, status, code, message) {
  response.writeHead(status, { 'content-type': 'application/json' });
  response.end(JSON.stringify({ error: { message, type: status === 400 ? 'invalid_request_error' : 'api_error', param: 'messages', code } }));
}
