// A client of a running gateway, as a process of its own because the host's client keeps state in the environment's folders. It reads
// {id, method, params, final} lines and writes {id, result} or {id, error} lines. Usage: driver.mjs HOST_PACKAGE URL; the token
// comes in E2E_GATEWAY_TOKEN.
import { createInterface } from 'node:readline';
import { pathToFileURL } from 'node:url';

const [hostPackage, url] = process.argv.slice(2);
const sdk = await import(pathToFileURL(`${hostPackage}/dist/plugin-sdk/gateway-runtime.js`).href);
const write = (value) => process.stdout.write(`${JSON.stringify(value)}\n`);

const client = new sdk.GatewayClient({
  url,
  token: process.env.E2E_GATEWAY_TOKEN,
  clientName: 'cli',
  mode: 'cli',
  clientVersion: 'e2e',
  scopes: ['operator.admin', 'operator.read', 'operator.write'],
  onHelloOk: () => write({ connected: true }),
  onConnectError: (error) => write({ connectError: error.message }),
});
client.start();

createInterface({ input: process.stdin }).on('line', async (line) => {
  const { id, method, params, final, timeoutMs } = JSON.parse(line);
  try {
    write({ id, result: await client.request(method, params, { expectFinal: final === true, timeoutMs }) });
  } catch (error) {
    write({ id, error: error instanceof Error ? error.message : String(error) });
  }
}).on('close', () => { client.stop(); process.exit(0); });
