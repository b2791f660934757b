// A sidecar that is broken in the way that a file names, for every call anew: error, hang, garbage, nonsense, exit. Usage: broken-sidecar.mjs FILE
import { readFileSync } from 'node:fs';
import { createInterface } from 'node:readline';

const engine = { id: 'broken', name: 'Broken', version: '0', ownsCompaction: true };
const write = (frame) => process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', ...frame })}\n`);

createInterface({ input: process.stdin }).on('line', (line) => {
  const { id, method } = JSON.parse(line);
  if (id === undefined) return;
  if (method === 'initialize') return write({ id, result: { protocolVersion: '1', engine } });
  switch (readFileSync(process.argv[2], 'utf8').trim()) {
    case 'error': return write({ id, error: { code: -32603, message: 'engine failed', data: { kind: 'internal' } } });
    case 'hang': return undefined;
    case 'garbage': process.stdout.write('\u0000not a frame at all\n{"jsonrpc":\n'); return undefined;
    case 'nonsense': return write({ id, result: { items: [{ from: 5, to: 90_000 }, { message: 'no message' }], status: 'perhaps', compacted: 'maybe' } });
    case 'exit': return process.exit(3);
    default: return write({ id, result: {} });
  }
}).on('close', () => process.exit(0));
