// A client of a running gateway, as a process of its own because the host's client keeps state in the environment's folders. It outlives the gateways of
// its installation: loading the host's client takes seconds. It reads {connect: N}, {disconnect: true} and {id, method, params, final} lines and writes
// {connected: N}, {connectError}, {id, result} and {id, error} lines. Usage: driver.mjs HOST_PACKAGE URL; the token comes in E2E_GATEWAY_TOKEN.
import { createInterface } from 'node:readline';
import { pathToFileURL } from 'node:url';

const [hostPackage, url] = process.argv.slice(2);
const sdk = await import(pathToFileURL(`${hostPackage}/dist/plugin-sdk/gateway-runtime.js`).href);
const write = (value) => process.stdout.write(`${JSON.stringify(value)}\n`);
// What a gateway that went away left waiting is told to nobody.
process.on('unhandledRejection', () => {});

let client;
function connect(n) {
  client?.stop();
  const own = new sdk.GatewayClient({
    url,
    token: process.env.E2E_GATEWAY_TOKEN,
    clientName: 'cli',
    mode: 'cli',
    clientVersion: 'e2e',
    scopes: ['operator.admin', 'operator.read', 'operator.write'],
    onHelloOk: () => { if (client === own) write({ connected: n }); },
    onConnectError: (error) => { if (client === own) write({ connectError: error.message }); },
  });
  client = own;
  own.start();
}

createInterface({ input: process.stdin }).on('line', async (line) => {
  const { connect: n, disconnect, id, method, params, final, timeoutMs } = JSON.parse(line);
  if (n !== undefined) return connect(n);
  if (disconnect) {
    client?.stop();
    client = undefined;
    return undefined;
  }
  try {
    write({ id, result: await client.request(method, params, { expectFinal: final === true, timeoutMs }) });
  } catch (error) {
    write({ id, error: error instanceof Error ? error.message : String(error) });
  }
  return undefined;
}).on('close', () => { client?.stop(); process.exit(0); });
